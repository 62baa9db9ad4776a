//! Batch means: a window is cut into equal batches, and what each measured says how sure the whole window's values are.
//!
//! ```text
//! warm-up                     window
//! |··························|b1|b2|b3| … |b25|      metrics of the window; of each batch; an interval from those
//! ```
//!
//! Batches are no independent runs. Where they follow each other, the interval is too narrow, and [`judge`] says so.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use nicforge_record::{Drift, Interval, Latency, Metrics, Steadiness, warmup_end};
use nicforge_units::Time;
use serde_json::Value;

use super::build::Built;
use super::measure::{Snapshot, metrics};
use crate::world::World;
use crate::world::sink::latency_of;

/// Neighbouring batches that are correlated by more than this depend on each other.
pub const CORRELATED: f64 = 0.6;
/// A drift is less probable than this by chance.
const DRIFT_P: f64 = 0.001;
/// And is more than this share of the value.
const DRIFT_SHARE: f64 = 0.02;
/// Batches that there must be at least to say anything.
const LEAST: usize = 8;
/// Sums over the window. What a batch or a run does not name, it counted zero times.
const SUMS: [&str; 6] =
    ["drops.", "stages.", "requests_timed_out", "rx_nombuf", "requests_too_large", "requests_misdirected"];
/// What batches say nothing of: a window's largest value, what is distinct in it, how even it is, its state at the end.
const OF_WHOLE_WINDOWS: [&str; 4] = ["stage_gauges.", "latency_us.max", "io_working_set_bytes", "fairness"];

/// The interval of every metric that has one, from the metrics of `batches` in their order.
pub fn intervals(batches: &[Metrics]) -> BTreeMap<String, Interval> {
    let mut samples = samples(&batches.iter().collect::<Vec<_>>());
    samples.retain(|key, _| !begins(key, &OF_WHOLE_WINDOWS));
    let interval = |(key, samples): (String, Vec<f64>)| {
        let of_batch = Interval::of_batches(&samples)?;
        let times = if begins(&key, &SUMS) { samples.len() as f64 } else { 1.0 };
        let interval = Interval { mean: of_batch.mean * times, half_width: of_batch.half_width * times, ..of_batch };
        Some((key, interval))
    };
    samples.into_iter().filter_map(interval).collect()
}

/// The same from whole runs with different seeds.
pub fn intervals_of_replicas(runs: &[&Metrics]) -> BTreeMap<String, Interval> {
    let interval = |(key, samples): (String, Vec<f64>)| Some((key, Interval::of_replicas(&samples)?));
    samples(runs).into_iter().filter_map(interval).collect()
}

/// Each metric's values in all of `each`. One that some lack, such as the latency of no frame, is not the mean of the
/// others, and is left out.
fn samples(each: &[&Metrics]) -> BTreeMap<String, Vec<f64>> {
    let each: Vec<BTreeMap<String, f64>> = each.iter().map(|metrics| numbers(metrics)).collect();
    let keys: BTreeSet<&String> = each.iter().flat_map(BTreeMap::keys).collect();
    let all = |key: &String| {
        let absent = begins(key, &SUMS).then_some(0.0);
        let samples: Option<Vec<f64>> = each.iter().map(|numbers| numbers.get(key).copied().or(absent)).collect();
        Some((key.clone(), samples?))
    };
    keys.into_iter().filter_map(all).collect()
}

fn begins(key: &str, with: &[&str]) -> bool {
    with.iter().any(|begin| key.starts_with(begin))
}

/// Every number of `metrics`, by the key that `points.csv` has.
fn numbers(metrics: &Metrics) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    // Numbers, options and maps with string keys always serialise.
    let tree = serde_json::to_value(metrics).unwrap_or_default();
    collect("", &tree, &mut found);
    found
}

fn collect(prefix: &str, tree: &Value, found: &mut BTreeMap<String, f64>) {
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
pub fn main_metric(metrics: &Metrics) -> (&'static str, f64) {
    let options =
        [("rpc_mps", metrics.rpc_mps), ("tuples_mps", metrics.tuples_mps), ("bandwidth_gbps", metrics.bandwidth_gbps)];
    let found = options.into_iter().find_map(|(key, value)| Some((key, value?)));
    found.unwrap_or(("throughput_gbps", metrics.throughput_gbps))
}

/// How the main metric's level changes from the first half of `batches` to the second, if it does.
pub fn drift(batches: &[Metrics]) -> Option<Drift> {
    let metric = main_metric(batches.first().filter(|_| batches.len() >= LEAST)?).0.to_owned();
    let samples: Vec<f64> = batches.iter().map(|metrics| main_metric(metrics).1).collect();
    let (begin, end) = samples.split_at(samples.len() / 2);
    let (begin, end) = (Interval::of_replicas(begin)?, Interval::of_replicas(end)?);
    let share = if begin.mean == 0.0 { 0.0 } else { end.mean / begin.mean - 1.0 };
    let drifts = begin.difference(&end).is_some_and(|test| test.p < DRIFT_P) && share.abs() > DRIFT_SHARE;
    drifts.then_some(Drift { metric, share })
}

/// Adds to `steadiness` what `batches` say of their window.
pub fn judge(steadiness: &mut Steadiness, batches: &[Metrics]) {
    let samples: Vec<f64> = batches.iter().map(|metrics| main_metric(metrics).1).collect();
    if samples.len() < LEAST {
        return;
    }
    steadiness.drift = drift(batches);
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

    /// Makes one of each pair, where there are more than `most`.
    pub fn join_pairs_over(&mut self, most: u64) {
        if self.0.len() as u64 <= most + 1 {
            return;
        }
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
    fn every_metric_but_extremes_has_an_interval() {
        let batches: Vec<Metrics> = [10.0, 11.0, 10.0, 12.0].map(batch).to_vec();
        let of_batches = intervals(&batches);
        let throughput = of_batches["throughput_gbps"];
        assert_eq!((throughput.mean, throughput.samples), (10.75, 4));
        assert!((throughput.half_width / of_batches["latency_us.p50"].half_width - 2.0).abs() < 1e-9);
        assert_eq!(of_batches["drop_fraction"].half_width, 0.0);
        for without in ["latency_us.max", "io_working_set_bytes", "latency_us.curve"] {
            assert!(!of_batches.contains_key(without), "{without}");
        }
        // Runs are as long as what is said of them.
        let of_runs = intervals_of_replicas(&batches.iter().collect::<Vec<_>>());
        assert_eq!((of_runs["latency_us.max"].mean, of_runs["drops.fifo_full"].mean), (99.0, 3.0));
    }

    #[test]
    fn sums_are_those_of_all_batches_and_what_a_batch_does_not_name_is_zero() {
        let dropped = |count: u64| {
            let drops = (count > 0).then(|| ("fifo_full".to_owned(), count)).into_iter().collect();
            Metrics { drops, throughput_gbps: count as f64, ..Metrics::default() }
        };
        let sure = intervals(&[4, 0, 2, 6].map(dropped));
        let (drops, rate) = (sure["drops.fifo_full"], sure["throughput_gbps"]);
        assert_eq!((drops.mean, rate.mean), (12.0, 3.0));
        assert!((drops.half_width - 4.0 * rate.half_width).abs() < 1e-9);
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
