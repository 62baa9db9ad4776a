//! Two runs beside each other: settings that differ, and metrics with a test of whether they do.

use std::collections::BTreeMap;

use nicforge_record::{
    Differences, MetricDifference, PointDifferences, PointRecord, Record, SIGNIFICANT, Setting, SettingDifference,
    Verdict,
};
use serde_json::Value;

use super::columns::{Metric, by_key, measured};
use super::csv::plain;
use super::number::{number, probability};
use super::shape::{label_of, swept_keys};

pub mod page;

pub use page::write_diff;

/// A metric of a point in both runs, as tables have it.
struct Row<'a>(&'a MetricDifference);

impl Row<'_> {
    /// Value of one side with its interval.
    fn side(&self, side: usize) -> String {
        let shown = |value: f64| number(self.metric().unit.shown(value));
        match (self.0.values[side], self.0.half_widths[side]) {
            (None, _) => "-".to_owned(),
            (Some(value), None) => shown(value),
            (Some(value), Some(half)) => format!("{} ± {}", shown(value), shown(half)),
        }
    }

    fn change(&self) -> String {
        match self.0.values {
            [Some(a), Some(b)] if a != 0.0 && b / a >= 10.0 => format!("× {}", number(b / a)),
            [Some(a), Some(b)] if a != 0.0 => format!("{:+.1} %", (b / a - 1.0) * 100.0),
            _ => "-".to_owned(),
        }
    }

    fn said(&self) -> String {
        match self.0.verdict() {
            Verdict::Same => "same".to_owned(),
            Verdict::Differs(value) => format!("differs, {}", probability(value)),
            Verdict::NotToldApart(value) => format!("not told apart, {}", probability(value)),
            Verdict::Unknown => "no interval".to_owned(),
            Verdict::OnlyOne => "in one run only".to_owned(),
        }
    }

    /// Whether it stands in the short table: what differs or may, of the metrics that say most.
    fn is_shown(&self) -> bool {
        self.metric().brief.is_some() && self.0.verdict() != Verdict::Same
    }

    fn metric(&self) -> &'static Metric {
        by_key(&self.0.key)
    }
}

/// The differences between `a` and `b`, which are called `names`.
pub fn diff(a: &Record, b: &Record, names: [&str; 2]) -> Differences {
    let (pairs, alone) = pairs(a, b);
    let keys = keys(a, b);
    let name = |point: &PointRecord| name(point, &keys);
    let point = |&(a, b): &(&PointRecord, &PointRecord)| {
        let metrics = measured([&a.metrics, &b.metrics].into_iter());
        PointDifferences { name: name(a), metrics: metrics.into_iter().map(|metric| of_metric(metric, a, b)).collect() }
    };
    Differences {
        runs: names.map(str::to_owned),
        settings: settings((a, b), &pairs),
        points: pairs.iter().map(point).collect(),
        alone: alone.map(|points| points.into_iter().map(name).collect()),
    }
}

fn of_metric(metric: &Metric, a: &PointRecord, b: &PointRecord) -> MetricDifference {
    let values = [a, b].map(|point| (metric.get)(&point.metrics));
    let intervals = [a, b].map(|point| point.intervals.get(metric.key));
    let test = || intervals[0]?.difference(intervals[1]?);
    let differs = values[0].is_some() && values[1].is_some() && values[0] != values[1];
    MetricDifference {
        key: metric.key.to_owned(),
        values,
        half_widths: intervals.map(|interval| interval.map(|interval| interval.half_width)),
        p: differs.then(test).flatten().map(|test| test.p),
    }
}

/// Keys that vary within a variant of one of the runs: they say which point is which. One that only tells variants apart
/// may differ between the runs.
fn keys<'a>(a: &'a Record, b: &'a Record) -> Vec<&'a str> {
    let mut keys = swept_keys(a);
    for key in swept_keys(b) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn name(point: &PointRecord, keys: &[&str]) -> String {
    let label = label_of(point, keys.iter().filter(|key| point.params.contains_key(**key)));
    if label.is_empty() { point.variant.clone() } else { format!("{}, {label}", point.variant) }
}

/// Points of both, and those that only one has. A run of one point has the same point as another of one.
fn pairs<'a>(a: &'a Record, b: &'a Record) -> (Vec<(&'a PointRecord, &'a PointRecord)>, [Vec<&'a PointRecord>; 2]) {
    if let ([one], [other]) = (a.points.as_slice(), b.points.as_slice()) {
        return (vec![(one, other)], [Vec::new(), Vec::new()]);
    }
    let keys = keys(a, b);
    let is_same = |one: &PointRecord, other: &PointRecord| {
        one.variant == other.variant && keys.iter().all(|key| one.params.get(*key) == other.params.get(*key))
    };
    let mut left: Vec<&PointRecord> = b.points.iter().collect();
    let (mut pairs, mut only_a) = (Vec::new(), Vec::new());
    for point in &a.points {
        match left.iter().position(|other| is_same(point, other)) {
            Some(place) => pairs.push((point, left.remove(place))),
            None => only_a.push(point),
        }
    }
    (pairs, [only_a, left])
}

