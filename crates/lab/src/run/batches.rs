//! Batch means: a window is cut into equal batches, and what each measured says how sure the whole window's values are.
//!
//! ```text
//! warm-up                     window
//! |··························|b1|b2|b3| … |b25|      metrics of the window; of each batch; an interval from those
//! ```
//!
//! Batches are no independent runs. Where they follow each other, the interval is too narrow, and [`judge`] says so.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use nicforge_record::{Drift, Interval, Latency, Metrics, Steadiness, warmup_end};
use nicforge_units::Time;
use serde_json::Value;

use super::build::Built;
use super::measure::{Snapshot, metrics};
use crate::run::options::PrecisionOptions;
use crate::settings::Settings;
use crate::world::World;
use crate::world::sink::latency_of;

/// Neighbouring batches that are correlated by more than this depend on each other.
const CORRELATED: f64 = 0.6;
/// A drift is less probable than this by chance.
const DRIFT_P: f64 = 0.001;
/// And is more than this share of the value.
const DRIFT_SHARE: f64 = 0.02;
/// Batches that there must be at least to say anything.
const LEAST: usize = 8;
/// What has no interval: sums over the window, its largest value, what is distinct in it, its state at the end.
const WITHOUT: [&str; 10] = [
    "drops.",
    "stages.",
    "stage_gauges.",
    "requests_timed_out",
    "rx_nombuf",
    "requests_too_large",
    "requests_misdirected",
    "latency_us.max",
    "io_working_set_bytes",
    "fairness",
];

/// The interval of every metric that has one, from the metrics of `batches` in their order.
pub fn intervals(batches: &[Metrics]) -> BTreeMap<String, Interval> {
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for metrics in batches {
        for (key, value) in numbers(metrics) {
            samples.entry(key).or_default().push(value);
        }
    }
    // A metric that some batches lack, such as the latency of no frame, is not the mean of the others.
    let whole = samples.into_iter().filter(|(_, samples)| samples.len() == batches.len());
    whole.filter_map(|(key, samples)| Some((key, Interval::of_batches(&samples)?))).collect()
}

/// The same from whole runs with different seeds.
pub fn intervals_of_replicas(runs: &[&Metrics]) -> BTreeMap<String, Interval> {
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (key, value) in runs.iter().flat_map(|metrics| numbers(metrics)) {
        samples.entry(key).or_default().push(value);
    }
    let whole = samples.into_iter().filter(|(_, samples)| samples.len() == runs.len());
    whole.filter_map(|(key, samples)| Some((key, Interval::of_replicas(&samples)?))).collect()
}

/// Every number of `metrics` that has an interval, by the key that `points.csv` has.
fn numbers(metrics: &Metrics) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    // Numbers, options and maps with string keys always serialise.
    let tree = serde_json::to_value(metrics).unwrap_or_default();
    collect("", &tree, &mut found);
    found.retain(|(key, _)| !WITHOUT.iter().any(|without| key.starts_with(without)));
    found
}

fn collect(prefix: &str, tree: &Value, found: &mut Vec<(String, f64)>) {
    match tree {
        Value::Number(number) => found.extend(number.as_f64().map(|number| (prefix.to_owned(), number))),
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                collect(&key, value, found);
            }
        }
        _ => {}
    }
}

/// What leads the tables: answers, tuples, payload or frames.
fn main_metric(metrics: &Metrics) -> (&'static str, f64) {
    let options =
        [("rpc_mps", metrics.rpc_mps), ("tuples_mps", metrics.tuples_mps), ("bandwidth_gbps", metrics.bandwidth_gbps)];
    let found = options.into_iter().find_map(|(key, value)| Some((key, value?)));
    found.unwrap_or(("throughput_gbps", metrics.throughput_gbps))
}

/// Adds to `steadiness` what `batches` say of their window.
pub fn judge(steadiness: &mut Steadiness, batches: &[Metrics]) {
    let samples: Vec<f64> = batches.iter().map(|metrics| main_metric(metrics).1).collect();
    let Some(first) = batches.first().filter(|_| samples.len() >= LEAST) else {
        return;
    };
    let metric = main_metric(first).0.to_owned();
    let (begin, end) = samples.split_at(samples.len() / 2);
    let halves = Interval::of_replicas(begin).zip(Interval::of_replicas(end));
    if let Some((begin, end)) = halves {
        let share = if begin.mean == 0.0 { 0.0 } else { end.mean / begin.mean - 1.0 };
        let drifts = begin.difference(&end).is_some_and(|test| test.p < DRIFT_P) && share.abs() > DRIFT_SHARE;
        steadiness.drift = drifts.then(|| Drift { metric: metric.clone(), share });
    }
    let interval = Interval::of_batches(&samples);
    let value = samples.iter().sum::<f64>() / samples.len() as f64;
    // What is exact to a thousandth needs no longer window.
    let matters = |interval: &Interval| interval.relative(value).is_some_and(|relative| relative > 0.001);
    let correlation = interval.filter(matters).and_then(|interval| interval.correlation);
    steadiness.batch_correlation = correlation.filter(|correlation| *correlation > CORRELATED);
}

