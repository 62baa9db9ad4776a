//! `points.csv`: one row per point, one column per parameter and metric, values as in the JSON.

use nicforge_record::Record;
use serde_json::Value;

use super::columns::{METRICS, NO_DROP, drop_causes, occasional};
use super::shape;

/// The contents of `points.csv` (RFC 4180, with `\n`); what was not measured is empty.
///
/// Each column has a name of its own: a parameter that is called like a metric (`offered_gbps`: the
/// load that was set, and the frame bytes that arrived) stands as `params.` and its key.
pub fn to_csv(record: &Record) -> String {
    let keys = shape::param_keys(record);
    let causes = drop_causes(record.points.iter().map(|point| &point.metrics));
    let occasional = occasional(record.points.iter().map(|point| &point.metrics));
    let metrics = || METRICS.iter().chain([&NO_DROP]).chain(occasional.clone());
    // Half widths stand behind all else, for the metrics of which some point has one.
    let has_interval = |key: &String| record.points.iter().any(|point| point.intervals.contains_key(key));
    let dropped = causes.iter().map(|cause| format!("drops.{cause}"));
    let sure: Vec<String> = metrics().map(|metric| metric.key.to_owned()).chain(dropped).filter(has_interval).collect();
    let mut csv = String::new();
    let head = std::iter::once("variant".to_string())
        .chain(keys.iter().map(|key| field(&param_head(key, &causes))))
        .chain(metrics().map(|metric| metric.key.to_string()))
        .chain(causes.iter().map(|cause| field(&format!("drops.{cause}"))))
        .chain(sure.iter().map(|key| field(&format!("{key}.ci95"))));
    push_row(&mut csv, head);
    for point in &record.points {
        let half = |key: &String| point.intervals.get(key).map_or(String::new(), |sure| sure.half_width.to_string());
        let row = std::iter::once(field(&point.variant))
            .chain(keys.iter().map(|key| point.params.get(*key).map_or(String::new(), |v| field(&plain(v)))))
            .chain(metrics().map(|metric| (metric.get)(&point.metrics).map_or(String::new(), |v| v.to_string())))
            .chain(causes.iter().map(|cause| point.metrics.drops.get(*cause).unwrap_or(&0).to_string()))
            .chain(sure.iter().map(half));
        push_row(&mut csv, row);
    }
    csv
}

/// The name of a parameter's column, distinct from all others.
fn param_head(key: &str, causes: &[&str]) -> String {
    let metric = METRICS.iter().chain([&NO_DROP]).any(|of| of.key == key);
    let cause = key.strip_prefix("drops.");
    let taken = metric || key == "variant" || cause.is_some_and(|cause| causes.contains(&cause));
    if taken { format!("params.{key}") } else { key.to_string() }
}

fn push_row(csv: &mut String, fields: impl Iterator<Item = String>) {
    csv.push_str(&fields.collect::<Vec<_>>().join(","));
    csv.push('\n');
}

/// A parameter's value without JSON's quotes.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use nicforge_record::Interval;

    use super::*;
    use crate::fake;

    #[test]
    fn half_widths_of_intervals_stand_behind_all_other_columns() {
        let mut record = fake::two_variants();
        let before = to_csv(&record);
        let interval = Interval { mean: 1.0, half_width: 0.25, samples: 25, correlation: Some(0.1) };
        record.points[1].intervals.insert("throughput_gbps".to_owned(), interval);
        record.points[1].intervals.insert("drops.fifo_full".to_owned(), Interval { half_width: 3.0, ..interval });
        let csv = to_csv(&record);
        let ends = [",throughput_gbps.ci95,drops.fifo_full.ci95", ",,", ",0.25,3"];
        for ((row, before), end) in csv.lines().zip(before.lines()).zip(ends) {
            assert_eq!(row, format!("{before}{end}"));
        }
    }

    #[test]
    fn only_points_whose_nics_are_played_have_a_column_for_that() {
        let mut record = fake::two_variants();
        let key = "emulator_busy_fraction";
        assert!(!to_csv(&record).contains(key));
        record.points[1].metrics.emulator_busy_fraction = Some(0.875);
        let csv = to_csv(&record);
        let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
        let column = rows[0].iter().position(|head| *head == key).unwrap();
        assert_eq!((rows[1][column], rows[2][column]), ("", "0.875"));
    }
}
