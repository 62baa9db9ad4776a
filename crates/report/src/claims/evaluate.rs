//! The value of an expression in a record.

use std::collections::BTreeMap;

use nicforge_record::{PointRecord, Record};

use super::expression::{Expression, Function, Operator, Selection};
use crate::columns::by_key;
use crate::csv::plain;

/// What an expression comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// A number.
    Number(Sure),
    /// A condition: in how many of how many points it holds.
    Holds {
        /// Points in which it does.
        true_in: usize,
        /// All points.
        of: usize,
    },
    /// No number: the condition of an edge holds nowhere, or something is divided by nothing.
    Nothing,
}

/// A value and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sure {
    /// The value.
    pub value: f64,
    /// Half the width of its 95 % interval; absent where the run does not say.
    pub half_width: Option<f64>,
}

/// A value at a point: what varies within the series, and the value. A condition's is 1 where it holds.
#[derive(Clone)]
struct Entry {
    labels: BTreeMap<String, String>,
    sure: Sure,
}

/// The outcome of `expression` in `record`.
///
/// # Errors
/// What the record lacks, in words.
pub fn evaluate(expression: &Expression, record: &Record) -> Result<Outcome, String> {
    let series = series(expression, record)?;
    if expression.is_truth() {
        let true_in = series.iter().filter(|entry| entry.sure.value == 1.0).count();
        return Ok(Outcome::Holds { true_in, of: series.len() });
    }
    match series.as_slice() {
        [entry] if entry.sure.value.is_finite() => Ok(Outcome::Number(entry.sure)),
        [_] => Ok(Outcome::Nothing),
        several => Err(format!("{} points are left where one value is wanted", several.len())),
    }
}

/// The points of `record` that `selection` names.
///
/// # Errors
/// There is none, with what there is instead.
pub fn selected<'a>(selection: &Selection, record: &'a Record) -> Result<Vec<&'a PointRecord>, String> {
    let mut points: Vec<&PointRecord> = record.points.iter().collect();
    let distinct = |values: Vec<String>| {
        let mut known: Vec<String> = Vec::new();
        values.into_iter().for_each(|value| {
            if !known.contains(&value) {
                known.push(value)
            }
        });
        known.join(", ")
    };
    if let Some(variant) = &selection.variant {
        let known = distinct(points.iter().map(|point| point.variant.clone()).collect());
        points.retain(|point| point.variant == *variant);
        if points.is_empty() {
            return Err(format!("no variant is called `{variant}`: there are {known}"));
        }
    }
    for (key, wanted) in &selection.params {
        let value = |point: &PointRecord| point.params.get(key).map(plain);
        let known = distinct(points.iter().filter_map(|point| value(point)).collect());
        points.retain(|point| value(point).is_some_and(|value| is_same(&value, wanted)));
        if points.is_empty() {
            return Err(match known.is_empty() {
                true => format!("no point has `{key}`"),
                false => format!("no point has {key}={wanted}: there are {known}"),
            });
        }
    }
    Ok(points)
}

/// Whether two values are the same, 4 and 4.0 as well.
fn is_same(one: &str, other: &str) -> bool {
    let numbers = one.parse::<f64>().ok().zip(other.parse::<f64>().ok());
    numbers.map_or(one == other, |(one, other)| one == other)
}

/// Keys that vary within a variant of `record`.
fn swept(record: &Record) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for point in &record.points {
        let same = record.points.iter().filter(|other| other.variant == point.variant);
        for other in same {
            let differing = point.params.iter().filter(|(key, value)| other.params.get(*key) != Some(value));
            differing.for_each(|(key, _)| {
                if !keys.contains(&key.as_str()) {
                    keys.push(key)
                }
            });
        }
    }
    keys
}

fn series(expression: &Expression, record: &Record) -> Result<Vec<Entry>, String> {
    match expression {
        Expression::Number(value) => Ok(vec![constant(*value)]),
        Expression::Metric(selection) => metric(selection, record),
        Expression::Pair(operator, left, right) => join(*operator, &series(left, record)?, &series(right, record)?),
        Expression::Call(function, key, inner) => {
            call(*function, key.as_deref().unwrap_or_default(), &series(inner, record)?)
        }
    }
}

fn constant(value: f64) -> Entry {
    Entry { labels: BTreeMap::new(), sure: Sure { value, half_width: Some(0.0) } }
}

fn metric(selection: &Selection, record: &Record) -> Result<Vec<Entry>, String> {
    let keys = swept(record);
    let fixed = |key: &str| selection.params.iter().any(|(other, _)| other == key);
    let free: Vec<&str> = keys.into_iter().filter(|key| !fixed(key)).collect();
    let entry = |point: &PointRecord| {
        let value = (by_key(&selection.metric).get)(&point.metrics);
        let value = value.ok_or_else(|| format!("`{}` is not measured", selection.metric))?;
        let label = |key: &&str| Some(((*key).to_owned(), plain(point.params.get(*key)?)));
        let mut labels: BTreeMap<String, String> = free.iter().filter_map(label).collect();
        if selection.variant.is_none() {
            labels.insert("variant".to_owned(), point.variant.clone());
        }
        let interval = point.intervals.get(&selection.metric);
        Ok(Entry { labels, sure: Sure { value, half_width: interval.map(|interval| interval.half_width) } })
    };
    selected(selection, record)?.into_iter().map(entry).collect()
}

