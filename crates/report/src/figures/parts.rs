//! Stacked bars: core cycles by part, drops by cause.

use nicforge_record::{Metrics, PointRecord, Record};

use super::{Figure, LegendEntry, Panel, columns, heading};
use crate::ReportError;
use crate::capacity::cycle_budget;
use crate::columns::{Metric, by_key, drop_causes};
use crate::number::number;
use crate::plots::{Bars, Group, Paint};
use crate::shape::Shape;

const PARTS: [&str; 5] = [
    "cycles_per_packet.app",
    "cycles_per_packet.driver",
    "cycles_per_packet.sync",
    "cycles_per_packet.alloc",
    "cycles_per_packet.stall",
];

const CPU_TIME: [&str; 5] =
    ["cpu_time.interrupt", "cpu_time.driver", "cpu_time.stack", "cpu_time.copy", "cpu_time.user"];

/// The parts of a point, in the order of their names, if it was measured.
type PartsOf<'a> = Box<dyn Fn(&Metrics) -> Option<Vec<f64>> + 'a>;

/// Bars made of parts: what they are called, and the parts of a point.
pub struct Parts<'a> {
    title: &'static str,
    note: &'static str,
    unit: &'static str,
    names: Vec<String>,
    of: PartsOf<'a>,
    /// Whether together they should stay within what cores have for an arriving packet.
    meets_budget: bool,
}

pub fn cycles<'a>() -> Parts<'a> {
    let metrics = PARTS.map(by_key);
    Parts {
        title: "Where the cycles go",
        note: "Core cycles per delivered packet, without empty polls. The budget is what all cores together have for an \
               arriving packet.",
        unit: "cycles per packet",
        names: metrics.iter().map(|metric| metric.label.to_string()).collect(),
        of: Box::new(move |point| metrics.iter().map(|metric| (metric.get)(point)).collect()),
        meets_budget: true,
    }
}

pub fn cpu_time<'a>() -> Parts<'a> {
    let metrics = CPU_TIME.map(by_key);
    Parts {
        title: "Where the core's time goes",
        note: "Shares of the window, stalls on memory and device registers included; the rest is idle.",
        unit: "share of time (%)",
        names: metrics.iter().map(|metric| metric.label.to_string()).collect(),
        of: Box::new(move |point| {
            let shown = |metric: &&Metric| Some(metric.unit.shown((metric.get)(point)?));
            metrics.iter().map(shown).collect()
        }),
        meets_budget: false,
    }
}

pub fn drops(record: &Record) -> Parts<'_> {
    let causes = drop_causes(record.points.iter().map(|point| &point.metrics));
    Parts {
        title: "Drops by cause",
        note: "Share of arriving frames.",
        unit: "dropped (% of arrivals)",
        names: causes.iter().map(|cause| cause.to_string()).collect(),
        of: Box::new(move |point| {
            let count = |cause: &&str| point.drops.get(*cause).copied().unwrap_or(0) as f64;
            let total: f64 = causes.iter().map(count).sum();
            let share = if total > 0.0 { point.drop_fraction * 100.0 / total } else { 0.0 };
            Some(causes.iter().map(|cause| count(cause) * share).collect())
        }),
        meets_budget: false,
    }
}

/// A labelled bar of a panel.
type Row<'a> = (String, &'a PointRecord);

/// Stacked bars: one panel with the variants, or, for a sweep, one per variant with its steps.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn figure(record: &Record, shape: &Shape, parts: &Parts) -> Result<Option<Figure>, ReportError> {
    let total = |point: &PointRecord| Some((parts.of)(&point.metrics)?.iter().sum::<f64>());
    let largest = record.points.iter().filter_map(total).fold(0.0, f64::max);
    if largest <= 0.0 {
        return Ok(None);
    }
    let group = |(label, point): Row| {
        let values = (parts.of)(&point.metrics)?.into_iter().enumerate();
        let budget = cycle_budget(record, point).filter(|_| parts.meets_budget);
        let limits = budget.map(|cycles| ("cycle budget", cycles)).into_iter().collect();
        Some(Group {
            label,
            parts: values.map(|(index, value)| (Paint::Part(index), value)).collect(),
            limits,
            half_width: None,
        })
    };
    let mut panels = Vec::new();
    for (heading, rows) in arranged(shape) {
        let bars = Bars {
            alternative: format!("{} {heading}", parts.title),
            x_label: parts.unit.into(),
            at_least: largest,
            stacked: true,
            groups: rows.into_iter().filter_map(group).collect(),
        };
        if !bars.groups.is_empty() {
            panels.push(Panel { heading, svg: bars.draw()? });
        }
    }
    let names = parts.names.iter().enumerate();
    let kinds = if shape.x.is_some() { shape.variants.len() } else { 1 };
    Ok(Some(Figure {
        title: parts.title.into(),
        note: parts.note,
        legend: names.map(|(index, name)| LegendEntry { paint: Paint::Part(index), name: name.clone() }).collect(),
        columns: columns(kinds, panels.len()),
        panels,
    }))
}

/// Headings of the panels and the bars in each.
fn arranged<'a>(shape: &Shape<'a>) -> Vec<(String, Vec<Row<'a>>)> {
    let mut panels = Vec::new();
    for facet in &shape.facets {
        let Some(x) = shape.x else {
            let rows = facet.points.iter().map(|point| (point.variant.clone(), *point));
            panels.push((facet.label.clone(), rows.collect()));
            continue;
        };
        for variant in &shape.variants {
            let series = shape.series(facet, variant).into_iter();
            let rows = series.map(|at| (format!("{x} {}", number(at.x)), at.point));
            let name = (shape.variants.len() > 1).then_some(*variant);
            panels.push((heading(name, facet), rows.collect()));
        }
    }
    panels
}
