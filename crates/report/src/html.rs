//! `report.html`: one self-contained page, readable in light, in dark and on paper.

mod chain;
mod cores;
mod heat;
pub mod tables;

use std::fmt::Write;

use nicforge_record::Record;

use super::beside;
use super::columns::{Metric, drop_causes, measured};
use super::comparison;
use super::figures::{Figure, LegendEntry, Panel, figures};
use super::findings::findings;
use super::number::{bytes, seconds};
use super::plots::{Paint, SERIES_COLOURS};
use super::{ReportError, shape};

/// How pages look.
const STYLE: &str = include_str!("style.css");

/// What sorts, filters and pivots many points; a page without it has all of them, in the run's order.
const SCRIPT: &str = include_str!("page.js");

/// The page.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn to_html(record: &Record) -> Result<String, ReportError> {
    page(record, "nicforge report", ["", ""])
}

/// The page of `record`; `first` stands before all that is made from the record, and `more` behind its plots.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn page(record: &Record, kicker: &str, [first, more]: [&str; 2]) -> Result<String, ReportError> {
    let title = escape(if record.title.is_empty() { &record.scenario } else { &record.title });
    let mut page = head(&title, kicker);
    page += &asked(&record.description);
    page += "</header>\n";
    page += first;
    // One answer is enough.
    page += &if first.is_empty() { headline(record) } else { String::new() };
    page += &chain::section(record);
    page += &comparison::section(record);
    page += &facts(record);
    // Of many points a reader wants the picture first.
    let many = record.points.len() > tables::MANY;
    let mut plots = String::from("<div class=\"figures\">\n");
    for figure in figures(record)? {
        plots += &section(&figure);
    }
    plots += "</div>\n";
    let points = [summary(record), heat::section(record), beside::section(record)];
    let [summary, heat, beside] = points;
    page += &if many { [heat, beside, plots, summary] } else { [summary, heat, beside, plots] }.concat();
    page += more;
    page += &all_metrics(record);
    page += &cores::section(record);
    page += &tables::stages(record);
    page += &tables::setting(record);
    page += "</main>\n";
    if record.points.len() > tables::MANY {
        push(&mut page, format_args!("<script>\n{SCRIPT}</script>\n"));
    }
    page += "</body>\n</html>\n";
    Ok(page)
}

/// What all pages begin with, up to their heading; `title` is escaped.
pub fn head(title: &str, kicker: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<header>\n<p class=\"kicker\">{kicker}</p>\n<h1>{title}</h1>\n"
    )
}

/// Findings and the summary, to stand in a page of somebody else's, such as a notebook.
pub fn to_summary(record: &Record) -> String {
    let title = escape(if record.title.is_empty() { &record.scenario } else { &record.title });
    format!("<div class=\"nicforge\">\n<h3>{title}</h3>\n{}{}</div>\n", headline(record), summary(record))
}

