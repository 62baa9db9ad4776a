//! How the points of a run are arranged: what is compared, what is swept, what goes in panels.

use nicforge_record::{PointRecord, Record};
use serde_json::Value;

use super::columns::rate;
use super::csv::plain;
use super::plots::Axis;

/// Points that share every swept value but the one on the x axis.
pub struct Facet<'a> {
    /// The shared values, as `key value`; empty when there is but one facet.
    pub label: String,
    /// In the run's order.
    pub points: Vec<&'a PointRecord>,
}

/// A point at its place on the x axis.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The swept value.
    pub x: f64,
    /// What was measured there.
    pub point: &'a PointRecord,
}

impl At<'_> {
    /// What the point is ranked by, Gbit/s.
    pub fn rate(&self) -> f64 {
        rate(&self.point.metrics)
    }
}

/// The arrangement of a record's points.
pub struct Shape<'a> {
    /// What is compared, in order of appearance.
    pub variants: Vec<&'a str>,
    /// The swept numeric key on the x axis, if there is one.
    pub x: Option<&'a str>,
    /// How the x axis runs.
    pub x_axis: Axis,
    /// All swept numeric keys.
    pub numeric: Vec<&'a str>,
    /// One per combination of the other swept values.
    pub facets: Vec<Facet<'a>>,
}