/// Both at each pair of points that agree in what both have.
fn join(operator: Operator, left: &[Entry], right: &[Entry]) -> Result<Vec<Entry>, String> {
    let mut joined = Vec::new();
    for one in left {
        for other in right {
            let agrees = one.labels.iter().all(|(key, value)| other.labels.get(key).is_none_or(|other| other == value));
            if agrees {
                let mut labels = one.labels.clone();
                labels.extend(other.labels.clone());
                joined.push(Entry { labels, sure: applied(operator, one.sure, other.sure) });
            }
        }
    }
    if joined.is_empty() { Err("two sides have no point in common".to_owned()) } else { Ok(joined) }
}

/// Both are taken for independent, as runs of two points are.
fn applied(operator: Operator, one: Sure, other: Sure) -> Sure {
    let (a, b) = (one.value, other.value);
    let truth = |holds: bool| Sure { value: if holds { 1.0 } else { 0.0 }, half_width: None };
    let with = |value: f64, by_a: f64, by_b: f64| {
        let half_width = one.half_width.zip(other.half_width).map(|(of_a, of_b)| (of_a * by_a).hypot(of_b * by_b));
        Sure { value, half_width }
    };
    match operator {
        Operator::Plus => with(a + b, 1.0, 1.0),
        Operator::Minus => with(a - b, 1.0, 1.0),
        Operator::Times => with(a * b, b, a),
        Operator::Over => with(a / b, 1.0 / b, a / (b * b)),
        Operator::Larger => {
            if a < b {
                other
            } else {
                one
            }
        }
        Operator::Smaller => {
            if a < b {
                one
            } else {
                other
            }
        }
        Operator::Less => truth(a < b),
        Operator::More => truth(a > b),
        Operator::And => truth(a == 1.0 && b == 1.0),
    }
}

fn call(function: Function, key: &str, series: &[Entry]) -> Result<Vec<Entry>, String> {
    let extreme = |wins: fn(f64, f64) -> bool| {
        let best =
            series.iter().reduce(|best, other| if wins(other.sure.value, best.sure.value) { other } else { best });
        let best = best.ok_or_else(|| "no point is left".to_owned())?;
        Ok(vec![Entry { labels: BTreeMap::new(), sure: best.sure }])
    };
    match function {
        Function::Max => extreme(|one, other| one > other),
        Function::Min => extreme(|one, other| one < other),
        Function::Mean => Ok(vec![mean(series)]),
        Function::Rising => Ok(along(key, series)?.iter().map(|group| group.is_rising(1.0)).collect()),
        Function::Falling => Ok(along(key, series)?.iter().map(|group| group.is_rising(-1.0)).collect()),
        Function::UpTo => Ok(along(key, series)?.iter().map(|group| group.edge(group.points.iter())).collect()),
        Function::From => Ok(along(key, series)?.iter().map(|group| group.edge(group.points.iter().rev())).collect()),
    }
}

fn mean(series: &[Entry]) -> Entry {
    let count = series.len() as f64;
    let value = series.iter().map(|entry| entry.sure.value).sum::<f64>() / count;
    let squares: Option<f64> = series.iter().map(|entry| entry.sure.half_width.map(|half| half * half)).sum();
    Entry { labels: BTreeMap::new(), sure: Sure { value, half_width: squares.map(|sum| sum.sqrt() / count) } }
}

/// Points that only differ in a key, in its order.
struct Group {
    /// What they have in common.
    labels: BTreeMap<String, String>,
    /// Values of the key and of the series.
    points: Vec<(f64, Sure)>,
}

/// The series along `key`, for each combination of its other labels.
fn along(key: &str, series: &[Entry]) -> Result<Vec<Group>, String> {
    let mut groups: Vec<Group> = Vec::new();
    for entry in series {
        let mut labels = entry.labels.clone();
        let value = labels.remove(key).ok_or_else(|| format!("`{key}` does not vary"))?;
        let value: f64 = value.parse().map_err(|_| format!("`{key}` is no number"))?;
        match groups.iter_mut().find(|group| group.labels == labels) {
            Some(group) => group.points.push((value, entry.sure)),
            None => groups.push(Group { labels, points: vec![(value, entry.sure)] }),
        }
    }
    groups.iter_mut().for_each(|group| group.points.sort_by(|(one, _), (other, _)| one.total_cmp(other)));
    Ok(groups)
}

impl Group {
    fn with(&self, value: f64) -> Entry {
        Entry { labels: self.labels.clone(), sure: Sure { value, half_width: None } }
    }

