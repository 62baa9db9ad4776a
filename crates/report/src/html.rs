//! `report.html`: one self-contained page, readable in light, in dark and on paper.

mod cores;
mod tables;

use std::fmt::Write;

use nicforge_record::Record;

use super::beside;
use super::columns::{Metric, drop_causes, measured};
use super::comparison;
use super::figures::{Figure, LegendEntry, Panel, figures};
use super::findings::findings;
use super::number::{bytes, seconds};
use super::plots::SERIES_COLOURS;
use super::{ReportError, shape};

/// How pages look.
pub const STYLE: &str = include_str!("style.css");

/// The page.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn to_html(record: &Record) -> Result<String, ReportError> {
    let title = escape(if record.title.is_empty() { &record.scenario } else { &record.title });
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<header>\n<p class=\"kicker\">nicforge report</p>\n<h1>{title}</h1>\n"
    );
    page += &asked(&record.description);
    page += &facts(record);
    page += "</header>\n";
    page += &headline(record);
    page += &comparison::section(record);
    page += &summary(record);
    page += &beside::section(record);
    page += "<div class=\"figures\">\n";
    for figure in figures(record)? {
        page += &section(&figure);
    }
    page += "</div>\n";
    page += &all_metrics(record);
    page += &cores::section(record);
    page += &tables::stages(record);
    page += &tables::setting(record);
    page += "</main>\n</body>\n</html>\n";
    Ok(page)
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
        ("took", seconds(record.wall_seconds)),
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
const OPEN_PARAGRAPHS: usize = 5;

fn headline(record: &Record) -> String {
    let mut paragraphs = findings(record).into_iter().map(|found| format!("<p>{}</p>\n", escape(&found.text)));
    let open: String = paragraphs.by_ref().take(OPEN_PARAGRAPHS).collect();
    let folded: Vec<String> = paragraphs.collect();
    if open.is_empty() {
        return open;
    }
    let mut section = format!("<section class=\"findings\">\n<h2>Findings</h2>\n{open}");
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
        "<section>\n<h2>Summary</h2>\n{}{}</section>\n",
        tables::points(record, &parameters.columns, &brief, &[]),
        tables::variants(&parameters.of_variants)
    )
}

fn all_metrics(record: &Record) -> String {
    let metrics = measured(record.points.iter().map(|point| &point.metrics));
    let causes = drop_causes(record.points.iter().map(|point| &point.metrics));
    format!(
        "<section class=\"screen\">\n<details>\n<summary>All metrics</summary>\n{}</details>\n</section>\n",
        tables::points(record, &shape::varying_keys(record), &metrics, &causes)
    )
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
        for LegendEntry { index, name } in &figure.legend {
            let (form, colour) = (index / SERIES_COLOURS % 3, index % SERIES_COLOURS);
            push(
                &mut section,
                format_args!(
                    "<li><i class=\"m{form}\" style=\"--swatch:var(--series-{colour})\"></i>{}</li>\n",
                    escape(name)
                ),
            );
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
        assert!(page.contains("<section class=\"screen\">\n<details>\n<summary>All metrics"));
        // Each that is folded goes on paper whole or not at all.
        let folded = page.matches("<details>").count();
        assert_eq!(folded, page.matches("class=\"screen\"").count());
        let (_, paper) = STYLE.split_once("@media print").unwrap();
        assert!(paper.contains(".paper::details-content { content-visibility: visible;"));
        assert!(paper.contains(".screen, .findings summary { display: none; }"));
    }
}
