//! Which plots a report has, and what is in them.

use super::columns::{Metric, by_key, drop_causes};
use super::number::number;
use super::plots::{Axis, Bars, Group, Lines, Series};
use super::shape::{Facet, Shape};
use super::{PointResult, Report, ReportError};
use crate::metrics::Metrics;

/// A heading with one or more plots and the key to their colours.
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// How to read it, where that is not plain.
    pub note: &'static str,
    /// Names of the colours, with their index; empty when there is but one.
    pub legend: Vec<(usize, String)>,
    /// Heading and SVG of each plot.
    pub panels: Vec<(String, String)>,
}

/// A plot of several metrics of one unit, or one.
const PLAIN: [(&str, &[&str], &str); 5] = [
    (
        "Throughput",
        &["throughput_gbps"],
        "Frame bytes sent back out, without preamble and gap.",
    ),
    (
        "Cache hits",
        &["ddio_hit_rate", "io_read_hit_rate", "app_hit_rate"],
        "DDIO: received lines still in the LLC when software first reads them. NIC read: lines the NIC fetches that \
         the LLC serves. App: the application's own look-ups.",
    ),
    (
        "Memory bandwidth",
        &["memory_gb_per_s"],
        "DRAM reads and writes of all agents.",
    ),
    (
        "PCIe use",
        &["pcie_out_utilisation", "pcie_in_utilisation"],
        "Share of usable bandwidth; out is NIC to host, in is host to NIC.",
    ),
    (
        "Ring occupancy",
        &["rx_occupancy", "tx_occupancy"],
        "Mean share of entries waiting or in use.",
    ),
];

const PARTS: [&str; 5] = [
    "cycles_per_packet.app",
    "cycles_per_packet.driver",
    "cycles_per_packet.sync",
    "cycles_per_packet.alloc",
    "cycles_per_packet.stall",
];

/// All figures that the report has data for, in reading order.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library gives up.
pub fn figures(report: &Report) -> Result<Vec<Figure>, ReportError> {
    let shape = Shape::of(report);
    let mut figures = Vec::new();
    for (index, (title, keys, note)) in PLAIN.into_iter().enumerate() {
        let metrics: Vec<&Metric> = keys.iter().map(|key| by_key(key)).collect();
        let known = |metric: &&Metric| {
            report
                .points
                .iter()
                .any(|point| (metric.get)(&point.metrics).is_some())
        };
        let metrics: Vec<&Metric> = metrics.into_iter().filter(known).collect();
        if !metrics.is_empty() {
            // Bars carry their names; lines need a legend.
            let (panels, legend) = match shape.x {
                Some(_) => (over_x(&shape, &metrics)?, variant_legend(&shape)),
                None => (compared(&shape, &metrics)?, Vec::new()),
            };
            figures.push(Figure {
                title: title.into(),
                note,
                legend,
                panels,
            });
        }
        if index == 0 {
            figures.extend(latency(report, &shape)?);
            figures.extend(stacked(report, &shape, &cycles())?);
        }
    }
    figures.extend(stacked(report, &shape, &drops(report))?);
    Ok(figures)
}

fn variant_legend(shape: &Shape) -> Vec<(usize, String)> {
    if shape.variants.len() < 2 {
        return Vec::new();
    }
    shape
        .variants
        .iter()
        .enumerate()
        .map(|(index, variant)| (index, variant.to_string()))
        .collect()
}

/// Largest shown value of a metric over all panels, which share a scale; shares go to 100 %.
fn scale(shape: &Shape, metric: &Metric) -> f64 {
    let values = shape.facets.iter().flat_map(|facet| &facet.points);
    let largest = values
        .filter_map(|p| (metric.get)(&p.metrics))
        .fold(0.0, f64::max);
    if metric.unit.name() == "%" {
        100.0
    } else {
        metric.unit.shown(largest)
    }
}