    fn is_rising(&self, sign: f64) -> Entry {
        let values: Vec<f64> = self.points.iter().map(|(_, sure)| sure.value * sign).collect();
        let never_falls = values.windows(2).all(|pair| pair[0] <= pair[1]);
        let ends = values.first().zip(values.last());
        self.with(if never_falls && ends.is_some_and(|(first, last)| first < last) { 1.0 } else { 0.0 })
    }

    /// The last value of the key, from one end on, up to which a condition holds. How near the true edge lies to it is
    /// not known.
    fn edge<'a>(&self, points: impl Iterator<Item = &'a (f64, Sure)>) -> Entry {
        let last = points.take_while(|(_, sure)| sure.value == 1.0).last();
        self.with(last.map_or(f64::NAN, |(key, _)| *key))
    }
}

#[cfg(test)]
mod tests {
    use nicforge_record::Interval;
    use serde_json::json;

    use super::*;

    /// Variants `a` and `b` at 1, 2 and 4 reads: 100, 90, 60 and 50, 60, 70 Gbit/s, the first of `a` ± 3.
    fn record() -> Record {
        let mut points = Vec::new();
        for (variant, rates) in [("a", [100.0, 90.0, 60.0]), ("b", [50.0, 60.0, 70.0])] {
            for (reads, rate) in [1, 2, 4].into_iter().zip(rates) {
                let mut point = PointRecord { variant: variant.to_owned(), ..PointRecord::default() };
                point.params.insert("interface".to_owned(), json!(variant));
                point.params.insert("reads".to_owned(), json!(reads));
                point.metrics.throughput_gbps = rate;
                points.push(point);
            }
        }
        let sure = Interval { mean: 100.0, half_width: 3.0, samples: 9, correlation: None };
        points[0].intervals.insert("throughput_gbps".to_owned(), sure);
        Record { points, ..Record::default() }
    }

    fn outcome(text: &str) -> Result<Outcome, String> {
        evaluate(&Expression::parse(text).unwrap(), &record())
    }

    fn number(text: &str) -> f64 {
        match outcome(text) {
            Ok(Outcome::Number(sure)) => sure.value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn values_ratios_extremes_and_edges_are_read() {
        assert_eq!(number("throughput_gbps{a, reads=2.0}"), 90.0);
        assert_eq!(number("max(throughput_gbps{b} / throughput_gbps{a})"), 70.0 / 60.0);
        assert_eq!(number("min(throughput_gbps{})"), 50.0);
        assert_eq!(number("mean(throughput_gbps{b})"), 60.0);
        assert_eq!(number("min(max(throughput_gbps{a}, throughput_gbps{b}))"), 70.0);
        assert_eq!(number("max(min(throughput_gbps{a}, throughput_gbps{b}))"), 60.0);
        assert_eq!(number("1 - throughput_gbps{b, reads=4} / throughput_gbps{a, reads=1}"), 1.0 - 0.7);
        assert_eq!(number("up_to(reads, throughput_gbps{a} > 80)"), 2.0);
        assert_eq!(number("from(reads, throughput_gbps{a} < throughput_gbps{b})"), 4.0);
        assert_eq!(outcome("up_to(reads, throughput_gbps{a} > 200)"), Ok(Outcome::Nothing));
    }

    #[test]
    fn an_interval_goes_through_arithmetic_and_is_absent_where_a_point_has_none() {
        let sure = |text: &str| match outcome(text) {
            Ok(Outcome::Number(sure)) => sure.half_width,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(sure("throughput_gbps{a, reads=1} / 50"), Some(0.06));
        assert_eq!(sure("max(throughput_gbps{a})"), Some(3.0));
        assert_eq!(sure("throughput_gbps{a, reads=1} / throughput_gbps{a, reads=2}"), None);
    }

    #[test]
    fn a_condition_says_in_how_many_points_it_holds() {
        let holds = |true_in, of| Ok(Outcome::Holds { true_in, of });
        assert_eq!(outcome("throughput_gbps{a} > throughput_gbps{b}"), holds(2, 3));
        assert_eq!(outcome("falling(reads, throughput_gbps{a}) and rising(reads, throughput_gbps{b})"), holds(1, 1));
        assert_eq!(outcome("rising(reads, throughput_gbps{})"), holds(1, 2));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let wrong = |text: &str| outcome(text).unwrap_err();
        assert_eq!(wrong("throughput_gbps{c}"), "no variant is called `c`: there are a, b");
        assert_eq!(wrong("throughput_gbps{a, reads=3}"), "no point has reads=3: there are 1, 2, 4");
        assert_eq!(wrong("throughput_gbps{a, cores=3}"), "no point has `cores`");
        assert_eq!(wrong("throughput_gbps{a}"), "3 points are left where one value is wanted");
        assert_eq!(wrong("app_hit_rate{a, reads=1}"), "`app_hit_rate` is not measured");
        assert_eq!(wrong("rising(cores, throughput_gbps{a})"), "`cores` does not vary");
    }
}
