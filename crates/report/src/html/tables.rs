//! The page's tables: points by metric, the workload, the machine.

use nicforge_record::{Origin, PointRecord, Record};
use serde_json::Value;

use super::escape;
use crate::columns::{Metric, rate};
use crate::csv::plain;
use crate::number::{decimals, fixed, half_width};

/// Points that stand beside each other as columns at most, so that one reads down what each measured.
const UPRIGHT_MAX: usize = 4;
/// Points from which on a reader wants to sort and choose.
pub const MANY: usize = 12;

/// Whether tables of points have a column for each point.
pub fn is_upright(record: &Record) -> bool {
    (1..=UPRIGHT_MAX).contains(&record.points.len())
}

/// Points by variant, parameters of `keys`, metrics, drops by cause in frames.
pub fn points(record: &Record, keys: &[&str], metrics: &[&Metric], causes: &[&str]) -> String {
    if is_upright(record) {
        return upright(record, keys, metrics, causes);
    }
    let columns: Vec<(&Metric, usize)> = metrics.iter().map(|metric| (*metric, places(record, metric))).collect();
    let winner = winner(record);
    let many = if record.points.len() > MANY { " many" } else { "" };
    let mut table = format!(
        "<div class=\"scroll wide{many}\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        points_head(keys, metrics, causes)
    );
    for (index, point) in record.points.iter().enumerate() {
        let class = if winner == Some(index) { " class=\"best\"" } else { "" };
        let params = keys.iter().map(|key| {
            let value = point.params.get(*key).map_or("–".into(), |value| escape(&plain(value)));
            format!("<td class=\"n\">{value}</td>")
        });
        let values = columns.iter().map(|(metric, places)| match shown(metric, point) {
            Some(value) => {
                format!("<td class=\"n\" data-v=\"{value}\">{}{}</td>", fixed(value, *places), sure(metric, point))
            }
            None => "<td class=\"n\">–</td>".to_owned(),
        });
        let drops = causes.iter().map(|cause| format!("<td class=\"n\">{}</td>", dropped(point, cause)));
        let cells: String = params.chain(values).chain(drops).collect();
        let variant = escape(&point.variant);
        table += &format!("<tr{class}><th scope=\"row\">{variant}</th>{cells}</tr>\n");
    }
    table + "</tbody>\n</table></div>\n"
}

/// The same with a column for each point.
fn upright(record: &Record, keys: &[&str], metrics: &[&Metric], causes: &[&str]) -> String {
    let winner = winner(record);
    let class = |index: usize| if winner == Some(index) { "n best" } else { "n" };
    let line = |title: &str, head: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells = cells.enumerate().map(|(index, cell)| format!("<td class=\"{}\">{cell}</td>", class(index)));
        let cells: String = cells.collect();
        format!("<tr><th scope=\"row\" title=\"{title}\">{head}</th>{cells}</tr>\n")
    };
    let points = || record.points.iter();
    let names = points().enumerate();
    let names = names
        .map(|(index, point)| format!("<th scope=\"col\" class=\"{}\">{}</th>", class(index), escape(&point.variant)));
    let mut table = format!(
        "<div class=\"scroll upright\"><table>\n<thead><tr><th scope=\"col\">variant</th>{}</tr></thead>\n<tbody>\n",
        names.collect::<String>()
    );
    for key in keys {
        let value = |point: &PointRecord| point.params.get(*key).map_or("–".into(), |value| escape(&plain(value)));
        table += &line(&escape(key), &escape(key), &mut points().map(value));
    }
    for metric in metrics {
        let head = format!("{} <small>{}</small>", metric.label, metric.unit.name());
        // Of values beside each other each has the decimals that it deserves.
        let digits = |value: f64| fixed(value, decimals(std::iter::once(value)));
        let value = |point: &PointRecord| shown(metric, point).map_or("–".into(), digits) + &sure(metric, point);
        table += &line(metric.key, &head, &mut points().map(value));
    }
    for cause in causes {
        let cause = escape(cause);
        let head = format!("dropped: {cause} <small>frames</small>");
        table += &line(&format!("drops.{cause}"), &head, &mut points().map(|point| dropped(point, &cause)));
    }
    table + "</tbody>\n</table></div>\n"
}

