//! An interface and a stage from outside the workspace's crates declare options of their own: they are in scenario files,
//! `--set`, checks, listings and runs, and nothing else is touched.

use std::path::Path;
use std::sync::Arc;

use nicforge_interfaces::describe::{Around, Describe, Queues, Shape};
use nicforge_interfaces::{Built, Interface, InterfaceError, KnownGround, Plan, priv_ring};
use nicforge_lab::Registry;
use nicforge_lab::machine::{Machine, parse_machine};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::scenario::{parse_override, parse_scenario};
use nicforge_lab::settings::{Catalogue, Settings};
use nicforge_nic::DropCause;
use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_options::{Allowed, ConfigError, Finding, Place, ensure, options};
use nicforge_platform::{AddressSpace, Dma, Ground};
use nicforge_stages::{BuiltStage, StageError, StageKind, StagePlan};
use nicforge_units::Cycles;

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
        let plan = Plan { values: plan.values.clone().with("rx_entries", options.entries()), ..plan.clone() };
        let (nic, drivers) = priv_ring::build(&plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}

options! {
    /// The options of a stage of one's own.
    pub struct TollOptions {
        /// Every n-th frame that comes in is dropped.
        toll_every: u64 = 10, "frames", Allowed::Whole(2, 1000);
        /// A file with nothing in it but the word `toll`.
        toll_file: Option<String> = None, "", Allowed::File;
    }
}

/// Takes its toll on the way in, and what it costs in both directions.
struct Toll {
    every: u64,
    seen: [u64; 2],
}

impl<D: Dma> Stage<D> for Toll {
    fn ingress(&mut self, nic: &mut Services<'_, D>, _frame: &mut Frame<'_>) -> Verdict {
        nic.work(Cycles(20));
        self.seen[0] += 1;
        match self.seen[0] % self.every {
            0 => Verdict::Drop(DropCause("toll")),
            1 => Verdict::Consume,
            _ => Verdict::Pass,
        }
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.seen[1] += 1;
        if self.seen[1].is_multiple_of(self.every) {
            nic.injector.send(frame.bytes().to_vec(), frame.arrival, nic.now());
        }
        Verdict::Pass
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("toll_in", self.seen[0]), ("toll_out", self.seen[1])]
    }
}

/// Its place in the registry.
struct TollKind;

impl StageKind for TollKind {
    const NAME: &'static str = "toll";
    const ABOUT: &'static str = "a stage from outside";
    type Options = TollOptions;

    fn build<G: Ground>(
        options: &TollOptions,
        _plan: &StagePlan,
        _space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        if let Some(file) = &options.toll_file {
            let place = Place::file(Path::new(file));
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| ConfigError::new(&place, error.to_string(), "name a file"))?;
            if text.trim() != "toll" {
                return Err(ConfigError::new(&place, "it does not say `toll`", "write `toll`").into());
            }
        }
        Ok(BuiltStage::new(Toll { every: options.toll_every, seen: [0; 2] }))
    }
}

fn machine() -> Machine {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("xeon-4216-cx5.toml")).expect("the shipped machine")
}

fn registry() -> Registry {
    Registry::shipped().interface::<Mine>().stage::<TollKind>()
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

const SMALL: &str =
    "cores = 2\nnics = 1\nflows = 100\ntable_entries = 4096\nwarmup_ms = 0.05\nwindow_ms = 0.1\napp = \"l2fwd\"";

#[test]
fn a_stage_is_chosen_by_name_and_reads_its_own_keys() {
    let settings = point("stages = \"toll, hairpin\"\ntoll_every = 4", &[]).unwrap();
    assert_eq!(settings.stages(), ["toll", "hairpin"]);
    assert!(settings.counts("toll_every") && settings.counts("flow_fetches") && settings.counts("stage_ghz"));
    assert!(!point("toll_every = 4", &[]).unwrap().counts("toll_every"));
    for (wrong, says) in [
        ("stages = \"tool\"", "\"toll\""),
        ("stages = \"toll, toll\"", "twice"),
        ("stages = \"toll\"\ntoll_every = 1", "2 to 1000"),
    ] {
        let error = point(wrong, &[]).unwrap_err();
        assert!(error.starts_with("s.toml:") && error.contains(says), "{error}");
    }
}

#[test]
fn a_stage_takes_part_in_runs_with_any_interface() {
    let io = RunIo::default();
    let run = |more: &str| {
        let point = point(&format!("{SMALL}\n{more}"), &[]).unwrap();
        run_point(&machine(), &point, 1, &io, &mut |_, _| {}).map(|run| run.metrics)
    };
    for interface in ["mine", "rx_bisect", "emulated", "in_place"] {
        // At the end every frame is accounted for, or the run fails.
        let metrics = run(&format!("interface = \"{interface}\"\nstages = \"toll\"\noffered_gbps = 10")).unwrap();
        let (seen, dropped) = (metrics.stages["toll_in"], metrics.drops["toll"]);
        assert!(seen > 50 && dropped.abs_diff(seen / 10) <= 1, "{interface}: {dropped} of {seen}");
        assert!(metrics.stages["toll_out"] > 0, "{interface}");
    }
    // 20 cycles a frame at 10 MHz, in both directions: half a million frames a second.
    let slow = run("interface = \"priv_ring\"\nstages = \"toll\"\nstage_ghz = 0.01\noffered_gbps = 50").unwrap();
    let per_second = slow.stages["toll_in"] as f64 / 0.1e-3;
    assert!((0.2e6..0.55e6).contains(&per_second), "{per_second}");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let error = run(&format!("stages = \"toll\"\ntoll_file = \"{manifest}\"")).unwrap_err().to_string();
    assert!(error.contains("Cargo.toml") && error.contains("write `toll`"), "{error}");
}

/// Frames of a capture pass the stage on their way in at one port and out at the other, on threads of their own.
#[cfg(target_os = "linux")]
#[test]
fn a_stage_takes_part_in_live_runs() {
    use nicforge_lab::live::{parse_live, run_live};
    let catalogue = Arc::new(Catalogue::new(registry()));
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pcap");
    let text = format!(
        "[live]\nname = \"toll\"\n[settings]\napp = \"l2fwd\"\ninterface = \"mine\"\nstages = \"toll\"\n\
         toll_every = 5\n[[port]]\nread = {sample:?}\n[[port]]\nwrite = {out:?}\n"
    );
    let config = parse_live(&text, Path::new("toll.toml"), &catalogue).unwrap();
    // At the end every frame is accounted for, or the run fails.
    let metrics = run_live(&config, &Default::default(), &mut |_| {}).unwrap().metrics;
    let (seen, left) = (metrics.stages["toll_in"], metrics.stages["toll_out"]);
    assert!(seen > 100, "{seen}");
    assert_eq!(metrics.drops["toll"], seen / 5);
    assert_eq!(left, seen - metrics.drops["toll"] - seen.div_ceil(5), "all others leave");
}
