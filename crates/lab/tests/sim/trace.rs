//! Packets that are followed: through every interface, to their ends, without a change of any result.

use nicforge_interfaces::Interfaces;
use nicforge_interfaces::emulated::played_by_cores;
use nicforge_lab::run::{PointRun, RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::{LifeEnd, PacketLife, Trace};

use crate::common::machine::{machine, small};

const PACKETS: usize = 20;

fn run(settings: &Settings, trace: Option<usize>) -> PointRun {
    let io = RunIo { trace, ..RunIo::default() };
    run_point(machine(), settings, 1, &io, &mut |_, _| {}).unwrap_or_else(|error| panic!("{error}\n{settings:#?}"))
}

/// The lives of some packets, and the rest of the run, which is the same without them.
fn traced(settings: &Settings) -> Trace {
    let plain = run(settings, None);
    assert_eq!(plain.trace, None);
    let mut followed = run(settings, Some(PACKETS));
    let trace = followed.trace.take().unwrap();
    assert_eq!(followed, plain, "following packets changes nothing");
    trace
}

/// Settings of every interface with rings, and of all NICs that cores play.
fn interfaces() -> Vec<(String, Settings)> {
    let plain = Interfaces::shipped().of_rings().into_iter().filter(|name| *name != "emulated");
    let plain = plain.map(|name| (name.to_owned(), small().with("interface", name)));
    let played = played_by_cores()
        .into_iter()
        .map(|name| (format!("emulated {name}"), small().with("interface", "emulated").with("emulates", name)));
    plain.chain(played).collect()
}

/// An arrival, an end, and steps one behind the other.
fn check(what: &str, packet: &PacketLife) {
    let what = format!("{what}: {packet:#?}");
    let first = packet.steps.first().unwrap_or_else(|| panic!("{what}"));
    assert_eq!((first.place.as_str(), first.from_ps), ("wire", packet.arrived_ps), "{what}");
    assert!(packet.steps.windows(2).all(|pair| pair[0].until_ps == pair[1].from_ps), "{what}");
    assert!(packet.steps.iter().all(|step| step.from_ps < step.until_ps), "{what}");
    assert_ne!(packet.end, LifeEnd::Inside, "{what}");
    let leaves = packet.steps.last().is_some_and(|step| step.place == "wire" && step.name.ends_with("last bit"));
    assert!(packet.end != LifeEnd::Sent || leaves && packet.steps.len() > 8, "{what}");
}

#[test]
fn every_interface_shows_the_whole_way_of_its_packets() {
    for (name, settings) in interfaces() {
        let trace = traced(&settings);
        assert_eq!(trace.packets.len(), PACKETS, "{name}");
        trace.packets.iter().for_each(|packet| check(&name, packet));
        let sent = trace.packets.iter().filter(|packet| packet.end == LifeEnd::Sent);
        let mut sent = sent.peekable();
        assert!(sent.peek().is_some(), "{name}: some are sent");
        for packet in sent {
            for step in ["application", "receive call", "writes it to the host", "first bit out to last bit"] {
                assert!(packet.steps.iter().any(|own| own.name == step), "{name}, {step}: {packet:#?}");
            }
        }
    }
}

#[test]
fn packets_are_spread_over_the_window() {
    let trace = traced(&small());
    assert!(trace.chosen_of > 500, "{}", trace.chosen_of);
    let numbers: Vec<u64> = trace.packets.iter().map(|packet| packet.number).collect();
    let even = trace.chosen_of / PACKETS as u64;
    assert!(numbers.windows(2).all(|pair| (1..=2 * even + 1).contains(&(pair[1] - pair[0]))), "{numbers:?}");
    assert!(numbers[0] <= 2 * even && *numbers.last().unwrap() + 3 * even > trace.chosen_of, "{numbers:?}");
}

/// One slow core: its ring and the FIFO fill, and the way of most packets ends there.
#[test]
fn a_drop_ends_the_way_and_names_its_cause() {
    let settings = small().with("cores", 2).with("app", "synthetic").with("cpu_ghz", 0.2).with("window_ms", 0.3);
    let trace = traced(&settings);
    trace.packets.iter().for_each(|packet| check("slow cores", packet));
    let dropped =
        trace.packets.iter().filter(|packet| matches!(&packet.end, LifeEnd::Dropped(cause) if !cause.is_empty()));
    assert!(dropped.count() > PACKETS / 4, "{trace:#?}");
}

/// What an alone packet meets is in the machine's numbers.
#[test]
fn steps_of_a_lonely_packet_are_the_machines_latencies() {
    let settings = small().with("offered_gbps", 1.0).with("window_ms", 0.5).with("app", "l2fwd");
    let trace = traced(&settings);
    let packet = trace.median().unwrap();
    let ps =
        |name: &str| packet.steps.iter().filter(|step| step.name == name).map(|step| step.lasted_ps()).sum::<u64>();
    let hardware = &machine().hardware;
    assert_eq!(ps("doorbell"), hardware.pcie.mmio_write.as_ps());
    assert_eq!(ps("parser, and waiting in the FIFO"), hardware.nic.rx_pipeline.as_ps());
    assert_eq!(ps("pipeline, and frames before it on the wire"), hardware.nic.tx_pipeline.as_ps());
    // 1500 B at 100 Gbit/s; on the way in with preamble, FCS and gap.
    assert_eq!(ps("first bit out to last bit"), 120_000);
    assert!((120_000..123_000).contains(&ps("first bit in to last bit")));
    assert!(ps("reads it from the host") >= hardware.pcie.read_round_trip.as_ps());
}

/// A hairpin sends known flows itself: no host sees them.
#[test]
fn a_packet_that_a_stage_sends_has_its_way_too() {
    let settings = small().with("app", "counter").with("offload", "accel_nfv").with("offered_gbps", 100.0);
    let trace = traced(&settings);
    assert!(!trace.packets.is_empty());
    trace.packets.iter().for_each(|packet| assert_ne!(packet.end, LifeEnd::Inside, "{packet:#?}"));
}
