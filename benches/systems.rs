//! How fast whole systems with TCP at both ends are simulated, beside its target.
//!
//!     cargo bench -p nicforge-cli --bench systems
//!
//! Times are CPU times of one thread, as far as the system tells them. They depend on the machine:
//! nothing here asserts one.

mod common;

use common::{Clock, shipped};
use nicforge_lab::machine::load_machine;
use nicforge_lab::run::options::{Warmup, WindowOptions};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::{Catalogue, Settings};
use nicforge_options::Value;

/// Runs of each measurement; the fastest counts, for it was disturbed least.
const ROUNDS: usize = 3;
/// Payload of a full-sized packet.
const PAYLOAD_BITS: f64 = 1460.0 * 8.0;

fn main() {
    println!("two systems, one TCP stream of 1500 B packets, acknowledgements not counted");
    println!("{:46} {:>14}   target", "", "measured");
    for workload in ["tcp_receive", "tcp_transmit"] {
        for (interface, placement) in [("conventional", "STE"), ("conventional", "OCC"), ("sinic", "OCC")] {
            let rounds = (0..ROUNDS).map(|_| packets_per_second(workload, interface, placement));
            let best = rounds.fold(0.0, f64::max);
            let what = format!("{workload}, {interface} at {placement}, packets/s");
            println!("{what:46} {best:>14.0}   at least 300000");
        }
    }
    println!("two systems, all segments: those of tas-rpc.toml and tcp-loss.toml");
    for (what, machine, keys) in segment_jobs() {
        let best = (0..ROUNDS).map(|_| segments_per_second(machine, &keys)).fold(0.0, f64::max);
        println!("{what:46} {best:>14.0}   at least 100000");
    }
}

/// What runs, on which machine, by which keys.
type SegmentJob = (&'static str, &'static str, Vec<(&'static str, Value)>);

fn segment_jobs() -> Vec<SegmentJob> {
    let rpcs = |connections: usize, in_flight: usize, apps: usize, fast: usize| {
        vec![
            ("workload", Value::from("rpc_echo")),
            ("congestion_control", Value::from("dctcp")),
            ("rpc_connections", Value::from(connections)),
            ("rpc_in_flight", Value::from(in_flight)),
            ("rpc_app_cores", Value::from(apps)),
            ("tas_fast_cores", Value::from(fast)),
            ("warmup_ms", Value::from(6.0)),
            ("window_ms", Value::from(20.0)),
        ]
    };
    let streams = |loss: f64| {
        vec![
            ("workload", Value::from("tcp_receive")),
            ("interface", Value::from("conventional")),
            ("placement", Value::from("OCC")),
            ("cpu_ghz", Value::from(4.0)),
            ("streams", Value::from(4)),
            ("socket_kib", Value::from(256)),
            ("link_delay_us", Value::from(50.0)),
            ("link_gbps", Value::from(5.0)),
            ("link_queue_kib", Value::from(128)),
            ("link_loss", Value::from(loss)),
            ("warmup_ms", Value::from(100.0)),
            ("window_ms", Value::from(400.0)),
        ]
    };
    vec![
        ("RPCs, 1 connection, segments/s", "machines/xeon-4216-cx5.toml", rpcs(1, 1, 1, 1)),
        ("RPCs, 64 connections, segments/s", "machines/xeon-4216-cx5.toml", rpcs(64, 1, 1, 1)),
        ("RPCs, 64 connections, up to 4 fast-path cores", "machines/xeon-4216-cx5.toml", rpcs(64, 4, 8, 4)),
        ("4 streams, no loss, segments/s", "machines/m5-10gbe.toml", streams(0.0)),
        ("4 streams, one frame of 1000 lost, segments/s", "machines/m5-10gbe.toml", streams(0.001)),
    ]
}

/// Segments both ways, acknowledgments included, simulated in a second of CPU time.
fn segments_per_second(machine: &str, keys: &[(&'static str, Value)]) -> f64 {
    let machine = load_machine(&shipped(machine)).expect("a shipped machine");
    let settings = Settings::for_machine(&Catalogue::shipped(), &machine);
    let settings = keys.iter().fold(settings, |settings, (key, value)| settings.with(key, value.clone()));
    let clock = Clock::start();
    // All that was simulated: the first look is before, the last one after.
    let (mut begin, mut end) = (None, (0.0, 0));
    let mut progress = |_share: f64, arrived: u64| {
        end = (clock.seconds(), arrived);
        begin.get_or_insert(end);
    };
    run_point(&machine, &settings, 1, &RunIo::default(), &mut progress).expect("it runs");
    let (seconds, arrived) = begin.unwrap_or(end);
    (end.1 - arrived) as f64 / (end.0 - seconds)
}

/// Full-sized packets simulated in a second of CPU time.
fn packets_per_second(workload: &str, interface: &str, placement: &str) -> f64 {
    let machine = load_machine(&shipped("machines/m5-10gbe.toml")).expect("the shipped machine");
    let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
        .with("workload", workload)
        .with("interface", interface)
        .with("placement", placement)
        .with("cpu_ghz", 8.0)
        .with("warmup_ms", 20.0)
        .with("window_ms", 200.0);
    let warmed_up = settings.read::<Warmup>().warmup_ms
        / (settings.read::<Warmup>().warmup_ms + settings.read::<WindowOptions>().window_ms);
    let clock = Clock::start();
    let (mut begin, mut end) = (0.0, 0.0);
    let mut progress = |share: f64, _packets: u64| {
        end = clock.seconds();
        if share <= warmed_up {
            begin = end;
        }
    };
    let run = run_point(&machine, &settings, 1, &RunIo::default(), &mut progress);
    let metrics = run.expect("it runs").metrics;
    let bandwidth = metrics.bandwidth_gbps.expect("systems have one");
    let packets = bandwidth * 1e9 * settings.read::<WindowOptions>().window_ms * 1e-3 / PAYLOAD_BITS;
    packets / (end - begin)
}
