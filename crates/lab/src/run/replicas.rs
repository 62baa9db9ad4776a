//! A point run with several seeds: the mean of its metrics, with intervals from runs that are independent.

use nicforge_record::{Metrics, Steadiness};
use nicforge_units::Time;
use serde_json::{Map, Number, Value};

use super::PointRun;
use super::batches::intervals_of_replicas;

/// Counts by name: what a run does not name it counted zero times.
const COUNTS: [&str; 3] = ["drops", "stages", "stage_gauges"];

/// One point of `runs` with different seeds, in the order of the seeds; `None` where there is none. Figures of cores,
/// stages and the time line are those of the first.
pub fn merged(mut runs: Vec<PointRun>) -> Option<PointRun> {
    if runs.len() < 2 {
        return runs.pop();
    }
    let metrics: Vec<&Metrics> = runs.iter().map(|run| &run.metrics).collect();
    let (mean, intervals) = (mean(&metrics), intervals_of_replicas(&metrics));
    let simulated = Time::from_ps(runs.iter().map(|run| run.simulated.as_ps()).sum());
    let told = runs.iter().find(|run| !run.steadiness.is_steady()).unwrap_or(&runs[0]);
    // Replicas are independent, however their batches are.
    let steadiness = Steadiness { batch_correlation: None, ..told.steadiness.clone() };
    let first = runs.swap_remove(0);
    Some(PointRun { metrics: mean, intervals, simulated, steadiness, ..first })
}

/// The mean of each metric that all of `metrics` have.
fn mean(metrics: &[&Metrics]) -> Metrics {
    // Numbers, options and maps with string keys always serialise, and means have the types of what they are means of.
    let trees: Vec<Value> = metrics.iter().map(|metrics| serde_json::to_value(metrics).unwrap_or_default()).collect();
    let tree = mean_of(&trees.iter().collect::<Vec<_>>());
    tree.and_then(|tree| serde_json::from_value(tree).ok()).unwrap_or_default()
}

fn mean_of(trees: &[&Value]) -> Option<Value> {
    match trees.first()? {
        Value::Number(_) => {
            let count = trees.len() as f64;
            let all: Option<Vec<f64>> = trees.iter().map(|tree| tree.as_f64()).collect();
            let mean = all?.iter().sum::<f64>() / count;
            let whole = trees.iter().all(|tree| tree.is_u64());
            if whole { Some(Value::from(mean.round() as u64)) } else { Number::from_f64(mean).map(Value::Number) }
        }
        Value::Array(first) => {
            let arrays: Option<Vec<&Vec<Value>>> = trees.iter().map(|tree| tree.as_array()).collect();
            let arrays = arrays.filter(|arrays| arrays.iter().all(|array| array.len() == first.len()))?;
            let at = |place: usize| mean_of(&arrays.iter().map(|array| &array[place]).collect::<Vec<_>>());
            (0..first.len()).map(at).collect::<Option<Vec<Value>>>().map(Value::Array)
        }
        Value::Object(_) => {
            let maps: Vec<&Map<String, Value>> = trees.iter().filter_map(|tree| tree.as_object()).collect();
            let mut means = Map::new();
            for key in maps.iter().flat_map(|map| map.keys()) {
                if means.contains_key(key) {
                    continue;
                }
                let mean = if COUNTS.contains(&key.as_str()) { counts(&maps, key) } else { field(&maps, key) };
                means.extend(mean.map(|mean| (key.clone(), mean)));
            }
            Some(Value::Object(means))
        }
        other => Some((*other).clone()),
    }
}

fn field(maps: &[&Map<String, Value>], key: &str) -> Option<Value> {
    let values: Option<Vec<&Value>> = maps.iter().map(|map| map.get(key)).collect();
    mean_of(&values?)
}

fn counts(maps: &[&Map<String, Value>], key: &str) -> Option<Value> {
    let none = Map::new();
    let named: Vec<&Map<String, Value>> =
        maps.iter().map(|map| map.get(key).and_then(Value::as_object).unwrap_or(&none)).collect();
    let mut sums: Map<String, Value> = Map::new();
    for name in named.iter().flat_map(|map| map.keys()) {
        let sum: u64 = named.iter().filter_map(|map| map.get(name)?.as_u64()).sum();
        sums.insert(name.clone(), Value::from((sum as f64 / maps.len() as f64).round() as u64));
    }
    Some(Value::Object(sums))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nicforge_record::Latency;

    use super::*;

    fn run(gbps: f64, dropped: Option<u64>, p50: Option<f64>) -> PointRun {
        let drops: BTreeMap<String, u64> = dropped.map(|count| ("fifo_full".to_owned(), count)).into_iter().collect();
        let latency = |p50| Latency { p50, curve: vec![(0.0, p50), (100.0, p50 * 2.0)], ..Latency::default() };
        let metrics = Metrics { throughput_gbps: gbps, drops, latency_us: p50.map(latency), ..Metrics::default() };
        PointRun {
            metrics,
            intervals: BTreeMap::new(),
            cores: Vec::new(),
            stages: Vec::new(),
            simulated: Time::from_us(3),
            steadiness: Steadiness::default(),
            timeline: Vec::new(),
            switches: Vec::new(),
            trace: None,
        }
    }

    #[test]
    fn metrics_are_means_with_the_interval_of_independent_runs() {
        let runs = vec![run(10.0, Some(4), Some(1.0)), run(14.0, None, Some(2.0)), run(12.0, Some(2), Some(3.0))];
        let merged = merged(runs).unwrap();
        let Metrics { throughput_gbps, drops, latency_us, .. } = &merged.metrics;
        assert_eq!((*throughput_gbps, drops["fifo_full"]), (12.0, 2));
        assert_eq!(latency_us.as_ref().unwrap().curve, [(0.0, 2.0), (100.0, 4.0)]);
        let interval = merged.intervals["throughput_gbps"];
        assert_eq!((interval.mean, interval.samples, interval.correlation), (12.0, 3, None));
        // t of two degrees of freedom, 4.303, by 2 over the root of 3.
        assert!((interval.half_width - 4.9683).abs() < 1e-3, "{}", interval.half_width);
        assert_eq!(merged.simulated, Time::from_us(9));
    }

    #[test]
    fn what_a_run_lacks_has_no_mean_and_one_run_is_itself() {
        let merged_two = merged(vec![run(10.0, None, Some(1.0)), run(14.0, None, None)]).unwrap();
        assert_eq!(merged_two.metrics.latency_us, None);
        assert_eq!(merged(vec![run(10.0, Some(4), None)]), Some(run(10.0, Some(4), None)));
        assert_eq!(merged(Vec::new()), None);
    }
}
