//! Dynamic shRing over whole runs: what a switch of rings costs a server that keeps up.

use std::collections::BTreeMap;

use nicforge_lab::run::options::TimelineOptions;
use nicforge_lab::run::{PointRun, RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::TimelineEntry;
use nicforge_wire::capture::CaptureReader;

use crate::common::machine::{machine, small};

/// Where addresses and ports of a UDP frame over IPv4 begin and end, and the sequence number that
/// sources write behind them.
const FLOW: std::ops::Range<usize> = 26..38;
const SEQUENCE: std::ops::Range<usize> = 42..50;

/// The interface itself, and played by cores.
const INTERFACES: [&str; 2] = ["sh_ring_dynamic", "emulated"];

/// Looks every 10 us, each of which speaks for a switch while packets come.
fn switching() -> Settings {
    small()
        .with("interface", "sh_ring_dynamic")
        .with("emulates", "sh_ring_dynamic")
        .with("app", "l2fwd")
        .with("dynamic_step_ms", 0.01)
        .with("dynamic_window", 1)
        .with("dynamic_gbps", 0.0)
        .with("dynamic_memory_gib_per_s", 0.0)
        .with("dynamic_off_share", 0.0)
        // All frames that come are looked at, from the first on.
        .with("warmup_ms", 0.0)
        .with("window_ms", 1.0)
        .with("timeline_ms", 0.01)
}

/// Sequence numbers of each flow, in the order in which its frames left.
fn sequences(path: &std::path::Path) -> BTreeMap<Vec<u8>, Vec<u64>> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut flows: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    while let Some(frame) = reader.next_record().unwrap() {
        let number = u64::from_be_bytes(frame.bytes[SEQUENCE].try_into().unwrap());
        let flow = frame.bytes[FLOW].to_vec();
        flows.entry(flow).or_default().push(number);
    }
    flows
}

/// A core drains the old rings before it polls the new ones (shRing, section 5.1.5). Below
/// saturation the new ones hold meanwhile what comes: nothing is lost, and no flow overtakes itself.
#[test]
fn below_saturation_a_switch_neither_loses_nor_reorders() {
    INTERFACES.into_iter().for_each(below_saturation);
}

fn below_saturation(interface: &str) {
    for (arrival, offered_gbps, packet_bytes) in
        [("constant", 100.0, 1500), ("poisson", 60.0, 1500), ("bursts", 40.0, 1500), ("constant", 4.0, 64)]
    {
        let settings = switching()
            .with("interface", interface)
            .with("arrival", arrival)
            .with("offered_gbps", offered_gbps)
            .with("packet_bytes", packet_bytes)
            // Few flows: each has frames on both sides of every switch.
            .with("flows", 16);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let io = RunIo { pcap_out: Some(path.clone()), ..RunIo::default() };
        let point = run_point(machine(), &settings, 1, &io, &mut |_, _| {}).unwrap();
        let count = point.switches.len();
        let what = format!("{interface}, {arrival}");
        assert!(count > 40, "{what}: {count} switches");
        let drops = &point.metrics.drops;
        assert!(drops.is_empty(), "{what}: {drops:?}");
        let flows = sequences(&path);
        assert!(flows.len() > 10, "{what}: {} flows", flows.len());
        for (flow, numbers) in flows {
            let in_order = numbers.is_sorted_by(|a, b| a < b);
            assert!(in_order, "{what}: flow {flow:?}");
        }
    }
}

/// Where cores are behind the traffic, the old rings are full. While a core drains them, the new
/// ones fill and drop: that is the published protocol. What was in a ring leaves all the same, in
/// order; whatever is dropped never was in one.
#[test]
fn an_overloaded_switch_drops_arrivals_only() {
    INTERFACES.into_iter().for_each(overloaded_switch);
}

/// Where cores play NICs those drop, as what they play has no descriptor.
fn overloaded_switch(interface: &str) {
    let settings = switching()
        .with("interface", interface)
        .with("flows", 16)
        .with("offered_gbps", 200.0)
        .with("packet_bytes", 60)
        .with("rx_entries", 64);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let io = RunIo { pcap_out: Some(path.clone()), ..RunIo::default() };
    let point = run_point(machine(), &settings, 1, &io, &mut |_, _| {}).unwrap();
    assert!(point.switches.len() > 40);
    let causes: Vec<&str> = point.metrics.drops.keys().map(String::as_str).collect();
    let at_arrival = ["fifo_full", "no_descriptor"];
    assert!(!causes.is_empty() && causes.iter().all(|cause| at_arrival.contains(cause)), "{interface}: {causes:?}");
    let mut backlog = 0;
    for at in &point.timeline {
        let came = backlog + at.arrivals;
        assert_eq!(came, at.backlog + at.taken + at.drops, "{interface}: {at:?}");
        backlog = at.backlog;
    }
    for (flow, numbers) in sequences(&path) {
        let in_order = numbers.is_sorted_by(|a, b| a < b);
        assert!(in_order, "{interface}: flow {flow:?}");
    }
}

/// Eight cores that can take about half of what comes; steering changes every 0.8 ms.
fn saturated() -> Settings {
    switching()
        .with("app", "nat")
        .with("cores", 8)
        .with("sharing", 4)
        .with("rx_entries", 512)
        // Many: all cores get about the same.
        .with("flows", 1000)
        .with("offered_gbps", 200.0)
        .with("packet_bytes", 1500)
        .with("dynamic_step_ms", 0.8)
        .with("window_ms", 2.4)
        .with("timeline_ms", 0.05)
}

