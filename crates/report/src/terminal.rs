//! The table that a run prints: one row per point, units in the second line. Below it, switches of steering, stages of
//! NICs that run TCP, and checksums that a capture lacks.

use nicforge_record::{PointRecord, Record};

use super::beside;
use super::columns::{Metric, measured};
use super::csv::plain;
use super::findings::{changes, unfinished_checksums};
use super::number::{decimals, half_width};
use super::shape::{self, Parameters};
use super::stages::stages;

/// The table, with the parameters that vary and the metrics that say most; ends with a newline.
pub fn table(record: &Record) -> String {
    let mut columns = vec![Column::text("variant", record.points.iter().map(|p| p.variant.clone()))];
    let Parameters { columns: keys, of_variants } = shape::parameters(record);
    for &key in &keys {
        let cells = record.points.iter().map(|point| point.params.get(key).map_or("-".into(), plain));
        columns.push(Column { left: false, ..Column::text(key, cells) });
    }
    let metrics = measured(record.points.iter().map(|point| &point.metrics));
    // The metric that leads the table says how sure it is; points.csv and the page have all intervals.
    let mut leads = metrics.iter().find(|metric| metric.brief.is_some()).map(|metric| metric.key);
    for (metric, head) in metrics.into_iter().filter_map(|metric| Some((metric, metric.brief?))) {
        columns.push(Column::of(record, metric, head));
        columns.extend(leads.take_if(|key| *key == metric.key).and_then(|_| Column::of_interval(record, metric)));
    }
    let mut table = String::new();
    for row in 0..record.points.len() + 2 {
        let cells: Vec<String> = columns.iter().map(|column| column.padded(row)).collect();
        table.push_str(cells.join("  ").trim_end());
        table.push('\n');
    }
    table += &variants(&of_variants);
    table += &time_line(record, &keys);
    table += &beside::lines(record);
    table += &stages(record);
    if let Some(checksums) = unfinished_checksums(record) {
        table += &format!("\n{checksums}\n");
    }
    table
}

/// A line for each variant with what it is, below an empty one.
fn variants(variants: &[(&str, String)]) -> String {
    let names = variants.iter().map(|(variant, _)| variant.chars().count());
    let width = names.max().unwrap_or(0);
    let line = |(variant, label): &(&str, String)| format!("{variant:<width$}  {label}\n");
    let lines: String = variants.iter().map(line).collect();
    below(lines)
}

/// Lines below an empty one, if there are any.
fn below(lines: String) -> String {
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// A line for each point whose steering changed, below an empty one.
fn time_line(record: &Record, keys: &[&str]) -> String {
    let line = |point: &PointRecord| {
        let changes = changes(&point.switches)?;
        let value = |key: &&str| Some(format!(" {key}={}", plain(point.params.get(*key)?)));
        let values: String = keys.iter().filter_map(value).collect();
        Some(format!("{}{values}: {changes}\n", point.variant))
    };
    below(record.points.iter().filter_map(line).collect())
}

/// Head, unit, then one cell per point.
struct Column {
    left: bool,
    cells: Vec<String>,
}

impl Column {
    fn text(head: &str, cells: impl Iterator<Item = String>) -> Column {
        Column { left: true, cells: [head.to_string(), String::new()].into_iter().chain(cells).collect() }
    }

    fn of(record: &Record, metric: &Metric, head: &str) -> Column {
        let value = |index: usize| (metric.get)(&record.points[index].metrics).map(|v| metric.unit.shown(v));
        let count = record.points.len();
        let places = decimals((0..count).filter_map(value));
        let cells = (0..count).map(|index| value(index).map_or("-".into(), |v| format!("{v:.places$}")));
        let head = [head.to_string(), metric.unit.name().to_string()];
        Column { left: false, cells: head.into_iter().chain(cells).collect() }
    }

    /// Half widths of the metric's intervals; `None` where no point has one.
    fn of_interval(record: &Record, metric: &Metric) -> Option<Column> {
        let half = |point: &PointRecord| Some(metric.unit.shown(point.intervals.get(metric.key)?.half_width));
        if !record.points.iter().any(|point| half(point).is_some()) {
            return None;
        }
        let cells = record.points.iter().map(|point| half(point).map_or("-".into(), half_width));
        let head = ["95 %".to_owned(), metric.unit.name().to_owned()];
        Some(Column { left: false, cells: head.into_iter().chain(cells).collect() })
    }

    fn padded(&self, row: usize) -> String {
        let width = self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let cell = &self.cells[row];
        if self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    }
}