/// A name, and how to get what a record says of it.
type Fact = (&'static str, fn(&Record) -> String);

/// Origins, and settings whose values differ in any pair.
fn settings((a, b): (&Record, &Record), pairs: &[(&PointRecord, &PointRecord)]) -> Vec<SettingDifference> {
    let mut rows = Vec::new();
    let mut add = |name: &str, one: String, other: String| {
        if one != other {
            rows.push(SettingDifference { key: name.to_owned(), values: [one, other] });
        }
    };
    let of = |get: fn(&Record) -> String| (get(a), get(b));
    let facts: [Fact; 7] = [
        ("scenario", |record| record.scenario.clone()),
        ("machine", |record| record.machine.clone()),
        ("machine file (sha256)", |record| machine_hash(record)),
        ("seed", |record| record.seed.to_string()),
        ("version", |record| record.version.clone()),
        ("commit", |record| record.origin.as_ref().and_then(|origin| origin.commit.clone()).unwrap_or_default()),
        ("program", |record| record.origin.as_ref().map_or(String::new(), |origin| origin.program.clone())),
    ];
    for (name, get) in facts {
        let (one, other) = of(get);
        add(name, one, other);
    }
    let numbers = |record: &Record| -> BTreeMap<String, String> {
        record.machine_parameters.iter().map(|row| (row.key.clone(), row.value.to_string())).collect()
    };
    differing(numbers(a), numbers(b), &mut |key, one, other| add(key, one, other));
    for (key, values) in per_pair(a, b, pairs) {
        let all = |side: usize| {
            let mut texts: Vec<&str> = values.iter().map(|pair| pair[side].as_str()).collect();
            texts.dedup();
            texts.join(", ")
        };
        let values = [all(0), all(1)];
        rows.push(SettingDifference { key, values });
    }
    rows
}

fn machine_hash(record: &Record) -> String {
    let hash = record.origin.as_ref().map(|origin| origin.machine_file.sha256.as_str());
    hash.unwrap_or_default().chars().take(16).collect()
}

/// Of each setting that differs somewhere, the values in each pair in which it does.
fn per_pair(a: &Record, b: &Record, pairs: &[(&PointRecord, &PointRecord)]) -> Vec<(String, Vec<[String; 2]>)> {
    let mut found: Vec<(String, Vec<[String; 2]>)> = Vec::new();
    for (one, other) in pairs {
        differing(effective(a, one), effective(b, other), &mut |key, one, other| match found
            .iter_mut()
            .find(|(known, _)| known == key)
        {
            Some((_, values)) => values.push([one, other]),
            None => found.push((key.to_owned(), vec![[one, other]])),
        });
    }
    found
}

fn effective(record: &Record, point: &PointRecord) -> BTreeMap<String, String> {
    let with_unit = |setting: &Setting| {
        let value = plain(&setting.value);
        if setting.unit.is_empty() { value } else { format!("{value} {}", setting.unit) }
    };
    record.settings.iter().chain(&point.settings).map(|setting| (setting.key.clone(), with_unit(setting))).collect()
}

fn differing(a: BTreeMap<String, String>, b: BTreeMap<String, String>, add: &mut dyn FnMut(&str, String, String)) {
    const ABSENT: &str = "-";
    let get = |map: &BTreeMap<String, String>, key: &str| map.get(key).cloned().unwrap_or_else(|| ABSENT.to_owned());
    for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
        let (one, other) = (get(&a, key), get(&b, key));
        if one != other {
            add(key, one, other);
        }
    }
}

/// Head of the metrics' columns.
const HEAD: [&str; 6] = ["point", "metric", "A", "B", "B/A", "test"];

/// Main metrics that differ or may, with their cells.
fn main_rows(diff: &Differences) -> impl Iterator<Item = (Verdict, [String; 6])> {
    let all = diff.points.iter().flat_map(|point| point.metrics.iter().map(move |metric| (point, Row(metric))));
    all.filter(|(_, row)| row.is_shown()).map(|(point, row)| {
        let metric = format!("{} {}", row.metric().label, row.metric().unit.name());
        let metric = metric.trim_end().to_owned();
        (row.0.verdict(), [point.name.clone(), metric, row.side(0), row.side(1), row.change(), row.said()])
    })
}

