//! What the values of a plot may meet.

use nicforge_record::{PointRecord, Record};

use crate::capacity;
use crate::columns::Metric;
use crate::plots::LimitLine;
use crate::shape::{Facet, Shape};

/// As many different lines of one limit are at most in a plot: more would hide the values.
const LINES_MAX: usize = 3;
/// Values that differ by less than this share are one.
const SAME: f64 = 0.01;

/// Names and values at one point, in the unit shown.
pub fn of(record: &Record, point: &PointRecord, metric: &Metric) -> Vec<(&'static str, f64)> {
    let limits = capacity::limits(metric.key, record, point).into_iter();
    limits.map(|limit| (limit.name, metric.unit.shown(limit.value))).collect()
}

/// The limits that all points have in common.
pub fn common(record: &Record, metric: &Metric) -> Vec<LimitLine> {
    let mut all = record.points.iter().map(|point| of(record, point, metric));
    let first = all.next().unwrap_or_default();
    let rest: Vec<_> = all.collect();
    let everywhere = |(name, value): &(&'static str, f64)| {
        rest.iter().all(|limits| limits.iter().any(|other| other.0 == *name && near(other.1, *value)))
    };
    let line = |(name, value): (&'static str, f64)| LimitLine { name: name.to_owned(), points: vec![(1.0, value)] };
    first.into_iter().filter(everywhere).map(line).collect()
}

/// Over the x axis: of each limit a line for all variants, or one for each where they differ.
pub fn over_x(record: &Record, shape: &Shape, facet: &Facet, metric: &Metric) -> Vec<LimitLine> {
    let mut lines: Vec<LimitLine> = Vec::new();
    for variant in &shape.variants {
        for at in shape.series(facet, variant) {
            for (name, value) in of(record, at.point, metric) {
                let own = |line: &&mut LimitLine| line.name == *variant_name(name, variant);
                match lines.iter_mut().find(own) {
                    Some(line) => line.points.push((at.x, value)),
                    None => lines.push(LimitLine { name: variant_name(name, variant), points: vec![(at.x, value)] }),
                }
            }
        }
    }
    let mut distinct: Vec<LimitLine> = Vec::new();
    for mut line in lines {
        line.name.truncate(line.name.find(BETWEEN).unwrap_or(line.name.len()));
        level(&mut line.points);
        if !distinct.iter().any(|other| other.name == line.name && alike(&other.points, &line.points)) {
            distinct.push(line);
        }
    }
    let count = |name: &str| distinct.iter().filter(|line| line.name == name).count();
    let few: Vec<bool> = distinct.iter().map(|line| count(&line.name) <= LINES_MAX).collect();
    let mut few = few.into_iter();
    distinct.retain(|_| few.next().unwrap_or(false));
    distinct
}

/// Stands in no name of a limit.
const BETWEEN: char = '\u{1f}';

fn variant_name(name: &str, variant: &str) -> String {
    format!("{name}{BETWEEN}{variant}")
}

/// Leaves one point of a line that is level.
fn level(points: &mut Vec<(f64, f64)>) {
    if points.iter().all(|point| near(point.1, points[0].1)) {
        points.truncate(1);
    }
}

fn alike(a: &[(f64, f64)], b: &[(f64, f64)]) -> bool {
    // Level lines may begin at different places.
    let level = a.len() == 1 && b.len() == 1;
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (level || a.0 == b.0) && near(a.1, b.1))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::by_key;
    use crate::fake;

    #[test]
    fn limits_that_variants_share_are_drawn_once_and_those_that_change_follow_x() {
        let mut record = fake::sweep(&[("priv_ring", 1.8), ("rx_bisect", 0.25)]);
        let of = |record: &Record| {
            let shape = Shape::of(record);
            let lines = over_x(record, &shape, &shape.facets[0], by_key("io_working_set_bytes"));
            lines.into_iter().map(|line| (line.name, line.points.len())).collect::<Vec<_>>()
        };
        assert_eq!(of(&record), [("I/O ways".to_owned(), 1), ("LLC".to_owned(), 1)]);
        // Each point has ways of its own.
        record.io_way_bytes = None;
        record.machine_parameters.push(nicforge_record::MachineParameter {
            key: "llc.ways".into(),
            value: 11.0,
            ..Default::default()
        });
        for (index, point) in record.points.iter_mut().enumerate() {
            point.params.insert("io_ways".into(), serde_json::json!(index % 7 + 1));
        }
        let shape = Shape::of(&record);
        let lines = over_x(&record, &shape, &shape.facets[0], by_key("io_working_set_bytes"));
        assert!(lines.iter().any(|line| line.name == "LLC" && line.points.len() == 1), "{lines:?}");
    }
}