/// Decimals of a metric, so that all its values line up.
fn places(record: &Record, metric: &Metric) -> usize {
    decimals(record.points.iter().filter_map(|point| shown(metric, point)))
}

fn dropped(point: &PointRecord, cause: &str) -> String {
    let count = fixed(point.metrics.drops.get(cause).copied().unwrap_or(0) as f64, 0);
    count + &within(point, &format!("drops.{cause}"), |half_width| half_width)
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

/// Half the width of the metric's interval, behind its value.
fn sure(metric: &Metric, point: &PointRecord) -> String {
    within(point, metric.key, |half_width| metric.unit.shown(half_width))
}

fn within(point: &PointRecord, key: &str, shown: impl Fn(f64) -> f64) -> String {
    let interval = point.intervals.get(key);
    interval.map_or(String::new(), |sure| format!(" <small>{}</small>", half_width(shown(sure.half_width))))
}

fn shown(metric: &Metric, point: &PointRecord) -> Option<f64> {
    (metric.get)(&point.metrics).map(|value| metric.unit.shown(value))
}

/// The point that leads all others by a percent, if one does.
fn winner(record: &Record) -> Option<usize> {
    let rates: Vec<f64> = record.points.iter().map(|point| rate(&point.metrics)).collect();
    let best = rates.iter().copied().fold(0.0, f64::max);
    let mut leaders = (0..rates.len()).filter(|index| rates[*index] >= best * 0.99);
    let first = leaders.next().filter(|_| rates.len() > 1);
    first.filter(|_| leaders.next().is_none())
}

/// The counters and gauges of NICs' stages, folded; nothing where no NIC has stages.
pub fn stages(record: &Record) -> String {
    let mut rows = record.points.iter().flat_map(|point| {
        let row = move |name: &str, value: u64, when: &str| {
            [point.variant.clone(), name.to_owned(), fixed(value as f64, 0), when.to_owned()]
        };
        let counters = point.metrics.stages.iter().map(move |(name, count)| row(name, *count, "in the window"));
        let gauges = point.metrics.stage_gauges.iter().map(move |(name, value)| row(name, *value, "at its end"));
        counters.chain(gauges)
    });
    let Some(first) = rows.next() else {
        return String::new();
    };
    folded("Stages", &["variant", "name", "value", "when"], std::iter::once(first).chain(rows))
}

/// The workload and the machine, folded.
pub fn setting(record: &Record) -> String {
    let mut section = String::new();
    if !record.settings.is_empty() {
        let rows = record.settings.iter().map(|row| {
            let origin = match row.origin {
                Origin::Default => "default",
                Origin::File => "file",
                Origin::Override => "command line",
            };
            [row.key.clone(), as_written(&row.value), row.unit.clone(), origin.to_string()]
        });
        section += &folded("Workload", &["setting", "value", "unit", "from"], rows);
    }
    if !record.machine_parameters.is_empty() {
        let rows = record.machine_parameters.iter().map(|row| {
            let fitted = row.fitted.clone().unwrap_or_default();
            [row.key.clone(), row.value.to_string(), row.unit.clone(), row.source.clone(), fitted]
        });
        let head = ["parameter", "value", "unit", "source", "fitted to"];
        section += &folded(&format!("Machine: {}", record.machine), &head, rows);
    }
    section
}

/// A value as a scenario file has it, without quotes: 200 and not 200.0.
fn as_written(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.is_f64() => number.to_string(),
        _ => plain(value),
    }
}

/// A table of texts behind a summary.
fn folded<const COLUMNS: usize>(
    summary: &str,
    head: &[&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
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