/// Times in ms, and what steering changed to.
fn switches(point: &PointRun) -> Vec<(f64, String)> {
    let switches = point.switches.iter();
    switches.map(|at| (at.ms, at.set.clone())).collect()
}

/// Mean of `of` over `entries`.
fn mean(entries: &[TimelineEntry], of: impl Fn(&TimelineEntry) -> u64) -> f64 {
    entries.iter().map(of).sum::<u64>() as f64 / entries.len() as f64
}

/// Where steering goes from full private rings to shared ones, nearly all arrivals are dropped for a
/// time. No packet and no time of a core is lost by it: the rings used from then on hold
/// less, and while more comes than cores take, a backlog shrinks only as arrivals are turned away.
#[test]
fn a_saturated_switch_drops_what_the_smaller_rings_have_no_room_for() {
    let (private, shared) = (8 * 512, 2 * 512);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let io = RunIo { pcap_out: Some(path.clone()), ..RunIo::default() };
    let point = run_point(machine(), &saturated(), 1, &io, &mut |_, _| {}).unwrap();
    let timeline = &point.timeline;
    assert_eq!(switches(&point), [(0.8, "shared".to_owned()), (1.6, "private".to_owned())]);

    // Each drop is accounted for, interval by interval, and none is of a packet that a ring had.
    let mut backlog = 0;
    for at in timeline {
        assert_eq!(backlog + at.arrivals, at.backlog + at.taken + at.drops, "{at:?}");
        backlog = at.backlog;
    }
    let causes: Vec<&str> = point.metrics.drops.keys().map(String::as_str).collect();
    assert_eq!(causes, ["no_descriptor"]);

    let begins = |ms: f64| timeline.iter().position(|at| at.ms > ms).unwrap();
    let (before, rest) = timeline[begins(0.6)..].split_at(4);
    let drains = rest.iter().position(|at| at.in_use["private"] == 0);
    let (during, after) = rest.split_at(drains.unwrap() + 1);
    let after = &after[..4];
    assert!(before[3].backlog > private * 9 / 10 && during.last().unwrap().backlog <= shared);
    // Hardly any arrival finds room meanwhile, and cores work as before and after. (At the end,
    // those that are done first find few packets of theirs among those of the others.)
    let dropped = |entries| mean(entries, |at| at.drops) / mean(entries, |at| at.arrivals);
    assert!(dropped(during) > 0.8 && dropped(before) < 0.6 && dropped(after) < 0.6);
    let taken = |entries| mean(entries, |at| at.taken);
    assert!(taken(during) > 0.95 * taken(before).max(taken(after)));

    // On the way back nothing is dropped as long as the larger rings fill.
    let back = &timeline[begins(1.65)..][..4];
    assert_eq!(mean(back, |at| at.drops), 0.0);

    // The run checks that arrivals = departures + drops + frames inside: what a ring took and is
    // not inside has left. It did so once, and in order.
    let flows = sequences(&path);
    assert!(flows.len() > 900, "{} flows", flows.len());
    let left: usize = flows.values().map(Vec::len).sum();
    let taken: u64 = timeline.iter().map(|at| at.taken).sum();
    let in_hand = taken - left as u64;
    assert!(in_hand < 8 * 64, "{in_hand} between rings and wires");
    for (flow, numbers) in flows {
        assert!(numbers.is_sorted_by(|a, b| a < b), "flow {flow:?}");
    }
}

/// The control core's own decisions, and not what a time line shows of them: they are the same
/// without one, and with one that is coarser than the time between them.
#[test]
fn every_switch_is_told_at_its_time_whatever_the_time_line() {
    let run = |timeline_ms| {
        let mut settings = switching().with("dynamic_step_ms", 0.05);
        settings.change(|timeline: &mut TimelineOptions| timeline.timeline_ms = timeline_ms);
        let point = run_point(machine(), &settings, 1, &RunIo::default(), &mut |_, _| {});
        switches(&point.unwrap())
    };
    let all = run(None);
    let times: Vec<u32> = all.iter().map(|(ms, _)| (ms * 100.0).round() as u32).collect();
    assert_eq!(times, (5..100).step_by(5).collect::<Vec<u32>>());
    for (index, (_, set)) in all.iter().enumerate() {
        assert_eq!(set, ["shared", "private"][index % 2]);
    }
    for coarse in [0.01, 0.4, 100.0] {
        assert_eq!(run(Some(coarse)), all, "{coarse}");
    }
}

/// 100 Gbit/s come over two NICs, half by each. For each frame of 1500 bytes they write 24 lines of it and one of
/// completion, and read as many lines and two descriptors: about 3.2 kB, which is 25.4 GiB/s.
#[test]
fn thresholds_are_of_what_all_nics_receive_and_move() {
    let shares = |dynamic_gbps: f64, dynamic_memory_gib_per_s: f64| {
        let settings = switching()
            .with("offered_gbps", 100.0)
            .with("packet_bytes", 1500)
            .with("dynamic_step_ms", 0.05)
            .with("dynamic_window", 8)
            .with("dynamic_gbps", dynamic_gbps)
            .with("dynamic_memory_gib_per_s", dynamic_memory_gib_per_s)
            .with("dynamic_off_share", 1.0);
        let point = run_point(machine(), &settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap();
        !point.switches.is_empty()
    };
    for (gbps, gib_per_s, expected) in [(99.0, 0.0, true), (101.0, 0.0, false), (0.0, 24.9, true), (0.0, 26.0, false)] {
        assert_eq!(shares(gbps, gib_per_s), expected, "{gbps} Gbit/s, {gib_per_s} GiB/s");
    }
}
