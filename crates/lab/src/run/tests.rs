//! Applications that programs of `flexnic` help: the same counts with help and without.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nicforge_p4stage::flexnic::FlexNic;
use nicforge_units::Time;

use super::RunIo;
use super::build::build;
use crate::machine::{Machine, parse_machine};
use crate::registry::Registry;
use crate::settings::{Catalogue, Settings};

fn machine() -> Machine {
    let text = include_str!("../../../../machines/xeon-e5-2430-x520.toml");
    parse_machine(text, Path::new("machines/xeon-e5-2430-x520.toml")).unwrap()
}

fn file(name: &str) -> String {
    format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))
}

fn settings(app: &str, capture: &str, gbps: f64) -> Settings {
    let catalogue = Arc::new(Catalogue::new(Registry::shipped().interface::<FlexNic>()));
    Settings::for_machine(&catalogue, &machine())
        .with("app", app)
        .with("nics", 1)
        .with("cores", 4)
        .with("rx_entries", 512)
        .with("arrival", "replay")
        .with("pcap", file(capture))
        .with("replay_timing", "scaled")
        .with("offered_gbps", gbps)
}

fn helped(settings: Settings, program: &str, entries: &str) -> Settings {
    settings
        .with("interface", "flexnic")
        .with("flexnic_program", file(&format!("examples/p4/flexnic/{program}")))
        .with("flexnic_entries", file(&format!("examples/p4/flexnic/{entries}")))
}

/// The sums of the applications' counters once all is done, and those of each core.
fn counts(settings: &Settings) -> (BTreeMap<&'static str, u64>, Vec<BTreeMap<&'static str, u64>>) {
    settings.check(&machine()).unwrap();
    let mut built = build(&machine(), settings, 1, &RunIo::default()).unwrap();
    built.world.run_until(Time::from_ms(60)).unwrap();
    assert_eq!((built.world.inside(), built.world.dropped()), (0, 0), "{:?}", built.world.drops());
    let each: Vec<BTreeMap<_, _>> =
        built.world.hosts[0].cores.iter().map(|core| core.program.counters().into_iter().collect()).collect();
    let mut sums = BTreeMap::new();
    for (name, count) in each.iter().flatten() {
        *sums.entry(*name).or_default() += count;
    }
    (sums, each)
}

#[test]
fn detectors_find_the_same_wherever_packets_go() {
    let by_hash = settings("ids", "scenarios/captures/ids.pcap.gz", 0.5);
    let by_group = helped(by_hash.clone(), "groups.p4", "ids.toml");
    let ((hash, _), (group, cores)) = (counts(&by_hash), counts(&by_group));
    assert_eq!(hash, group);
    assert!(hash["alerts"] > 10 && hash["inspected"] == 700, "{hash:?}");
    // The greedy partition: no core scans much more than another.
    let scanned = cores.iter().map(|core| core["scanned_bytes"]);
    let (least, most) = (scanned.clone().min().unwrap(), scanned.max().unwrap());
    assert!(most < least * 3 / 2, "{least} to {most}");
}

#[test]
fn machines_get_the_same_from_a_switch_in_software_and_on_the_nic() {
    let software = settings("vswitch", "scenarios/captures/tunnels.pcap.gz", 1.0).with("cores", 1);
    let nic = helped(software.clone(), "vswitch.p4", "vswitch.toml").with("cores", 6).with("vswitch_nic", true);
    let ((software, _), (nic, cores)) = (counts(&software), counts(&nic));
    let machines = |counts: &BTreeMap<&'static str, u64>| -> Vec<u64> {
        counts.iter().filter(|(name, _)| name.starts_with("machine_")).map(|(_, count)| *count).collect()
    };
    assert_eq!(machines(&software), machines(&nic));
    assert_eq!(machines(&nic).iter().sum::<u64>(), 800);
    // Only what no wildcard knows comes to the daemon.
    assert!(cores[0]["tunnelled"] < 40 && cores[0]["daemon"] > 0, "{:?}", cores[0]);
}