/// Frames that left.
pub struct Left {
    /// How many.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their latency.
    pub latency: Option<Latency>,
}

impl Left {
    /// Those of the sink's window.
    pub fn in_window(world: &World) -> Left {
        let (frames, bytes) = world.outside.sink.in_window();
        Left { frames, bytes, latency: world.outside.sink.latency() }
    }

    /// Those between two snapshots, with this latency.
    pub fn between(before: &Snapshot, after: &Snapshot, latency: Option<Latency>) -> Left {
        Left { frames: after.left.0 - before.left.0, bytes: after.left.1 - before.left.1, latency }
    }
}

/// Snapshots at the ends of a window's batches.
pub struct Batches(Vec<Cut>);

/// Everything that is counted, and latencies of the window's frames, at one time.
struct Cut {
    at: Time,
    counts: Snapshot,
    latencies: Histogram<u64>,
}

impl Cut {
    fn now(world: &mut World, at: Time) -> Cut {
        Cut { at, counts: Snapshot::of(world, at), latencies: world.outside.sink.latencies().clone() }
    }
}

impl Batches {
    /// The first begins now, with the window.
    pub fn begin(world: &mut World, from: Time) -> Batches {
        Batches(vec![Cut::now(world, from)])
    }

    /// One ends now, and the next one begins.
    pub fn cut(&mut self, built: &mut Built, now: Time) {
        self.0.push(Cut::now(&mut built.world, now));
    }

    /// Makes one of each pair.
    pub fn join_pairs(&mut self) {
        let mut number = 0;
        self.0.retain(|_| {
            number += 1;
            number % 2 == 1
        });
    }

    /// What each measured.
    pub fn metrics(&self, built: &Built) -> Vec<Metrics> {
        let of = |pair: &[Cut]| {
            let mut own = pair[1].latencies.clone();
            // Both have the same bounds, and the later one holds the earlier.
            let _ = own.subtract(&pair[0].latencies);
            let seconds = (pair[1].at - pair[0].at).as_seconds();
            let counts = (&pair[0].counts, &pair[1].counts);
            metrics(built, counts, Left::between(counts.0, counts.1, latency_of(&own)), seconds)
        };
        self.0.windows(2).map(of).collect()
    }
}

/// What each batch measured by `metrics`, from the beginning of a window and the ends of its batches.
pub fn between_cuts<S>(
    begin: (Time, &S),
    cuts: &[(Time, S)],
    mut metrics: impl FnMut(&S, &S, f64) -> Metrics,
) -> Vec<Metrics> {
    let mut before = begin;
    let mut found = Vec::with_capacity(cuts.len());
    for (at, after) in cuts {
        found.push(metrics(before.1, after, (*at - before.0).as_seconds()));
        before = (*at, after);
    }
    found
}

/// How narrow intervals are to be, and how long that may take.
#[derive(Clone, Copy)]
pub struct Goal {
    precision: f64,
    /// When the longest window ends.
    pub latest: Time,
}

impl Goal {
    /// What `settings` ask for, if they do; the window begins at `from`.
    pub fn of(settings: &Settings, from: Time) -> Option<Goal> {
        let PrecisionOptions { precision, max_window_ms } = settings.read();
        let latest = from + Time::from_seconds(max_window_ms / 1e3);
        precision.map(|precision| Goal { precision, latest })
    }

    /// The widest relative half width of the main metrics, where it is too wide or cannot be trusted yet.
    pub fn missed_by(self, batches: &[Metrics]) -> Option<f64> {
        let intervals = intervals(batches);
        let mut worst: Option<f64> = None;
        for key in ["throughput_gbps", "latency_us.mean"] {
            let Some(interval) = intervals.get(key) else {
                continue;
            };
            let relative = interval.relative(interval.mean).unwrap_or(0.0);
            let follows = interval.correlation.is_some_and(|correlation| correlation > CORRELATED);
            // Batches that follow each other make intervals too narrow.
            if relative > self.precision || (follows && relative > self.precision / 10.0) {
                worst = Some(worst.unwrap_or(0.0).max(relative));
            }
        }
        worst
    }
}

/// Sums since the run began, at rising times: what MSER looks for the warm-up in.
#[derive(Default)]
pub struct Series(Vec<(Time, u64)>);

