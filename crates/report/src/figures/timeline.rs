//! Time lines, with the switches of steering.

use std::collections::BTreeSet;

use nicforge_record::{PointRecord, TimelineEntry};

use super::{Figure, Panel, variant_legend};
use crate::ReportError;
use crate::number::number;
use crate::plots::{Axis, Lines, Mark, Series};
use crate::shape::{At, Shape};

/// A quantity over time.
struct Quantity {
    /// With its unit.
    name: &'static str,
    y_axis: Axis,
    get: fn(&TimelineEntry) -> Option<f64>,
}

const fn quantity(name: &'static str, y_axis: Axis, get: fn(&TimelineEntry) -> Option<f64>) -> Quantity {
    Quantity { name, y_axis, get }
}

const QUANTITIES: [Quantity; 6] = [
    quantity("throughput (Gbit/s)", Axis::Linear, |at| Some(at.throughput_gbps)),
    quantity("dropped (%)", Axis::Linear, |at| Some(at.drop_fraction * 100.0)),
    quantity("taken by cores (% of arrivals)", Axis::Linear, |at| {
        let arrivals = at.arrivals as f64;
        (arrivals > 0.0).then(|| at.taken as f64 / arrivals * 100.0)
    }),
    quantity("backlog (frames)", Axis::Linear, |at| Some(at.backlog as f64)),
    quantity("mean latency (µs)", Axis::Log10, |at| at.latency_us),
    quantity("memory (GB/s)", Axis::Linear, |at| at.memory_gb_per_s),
];

/// Points side by side: all variants at the same swept values.
struct Together<'a> {
    label: String,
    /// With the variant's index.
    points: Vec<(usize, &'a PointRecord)>,
}

/// A panel for each quantity, for each combination of swept values.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn figure(shape: &Shape) -> Result<Option<Figure>, ReportError> {
    let mut panels = Vec::new();
    for together in side_by_side(shape) {
        for Quantity { name, y_axis, get } in QUANTITIES {
            panels.push(panel(&together, name, y_axis, get)?);
        }
        for set in together.sets() {
            let name = format!("{set} rings in use (entries)");
            let entries = |at: &TimelineEntry| at.in_use.get(set).map(|&entries| entries as f64);
            panels.push(panel(&together, &name, Axis::Linear, entries)?);
        }
    }
    let figure = Figure {
        title: "Over time".into(),
        note: "Each value covers the interval that ends there; backlog (frames that no core has taken yet) and rings in \
               use are sampled at its end. The backlog grows by arrivals less frames taken less drops. Vertical lines in \
               a variant's colour: steering switches to the named set of queues. Vertical lines in the colour of the \
               text: cores begin to poll (polling), the target's extra load begins (target), the measured window begins \
               (window).",
        legend: variant_legend(shape),
        columns: 2,
        panels,
    };
    Ok((!figure.panels.is_empty()).then_some(figure))
}

impl<'a> Together<'a> {
    /// The names of the sets of queues that some point switches between.
    fn sets(&self) -> BTreeSet<&'a str> {
        let points = self.points.iter();
        let entries = points.flat_map(|(_, point)| &point.timeline);
        entries.flat_map(|at| at.in_use.keys().map(String::as_str)).collect()
    }
}

impl Together<'_> {
    /// What happened when: switches of each point, and the phases that they share.
    fn marks(&self) -> Vec<Mark> {
        let mut marks: Vec<Mark> = Vec::new();
        for &(index, point) in &self.points {
            for (ms, name) in point.facts.phases() {
                let known = |mark: &Mark| mark.x == ms && mark.label == name;
                if !marks.iter().any(known) {
                    marks.push(Mark { x: ms, index: None, label: name.to_owned() });
                }
            }
            marks.extend(point.switches.iter().map(|switch| Mark {
                x: switch.ms,
                index: Some(index),
                label: switch.set.clone(),
            }));
        }
        // Labels find room from left to right.
        marks.sort_by(|a, b| a.x.total_cmp(&b.x));
        marks
    }
}

fn side_by_side<'a>(shape: &Shape<'a>) -> Vec<Together<'a>> {
    let mut all: Vec<Together> = Vec::new();
    for facet in &shape.facets {
        for (index, variant) in shape.variants.iter().enumerate() {
            let series = shape.series(facet, variant);
            for At { x, point } in series.into_iter().filter(|at| !at.point.timeline.is_empty()) {
                let place = shape.x.map(|key| format!("{key} {}", number(x)));
                let parts = [Some(facet.label.clone()), place];
                let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
                let label = parts.join(", ");
                match all.iter_mut().find(|together| together.label == label) {
                    Some(together) => together.points.push((index, point)),
                    None => all.push(Together { label, points: vec![(index, point)] }),
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
    get: impl Fn(&TimelineEntry) -> Option<f64>,
) -> Result<Panel, ReportError> {
    let line = |&(index, point): &(usize, &PointRecord)| Series {
        index,
        points: point.timeline.iter().filter_map(|at| Some((at.ms, get(at)?))).collect(),
        ..Series::default()
    };
    let lines = Lines {
        alternative: format!("{name} over time {}", together.label),
        x_label: "time since traffic began (ms)".into(),
        y_label: name.into(),
        x_axis: Axis::Linear,
        y_axis,
        y_at_least: 0.0,
        series: together.points.iter().map(line).collect(),
        limits: Vec::new(),
        marks: together.marks(),
    };
    let heading = match together.label.as_str() {
        "" => name.to_owned(),
        label => format!("{name} · {label}"),
    };
    Ok(Panel { heading, svg: lines.draw()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn phases_that_points_share_are_marked_once() {
        let mut record = fake::over_time();
        for point in &mut record.points {
            point.facts.polling_starts_ms = Some(3.5);
            point.facts.target_begins_ms = Some(9.0);
            point.facts.window_begins_ms = Some(12.0);
        }
        let shape = Shape::of(&record);
        let together = side_by_side(&shape);
        let marks: Vec<(f64, Option<usize>, String)> =
            together[0].marks().into_iter().map(|mark| (mark.x, mark.index, mark.label)).collect();
        let expected = [
            (3.5, None, "polling"),
            (4.0, Some(1), "shared"),
            (9.0, None, "target"),
            (12.0, None, "window"),
            (14.5, Some(1), "private"),
        ];
        // Their words leave room for those of switches.
        let drawn = figure(&shape).unwrap().unwrap();
        for word in ["polling", "shared", "target", "window", "private"] {
            let word = format!("\n{word}\n");
            assert!(drawn.panels.iter().all(|panel| panel.svg.contains(&word)), "{word}");
        }
        assert_eq!(marks, expected.map(|(x, index, label)| (x, index, label.to_owned())));
    }
}
