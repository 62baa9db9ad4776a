//! Warm-up and window of a run. Where a precision is asked for, the data decide where both end.
//!
//! ```text
//! no precision    |· warm-up ·|     window     |
//! precision       |· warm-up ·|· it drifts: it was warm-up, too ·|  window  |  twice as long  | … narrow enough
//! ```

use nicforge_record::{Metrics, Steadiness};
use nicforge_units::Time;

use super::batches::{Batches, Series, intervals, judge};
use super::build::{Built, build};
use super::follow::{begin_trace, end_trace};
use super::goal::{Goal, Next};
use super::measure::{Measured, STEPS, Window, finish, run_out};
use super::{PointRun, Progress, RunError, RunIo};
use crate::machine::Machine;
use crate::run::options::{Warmup, WindowOptions};
use crate::settings::Settings;

/// Steps of a window that are a batch: 25 batches.
const STEPS_OF_BATCH: u64 = 2;

/// A window that is over.
struct Taken {
    from: Time,
    ended: Time,
    window: Window,
    /// What each batch measured; none of a capture.
    batches: Vec<Metrics>,
    /// The precision that was asked for and not reached.
    missed: Option<f64>,
    /// Bytes that left since traffic began.
    series: Series,
}

/// Runs warm-up and window once.
pub fn one_window(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    io: &RunIo,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    let mut built = build(machine, settings, seed, io)?;
    let warmup = Time::from_seconds(settings.read::<Warmup>().warmup_ms / 1e3);
    let taken = match settings.replays() {
        true => whole_capture(&mut built, io, progress)?,
        false => steady_window(&mut built, settings, warmup, io, progress)?,
    };
    let Taken { from, ended, window, batches, missed, series } = taken;
    let Measured { metrics, cores } = window.end(&mut built, ended);
    let probe = built.probe.take();
    let timeline = probe.map_or(Vec::new(), |probe| probe.entries_until(ended, &mut built.world));
    let switches = built.switches.take();
    let trace = end_trace(&mut built.world, ended)?;
    finish(built, io)?;
    let mut steadiness = Steadiness { precision_missed: missed, ..Steadiness::of(&metrics) };
    judge(&mut steadiness, &batches);
    let ms = |time: Time| time.as_seconds() * 1e3;
    let warm = series.warmup_ms().filter(|end| *end > ms(from));
    steadiness.warmup_ends_ms = warm.filter(|_| steadiness.drift.is_some());
    steadiness.window_begins_ms = (from > warmup && !settings.replays()).then(|| ms(from));
    Ok(PointRun {
        metrics,
        intervals: intervals(&batches),
        cores,
        stages: Vec::new(),
        simulated: ended,
        steadiness,
        timeline,
        switches,
        trace,
    })
}

/// A capture is a whole: all of it is the window.
fn whole_capture(built: &mut Built, io: &RunIo, progress: Progress<'_>) -> Result<Taken, RunError> {
    let from = Time::ZERO;
    built.world.outside.sink.open_window(from, Time::NEVER);
    let window = Window::begin(&mut built.world, from);
    begin_trace(&mut built.world, io.trace);
    let ended = run_out(&mut built.world, &mut |_, frames| progress(0.0, frames))?;
    Ok(Taken { from, ended, window, batches: Vec::new(), missed: None, series: Series::default() })
}

/// The window behind `warmup`; where a precision is asked for, one that is steady and long enough, if there is time.
fn steady_window(
    built: &mut Built,
    settings: &Settings,
    warmup: Time,
    io: &RunIo,
    progress: Progress<'_>,
) -> Result<Taken, RunError> {
    let goal = Goal::of(settings, warmup);
    let mut series = Series::default();
    let mut look = |built: &mut Built, now: Time, until: Time| {
        progress(now.as_seconds() / until.as_seconds(), built.world.arrived());
        series.add(now, built.world.outside.sink.sums().0);
    };
    let length = Time::from_seconds(settings.read::<WindowOptions>().window_ms / 1e3);
    let (mut from, mut until) = (warmup, warmup + length);
    loop {
        // Frames that leave behind `from` may do so in a step that began before it.
        built.world.outside.sink.open_window(from, until);
        run_in_steps(built, from, &mut |built, now, _| look(built, now, until))?;
        let window = Window::begin(&mut built.world, from);
        begin_trace(&mut built.world, io.trace);
        let mut cuts = Batches::begin(&mut built.world, from);
        loop {
            run_in_steps(built, until, &mut |built, now, step| {
                look(built, now, until);
                if step.is_multiple_of(STEPS_OF_BATCH) {
                    cuts.cut(built, now);
                }
            })?;
            cuts.join_pairs_over(STEPS / STEPS_OF_BATCH);
            let batches = cuts.metrics(built);
            let missed = goal.and_then(|goal| goal.missed_by(&batches));
            match goal.map_or(Next::Nothing, |goal| goal.next((from, until), &batches)) {
                Next::Nothing => return Ok(Taken { from, ended: until, window, batches, missed, series }),
                Next::Longer(end) => {
                    until = end;
                    built.world.outside.sink.extend_window(until);
                }
                Next::Anew { begins, ends } => {
                    (from, until) = (begins, ends);
                    break;
                }
            }
        }
    }
}

/// Told of a run: the hosts, the time that it has come to, and the number of the step, from 1.
type Each<'a> = &'a mut dyn FnMut(&mut Built, Time, u64);

/// Runs until `to`, in steps of the same length.
fn run_in_steps(built: &mut Built, to: Time, each: Each<'_>) -> Result<(), RunError> {
    let mut next = built.world.now();
    let step = Time::from_ps((to.saturating_sub(next).as_ps() / STEPS).max(1));
    let mut number = 0;
    while next < to {
        next = (next + step).min(to);
        number += 1;
        built.world.run_until(next)?;
        each(built, next, number);
    }
    Ok(())
}