impl<'a> Shape<'a> {
    /// Arranges the points of `report`.
    ///
    /// A key is swept when it changes within a variant; one that changes only between variants
    /// is part of what the variant is. Of the numeric ones, that with most values is the x axis.
    pub fn of(record: &'a Record) -> Shape<'a> {
        let variants = variants(record);
        let swept = swept_keys(record);
        let numeric = |key: &&&str| record.points.iter().all(|point| number_of(point, key).is_some());
        // The last maximum wins a tie in `max_by_key`, hence the reversal.
        let x = swept.iter().filter(numeric).rev().max_by_key(|key| values(record, key, None).len()).copied();
        let all_numeric = swept.iter().filter(numeric).copied().collect();
        let mut facets: Vec<Facet> = Vec::new();
        for point in &record.points {
            let label = label_of(point, swept.iter().filter(|key| Some(**key) != x));
            match facets.iter_mut().find(|facet| facet.label == label) {
                Some(facet) => facet.points.push(point),
                None => facets.push(Facet { label, points: vec![point] }),
            }
        }
        if facets.len() > MOST_FACETS && facets.iter().all(|facet| is_no_line(facet)) {
            // A sample: panels of one point each would say nothing, so all lie in one.
            facets = vec![Facet { label: String::new(), points: record.points.iter().collect() }];
        }
        Shape { x_axis: x.map_or(Axis::Linear, |key| axis_of(record, key)), variants, x, numeric: all_numeric, facets }
    }

    /// Points of one variant in a facet, by rising x; without a sweep, x counts them.
    pub fn series(&self, facet: &Facet<'a>, variant: &str) -> Vec<At<'a>> {
        let of_variant = facet.points.iter().filter(|point| point.variant == variant);
        let at = |(index, point): (usize, &&'a PointRecord)| {
            let x = self.x.and_then(|key| number_of(point, key)).unwrap_or(index as f64);
            At { x, point }
        };
        let mut series: Vec<At> = of_variant.enumerate().map(at).collect();
        series.sort_by(|a, b| a.x.total_cmp(&b.x));
        series
    }
}

/// Panels of one point of each variant that a figure has at most.
const MOST_FACETS: usize = 8;

/// Whether no variant has two points in `facet`.
fn is_no_line(facet: &Facet<'_>) -> bool {
    let mut points = facet.points.iter();
    points.all(|point| facet.points.iter().filter(|other| other.variant == point.variant).count() == 1)
}

/// What is compared, in order of appearance.
fn variants(record: &Record) -> Vec<&str> {
    let mut variants: Vec<&str> = Vec::new();
    for point in &record.points {
        if !variants.contains(&point.variant.as_str()) {
            variants.push(&point.variant);
        }
    }
    variants
}

/// Keys that change within a variant.
pub fn swept_keys(record: &Record) -> Vec<&str> {
    let variants = variants(record);
    param_keys(record).into_iter().filter(|key| is_swept(record, &variants, key)).collect()
}

/// Whether `key` changes within a variant.
fn is_swept(record: &Record, variants: &[&str], key: &str) -> bool {
    let mut variants = variants.iter();
    variants.any(|variant| values(record, key, Some(variant)).len() > 1)
}

/// Doubling steps for powers of two, decades for what spans two of them, else even steps.
pub fn axis_of(record: &Record, key: &str) -> Axis {
    let mut swept: Vec<f64> = record.points.iter().filter_map(|point| number_of(point, key)).collect();
    swept.sort_by(f64::total_cmp);
    swept.dedup();
    let (least, most) = (swept.first().copied().unwrap_or(0.0), swept.last().copied().unwrap_or(0.0));
    if swept.len() > 2 && swept.iter().all(|value| *value >= 1.0 && value.log2().fract() == 0.0) {
        Axis::Log2
    } else if least > 0.0 && most >= least * 100.0 {
        Axis::Log10
    } else {
        Axis::Linear
    }
}

/// Keys of `params` over all points, in order of appearance.
pub fn param_keys(record: &Record) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for key in record.points.iter().flat_map(|point| point.params.keys()) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys
}

/// Keys of `params` that do not have one and the same value everywhere, and say more than the
/// variant's name does.
pub fn varying_keys(record: &Record) -> Vec<&str> {
    let named = |point: &PointRecord, key: &str| {
        let value = point.params.get(key).and_then(Value::as_str);
        value == Some(point.variant.as_str())
    };
    param_keys(record)
        .into_iter()
        .filter(|key| values(record, key, None).len() > 1)
        .filter(|key| !record.points.iter().all(|point| named(point, key)))
        .collect()
}

/// As many parameters that only say what a variant is have columns of a table of points; if there are more, they
/// stand below it, for they would push out what was measured.
const IN_TABLE: usize = 2;

/// The parameters of a table of points.
pub struct Parameters<'a> {
    /// Those with a column each.
    pub columns: Vec<&'a str>,
    /// Of each variant the others, which all its points have the same.
    pub of_variants: Vec<(&'a str, String)>,
}

/// Which parameters of `report` have columns, and which stand below the table.
pub fn parameters(record: &Record) -> Parameters<'_> {
    let keys = varying_keys(record);
    let variants = variants(record);
    let swept = |key: &&str| is_swept(record, &variants, key);
    let (swept, fixed): (Vec<&str>, Vec<&str>) = keys.iter().partition(|key| swept(key));
    if fixed.len() <= IN_TABLE {
        return Parameters { columns: keys, of_variants: Vec::new() };
    }
    let of = |variant: &str| {
        let point = record.points.iter().find(|point| point.variant == variant)?;
        let has = |key: &&&str| point.params.contains_key(**key);
        Some(label_of(point, fixed.iter().filter(has)))
    };
    let described = variants.into_iter();
    Parameters {
        of_variants: described
            .filter_map(|variant| Some((variant, of(variant)?)))
            .filter(|(_, label)| !label.is_empty())
            .collect(),
        columns: swept,
    }
}

