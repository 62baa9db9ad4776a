//! `report.html`: one self-contained page, readable in light, in dark and on paper.

use std::fmt::Write;

use super::columns::{Metric, drop_causes, measured};
use super::csv::plain;
use super::figures::{Figure, figures};
use super::findings::findings;
use super::number::{bytes, decimals, fixed, seconds};
use super::{Report, ReportError, shape};

const STYLE: &str = include_str!("style.css");

/// The page.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library gives up.
pub fn to_html(report: &Report) -> Result<String, ReportError> {
    let title = escape(if report.title.is_empty() {
        &report.scenario
    } else {
        &report.title
    });
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<header>\n<p class=\"kicker\">nicforge report</p>\n<h1>{title}</h1>\n"
    );
    for paragraph in report
        .description
        .split("\n\n")
        .map(str::trim)
        .filter(|text| !text.is_empty())
    {
        push(
            &mut page,
            format_args!("<p class=\"asked\">{}</p>\n", escape(paragraph)),
        );
    }
    page += &facts(report);
    page += "</header>\n";
    page += &headline(report);
    page += &summary(report);
    page += "<div class=\"figures\">\n";
    for figure in figures(report)? {
        page += &section(&figure);
    }
    page += "</div>\n";
    page += &all_metrics(report);
    page += &setting(report);
    page += "</main>\n</body>\n</html>\n";
    Ok(page)
}

/// Text made safe for element content and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

fn push(page: &mut String, text: std::fmt::Arguments) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

/// What was run, in a line of terms.
fn facts(report: &Report) -> String {
    let mut facts = vec![
        ("scenario", report.scenario.clone()),
        ("machine", report.machine.clone()),
        ("points", report.points.len().to_string()),
        ("seed", report.seed.to_string()),
        ("simulated", seconds(report.simulated_seconds)),
        ("took", seconds(report.wall_seconds)),
        ("version", report.version.clone()),
    ];
    let capacities = [("LLC", report.llc_bytes), ("I/O ways", report.io_way_bytes)];
    facts.extend(
        capacities
            .into_iter()
            .filter_map(|(name, value)| Some((name, bytes(value? as f64)))),
    );
    let mut list = String::from("<dl class=\"facts\">\n");
    for (term, value) in facts.iter().filter(|fact| !fact.1.is_empty()) {
        push(
            &mut list,
            format_args!("<div><dt>{term}</dt><dd>{}</dd></div>\n", escape(value)),
        );
    }
    list + "</dl>\n"
}

fn headline(report: &Report) -> String {
    let paragraphs = findings(report);
    if paragraphs.is_empty() {
        return String::new();
    }
    let mut section =
        String::from("<section class=\"findings\">\n<h2>What came out, and why</h2>\n");
    for (index, paragraph) in paragraphs.iter().enumerate() {
        let class = if index == 0 { " class=\"lead\"" } else { "" };
        push(
            &mut section,
            format_args!("<p{class}>{}</p>\n", escape(paragraph)),
        );
    }
    section + "</section>\n"
}

fn summary(report: &Report) -> String {
    let metrics = measured(report.points.iter().map(|point| &point.metrics));
    let brief: Vec<&Metric> = metrics
        .into_iter()
        .filter(|metric| metric.brief.is_some())
        .collect();
    format!(
        "<section>\n<h2>Summary</h2>\n{}</section>\n",
        points_table(report, &brief, &[])
    )
}

fn all_metrics(report: &Report) -> String {
    let metrics = measured(report.points.iter().map(|point| &point.metrics));
    let causes = drop_causes(report.points.iter().map(|point| &point.metrics));
    format!(
        "<section>\n<details>\n<summary>All metrics</summary>\n{}</details>\n</section>\n",
        points_table(report, &metrics, &causes)
    )
}

