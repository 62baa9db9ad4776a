//! The highest rate without loss, by the benchmark of RFC 2544 (sections 23 and 26.1): on one
//! server that is warm, trial after trial, halving the interval.
//!
//! ```text
//!   warm-up at the highest rate ─► wait until empty ─► trial ─► wait until empty ─► trial …
//! ```
//!
//! A trial offers frames at one rate for a window, begins with empty rings and warm tables, and
//! fails if any of its frames is lost, whenever that is. Lost is what load is to blame for
//! ([`DropCause::is_of_load`](nicforge_nic::DropCause::is_of_load)): what software discards for what a
//! frame is, it discards at every rate.

use super::build::{Built, build};
use super::measure::{Measured, Window, finish, run_out, run_to};
use super::{PointRun, Progress, RunError, RunIo};
use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::settings::Settings;
use nicforge_units::{BitRate, Time};

/// The search ends when the interval is this share of the offered rate.
const RESOLUTION: f64 = 0.01;
/// All trials of a search where each fails, in lengths of one at the highest rate: the warm-up, and
/// trials that last once, twice … 128 times as long.
pub const LENGTHS: u64 = 256;

/// Most trials of a search: one at the highest rate, then one for each halving of the interval.
pub fn trials_max() -> usize {
    1 + (1.0 / RESOLUTION).log2().ceil() as usize
}

/// Searches between 0 and `offered_gbps`; the metrics are those of the best trial's window, or of
/// the slowest one where all failed.
pub fn no_drop_rate(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    let highest = settings.offered_gbps;
    let mut built = build(machine, settings, seed, &RunIo::default())?;
    let parts = trials_max() as f64 + 1.0;
    let mut part = 0.0;
    let mut tell = |done: f64, frames: u64| progress(((part + done) / parts).min(1.0), frames);
    warm_up(&mut built, settings, &mut tell)?;
    let (mut low, mut high) = (0.0, highest);
    let (mut best, mut slowest) = (None, Measured::default());
    let mut rate = highest;
    while high - low > RESOLUTION * highest {
        part += 1.0;
        let mut tell = |done: f64, frames: u64| progress(((part + done) / parts).min(1.0), frames);
        let trial = trial(&mut built, settings, rate, &mut tell)?;
        if trial.lost == 0 {
            low = rate;
            best = Some(trial.measured);
            if rate == high {
                break;
            }
        } else {
            high = rate;
            slowest = trial.measured;
        }
        rate = (low + high) / 2.0;
    }
    // A window counts whole frames, the one that it begins with among them: in a short one that is more than its rate.
    let rate = |metrics: &Metrics| metrics.offered_gbps.min(highest);
    let no_drop = best.as_ref().map_or(0.0, |best| rate(&best.metrics));
    let Measured { mut metrics, cores } = best.unwrap_or(slowest);
    metrics.no_drop_gbps = Some(no_drop);
    let simulated = built.world.now();
    finish(built, &RunIo::default())?;
    Ok(PointRun {
        metrics,
        cores,
        simulated,
        notes: Vec::new(),
        timeline: Vec::new(),
        // Of all trials together they would say nothing about the one that counts.
        switches: Vec::new(),
    })
}

/// Frames at the highest rate, until tables and caches are warm. What is lost meanwhile is put
/// down to the cold start.
fn warm_up(built: &mut Built, settings: &Settings, tell: Progress<'_>) -> Result<(), RunError> {
    let until = Time::from_seconds(settings.warmup_ms / 1e3);
    offer(built, settings, settings.offered_gbps, Time::ZERO, until);
    let world = &mut built.world;
    let share = |now: Time| now.as_seconds() / until.as_seconds().max(1e-12);
    run_to(world, until, &mut |now, frames| tell(share(now), frames))?;
    run_out(world, &mut |_, frames| tell(1.0, frames)).map(|_| ())
}

/// What one trial found.
struct Trial {
    measured: Measured,
    /// Frames lost, also such as were still inside when the window ended.
    lost: u64,
}

/// Offers frames at `gbps` for a window, and waits until the last one has left.
fn trial(
    built: &mut Built,
    settings: &Settings,
    gbps: f64,
    tell: Progress<'_>,
) -> Result<Trial, RunError> {
    let from = built.world.now();
    let until = match settings.arrival == "replay" {
        // A capture is a whole: all of it is a trial.
        true => Time::NEVER,
        false => from + Time::from_seconds(settings.window_ms / 1e3),
    };
    let lost_before = lost(built);
    built.world.sink.open_window(from, until);
    let window = Window::begin(&mut built.world, from);
    offer(built, settings, gbps, from, until);
    let mut measured = None;
    if until != Time::NEVER {
        let share = |now: Time| (now - from).as_seconds() / (until - from).as_seconds();
        let mut tell = |now: Time, frames| tell(share(now), frames);
        run_to(&mut built.world, until, &mut tell)?;
        measured = Some(window.end(built, until));
    }
    let ended = run_out(&mut built.world, &mut |_, frames| tell(1.0, frames))?;
    Ok(Trial {
        measured: measured.unwrap_or_else(|| window.end(built, ended)),
        lost: lost(built) - lost_before,
    })
}

/// Frames that load is to blame for, so far.
fn lost(built: &Built) -> u64 {
    built.world.drops().of_load()
}

fn offer(built: &mut Built, settings: &Settings, gbps: f64, from: Time, until: Time) {
    let rate = BitRate::from_gbps(gbps / settings.nics as f64);
    built.world.offer(rate, from, until);
}