fn heading(metric: Option<&str>, facet: &Facet) -> String {
    let parts = metric
        .into_iter()
        .chain((!facet.label.is_empty()).then_some(facet.label.as_str()));
    parts.collect::<Vec<_>>().join(" · ")
}

fn over_x(shape: &Shape, metrics: &[&Metric]) -> Result<Vec<(String, String)>, ReportError> {
    let x = shape.x.unwrap_or("");
    let mut panels = Vec::new();
    for facet in &shape.facets {
        for metric in metrics {
            let line = |(index, variant): (usize, &&str)| {
                let points = shape
                    .series(facet, variant)
                    .into_iter()
                    .filter_map(|(x, point)| {
                        Some((x, metric.unit.shown((metric.get)(&point.metrics)?)))
                    });
                Series {
                    index,
                    points: points.collect(),
                    marked: true,
                }
            };
            let lines = Lines {
                alternative: format!("{} over {x} {}", metric.label, facet.label),
                x_label: x.into(),
                y_label: format!("{} ({})", metric.label, metric.unit.name()),
                x_axis: if shape.x_log2 {
                    Axis::Log2
                } else {
                    Axis::Linear
                },
                y_axis: Axis::Linear,
                y_at_least: scale(shape, metric),
                series: shape.variants.iter().enumerate().map(line).collect(),
            };
            panels.push((
                heading((metrics.len() > 1).then_some(metric.label), facet),
                lines.draw()?,
            ));
        }
    }
    Ok(panels)
}

fn compared(shape: &Shape, metrics: &[&Metric]) -> Result<Vec<(String, String)>, ReportError> {
    let mut panels = Vec::new();
    for facet in &shape.facets {
        for metric in metrics {
            let bar = |point: &&PointResult| {
                let value = metric.unit.shown((metric.get)(&point.metrics)?);
                let index = shape
                    .variants
                    .iter()
                    .position(|variant| *variant == point.variant)?;
                Some(Group {
                    label: point.variant.clone(),
                    parts: vec![(index, value)],
                })
            };
            let bars = Bars {
                alternative: format!("{} by variant {}", metric.label, facet.label),
                x_label: format!("{} ({})", metric.label, metric.unit.name()),
                at_least: scale(shape, metric),
                stacked: false,
                groups: facet.points.iter().filter_map(bar).collect(),
            };
            panels.push((
                heading((metrics.len() > 1).then_some(metric.label), facet),
                bars.draw()?,
            ));
        }
    }
    Ok(panels)
}

/// The parts of a point, in the order of their names, if it was measured.
type PartsOf<'a> = Box<dyn Fn(&Metrics) -> Option<Vec<f64>> + 'a>;

/// Bars made of parts: what they are called, and the parts of a point.
struct Parts<'a> {
    title: &'static str,
    note: &'static str,
    unit: &'static str,
    names: Vec<String>,
    of: PartsOf<'a>,
}

fn cycles<'a>() -> Parts<'a> {
    let metrics = PARTS.map(by_key);
    Parts {
        title: "Where the cycles go",
        note: "Core cycles per delivered packet, empty polls left out.",
        unit: "cycles per packet",
        names: metrics
            .iter()
            .map(|metric| metric.label.to_string())
            .collect(),
        of: Box::new(move |point| metrics.iter().map(|metric| (metric.get)(point)).collect()),
    }
}

fn drops(report: &Report) -> Parts<'_> {
    let causes = drop_causes(report.points.iter().map(|point| &point.metrics));
    Parts {
        title: "Drops by cause",
        note: "Share of arriving frames.",
        unit: "dropped (% of arrivals)",
        names: causes.iter().map(|cause| cause.to_string()).collect(),
        of: Box::new(move |point| {
            let count = |cause: &&str| point.drops.get(*cause).copied().unwrap_or(0) as f64;
            let total: f64 = causes.iter().map(count).sum();
            let share = if total > 0.0 {
                point.drop_fraction * 100.0 / total
            } else {
                0.0
            };
            Some(causes.iter().map(|cause| count(cause) * share).collect())
        }),
    }
}

