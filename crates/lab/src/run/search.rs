//! The highest rate without loss, as RFC 2544 section 26.1 searches for it: trials of a whole
//! run each, halving the interval.

use super::measure::one_window;
use super::{PointRun, Progress, RunError, RunIo};
use crate::machine::Machine;
use crate::settings::Settings;
use nicforge_units::Time;

/// The search ends when the interval is this share of the offered rate.
const RESOLUTION: f64 = 0.01;

/// Searches between 0 and `offered_gbps`; the metrics are those of the best trial.
pub fn no_drop_rate(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    let trials = (1.0 / RESOLUTION).log2().ceil() + 1.0;
    let (mut low, mut high) = (0.0, settings.offered_gbps);
    let mut best = None;
    let mut simulated = Time::ZERO;
    let mut rate = high;
    let mut trial = 0.0;
    while high - low > RESOLUTION * settings.offered_gbps {
        let mut settings = settings.clone();
        settings.offered_gbps = rate;
        let mut part = |share: f64, frames: u64| progress((trial + share) / trials, frames);
        let run = one_window(machine, &settings, seed, &RunIo::default(), &mut part)?;
        simulated += run.simulated;
        trial += 1.0;
        if run.metrics.drop_fraction == 0.0 {
            low = rate;
            best = Some(run.metrics);
            if rate == high {
                break;
            }
        } else {
            high = rate;
        }
        rate = (low + high) / 2.0;
    }
    let mut metrics = best.unwrap_or_default();
    metrics.no_drop_gbps = Some(metrics.throughput_gbps);
    Ok(PointRun {
        metrics,
        simulated,
        timeline: Vec::new(),
    })
}