/// Paragraphs, and commands where all lines of one are indented.
fn asked(description: &str) -> String {
    let mut text = String::new();
    let paragraphs = description.split("\n\n").map(|text| text.trim_matches('\n'));
    for paragraph in paragraphs.filter(|text| !text.trim().is_empty()) {
        let tag = if paragraph.lines().all(|line| line.starts_with("    ")) { "pre" } else { "p" };
        let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
        let lines = escape(&lines.join("\n"));
        push(&mut text, format_args!("<{tag} class=\"asked\">{lines}</{tag}>\n"));
    }
    text
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
fn facts(record: &Record) -> String {
    let mut facts = vec![
        ("scenario", record.scenario.clone()),
        ("machine", record.machine.clone()),
        ("points", record.points.len().to_string()),
        ("seed", record.seed.to_string()),
        ("simulated", record.simulated_seconds.map_or_else(String::new, seconds)),
        // Two runs together have no time of their own.
        ("took", if record.differences.is_some() { String::new() } else { seconds(record.wall_seconds) }),
        ("version", record.version.clone()),
        ("run", record.origin.as_ref().map_or_else(String::new, |origin| origin.run.chars().take(8).collect())),
        ("commit", record.origin.as_ref().and_then(|origin| origin.commit.clone()).unwrap_or_default()),
    ];
    let capacities = [("LLC", record.llc_bytes), ("I/O ways", record.io_way_bytes)];
    facts.extend(capacities.into_iter().filter_map(|(name, value)| Some((name, bytes(value? as f64)))));
    let mut list = String::from("<dl class=\"facts\">\n");
    for (term, value) in facts.iter().filter(|fact| !fact.1.is_empty()) {
        push(&mut list, format_args!("<div><dt>{term}</dt><dd>{}</dd></div>\n", escape(value)));
    }
    list + "</dl>\n"
}

/// Paragraphs of the headline that are not folded.
const OPEN_PARAGRAPHS: usize = 3;

fn headline(record: &Record) -> String {
    let mut paragraphs = findings(record).into_iter().enumerate().map(|(number, found)| {
        // The answer is what the first one says first; the rest is why.
        let end = match number {
            0 => found.text.find(". ").map_or(found.text.len(), |end| end + 1),
            _ => 0,
        };
        let (first, rest) = found.text.split_at(end);
        format!("<p><b>{}</b>{}</p>\n", escape(first), escape(rest)).replace("<b></b>", "")
    });
    let open: String = paragraphs.by_ref().take(OPEN_PARAGRAPHS).collect();
    let folded: Vec<String> = paragraphs.collect();
    if open.is_empty() {
        return open;
    }
    let mut section = format!("<section class=\"findings\">\n<h2>Answer</h2>\n{open}");
    if !folded.is_empty() {
        let count = folded.len();
        push(
            &mut section,
            format_args!("<details class=\"paper\">\n<summary>{count} more</summary>\n{}</details>\n", folded.concat()),
        );
    }
    section + "</section>\n"
}

/// The table of all points with the metrics that say most.
pub fn summary(record: &Record) -> String {
    let metrics = measured(record.points.iter().map(|point| &point.metrics));
    let brief: Vec<&Metric> = metrics.into_iter().filter(|metric| metric.brief.is_some()).collect();
    let parameters = shape::parameters(record);
    format!(
        "<section class=\"points\">\n<h2>Summary</h2>\n{}{}</section>\n",
        tables::points(record, &parameters.columns, &brief, &[]),
        tables::variants(&parameters.of_variants)
    )
}

/// Columns of measured values that a sheet of paper has room for.
const PAPER_COLUMNS: usize = 7;

fn all_metrics(record: &Record) -> String {
    let metrics = measured(record.points.iter().map(|point| &point.metrics));
    let causes = drop_causes(record.points.iter().map(|point| &point.metrics));
    let keys = shape::varying_keys(record);
    let tables = if tables::is_upright(record) {
        tables::points(record, &keys, &metrics, &causes)
    } else {
        let measured = metrics.chunks(PAPER_COLUMNS).map(|part| tables::points(record, &keys, part, &[]));
        let dropped = causes.chunks(PAPER_COLUMNS).map(|part| tables::points(record, &keys, &[], part));
        measured.chain(dropped).collect()
    };
    // Many points fill many sheets, so paper has them where the reader has opened them.
    let class = if record.points.len() > tables::MANY { "" } else { " class=\"paper\"" };
    format!("<section>\n<details{class}>\n<summary>All metrics</summary>\n{tables}</details>\n</section>\n")
}

fn section(figure: &Figure) -> String {
    let mut section = format!(
        "<section class=\"{}\">\n<h2>{}</h2>\n<p class=\"note\">{}</p>\n",
        if figure.panels.len() > 1 { "wide" } else { "narrow" },
        escape(&figure.title),
        figure.note
    );
    if !figure.legend.is_empty() {
        section += "<ul class=\"legend\">\n";
        for LegendEntry { paint, name } in &figure.legend {
            let form = match paint {
                Paint::Series(index) => index / SERIES_COLOURS % 3,
                Paint::Part(_) => 0,
            };
            let (colour, name) = (paint.css(), escape(name));
            push(&mut section, format_args!("<li><i class=\"m{form}\" style=\"--swatch:{colour}\"></i>{name}</li>\n"));
        }
        section += "</ul>\n";
    }
    push(&mut section, format_args!("<div class=\"panels\" style=\"--columns:{}\">\n", figure.columns));
    for Panel { heading, svg } in &figure.panels {
        let caption =
            if heading.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", escape(heading)) };
        push(&mut section, format_args!("<figure>{caption}{svg}</figure>\n"));
    }
    section + "</div>\n</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn paper_has_all_findings_and_no_heading_without_its_table() {
        let record = fake::many();
        assert!(findings(&record).len() > OPEN_PARAGRAPHS);
        let page = to_html(&record).unwrap();
        assert!(page.contains("<details class=\"paper\">\n<summary>"));
        let (_, paper) = STYLE.split_once("@media print").unwrap();
        assert!(paper.contains(".paper::details-content { content-visibility: visible;"));
        assert!(paper.contains(".findings summary, .tools { display: none; }"));
    }
}
