//! The highest rate without loss, by the benchmark of RFC 2544 (sections 23 and 26.1): on one
//! server that is warm, trial after trial, halving the interval; then once more upwards from what
//! was found, for what failed may have failed on tables that trials have warmed since.
//!
//! ```text
//!   warm-up at the highest rate ─► wait until empty ─► trial ─► wait until empty ─► trial …
//! ```
//!
//! A trial offers frames at one rate for a window, begins with empty rings and warm tables, and
//! fails if any of its frames is lost, whenever that is. Lost is what load is to blame for
//! ([`DropCause::is_of_load`](nicforge_nic::DropCause::is_of_load)): what software discards for what a
//! frame is, it discards at every rate.

use std::collections::BTreeMap;

use nicforge_record::{Metrics, Steadiness};
use nicforge_units::{BitRate, Time};

use super::build::{Built, build};
use super::measure::{Measured, Window, finish, run_out, run_to};
use super::{PointRun, Progress, RunError, RunIo};
use crate::machine::Machine;
use crate::run::options::{Rate, Warmup, WindowOptions};
use crate::settings::Settings;
use crate::world::World;

/// The search ends when the interval is this share of the offered rate.
const RESOLUTION: f64 = 0.01;
/// All trials of a search cannot last longer than this many of one at the highest rate: the warm-up, trials that
/// last once, twice … 128 times as long, and, after one that passed, 14 that last at most 64 times as long.
pub const LENGTHS: u64 = 256 + 14 * 64;

/// Trials that halve the whole interval, down to the resolution.
fn halvings() -> usize {
    (1.0 / RESOLUTION).log2().ceil() as usize
}

/// Most trials of a search: one at the highest rate, one for each halving of the interval, and from what was found
/// as many upwards, and for halving again.
pub fn trials_max() -> usize {
    1 + 3 * halvings()
}

/// Searches between 0 and `offered_gbps`; the metrics are those of the best trial's window, or of
/// the slowest one where all failed.
pub fn no_drop_rate(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    let mut search = Search {
        built: build(machine, settings, seed, &RunIo::default())?,
        settings,
        low: 0.0,
        high: settings.read::<Rate>().offered_gbps,
        best: None,
        slowest: Measured::default(),
        trials: 0,
        progress,
    };
    search.warm_up()?;
    search.halve(settings.read::<Rate>().offered_gbps)?;
    search.go_on_upwards()?;
    search.end()
}

/// Trials on one server, and what they found.
struct Search<'a> {
    built: Built,
    settings: &'a Settings,
    /// A rate that passed, or 0, and one that failed, or the highest; Gbit/s.
    low: f64,
    high: f64,
    /// Of the trial at `low`.
    best: Option<Measured>,
    /// Of the last trial that failed.
    slowest: Measured,
    trials: usize,
    progress: Progress<'a>,
}

