//! Packets that are followed on the live ground: through every interface, on one thread and on several.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use nicforge_interfaces::Interfaces;
use nicforge_lab::live::{LiveConfig, check_followed, parse_live, run_live};
use nicforge_lab::settings::Catalogue;
use nicforge_record::{LifeEnd, PacketLife, Trace};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");
const PACKETS: usize = 12;

fn config(live: &str, settings: &str, rest: &str) -> LiveConfig {
    let text = format!(
        "[live]\nname = \"test\"\n{live}\n[settings]\n{settings}\n[[port]]\nread = {SAMPLE:?}\n[[port]]\n{rest}\n"
    );
    parse_live(&text, Path::new("test.toml"), &Catalogue::shipped()).unwrap()
}

fn followed(settings: &str) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let out = format!("write = {:?}", folder.path().join("out.pcap"));
    let config = config(&format!("trace = {PACKETS}"), settings, &out);
    run_live(&config, &AtomicBool::new(false), &mut |_| {}).unwrap().trace.unwrap()
}

fn check(what: &str, packet: &PacketLife) {
    let what = format!("{what}: {packet:#?}");
    assert_eq!(packet.end, LifeEnd::Sent, "{what}");
    assert_eq!(packet.steps.first().map(|step| step.from_ps), Some(packet.arrived_ps), "{what}");
    assert!(packet.steps.windows(2).all(|pair| pair[0].until_ps == pair[1].from_ps), "{what}");
    assert!(packet.steps.iter().all(|step| step.from_ps < step.until_ps), "{what}");
    // What takes less than the clock's step is not seen; these go from one thread's hands to another's.
    for place in ["NIC", "worker"] {
        assert!(packet.steps.iter().any(|step| step.place.starts_with(place)), "{place} in {what}");
    }
}

#[test]
fn every_interface_shows_the_way_of_its_packets_between_threads() {
    for interface in Interfaces::shipped().of_rings() {
        for cores in [1, 2] {
            let trace = followed(&format!("interface = \"{interface}\"\napp = \"l2fwd\"\ncores = {cores}"));
            let what = format!("{interface} on {cores}");
            assert_eq!(trace.packets.len(), PACKETS, "{what}");
            assert!(trace.chosen_of > 100, "{what}: {}", trace.chosen_of);
            trace.packets.iter().for_each(|packet| check(&what, packet));
            let numbers: Vec<u64> = trace.packets.iter().map(|packet| packet.arrived_ps).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{what}: {numbers:?}");
        }
    }
}

#[test]
fn nobody_is_followed_unless_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = format!("write = {:?}", folder.path().join("out.pcap"));
    let config = config("", "interface = \"priv_ring\"\napp = \"l2fwd\"", &out);
    assert_eq!(run_live(&config, &AtomicBool::new(false), &mut |_| {}).unwrap().trace, None);
}

#[test]
fn workers_of_other_processes_and_a_stack_are_not_followed() {
    let settings = "interface = \"priv_ring\"\napp = \"l2fwd\"";
    let mut config = config("attach = \"/run/none.sock\"", settings, "write = \"out.pcap\"");
    check_followed(&config).unwrap();
    config.live.set("trace", 5usize, nicforge_options::Place::argument("--trace 5"));
    let refused = check_followed(&config).unwrap_err().to_string();
    assert!(refused.contains("--trace 5") && refused.contains("leave `trace` out"), "{refused}");
    let text = "[live]\nname = \"test\"\ntrace = 5\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n[[port]]\ntap = \"none\"\n\
                [tcp]\naddress = [\"10.0.0.2/24\"]\n";
    let refused = parse_live(text, Path::new("test.toml"), &Catalogue::shipped()).unwrap_err().to_string();
    assert!(refused.contains("test.toml:3") && refused.contains("TCP stack"), "{refused}");
}
