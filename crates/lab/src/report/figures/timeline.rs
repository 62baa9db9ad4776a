//! How runs went on over time, with the switches of steering.

use super::{Figure, variant_legend};
use crate::report::number::number;
use crate::report::plots::{Axis, Lines, Mark, Series};
use crate::report::shape::Shape;
use crate::report::{PointResult, ReportError};
use crate::timeline::{TimelineEntry, switches};

/// A line of the plot: its name with unit, the direction of y, and its value.
type Quantity = (&'static str, Axis, fn(&TimelineEntry) -> Option<f64>);

const QUANTITIES: [Quantity; 4] = [
    ("throughput (Gbit/s)", Axis::Linear, |at| {
        Some(at.throughput_gbps)
    }),
    ("dropped (%)", Axis::Linear, |at| {
        Some(at.drop_fraction * 100.0)
    }),
    ("mean latency (µs)", Axis::Log10, |at| at.latency_us),
    ("memory (GB/s)", Axis::Linear, |at| at.memory_gb_per_s),
];

/// Points side by side: all variants at the same swept values.
struct Together<'a> {
    label: String,
    /// With the variant's index.
    points: Vec<(usize, &'a PointResult)>,
}

/// A panel for each quantity, for each combination of swept values.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library gives up.
pub fn figure(shape: &Shape) -> Result<Option<Figure>, ReportError> {
    let mut panels = Vec::new();
    for together in side_by_side(shape) {
        for (name, y_axis, get) in QUANTITIES {
            let heading = [name, &together.label].map(str::to_owned);
            let heading: Vec<String> = heading
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            panels.push((heading.join(" · "), panel(&together, name, y_axis, get)?));
        }
    }
    let figure = Figure {
        title: "Over time".into(),
        note: "Each value is over the interval that ends there. Upright lines: steering changed to the set of queues \
               that is named.",
        legend: variant_legend(shape),
        columns: 2,
        panels,
    };
    Ok((!figure.panels.is_empty()).then_some(figure))
}

fn side_by_side<'a>(shape: &Shape<'a>) -> Vec<Together<'a>> {
    let mut all: Vec<Together> = Vec::new();
    for facet in &shape.facets {
        for (index, variant) in shape.variants.iter().enumerate() {
            let series = shape.series(facet, variant);
            for (x, point) in series.into_iter().filter(|at| !at.1.timeline.is_empty()) {
                let place = shape.x.map(|key| format!("{key} {}", number(x)));
                let parts = [Some(facet.label.clone()), place];
                let parts: Vec<String> = parts
                    .into_iter()
                    .flatten()
                    .filter(|part| !part.is_empty())
                    .collect();
                let label = parts.join(", ");
                match all.iter_mut().find(|together| together.label == label) {
                    Some(together) => together.points.push((index, point)),
                    None => all.push(Together {
                        label,
                        points: vec![(index, point)],
                    }),
                }
            }
        }
    }
    all
}

fn panel(
    together: &Together,
    name: &str,
    y_axis: Axis,
    get: fn(&TimelineEntry) -> Option<f64>,
) -> Result<String, ReportError> {
    let line = |&(index, point): &(usize, &PointResult)| Series {
        index,
        points: point
            .timeline
            .iter()
            .filter_map(|at| Some((at.ms, get(at)?)))
            .collect(),
        marked: false,
    };
    let marks = together.points.iter().flat_map(|&(index, point)| {
        let switches = switches(&point.timeline).into_iter();
        switches.map(move |(x, label)| Mark {
            x,
            index,
            label: label.to_owned(),
        })
    });
    let lines = Lines {
        alternative: format!("{name} over time {}", together.label),
        x_label: "time since traffic began (ms)".into(),
        y_label: name.into(),
        x_axis: Axis::Linear,
        y_axis,
        y_at_least: 0.0,
        series: together.points.iter().map(line).collect(),
        marks: marks.collect(),
    };
    lines.draw()
}