impl Search<'_> {
    /// Frames at the highest rate, until tables and caches are warm. What is lost meanwhile is put
    /// down to the cold start.
    fn warm_up(&mut self) -> Result<(), RunError> {
        let until = Time::from_seconds(self.settings.read::<Warmup>().warmup_ms / 1e3);
        let highest = self.settings.read::<Rate>().offered_gbps;
        offer(&mut self.built, self.settings, highest, Time::ZERO, until);
        let mut tell = part(self.progress, 0);
        let world = &mut self.built.world;
        let share = |now: Time| now.as_seconds() / until.as_seconds().max(1e-12);
        run_to(world, until, &mut |now, frames| tell(share(now), frames))?;
        empty(world, &mut tell).map(|_| ())
    }

    /// A trial at `rate`, which becomes an end of the interval. Returns whether it passed.
    fn try_rate(&mut self, rate: f64) -> Result<bool, RunError> {
        self.trials += 1;
        let mut tell = part(self.progress, self.trials);
        let trial = trial(&mut self.built, self.settings, rate, &mut tell)?;
        let passed = trial.lost == 0;
        if passed {
            self.low = rate;
            self.best = Some(trial.measured);
        } else {
            self.high = rate;
            self.slowest = trial.measured;
        }
        Ok(passed)
    }

    fn resolution(&self) -> f64 {
        RESOLUTION * self.settings.read::<Rate>().offered_gbps
    }

    /// Trials at `rate` and then in the middle of the interval, until that is as small as the resolution.
    fn halve(&mut self, mut rate: f64) -> Result<(), RunError> {
        while self.high - self.low > self.resolution() {
            self.try_rate(rate)?;
            rate = (self.low + self.high) / 2.0;
        }
        Ok(())
    }

    /// Trials above what was found, in steps that double until one fails, and halves the interval again.
    fn go_on_upwards(&mut self) -> Result<(), RunError> {
        let (from, highest) = (self.low, self.settings.read::<Rate>().offered_gbps);
        if from == 0.0 {
            return Ok(());
        }
        self.high = highest;
        let mut step = self.resolution();
        while self.low < highest && self.try_rate((from + step).min(highest))? {
            step *= 2.0;
        }
        self.halve((self.low + self.high) / 2.0)
    }

    fn end(self) -> Result<PointRun, RunError> {
        let highest = self.settings.read::<Rate>().offered_gbps;
        // A window counts whole frames, the one that it begins with among them: in a short one that is more than its
        // rate.
        let rate = |metrics: &Metrics| metrics.offered_gbps.min(highest);
        let no_drop = self.best.as_ref().map_or(0.0, |best| rate(&best.metrics));
        let Measured { mut metrics, cores } = self.best.unwrap_or(self.slowest);
        metrics.no_drop_gbps = Some(no_drop);
        let simulated = self.built.world.now();
        finish(self.built, &RunIo::default())?;
        Ok(PointRun {
            steadiness: Steadiness::of(&metrics),
            metrics,
            intervals: BTreeMap::new(),
            cores,
            simulated,
            stages: Vec::new(),
            timeline: Vec::new(),
            // Of all trials together they would say nothing about the one that counts.
            switches: Vec::new(),
            trace: None,
        })
    }
}

/// Tells `progress` how far the warm-up is, which is part 0 of a search, or a trial.
fn part(progress: Progress<'_>, number: usize) -> impl FnMut(f64, u64) {
    let parts = trials_max() as f64 + 1.0;
    move |done, frames| progress(((number as f64 + done) / parts).min(1.0), frames)
}

/// What one trial found.
struct Trial {
    measured: Measured,
    /// Frames lost, also such as were still inside when the window ended.
    lost: u64,
}

/// Offers frames at `gbps` for a window, and waits until the last one has left.
fn trial(built: &mut Built, settings: &Settings, gbps: f64, tell: Progress<'_>) -> Result<Trial, RunError> {
    let from = built.world.now();
    let until = if settings.replays() {
        // A capture is a whole: all of it is a trial.
        Time::NEVER
    } else {
        from + Time::from_seconds(settings.read::<WindowOptions>().window_ms / 1e3)
    };
    let lost_before = lost(built);
    built.world.outside.sink.open_window(from, until);
    let window = Window::begin(&mut built.world, from);
    offer(built, settings, gbps, from, until);
    let mut measured = None;
    if until != Time::NEVER {
        let share = |now: Time| (now - from).as_seconds() / (until - from).as_seconds();
        let mut tell = |now: Time, frames| tell(share(now), frames);
        run_to(&mut built.world, until, &mut tell)?;
        measured = Some(window.end(built, until));
    }
    let ended = empty(&mut built.world, tell)?;
    Ok(Trial { measured: measured.unwrap_or_else(|| window.end(built, ended)), lost: lost(built) - lost_before })
}

/// Runs until no frame is inside any more and nothing is left to be done for those that were: a core that polls in
/// vain takes back the buffers of what was sent meanwhile. Else the next trial began with a transmit ring full of them.
/// Returns when the last frame arrived or left.
fn empty(world: &mut World, tell: Progress<'_>) -> Result<Time, RunError> {
    let ended = run_out(world, &mut |_, frames| tell(1.0, frames))?;
    world.poll_in_vain()?;
    Ok(ended)
}

/// Frames that load is to blame for, so far.
fn lost(built: &Built) -> u64 {
    built.world.drops().of_load()
}

fn offer(built: &mut Built, settings: &Settings, gbps: f64, from: Time, until: Time) {
    let rate = BitRate::from_gbps(gbps / settings.nics() as f64);
    built.world.offer(rate, from, until);
}
