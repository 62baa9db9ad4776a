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