/// Stacked bars: one panel with the variants, or, for a sweep, one per variant with its steps.
fn stacked(report: &Report, shape: &Shape, parts: &Parts) -> Result<Option<Figure>, ReportError> {
    let totals = report
        .points
        .iter()
        .filter_map(|point| Some((parts.of)(&point.metrics)?.iter().sum()));
    let largest: f64 = totals.fold(0.0, f64::max);
    if largest <= 0.0 {
        return Ok(None);
    }
    let mut panels = Vec::new();
    let mut panel =
        |heading: String, rows: Vec<(String, &PointResult)>| -> Result<(), ReportError> {
            let group = |(label, point): (String, &PointResult)| {
                let parts = (parts.of)(&point.metrics)?
                    .into_iter()
                    .enumerate()
                    .collect();
                Some(Group { label, parts })
            };
            let bars = Bars {
                alternative: format!("{} {heading}", parts.title),
                x_label: parts.unit.into(),
                at_least: largest,
                stacked: true,
                groups: rows.into_iter().filter_map(group).collect(),
            };
            if !bars.groups.is_empty() {
                panels.push((heading, bars.draw()?));
            }
            Ok(())
        };
    for facet in &shape.facets {
        let Some(x) = shape.x else {
            panel(
                facet.label.clone(),
                facet
                    .points
                    .iter()
                    .map(|p| (p.variant.clone(), *p))
                    .collect(),
            )?;
            continue;
        };
        for variant in &shape.variants {
            let rows = shape.series(facet, variant).into_iter();
            let rows = rows
                .map(|(value, point)| (format!("{x} {}", number(value)), point))
                .collect();
            panel(
                heading((shape.variants.len() > 1).then_some(*variant), facet),
                rows,
            )?;
        }
    }
    let legend = parts.names.iter().cloned().enumerate().collect();
    Ok(Some(Figure {
        title: parts.title.into(),
        note: parts.note,
        legend,
        panels,
    }))
}

fn latency(report: &Report, shape: &Shape) -> Result<Option<Figure>, ReportError> {
    let mut chosen: Vec<(String, &PointResult)> = Vec::new();
    for facet in &shape.facets {
        for variant in &shape.variants {
            let series = shape.series(facet, variant);
            // Of a sweep its two ends, so that lines stay apart.
            let ends = [series.first(), series.last().filter(|_| series.len() > 1)];
            for (x, point) in ends.into_iter().flatten() {
                let place = shape.x.map(|key| format!("{key} {}", number(*x)));
                let label = [Some(variant.to_string()), place]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", ");
                chosen.push((heading(Some(&label), facet), point));
            }
        }
    }
    let curves = chosen
        .into_iter()
        .filter_map(|(label, point)| Some((label, curve(point)?)));
    let curves: Vec<(String, Vec<(f64, f64)>)> = curves.take(12).collect();
    if curves.is_empty() {
        return Ok(None);
    }
    let legend = curves
        .iter()
        .enumerate()
        .map(|(index, (label, _))| (index, label.clone()))
        .collect();
    let lines = Lines {
        alternative: format!("Latency by percentile of {}", report.scenario),
        x_label: "percentile of packets".into(),
        y_label: "latency (µs)".into(),
        x_axis: Axis::Nines,
        y_axis: Axis::Log10,
        y_at_least: 0.0,
        series: curves
            .into_iter()
            .enumerate()
            .map(|(index, (_, points))| Series {
                index,
                points,
                marked: false,
            })
            .collect(),
    };
    let note =
        "From the first bit in to the last bit out. Each step to the right is one more nine.";
    Ok(Some(Figure {
        title: "Latency".into(),
        note,
        legend,
        panels: vec![(String::new(), lines.draw()?)],
    }))
}

/// The measured distribution, or the few percentiles that a read-back report has.
fn curve(point: &PointResult) -> Option<Vec<(f64, f64)>> {
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
