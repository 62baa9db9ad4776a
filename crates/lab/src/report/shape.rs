//! How the points of a run are arranged: what is compared, what is swept, what goes in panels.

use serde_json::Value;

use super::csv::plain;
use super::{PointResult, Report};

/// Points that share every swept value but the one on the x axis.
pub struct Facet<'a> {
    /// The shared values, as `key value`; empty when there is but one facet.
    pub label: String,
    /// In the run's order.
    pub points: Vec<&'a PointResult>,
}

/// The arrangement of a report's points.
pub struct Shape<'a> {
    /// What is compared, in order of appearance.
    pub variants: Vec<&'a str>,
    /// The swept numeric key on the x axis, if there is one.
    pub x: Option<&'a str>,
    /// Whether the x axis is logarithmic: every swept value is a power of two.
    pub x_log2: bool,
    /// One per combination of the other swept values.
    pub facets: Vec<Facet<'a>>,
}

impl<'a> Shape<'a> {
    /// Arranges the points of `report`.
    ///
    /// A key is swept when it changes within a variant; one that changes only between variants
    /// is part of what the variant is. Of the numeric ones, that with most values is the x axis.
    pub fn of(report: &'a Report) -> Shape<'a> {
        let mut variants: Vec<&str> = Vec::new();
        for point in &report.points {
            if !variants.contains(&point.variant.as_str()) {
                variants.push(&point.variant);
            }
        }
        let swept: Vec<&str> = param_keys(report)
            .into_iter()
            .filter(|key| {
                variants
                    .iter()
                    .any(|variant| values(report, key, Some(variant)).len() > 1)
            })
            .collect();
        let numeric = |key: &&&str| {
            report
                .points
                .iter()
                .all(|point| number_of(point, key).is_some())
        };
        // The last maximum wins a tie in `max_by_key`, hence the reversal.
        let x = swept
            .iter()
            .filter(numeric)
            .rev()
            .max_by_key(|key| values(report, key, None).len())
            .copied();
        let mut facets: Vec<Facet> = Vec::new();
        for point in &report.points {
            let label = label_of(point, swept.iter().filter(|key| Some(**key) != x));
            match facets.iter_mut().find(|facet| facet.label == label) {
                Some(facet) => facet.points.push(point),
                None => facets.push(Facet {
                    label,
                    points: vec![point],
                }),
            }
        }
        let power = |point: &PointResult| {
            x.and_then(|key| number_of(point, key))
                .is_some_and(|v| v >= 1.0 && v.log2().fract() == 0.0)
        };
        Shape {
            x_log2: x.is_some_and(|key| values(report, key, None).len() > 2)
                && report.points.iter().all(power),
            variants,
            x,
            facets,
        }
    }

    /// Points of one variant in a facet, by rising x.
    pub fn series(&self, facet: &Facet<'a>, variant: &str) -> Vec<(f64, &'a PointResult)> {
        let of_variant = facet.points.iter().filter(|point| point.variant == variant);
        let mut series: Vec<_> = of_variant
            .enumerate()
            .map(|(index, point)| {
                (
                    self.x
                        .and_then(|key| number_of(point, key))
                        .unwrap_or(index as f64),
                    *point,
                )
            })
            .collect();
        series.sort_by(|a, b| a.0.total_cmp(&b.0));
        series
    }
}

/// Keys of `params` over all points, in order of appearance.
pub fn param_keys(report: &Report) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for key in report.points.iter().flat_map(|point| point.params.keys()) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys
}

/// Keys of `params` that do not have one and the same value everywhere.
pub fn varying_keys(report: &Report) -> Vec<&str> {
    param_keys(report)
        .into_iter()
        .filter(|key| values(report, key, None).len() > 1)
        .collect()
}

fn values<'a>(report: &'a Report, key: &str, variant: Option<&str>) -> Vec<Option<&'a Value>> {
    let mut values = Vec::new();
    for point in report
        .points
        .iter()
        .filter(|point| variant.is_none_or(|v| v == point.variant))
    {
        let value = point.params.get(key);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn number_of(point: &PointResult, key: &str) -> Option<f64> {
    point.params.get(key).and_then(Value::as_f64)
}

fn label_of<'k>(point: &PointResult, keys: impl Iterator<Item = &'k &'k str>) -> String {
    let parts: Vec<String> = keys
        .map(|key| {
            format!(
                "{key} {}",
                point.params.get(*key).map_or("unset".into(), plain)
            )
        })
        .collect();
    parts.join(", ")
}
