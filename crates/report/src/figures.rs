//! Which plots a report has, and what is in them.

mod effects;
mod latency;
mod limits;
mod parts;
mod timeline;

pub use effects::median;
use nicforge_record::{Overlay, PointRecord, Record};

use super::columns::{Metric, by_key};
use super::plots::{Axis, Bars, Group, Lines, Paint, Series};
use super::shape::{Facet, Shape};
use super::{ReportError, beside};

/// A heading with one or more plots and the key to their colours.
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub note: &'static str,
    /// Empty with one colour.
    pub legend: Vec<LegendEntry>,
    /// Plots in a row on a wide page.
    pub columns: usize,
    /// In reading order.
    pub panels: Vec<Panel>,
}

/// What a colour stands for.
pub struct LegendEntry {
    /// The colour.
    pub paint: Paint,
    /// Its meaning.
    pub name: String,
}

/// A plot of a figure.
pub struct Panel {
    /// What it shows; empty with one plot.
    pub heading: String,
    /// The picture.
    pub svg: String,
}

/// Entries for `names`, with colours in their order.
fn legend_of(names: impl Iterator<Item = String>) -> Vec<LegendEntry> {
    names.enumerate().map(|(index, name)| LegendEntry { paint: Paint::Series(index), name }).collect()
}

/// A figure of one step of the chain from what was set to what came out.
enum Step {
    /// Title, metrics of one unit, how to read it.
    Plain(&'static str, &'static [&'static str], &'static str),
    Timeline,
    Cycles,
    CpuTime,
    Drops,
    Latency,
}

/// What came out first, then from cause to effect.
const STEPS: [Step; 14] = [
    Step::Plain("No-drop rate", &["no_drop_gbps"], "Highest rate without loss (RFC 2544), frame bytes."),
    Step::Plain("Bandwidth", &["bandwidth_gbps"], "Payload that processes read and wrote."),
    Step::Plain("Throughput", &["throughput_gbps"], "Frame bytes sent back out, without preamble and gap."),
    Step::Plain(
        "Bytes in use",
        &["io_working_set_bytes"],
        "Distinct bytes that DMA touched in the window, against what the caches hold.",
    ),
    Step::Plain(
        "Cache misses",
        &["misses_per_kb"],
        "The core's look-ups that miss all caches, per 1024 bytes of payload.",
    ),
    Step::Plain(
        "Cache hits",
        &["ddio_hit_rate", "io_read_hit_rate", "app_hit_rate"],
        "DDIO: received lines still in the LLC when software first reads them. NIC read: lines the NIC fetches that \
         the LLC serves. App: the application's own look-ups.",
    ),
    Step::Plain("Memory bandwidth", &["memory_gb_per_s"], "DRAM reads and writes of all agents."),
    Step::Plain(
        "PCIe use",
        &["pcie_out_utilisation", "pcie_in_utilisation"],
        "Share of usable bandwidth; out is NIC to host, in is host to NIC.",
    ),
    Step::Cycles,
    Step::CpuTime,
    Step::Plain("Ring occupancy", &["rx_occupancy", "tx_occupancy"], "Mean share of entries waiting or in use."),
    Step::Drops,
    Step::Latency,
    Step::Timeline,
];

/// Whether the points are whole systems, which count payload.
fn whole_systems(record: &Record) -> bool {
    let mut points = record.points.iter();
    points.any(|point| point.metrics.bandwidth_gbps.is_some())
}

/// All figures that the report has data for, in reading order.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn figures(record: &Record) -> Result<Vec<Figure>, ReportError> {
    let shape = Shape::of(record);
    let mut figures = Vec::new();
    for step in STEPS {
        let figure = match step {
            Step::Plain(title, keys, note) => plain(record, &shape, title, keys, note)?,
            // Panels of single points would fill many pages; the table of points has them all.
            _ if effects::is_wide(&shape) => None,
            Step::Timeline => timeline::figure(&shape)?,
            Step::Cycles => parts::figure(record, &shape, &parts::cycles())?,
            Step::CpuTime => parts::figure(record, &shape, &parts::cpu_time())?,
            Step::Drops => parts::figure(record, &shape, &parts::drops(record))?,
            Step::Latency => latency::figure(record, &shape)?,
        };
        figures.extend(figure);
    }
    Ok(figures)
}