fn values<'a>(record: &'a Record, key: &str, variant: Option<&str>) -> Vec<Option<&'a Value>> {
    let mut values = Vec::new();
    for point in record.points.iter().filter(|point| variant.is_none_or(|v| v == point.variant)) {
        let value = point.params.get(key);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The value of a numeric parameter.
pub fn number_of(point: &PointRecord, key: &str) -> Option<f64> {
    point.params.get(key).and_then(Value::as_f64)
}

/// What `point` has for `keys`.
pub fn label_of<'k>(point: &PointRecord, keys: impl Iterator<Item = &'k &'k str>) -> String {
    let parts: Vec<String> =
        keys.map(|key| format!("{key} {}", point.params.get(*key).map_or("unset".into(), plain))).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake;

    fn report_of(points: &[(&str, &[(&str, Value)])]) -> Record {
        let points = points.iter().map(|(variant, params)| fake::point(variant, params, 1.0)).collect();
        Record { points, ..Record::default() }
    }

    #[test]
    fn what_changes_only_between_variants_is_not_swept() {
        let record = report_of(&[("a", &[("rx_entries", json!(1024))]), ("b", &[("rx_entries", json!(128))])]);
        let shape = Shape::of(&record);
        assert_eq!((shape.x, shape.variants.len(), shape.facets.len()), (None, 2, 1));
        assert_eq!(varying_keys(&record), ["rx_entries"]);
        // Variants that are named after their interface need no column that repeats it.
        let by_name = report_of(&[("a", &[("interface", json!("a"))]), ("b", &[("interface", json!("b"))])]);
        assert!(varying_keys(&by_name).is_empty());
    }

    #[test]
    fn many_parameters_of_variants_stand_below_the_table() {
        let entries = [("cores", json!(1)), ("rx_entries", json!(1024))];
        let sizes = [("cores", json!(2)), ("ax_entries", json!(128))];
        // Three parameters tell the variants apart, and `cores` is swept.
        let record = report_of(&[
            ("a", &entries),
            ("a", &[("cores", json!(2)), ("rx_entries", json!(1024))]),
            ("b", &[&sizes[..], &[("bx_entries", json!(512))]].concat()),
        ]);
        let of_all = parameters(&record);
        assert_eq!(of_all.columns, ["cores"]);
        let described: Vec<(&str, &str)> =
            of_all.of_variants.iter().map(|(variant, label)| (*variant, &**label)).collect();
        let expected = [("a", "rx_entries 1024"), ("b", "ax_entries 128, bx_entries 512")];
        assert_eq!(described, expected);
        // Two have a column each.
        let few = report_of(&[("a", &[("rx_entries", json!(1024))]), ("b", &[("ax_entries", json!(128))])]);
        let of_few = parameters(&few);
        assert_eq!(of_few.columns, ["rx_entries", "ax_entries"]);
        assert!(of_few.of_variants.is_empty());
    }

    #[test]
    fn the_longer_numeric_sweep_is_the_axis_and_the_other_makes_facets() {
        let record = fake::two_keys();
        let shape = Shape::of(&record);
        assert_eq!((shape.x, shape.x_axis), (Some("rx_entries"), Axis::Log2));
        let labels: Vec<&str> = shape.facets.iter().map(|facet| &*facet.label).collect();
        assert_eq!(labels, ["cores 4", "cores 8", "cores 16"]);
        assert_eq!(shape.series(&shape.facets[0], "sh_ring").len(), 4);
    }

    #[test]
    fn text_makes_facets() {
        let record = fake::many();
        let shape = Shape::of(&record);
        assert_eq!((shape.x, shape.facets.len()), (None, 2));
    }

    #[test]
    fn axes_follow_the_values() {
        let axis = |values: &[f64]| {
            let points: Vec<_> = values.iter().map(|v| fake::point("a", &[("k", json!(v))], 1.0)).collect();
            Shape::of(&Record { points, ..Record::default() }).x_axis
        };
        assert_eq!(axis(&[1.0, 2.0, 4.0]), Axis::Log2);
        assert_eq!(axis(&[1.0, 10.0, 1000.0]), Axis::Log10);
        assert_eq!(axis(&[0.0, 2.0, 11.0]), Axis::Linear);
    }

    #[test]
    fn series_rise_in_x() {
        let record = report_of(&[("a", &[("k", json!(8))]), ("a", &[("k", json!(2))])]);
        let shape = Shape::of(&record);
        let xs: Vec<f64> = shape.series(&shape.facets[0], "a").iter().map(|at| at.x).collect();
        assert_eq!(xs, [2.0, 8.0]);
    }
}
