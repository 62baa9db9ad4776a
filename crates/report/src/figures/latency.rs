//! Latency by percentile.

use nicforge_record::{PointRecord, Record};

use super::{Figure, LegendEntry, Panel, columns, legend_of, variant_legend};
use crate::ReportError;
use crate::number::number;
use crate::plots::{Axis, Lines, Series};
use crate::shape::{At, Facet, Shape};

/// Curves that nowhere differ by more than this share lie on each other on paper.
const SAME: f64 = 0.05;

/// Percentile and microseconds, rising.
type Curve = Vec<(f64, f64)>;

/// One panel per facet; of a sweep the two ends of each variant, so that lines stay apart.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn figure(record: &Record, shape: &Shape) -> Result<Option<Figure>, ReportError> {
    let mut panels = Vec::new();
    for facet in &shape.facets {
        let mut series = Vec::new();
        let curves = curves(shape, facet);
        let hidden = hidden(&curves);
        for curve in curves {
            series.push(Series {
                index: curve.variant,
                points: curve.points,
                marked: false,
                dashed: curve.is_first,
                ..Series::default()
            });
        }
        if series.is_empty() {
            continue;
        }
        let lines = Lines {
            alternative: format!("Latency by percentile of {} {}", record.scenario, facet.label),
            x_label: "percentile of packets (%)".into(),
            y_label: "latency (µs)".into(),
            x_axis: Axis::Nines,
            y_axis: Axis::Log10,
            y_at_least: 0.0,
            series,
            limits: Vec::new(),
            marks: Vec::new(),
        };
        let heading = std::iter::once(facet.label.clone()).filter(|label| !label.is_empty());
        let heading: Vec<String> = heading.chain(ends(shape, facet)).chain(hidden).collect();
        panels.push(Panel { heading: heading.join(" · "), svg: lines.draw()? });
    }
    let figure = Figure {
        title: "Latency".into(),
        note: match shape.x {
            None => "From the first bit in to the last bit out. Each step to the right is one more nine.",
            Some(_) => {
                "From the first bit in to the last bit out. Each step to the right is one more nine. Of a sweep, \
                 the first value is dashed and the last is solid."
            }
        },
        legend: legend(shape),
        columns: columns(1, panels.len()),
        panels,
    };
    Ok((!figure.panels.is_empty()).then_some(figure))
}

/// A line of the plot.
struct Drawn {
    name: String,
    /// Its number, which is its colour.
    variant: usize,
    /// Whether it is the first of two of a sweep.
    is_first: bool,
    points: Curve,
}

/// The variants' colours, as in other plots; bars have none where there is no sweep.
fn legend(shape: &Shape) -> Vec<LegendEntry> {
    match shape.x {
        Some(_) => variant_legend(shape),
        None => legend_of(shape.variants.iter().map(|name| name.to_string())),
    }
}

/// The values of a sweep whose curves there are.
fn ends(shape: &Shape, facet: &Facet) -> Option<String> {
    let series = shape.series(facet, shape.variants.first()?);
    let (first, last) = (series.first()?.x, series.last()?.x);
    let key = shape.x.filter(|_| series.len() > 1)?;
    Some(format!("{key} {} (dashed) and {}", number(first), number(last)))
}

fn curves(shape: &Shape, facet: &Facet) -> Vec<Drawn> {
    let mut curves = Vec::new();
    for (index, variant) in shape.variants.iter().enumerate() {
        let series = shape.series(facet, variant);
        let ends = [series.first(), series.last().filter(|_| series.len() > 1)];
        for (end, At { x, point }) in ends.into_iter().flatten().enumerate() {
            let place = shape.x.map_or(String::new(), |key| format!(", {key} {}", number(*x)));
            curves.extend(curve(point).map(|points| Drawn {
                name: format!("{variant}{place}"),
                variant: index,
                is_first: end == 0 && series.len() > 1,
                points,
            }));
        }
    }
    curves
}

/// Which curves cannot be seen, because one that is drawn later lies on them.
fn hidden(curves: &[Drawn]) -> Vec<String> {
    let same = |a: &Curve, b: &Curve| {
        let near = |(a, b): (&(f64, f64), &(f64, f64))| a.0 == b.0 && (a.1 - b.1).abs() <= SAME * a.1.max(b.1);
        a.len() == b.len() && a.iter().zip(b).all(near)
    };
    let each = curves.iter().enumerate();
    each.filter_map(|(index, curve)| {
        let above = curves[index + 1..].iter().rfind(|other| same(&curve.points, &other.points))?;
        Some(format!("{} lies under {}", curve.name, above.name))
    })
    .collect()
}

/// The measured distribution, or the few percentiles that a read-back report has.
fn curve(point: &PointRecord) -> Option<Curve> {
    let latency = point.metrics.latency_us.as_ref()?;
    if latency.curve.is_empty() {
        return Some(vec![(50.0, latency.p50), (99.0, latency.p99), (99.9, latency.p999)]);
    }
    Some(latency.curve.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn a_variant_has_one_colour_at_both_ends_of_a_sweep() {
        let record = fake::sweep(&[("priv_ring", 1.8), ("rx_bisect", 0.3)]);
        let shape = Shape::of(&record);
        let drawn = curves(&shape, &shape.facets[0]);
        let drawn: Vec<(usize, bool)> = drawn.iter().map(|at| (at.variant, at.is_first)).collect();
        assert_eq!(drawn, [(0, true), (0, false), (1, true), (1, false)]);
        let figure = figure(&record, &shape).unwrap().unwrap();
        let names: Vec<&str> = figure.legend.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["priv_ring", "rx_bisect"]);
        let heading = &figure.panels[0].heading;
        assert!(heading.starts_with("rx_entries 64 (dashed) and 4096"), "{heading}");
        // A dashed line is many short ones.
        let lines = |series: &str| figure.panels[0].svg.matches(series).count();
        assert!(lines("var(--series-0)") > 10, "{}", lines("var(--series-0)"));
    }

    #[test]
    fn a_curve_that_another_hides_is_named() {
        let mut record = fake::two_variants();
        let heading = |record: &Record| {
            let figure = figure(record, &Shape::of(record)).unwrap().unwrap();
            figure.panels[0].heading.clone()
        };
        assert_eq!(heading(&record), "");
        let name = |point: usize| record.points[point].variant.clone();
        let expected = format!("{} lies under {}", name(0), name(1));
        record.points[0].metrics.latency_us = record.points[1].metrics.latency_us.clone();
        assert_eq!(heading(&record), expected);
    }
}