/// A setting that differs, in cells.
fn cells_of(setting: &SettingDifference) -> [String; 3] {
    let [first, second] = setting.values.clone();
    [setting.key.clone(), first, second]
}

/// The differences as text.
pub fn diff_table(diff: &Differences) -> String {
    let mut text = format!("A  {}\nB  {}\n\n", diff.runs[0], diff.runs[1]);
    if diff.settings.is_empty() && !diff.points.is_empty() {
        text += "settings, machine and program: the same\n";
    } else if !diff.settings.is_empty() {
        let head = ["differs", "A", "B"].map(str::to_owned);
        let rows = diff.settings.iter().map(|setting| cells_of(setting).to_vec());
        text += &aligned(std::iter::once(head.to_vec()).chain(rows));
    }
    let all = diff.points.iter().map(|point| point.metrics.len()).sum::<usize>();
    let rows = main_rows(diff).map(|(_, cells)| cells.to_vec());
    let rows: Vec<Vec<String>> = rows.collect();
    if diff.points.is_empty() {
        text += "\nno point is in both runs\n";
    } else if rows.is_empty() {
        text += &format!("\n{} points, {all} values: no main metric differs\n", diff.points.len());
    } else {
        let head = HEAD.map(str::to_owned).to_vec();
        text += &format!("\n{}", aligned(std::iter::once(head).chain(rows)));
    }
    for (points, run) in diff.alone.iter().zip(["A", "B"]) {
        for point in points {
            text += &format!("only in {run}: {point}\n");
        }
    }
    text + &significance(diff)
}

/// How many values differ by the test, and how many would by chance.
fn significance(diff: &Differences) -> String {
    let verdicts = || diff.points.iter().flat_map(|point| &point.metrics).map(MetricDifference::verdict);
    let differ = verdicts().filter(|verdict| matches!(verdict, Verdict::Differs(_))).count();
    let tested = differ + verdicts().filter(|verdict| matches!(verdict, Verdict::NotToldApart(_))).count();
    if tested == 0 {
        return String::new();
    }
    format!(
        "\nof {tested} values of all metrics, {differ} differ (Welch's test, p < {SIGNIFICANT:.2}); of as many equal ones \
         about {} would by chance\n",
        number((tested as f64 * SIGNIFICANT).round())
    )
}

fn aligned(rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A record with the points of both runs as variants, for plots over each other.
pub fn over_each_other(a: &Record, b: &Record, names: [&str; 2]) -> Record {
    let points = |record: &Record, run: &str| -> Vec<PointRecord> {
        let points = record.points.iter().cloned();
        points.map(|point| PointRecord { variant: format!("{} ({run})", point.variant), ..point }).collect()
    };
    let mut record = Record {
        scenario: a.scenario.clone(),
        title: format!("{}: A and B", if a.title.is_empty() { &a.scenario } else { &a.title }),
        description: format!("What differs between two runs? A is {}, B is {}.", names[0], names[1]),
        differences: Some(diff(a, b, names)),
        points: points(a, "A").into_iter().chain(points(b, "B")).collect(),
        load_drops: a.load_drops.union(&b.load_drops).cloned().collect(),
        machine: if a.machine == b.machine { a.machine.clone() } else { format!("{}, {}", a.machine, b.machine) },
        seed: a.seed,
        version: a.version.clone(),
        llc_bytes: a.llc_bytes.filter(|_| a.llc_bytes == b.llc_bytes),
        io_way_bytes: a.io_way_bytes.filter(|_| a.io_way_bytes == b.io_way_bytes),
        machine_parameters: if a.machine_parameters == b.machine_parameters {
            a.machine_parameters.clone()
        } else {
            Vec::new()
        },
        settings: a.settings.iter().filter(|setting| b.settings.contains(setting)).cloned().collect(),
        ..Record::default()
    };
    // What is the same everywhere in one run may differ in the other; what only one run has is no axis.
    let known = |key: &str| record.points.iter().all(|point| point.params.contains_key(key));
    let keys: Vec<String> = record.points.iter().flat_map(|point| point.params.keys().cloned()).collect();
    let unknown: Vec<String> = keys.into_iter().filter(|key| !known(key)).collect();
    for point in &mut record.points {
        point.params.retain(|key, _: &mut Value| !unknown.contains(key));
    }
    record
}

#[cfg(test)]
mod tests;
