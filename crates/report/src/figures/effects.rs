//! Many swept keys: what each does to a metric, with the others' span around it.

use nicforge_record::Record;

use super::{Figure, Panel, columns, limits, scale, variant_legend};
use crate::ReportError;
use crate::columns::Metric;
use crate::plots::{Axis, Lines, Series};
use crate::shape::{Shape, axis_of, number_of};

/// Facets from which on each would say too little for the room that it takes.
const FACETS_MAX: usize = 6;

/// Whether a record has more facets than a reader looks at.
pub fn is_wide(shape: &Shape) -> bool {
    shape.facets.len() > FACETS_MAX
}

/// A plot for each swept key: medians over all values of the others, in a band from least to most.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn figure(record: &Record, shape: &Shape, title: &str, metric: &Metric) -> Result<Figure, ReportError> {
    let mut panels = Vec::new();
    for key in &shape.numeric {
        let lines = Lines {
            alternative: format!("{} over {key}", metric.label),
            x_label: (*key).into(),
            y_label: format!("{} ({})", metric.label, metric.unit.name()),
            x_axis: axis_of(record, key),
            y_axis: Axis::Linear,
            y_at_least: scale(shape, metric),
            series: shape
                .variants
                .iter()
                .enumerate()
                .map(|(index, name)| series(record, name, index, key, metric))
                .collect(),
            limits: limits::common(record, metric),
            marks: Vec::new(),
        };
        panels.push(Panel { heading: (*key).to_owned(), svg: lines.draw()? });
    }
    Ok(Figure {
        title: title.into(),
        note: "Each line is the median over all values of the other keys; the band around it goes from the least to the most.",
        legend: variant_legend(shape),
        columns: if panels.len() == 4 { 2 } else { columns(1, panels.len()) },
        panels,
    })
}

fn series(record: &Record, variant: &str, index: usize, key: &str, metric: &Metric) -> Series {
    let mut at: Vec<(f64, Vec<f64>)> = Vec::new();
    for point in record.points.iter().filter(|point| point.variant == variant) {
        let Some((x, value)) = number_of(point, key).zip((metric.get)(&point.metrics)) else { continue };
        let value = metric.unit.shown(value);
        match at.iter_mut().find(|(other, _)| *other == x) {
            Some((_, values)) => values.push(value),
            None => at.push((x, vec![value])),
        }
    }
    at.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, values) in &mut at {
        values.sort_by(f64::total_cmp);
    }
    let points = at.iter().map(|(x, values)| (*x, median(values))).collect();
    let band = at.iter().map(|(x, values)| (*x, values[0], values[values.len() - 1])).collect();
    Series { index, points, marked: true, band, ..Series::default() }
}

/// Of values that rise, and are not empty.
pub fn median(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}