/// One row per point: variant, varying parameters, metrics, drops by cause in frames.
fn points_table(report: &Report, metrics: &[&Metric], causes: &[&str]) -> String {
    let keys = shape::varying_keys(report);
    let mut table =
        String::from("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">variant</th>");
    for key in &keys {
        push(
            &mut table,
            format_args!("<th scope=\"col\" class=\"n\">{}</th>", escape(key)),
        );
    }
    for metric in metrics {
        let (key, label, unit) = (metric.key, metric.label, metric.unit.name());
        push(
            &mut table,
            format_args!(
                "<th scope=\"col\" class=\"n\" title=\"{key}\">{label} <small>{unit}</small></th>"
            ),
        );
    }
    for cause in causes {
        let cause = escape(cause);
        push(
            &mut table,
            format_args!(
                "<th scope=\"col\" class=\"n\" title=\"drops.{cause}\">dropped: {cause} <small>frames</small></th>"
            ),
        );
    }
    table += "</tr></thead>\n<tbody>\n";
    let best = report
        .points
        .iter()
        .map(|point| point.metrics.throughput_gbps)
        .fold(0.0, f64::max);
    let leaders = report
        .points
        .iter()
        .filter(|point| point.metrics.throughput_gbps >= best * 0.99)
        .count();
    for point in &report.points {
        // A winner is marked when there is one, not half the table.
        let is_best =
            report.points.len() > 1 && leaders == 1 && point.metrics.throughput_gbps == best;
        let class = if is_best { " class=\"best\"" } else { "" };
        push(
            &mut table,
            format_args!(
                "<tr{class}><th scope=\"row\">{}</th>",
                escape(&point.variant)
            ),
        );
        for key in &keys {
            let value = point
                .params
                .get(*key)
                .map_or("–".into(), |value| escape(&plain(value)));
            push(&mut table, format_args!("<td class=\"n p\">{value}</td>"));
        }
        for metric in metrics {
            let shown = |metrics| (metric.get)(metrics).map(|value| metric.unit.shown(value));
            let places = decimals(
                report
                    .points
                    .iter()
                    .filter_map(|point| shown(&point.metrics)),
            );
            let cell = shown(&point.metrics).map_or("–".into(), |value| fixed(value, places));
            push(&mut table, format_args!("<td class=\"n\">{cell}</td>"));
        }
        for cause in causes {
            let count = point.metrics.drops.get(*cause).copied().unwrap_or(0) as f64;
            push(
                &mut table,
                format_args!("<td class=\"n\">{}</td>", fixed(count, 0)),
            );
        }
        table += "</tr>\n";
    }
    table + "</tbody>\n</table></div>\n"
}

fn section(figure: &Figure) -> String {
    let mut section = format!(
        "<section class=\"{}\">\n<h2>{}</h2>\n<p class=\"note\">{}</p>\n",
        if figure.panels.len() > 1 {
            "wide"
        } else {
            "narrow"
        },
        escape(&figure.title),
        figure.note
    );
    if !figure.legend.is_empty() {
        section += "<ul class=\"legend\">\n";
        for (index, name) in &figure.legend {
            let colour = index % super::plots::SERIES_COLOURS;
            push(
                &mut section,
                format_args!(
                    "<li><i style=\"--swatch:var(--series-{colour})\"></i>{}</li>\n",
                    escape(name)
                ),
            );
        }
        section += "</ul>\n";
    }
    section += "<div class=\"panels\">\n";
    for (heading, svg) in &figure.panels {
        let caption = if heading.is_empty() {
            String::new()
        } else {
            format!("<figcaption>{}</figcaption>", escape(heading))
        };
        push(
            &mut section,
            format_args!("<figure>{caption}{svg}</figure>\n"),
        );
    }
    section + "</div>\n</section>\n"
}

/// The workload and the machine, folded.
fn setting(report: &Report) -> String {
    let mut section = String::new();
    if !report.settings_rows.is_empty() {
        section += "<section>\n<details>\n<summary>Workload</summary>\n<div class=\"scroll\"><table class=\"plain\">\n\
                    <thead><tr><th scope=\"col\">setting</th><th scope=\"col\">value</th><th scope=\"col\">unit</th></tr></thead>\n<tbody>\n";
        for row in &report.settings_rows {
            let (key, value, unit) = (escape(&row.key), escape(&row.value), escape(&row.unit));
            push(
                &mut section,
                format_args!(
                    "<tr><th scope=\"row\">{key}</th><td>{value}</td><td>{unit}</td></tr>\n"
                ),
            );
        }
        section += "</tbody>\n</table></div>\n</details>\n</section>\n";
    }
    if !report.machine_rows.is_empty() {
        push(
            &mut section,
            format_args!(
                "<section>\n<details>\n<summary>Machine: {}</summary>\n<div class=\"scroll\"><table class=\"plain\">\n\
             <thead><tr><th scope=\"col\">parameter</th><th scope=\"col\">value</th><th scope=\"col\">unit</th>\
             <th scope=\"col\">source</th><th scope=\"col\">fitted to</th></tr></thead>\n<tbody>\n",
                escape(&report.machine)
            ),
        );
        for row in &report.machine_rows {
            let fitted = row.fitted.as_deref().unwrap_or("");
            let cells = [&row.value, &row.unit, &row.source, fitted]
                .map(|cell| format!("<td>{}</td>", escape(cell)));
            push(
                &mut section,
                format_args!(
                    "<tr><th scope=\"row\">{}</th>{}</tr>\n",
                    escape(&row.key),
                    cells.concat()
                ),
            );
        }
        section += "</tbody>\n</table></div>\n</details>\n</section>\n";
    }
    section
}
