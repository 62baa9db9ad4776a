//! The page's tables: points by metric, the workload, the machine.

use super::escape;
use crate::report::columns::{Metric, rate};
use crate::report::csv::plain;
use crate::report::number::{decimals, fixed};
use crate::report::{PointResult, Report};

/// One row per point: variant, parameters of `keys`, metrics, drops by cause in frames.
pub fn points(report: &Report, keys: &[&str], metrics: &[&Metric], causes: &[&str]) -> String {
    let columns: Vec<(&Metric, usize)> = metrics
        .iter()
        .map(|metric| {
            let values = report.points.iter().filter_map(|point| shown(metric, point));
            (*metric, decimals(values))
        })
        .collect();
    let winner = winner(report);
    let mut table = format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        points_head(keys, metrics, causes)
    );
    for (index, point) in report.points.iter().enumerate() {
        let class = if winner == Some(index) { " class=\"best\"" } else { "" };
        let params = keys.iter().map(|key| point.params.get(*key).map_or("–".into(), |value| escape(&plain(value))));
        let values =
            columns.iter().map(|(metric, places)| shown(metric, point).map_or("–".into(), |v| fixed(v, *places)));
        let drops = causes.iter().map(|cause| fixed(point.metrics.drops.get(*cause).copied().unwrap_or(0) as f64, 0));
        let cells: String =
            params.chain(values).chain(drops).map(|cell| format!("<td class=\"n\">{cell}</td>")).collect();
        let variant = escape(&point.variant);
        table += &format!("<tr{class}><th scope=\"row\">{variant}</th>{cells}</tr>\n");
    }
    table + "</tbody>\n</table></div>\n"
}

/// What variants are, where that has no columns.
pub fn variants(variants: &[(&str, String)]) -> String {
    if variants.is_empty() {
        return String::new();
    }
    let line = |(variant, label): &(&str, String)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(variant), escape(label));
    let lines: String = variants.iter().map(line).collect();
    format!("<dl class=\"variants\">\n{lines}</dl>\n")
}

fn points_head(keys: &[&str], metrics: &[&Metric], causes: &[&str]) -> String {
    let head = |title: &str, text: &str| format!("<th scope=\"col\" class=\"n\" title=\"{title}\">{text}</th>");
    let params = keys.iter().map(|key| head(&escape(key), &escape(key)));
    let metrics = metrics.iter().map(|metric| {
        let text = format!("{} <small>{}</small>", metric.label, metric.unit.name());
        head(metric.key, &text)
    });
    let drops = causes.iter().map(|cause| {
        let cause = escape(cause);
        head(&format!("drops.{cause}"), &format!("dropped: {cause} <small>frames</small>"))
    });
    let first = String::from("<th scope=\"col\">variant</th>");
    std::iter::once(first).chain(params).chain(metrics).chain(drops).collect()
}

fn shown(metric: &Metric, point: &PointResult) -> Option<f64> {
    (metric.get)(&point.metrics).map(|value| metric.unit.shown(value))
}

/// The point that leads all others by a percent, if one does.
fn winner(report: &Report) -> Option<usize> {
    let rates: Vec<f64> = report.points.iter().map(|point| rate(&point.metrics)).collect();
    let best = rates.iter().copied().fold(0.0, f64::max);
    let mut leaders = (0..rates.len()).filter(|index| rates[*index] >= best * 0.99);
    let first = leaders.next().filter(|_| rates.len() > 1);
    first.filter(|_| leaders.next().is_none())
}

/// The workload and the machine, folded.
pub fn setting(report: &Report) -> String {
    let mut section = String::new();
    if !report.settings_rows.is_empty() {
        let rows = report.settings_rows.iter().map(|row| vec![&*row.key, &row.value, &row.unit]);
        section += &folded("Workload", &["setting", "value", "unit"], rows);
    }
    if !report.machine_rows.is_empty() {
        let rows = report
            .machine_rows
            .iter()
            .map(|row| vec![&*row.key, &row.value, &row.unit, &row.source, row.fitted.as_deref().unwrap_or("")]);
        let head = ["parameter", "value", "unit", "source", "fitted to"];
        section += &folded(&format!("Machine: {}", report.machine), &head, rows);
    }
    section
}

/// A table of texts behind a summary.
fn folded<'a>(summary: &str, head: &[&str], rows: impl Iterator<Item = Vec<&'a str>>) -> String {
    let head: String = head.iter().map(|cell| format!("<th scope=\"col\">{cell}</th>")).collect();
    let mut body = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(index, cell)| match index {
            0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
            _ => format!("<td>{}</td>", escape(cell)),
        });
        body += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    format!(
        "<section>\n<details class=\"paper\">\n<summary>{}</summary>\n<div class=\"scroll\"><table>\n\
         <thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n\
         </details>\n</section>\n",
        escape(summary)
    )
}
