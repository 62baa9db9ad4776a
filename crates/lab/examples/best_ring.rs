//! Nicforge as a library: runs the points of a scenario, reads their metrics, and says which ring size sends most.
//!
//!     cargo run --release -p nicforge-lab --example best_ring
//!
//! Another crate names `nicforge-lab` among its dependencies, by path or git.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use nicforge_lab::machine::parse_machine;
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::scenario::parse_scenario;
use nicforge_lab::settings::Catalogue;

const MACHINE: &str = include_str!("../../../machines/xeon-4216-cx5.toml");
const SCENARIO: &str = r#"
[scenario]
name = "best_ring"
machine = "xeon-4216-cx5"

[settings]
app = "nat"
flows = 20000
warmup_ms = 0.5
window_ms = 0.5

[[variant]]
interface = "priv_ring"

[sweep]
rx_entries = [64, 256, 1024]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let catalogue = Arc::new(Catalogue::shipped());
    let machine = parse_machine(MACHINE, Path::new("machines/xeon-4216-cx5.toml"))?;
    let scenario = parse_scenario(SCENARIO, Path::new("best_ring.toml"), &catalogue)?;
    let mut best = None;
    for point in scenario.expand(&machine, &[], &catalogue)? {
        let run = run_point(&machine, &point.settings, 1, &RunIo::default(), &mut |_, _| {})?;
        let gbps = run.metrics.throughput_gbps;
        let p99 = run.metrics.latency_us.map_or(f64::NAN, |latency| latency.p99);
        let entries = &point.params["rx_entries"];
        println!("rings of {entries}: {gbps:.1} Gbit/s, 99th percentile of latency {p99:.0} µs");
        if best.as_ref().is_none_or(|(_, most)| gbps > *most) {
            best = Some((entries.clone(), gbps));
        }
    }
    let (entries, gbps) = best.ok_or("the scenario has no points")?;
    println!("most with rings of {entries}: {gbps:.1} Gbit/s");
    Ok(())
}
