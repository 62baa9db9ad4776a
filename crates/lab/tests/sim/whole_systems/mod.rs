//! Whole systems: a host model of the kernel, TCP and a process per core. This is what their tests share.

mod cores;
mod impaired;
mod runs;
mod sinic;
mod stopped;
mod time;

use std::path::Path;

use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::run::{PointRun, RunIo, run_point};
use nicforge_lab::settings::Catalogue;
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;

pub fn machine() -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    load_machine(&folder.join("m5-10gbe.toml")).unwrap()
}

/// A short run of `workload` over `interface`, with its NICs at `placement`.
pub fn settings(workload: &str, interface: &str, placement: &str) -> Settings {
    Settings::for_machine(&Catalogue::shipped(), &machine())
        .with("workload", workload)
        .with("interface", interface)
        .with("placement", placement)
        .with("warmup_ms", 1.0)
        .with("window_ms", 2.0)
}

/// Runs a point. That every byte which a process reads is the one that its peer wrote there is
/// checked inside, and so is that every packet buffer is found in one place.
pub fn measure(settings: &Settings) -> Metrics {
    run(settings).metrics
}

/// The same with everything that a run gives.
pub fn run(settings: &Settings) -> PointRun {
    run_on(&machine(), settings)
}

/// The same on a machine of one's own.
pub fn run_on(machine: &Machine, settings: &Settings) -> PointRun {
    let io = RunIo::default();
    settings.check(machine).unwrap();
    run_point(machine, settings, 1, &io, &mut |_, _| {}).unwrap()
}
