//! Latency by percentile.

use super::{Figure, columns};
use crate::report::number::number;
use crate::report::plots::{Axis, Lines, Series};
use crate::report::shape::{Facet, Shape};
use crate::report::{PointResult, Report, ReportError};

/// Curves that nowhere differ by more than this share lie on each other on paper.
const SAME: f64 = 0.05;

/// Percentile and microseconds, rising.
type Curve = Vec<(f64, f64)>;

/// One panel per facet; of a sweep the two ends of each variant, so that lines stay apart.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library gives up.
pub fn figure(report: &Report, shape: &Shape) -> Result<Option<Figure>, ReportError> {
    let mut names: Vec<String> = Vec::new();
    let mut panels = Vec::new();
    for facet in &shape.facets {
        let mut series = Vec::new();
        let curves = curves(shape, facet);
        let hidden = hidden(&curves);
        for (name, points) in curves {
            // The same name has the same colour in every panel.
            let index = names
                .iter()
                .position(|known| *known == name)
                .unwrap_or(names.len());
            if index == names.len() {
                names.push(name);
            }
            series.push(Series {
                index,
                points,
                marked: false,
            });
        }
        if series.is_empty() {
            continue;
        }
        let lines = Lines {
            alternative: format!(
                "Latency by percentile of {} {}",
                report.scenario, facet.label
            ),
            x_label: "percentile of packets (%)".into(),
            y_label: "latency (µs)".into(),
            x_axis: Axis::Nines,
            y_axis: Axis::Log10,
            y_at_least: 0.0,
            series,
            marks: Vec::new(),
        };
        let heading = std::iter::once(facet.label.clone()).filter(|label| !label.is_empty());
        let heading: Vec<String> = heading.chain(hidden).collect();
        panels.push((heading.join(" · "), lines.draw()?));
    }
    let figure = Figure {
        title: "Latency".into(),
        note: "From the first bit in to the last bit out. Each step to the right is one more nine.",
        legend: names.into_iter().enumerate().collect(),
        columns: columns(1, panels.len()),
        panels,
    };
    Ok((!figure.panels.is_empty()).then_some(figure))
}

fn curves(shape: &Shape, facet: &Facet) -> Vec<(String, Curve)> {
    let mut curves = Vec::new();
    for variant in &shape.variants {
        let series = shape.series(facet, variant);
        let ends = [series.first(), series.last().filter(|_| series.len() > 1)];
        for (x, point) in ends.into_iter().flatten() {
            let place = shape
                .x
                .map_or(String::new(), |key| format!(", {key} {}", number(*x)));
            curves.extend(curve(point).map(|curve| (format!("{variant}{place}"), curve)));
        }
    }
    curves
}

/// Which curves cannot be seen, because one that is drawn later lies on them.
fn hidden(curves: &[(String, Curve)]) -> Vec<String> {
    let same = |a: &Curve, b: &Curve| {
        let near = |(a, b): (&(f64, f64), &(f64, f64))| {
            a.0 == b.0 && (a.1 - b.1).abs() <= SAME * a.1.max(b.1)
        };
        a.len() == b.len() && a.iter().zip(b).all(near)
    };
    let each = curves.iter().enumerate();
    each.filter_map(|(index, (name, curve))| {
        let above = curves[index + 1..]
            .iter()
            .rfind(|(_, other)| same(curve, other))?;
        Some(format!("{name} lies under {}", above.0))
    })
    .collect()
}

/// The measured distribution, or the few percentiles that a read-back report has.
fn curve(point: &PointResult) -> Option<Curve> {
    let latency = point.metrics.latency_us.as_ref()?;
    if latency.curve.is_empty() {
        return Some(vec![
            (50.0, latency.p50),
            (99.0, latency.p99),
            (99.9, latency.p999),
        ]);
    }
    Some(latency.curve.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fake;

    #[test]
    fn a_curve_that_another_hides_is_named() {
        let mut report = fake::two_variants();
        let heading = |report: &Report| {
            let figure = figure(report, &Shape::of(report)).unwrap().unwrap();
            figure.panels[0].0.clone()
        };
        assert_eq!(heading(&report), "");
        let name = |point: usize| report.points[point].variant.clone();
        let expected = format!("{} lies under {}", name(0), name(1));
        report.points[0].metrics.latency_us = report.points[1].metrics.latency_us.clone();
        assert_eq!(heading(&report), expected);
    }
}