/// A plot of each metric, as far as it is known.
fn plain(
    record: &Record,
    shape: &Shape,
    title: &str,
    keys: &[&str],
    note: &'static str,
) -> Result<Option<Figure>, ReportError> {
    let metrics = keys.iter().map(|key| by_key(key));
    let known = |metric: &&Metric| record.points.iter().any(|point| (metric.get)(&point.metrics).is_some());
    let metrics: Vec<&Metric> = metrics.filter(known).collect();
    // A receiving system sends acknowledgements only; payload is its throughput.
    if metrics.is_empty() || (title == "Throughput" && whole_systems(record)) {
        return Ok(None);
    }
    if effects::is_wide(shape) {
        return effects::figure(record, shape, title, metrics[0]).map(Some);
    }
    // Bars carry their names; lines need a legend.
    let (panels, legend) = match shape.x {
        Some(_) => (over_x(record, shape, &metrics)?, legend_with_own(record, shape)),
        None => (compared(record, shape, &metrics)?, Vec::new()),
    };
    let columns = columns(metrics.len(), panels.len());
    Ok(Some(Figure { title: title.into(), note, legend, columns, panels }))
}

/// Plots in a row: each row repeats the same `kinds`, or there is but one kind; three at most.
fn columns(kinds: usize, panels: usize) -> usize {
    if (2..=3).contains(&kinds) { kinds } else { panels.clamp(1, 3) }
}

fn variant_legend(shape: &Shape) -> Vec<LegendEntry> {
    if shape.variants.len() < 2 {
        return Vec::new();
    }
    legend_of(shape.variants.iter().map(|variant| variant.to_string()))
}

/// The same where own values lie in the plots, too.
fn legend_with_own(record: &Record, shape: &Shape) -> Vec<LegendEntry> {
    let own: Vec<String> = beside::series(record).iter().map(|series| format!("{series}, own")).collect();
    if own.is_empty() {
        return variant_legend(shape);
    }
    legend_of(shape.variants.iter().map(|variant| variant.to_string()).chain(own))
}

/// Series of own values of `metric` in `facet`, behind those of the variants.
fn own_series(record: &Record, shape: &Shape, facet: &Facet, metric: &Metric) -> Vec<Series> {
    let x = shape.x.unwrap_or("");
    // What the facet's points have in common, except x.
    let is_here = |overlay: &&Overlay| {
        let others =
            overlay.params.iter().filter(|(key, _)| *key != x).map(|(key, value)| (key.clone(), value.clone()));
        let others = Overlay { params: others.collect(), ..(*overlay).clone() };
        facet.points.iter().any(|point| beside::is_about(&others, record, point))
    };
    let of = |(number, series): (usize, &&str)| {
        let rows = record.overlays.iter().filter(|overlay| overlay.series == **series).filter(is_here);
        let value = |overlay: &Overlay| {
            Some((overlay.params.get(x)?.as_f64()?, metric.unit.shown(*overlay.values.get(metric.key)?)))
        };
        let mut points: Vec<(f64, f64)> = rows.filter_map(value).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let index = shape.variants.len() + number;
        Series { index, points, marked: true, dashed: true, ..Series::default() }
    };
    beside::series(record).iter().enumerate().map(of).collect()
}

/// Least extent of an axis, so that negligible values do not fill a plot.
fn least_scale(unit: &str) -> f64 {
    match unit {
        "GB/s" => 0.1,
        "lines" => 1.0,
        _ => 0.0,
    }
}

/// Largest shown value of a metric over all panels, which share a scale; shares go to 100 %.
fn scale(shape: &Shape, metric: &Metric) -> f64 {
    let values = shape.facets.iter().flat_map(|facet| &facet.points);
    let largest = values.filter_map(|p| (metric.get)(&p.metrics)).fold(0.0, f64::max);
    if metric.unit.name() == "%" {
        100.0
    } else {
        let least = least_scale(metric.unit.name());
        metric.unit.shown(largest).max(least)
    }
}

fn heading(metric: Option<&str>, facet: &Facet) -> String {
    let parts = metric.into_iter().chain((!facet.label.is_empty()).then_some(facet.label.as_str()));
    parts.collect::<Vec<_>>().join(" · ")
}

