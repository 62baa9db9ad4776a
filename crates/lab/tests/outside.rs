//! An interface from outside the workspace's crates declares options of its own: they are in scenario files, `--set`, checks,
//! listings and runs, and nothing else is touched.

use std::path::Path;
use std::sync::Arc;

use nicforge_interfaces::describe::{Around, Describe, Queues, Shape};
use nicforge_interfaces::{Built, Interface, InterfaceError, KnownGround, Plan, priv_ring};
use nicforge_lab::Registry;
use nicforge_lab::machine::{Machine, parse_machine};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::scenario::{parse_override, parse_scenario};
use nicforge_lab::settings::{Catalogue, Settings};
use nicforge_options::{Allowed, Finding, ensure, options};
use nicforge_platform::AddressSpace;

options! {
    /// The options of an interface of one's own.
    pub struct MineOptions {
        /// Entries of each of my rings.
        mine_entries: usize = 256, "entries", Allowed::PowerOfTwo(2, 4096);
        /// Whether they are doubled.
        mine_doubled: bool = false, "", Allowed::Flag;
    }
}

impl MineOptions {
    fn entries(&self) -> usize {
        if self.mine_doubled { 2 * self.mine_entries } else { self.mine_entries }
    }
}

/// Private rings by another name.
struct Mine;

impl Describe for Mine {
    const NAME: &'static str = "mine";
    const ABOUT: &'static str = "an interface from outside";
    type Options = MineOptions;

    fn shape(options: &MineOptions, queues: &Queues<'_>) -> Shape {
        Shape::of_rings(queues, options.entries(), 1)
    }

    fn check(options: &MineOptions, _queues: &Queues<'_>) -> Result<(), Finding> {
        ensure(options.entries() <= 4096, &["mine_entries", "mine_doubled"], || {
            ("rings are too large".to_owned(), "set mine_entries to at most 2048".to_owned())
        })
    }

    fn advice(options: &MineOptions, _around: &Around<'_>) -> Vec<String> {
        Vec::from_iter((options.mine_entries < 8).then(|| "use at least 8".to_owned()))
    }
}

impl Interface for Mine {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let options: MineOptions = plan.values.read();
        let plan = Plan { rx_entries: options.entries(), ..plan.clone() };
        let (nic, drivers) = priv_ring::build(&plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}

fn machine() -> Machine {
    let text = include_str!("../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("xeon-4216-cx5.toml")).expect("the shipped machine")
}

fn registry() -> Registry {
    Registry::shipped().interface::<Mine>()
}

/// The one point of a scenario with `settings` and `--set` of `set`.
fn point(settings: &str, set: &[&str]) -> Result<Settings, String> {
    let catalogue = Arc::new(Catalogue::new(registry()));
    let text = format!("[scenario]\nname = \"s\"\nmachine = \"m\"\n[settings]\n{settings}\n");
    let scenario = parse_scenario(&text, Path::new("s.toml"), &catalogue).map_err(|error| error.to_string())?;
    let sets: Vec<_> = set.iter().map(|text| parse_override(text, &catalogue).unwrap()).collect();
    let points = scenario.expand(&machine(), &sets, &catalogue).map_err(|error| error.to_string())?;
    Ok(points[0].settings.clone())
}

#[test]
fn its_keys_are_known_checked_and_listed() {
    let settings = point("interface = \"mine\"\nmine_entries = 64", &["mine_doubled=true"]).unwrap();
    assert_eq!(settings.read::<MineOptions>(), MineOptions { mine_entries: 64, mine_doubled: true });
    assert!(settings.counts("mine_entries") && !settings.counts("rx_entries"));
    let effective = settings.effective();
    assert!(effective.iter().any(|(owner, key, _)| owner.name == "mine" && key.name == "mine_doubled"));
    for (wrong, place, says) in [
        ("interface = \"mine\"\nmine_entrys = 64", "s.toml:6:1", "`mine_entries`"),
        ("interface = \"mine\"\nmine_entries = 100", "s.toml:6:16", "64 or 128"),
        ("interface = \"mine\"\nmine_doubled = true\nmine_entries = 4096", "s.toml:7:16", "at most 2048"),
        ("interface = \"mien\"", "s.toml:5:13", "\"mine\""),
    ] {
        let error = point(wrong, &[]).unwrap_err();
        assert!(error.starts_with(place) && error.contains(says), "{error}");
    }
    let page = Catalogue::new(registry()).vocabulary().markdown();
    assert!(page.contains("## interface mine\n") && page.contains("| `mine_entries` |"), "{page}");
}

#[test]
fn its_options_reach_its_rings() {
    let run = |entries: &str| {
        let text = format!(
            "interface = \"mine\"\n{entries}\ncores = 2\nnics = 1\nflows = 100\ntable_entries = 4096\nwarmup_ms = 0.05\n\
             window_ms = 0.1\napp = \"synthetic\"\nreads = 200\narray_mib = 1\noffered_gbps = 90"
        );
        run_point(&machine(), &point(&text, &[]).unwrap(), 1, &RunIo::default(), &mut |_, _| {}).unwrap().metrics
    };
    let (small, large) = (run("mine_entries = 8"), run("mine_entries = 1024"));
    assert!(small.drop_fraction > large.drop_fraction, "{} {}", small.drop_fraction, large.drop_fraction);
}