impl Series {
    /// At `now` the sum is `sum`.
    pub fn add(&mut self, now: Time, sum: u64) {
        self.0.push((now, sum));
    }

    /// When the warm-up ends, in milliseconds, by MSER over rates of equal intervals; `None` where the series is too
    /// short to tell.
    pub fn warmup_ms(&self) -> Option<f64> {
        let longest = self.0.windows(2).map(|pair| pair[1].0 - pair[0].0).max()?;
        let (from, until) = (self.0.first()?.0, self.0.last()?.0);
        let count = ((until - from).as_ps() / longest.as_ps().max(1)) as usize;
        let step = Time::from_ps((until - from).as_ps() / count.max(1) as u64);
        let sums: Vec<f64> = (0..=count).map(|bin| self.at(from + Time::from_ps(step.as_ps() * bin as u64))).collect();
        let rates: Vec<f64> = sums.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let end = warmup_end(&rates)?;
        Some((from + Time::from_ps(step.as_ps() * end as u64)).as_seconds() * 1e3)
    }

    /// The sum at `time`, on the line between its neighbours.
    fn at(&self, time: Time) -> f64 {
        let after = self.0.partition_point(|(at, _)| *at < time).min(self.0.len() - 1);
        let (to, high) = self.0[after];
        let (from, low) = self.0[after.saturating_sub(1)];
        if to <= from {
            return high as f64;
        }
        let share = (time.saturating_sub(from)).as_seconds() / (to - from).as_seconds();
        low as f64 + (high - low) as f64 * share.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(gbps: f64) -> Metrics {
        Metrics {
            throughput_gbps: gbps,
            latency_us: Some(Latency { p50: gbps / 2.0, max: 99.0, ..Latency::default() }),
            drops: [("fifo_full".to_owned(), 3)].into_iter().collect(),
            io_working_set_bytes: Some(4096),
            ..Metrics::default()
        }
    }

    #[test]
    fn every_metric_but_sums_and_extremes_has_an_interval() {
        let batches: Vec<Metrics> = [10.0, 11.0, 10.0, 12.0].map(batch).to_vec();
        let intervals = intervals(&batches);
        let throughput = intervals["throughput_gbps"];
        assert_eq!((throughput.mean, throughput.samples), (10.75, 4));
        assert!((throughput.half_width / intervals["latency_us.p50"].half_width - 2.0).abs() < 1e-9);
        assert_eq!(intervals["drop_fraction"].half_width, 0.0);
        for without in ["drops.fifo_full", "latency_us.max", "io_working_set_bytes", "latency_us.curve"] {
            assert!(!intervals.contains_key(without), "{without}");
        }
    }

    #[test]
    fn a_metric_that_a_batch_lacks_has_no_interval() {
        let mut batches: Vec<Metrics> = [10.0, 11.0, 10.0].map(batch).to_vec();
        batches[1].latency_us = None;
        assert!(!intervals(&batches).contains_key("latency_us.p50"));
    }

    #[test]
    fn a_window_that_drifts_or_whose_batches_follow_each_other_is_told() {
        let judged = |value: fn(usize) -> f64| {
            let batches: Vec<Metrics> = (0..24).map(|number| batch(value(number))).collect();
            let mut steadiness = Steadiness::default();
            judge(&mut steadiness, &batches);
            steadiness
        };
        assert!(judged(|number| 100.0 + (number % 3) as f64).is_steady());
        let drifts = judged(|number| 100.0 + number as f64).drift.unwrap();
        assert_eq!(drifts.metric, "throughput_gbps");
        assert!((drifts.share - 0.11).abs() < 0.02, "{}", drifts.share);
        let slow = judged(|number| 100.0 + (number as f64 / 4.0).sin() * 5.0);
        assert!(slow.batch_correlation.is_some_and(|correlation| correlation > 0.8));
    }

    #[test]
    fn a_warmup_is_found_at_any_spacing() {
        let mut series = Series::default();
        let mut sum = 0;
        // Slow for 10 ms, then fast; long steps up to 20 ms, then short ones.
        for ms in
            (0..=200).map(|tenth| f64::from(tenth) / 10.0).chain((1..100).map(|step| 20.0 + f64::from(step) / 5.0))
        {
            series.add(Time::from_seconds(ms * 1e-3), sum);
            let fast = if ms < 10.0 { 1.0 } else { 2.0 };
            let step = if ms < 20.0 { 0.1 } else { 0.2 };
            sum += (fast * step * 1e6) as u64;
        }
        let found = series.warmup_ms().unwrap();
        assert!((9.0..=11.0).contains(&found), "{found}");
    }
}