/// Half the width of the interval of a point's metric, in the unit shown.
fn half_width(metric: &Metric, point: &PointRecord) -> Option<f64> {
    Some(metric.unit.shown(point.intervals.get(metric.key)?.half_width))
}

fn over_x(record: &Record, shape: &Shape, metrics: &[&Metric]) -> Result<Vec<Panel>, ReportError> {
    let x = shape.x.unwrap_or("");
    let mut panels = Vec::new();
    for facet in &shape.facets {
        for metric in metrics {
            let line = |(index, variant): (usize, &&str)| {
                let points = shape
                    .series(facet, variant)
                    .into_iter()
                    .filter_map(|at| Some((at.x, metric.unit.shown((metric.get)(&at.point.metrics)?))));
                let whiskers = shape.series(facet, variant).into_iter().filter_map(|at| {
                    let value = metric.unit.shown((metric.get)(&at.point.metrics)?);
                    let half = half_width(metric, at.point).filter(|half| *half > 0.0)?;
                    Some((at.x, (value - half).max(0.0), value + half))
                });
                let (points, whiskers) = (points.collect(), whiskers.collect());
                Series { index, points, marked: true, whiskers, ..Series::default() }
            };
            let lines = Lines {
                alternative: format!("{} over {x} {}", metric.label, facet.label),
                x_label: x.into(),
                y_label: format!("{} ({})", metric.label, metric.unit.name()),
                x_axis: shape.x_axis,
                y_axis: Axis::Linear,
                y_at_least: scale(shape, metric),
                series: shape
                    .variants
                    .iter()
                    .enumerate()
                    .map(line)
                    .chain(own_series(record, shape, facet, metric))
                    .collect(),
                limits: limits::over_x(record, shape, facet, metric),
                marks: Vec::new(),
            };
            let heading = heading((metrics.len() > 1).then_some(metric.label), facet);
            panels.push(Panel { heading, svg: lines.draw()? });
        }
    }
    Ok(panels)
}

fn compared(record: &Record, shape: &Shape, metrics: &[&Metric]) -> Result<Vec<Panel>, ReportError> {
    let mut panels = Vec::new();
    for facet in &shape.facets {
        for metric in metrics {
            let bar = |point: &&PointRecord| {
                let value = metric.unit.shown((metric.get)(&point.metrics)?);
                let index = shape.variants.iter().position(|variant| *variant == point.variant)?;
                let half_width = half_width(metric, point);
                let limits = limits::of(record, point, metric);
                Some(Group {
                    label: point.variant.clone(),
                    parts: vec![(Paint::Series(index), value)],
                    limits,
                    half_width,
                })
            };
            let own = |overlay: &Overlay| {
                if !facet.points.iter().any(|point| beside::is_about(overlay, record, point)) {
                    return None;
                }
                let value = metric.unit.shown(*overlay.values.get(metric.key)?);
                let number = beside::series(record).iter().position(|series| *series == overlay.series)?;
                let label = format!("{}, own", overlay.series);
                let half_width = overlay.half_widths.get(metric.key).map(|half| metric.unit.shown(*half));
                let paint = Paint::Series(shape.variants.len() + number);
                Some(Group { label, parts: vec![(paint, value)], limits: Vec::new(), half_width })
            };
            let bars = Bars {
                alternative: format!("{} by variant {}", metric.label, facet.label),
                x_label: format!("{} ({})", metric.label, metric.unit.name()),
                at_least: scale(shape, metric),
                stacked: false,
                groups: facet.points.iter().filter_map(bar).chain(record.overlays.iter().filter_map(own)).collect(),
            };
            let heading = heading((metrics.len() > 1).then_some(metric.label), facet);
            panels.push(Panel { heading, svg: bars.draw()? });
        }
    }
    Ok(panels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn next_to_nothing_does_not_fill_a_plot() {
        for (key, tiny, shown, large) in [("misses_per_kb", 9e-6, 1.0, 17.5), ("memory_gb_per_s", 1e-6, 0.1, 40.0)] {
            for (value, expected) in [(tiny, shown), (large, large)] {
                let mut record = fake::two_variants();
                for point in &mut record.points {
                    point.metrics.misses_per_kb = Some(value);
                    point.metrics.memory_gb_per_s = Some(value);
                }
                let shape = Shape::of(&record);
                assert_eq!(scale(&shape, by_key(key)), expected, "{key} {value}");
            }
        }
    }
}
