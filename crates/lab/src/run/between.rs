//! Warm-up and window of workloads that are measured by the difference of two snapshots of all that they count.

use nicforge_record::{Metrics, Steadiness};
use nicforge_units::Time;

use super::batches::{between_cuts, judge};
use super::goal::{Goal, Next};
use super::options::{Warmup, WindowOptions};
use super::{Progress, RunError};
use crate::settings::Settings;

/// Steps of a window; each is a batch.
const STEPS: usize = 20;

/// A workload that counts.
pub(crate) trait Counting {
    /// Everything that is counted, at one time.
    type Snapshot;

    /// Runs until `to`.
    ///
    /// # Errors
    /// When it gets stuck.
    fn run_until(&mut self, to: Time) -> Result<(), RunError>;

    /// Packets so far, for whoever waits.
    fn packets(&mut self) -> u64;

    /// A window begins.
    fn begin_window(&mut self) {}

    /// What is counted at `now`, up to which it has run.
    fn snapshot(&mut self, now: Time) -> Self::Snapshot;

    /// What was measured between two snapshots.
    fn metrics(&mut self, settings: &Settings, between: (&Self::Snapshot, &Self::Snapshot), seconds: f64) -> Metrics;
}

/// A window that is over.
pub(crate) struct Counted<S> {
    pub from: Time,
    pub ended: Time,
    pub before: S,
    pub after: S,
    /// What each batch measured.
    pub batches: Vec<Metrics>,
    /// The precision that was asked for and not reached.
    missed: Option<f64>,
    /// The data made the warm-up longer.
    is_later: bool,
}

impl<S> Counted<S> {
    /// How long the window is.
    pub fn seconds(&self) -> f64 {
        (self.ended - self.from).as_seconds()
    }

    /// What its batches say; `standstill` explains that nothing moved.
    pub fn steadiness(&self, standstill: Option<String>) -> Steadiness {
        let mut steadiness = Steadiness {
            standstill,
            precision_missed: self.missed,
            window_begins_ms: self.is_later.then(|| self.from.as_seconds() * 1e3),
            ..Steadiness::default()
        };
        judge(&mut steadiness, &self.batches);
        steadiness
    }
}

/// Runs warm-up and window. Where a precision is asked for, the data decide where both end.
///
/// # Errors
/// When `workload` gets stuck.
pub(crate) fn count_window<W: Counting>(
    workload: &mut W,
    settings: &Settings,
    progress: Progress<'_>,
) -> Result<Counted<W::Snapshot>, RunError> {
    let warmup = Time::from_seconds(settings.read::<Warmup>().warmup_ms * 1e-3);
    let length = Time::from_seconds(settings.read::<WindowOptions>().window_ms * 1e-3);
    let goal = Goal::of(settings, warmup);
    let mut run = |workload: &mut W, reached: Time, to: Time, last: Time, each: &mut dyn FnMut(&mut W, Time)| {
        for step in 1..=STEPS as u64 {
            let part = Time::from_ps((to - reached).as_ps() / STEPS as u64 * step);
            let next = if step == STEPS as u64 { to } else { reached + part };
            workload.run_until(next)?;
            progress(next.as_seconds() / last.as_seconds(), workload.packets());
            each(workload, next);
        }
        Ok::<_, RunError>(())
    };
    let (mut reached, mut from, mut until) = (Time::ZERO, warmup, warmup + length);
    loop {
        run(workload, reached, from, until, &mut |_, _| {})?;
        workload.begin_window();
        let before = workload.snapshot(from);
        let mut cuts = Vec::new();
        reached = from;
        loop {
            run(workload, reached, until, until, &mut |workload, now| cuts.push((now, workload.snapshot(now))))?;
            reached = until;
            join_pairs_over(&mut cuts, STEPS);
            let batches =
                between_cuts((from, &before), &cuts, |a, b, seconds| workload.metrics(settings, (a, b), seconds));
            let missed = goal.and_then(|goal| goal.missed_by(&batches));
            match goal.map_or(Next::Nothing, |goal| goal.next((from, until), &batches)) {
                Next::Nothing => {
                    let after = cuts.pop().map_or_else(|| workload.snapshot(until), |(_, after)| after);
                    let is_later = from > warmup;
                    return Ok(Counted { from, ended: until, before, after, batches, missed, is_later });
                }
                Next::Longer(ends) => until = ends,
                Next::Anew { begins, ends } => {
                    (from, until) = (begins, ends);
                    break;
                }
            }
        }
    }
}

/// Makes one batch of each pair, where there are more than `most`.
fn join_pairs_over<S>(cuts: &mut Vec<(Time, S)>, most: usize) {
    if cuts.len() > most {
        let mut number = 0;
        cuts.retain(|_| {
            number += 1;
            number % 2 == 0
        });
    }
}
