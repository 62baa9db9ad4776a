//! The page of two runs: what differs first, then plots of both over each other.

use std::path::{Path, PathBuf};

use nicforge_record::{Differences, Record};

use super::{HEAD, Verdict, cells_of, diff, main_rows, over_each_other, significance};
use crate::html::{escape, page};
use crate::{ReportError, part_paths, to_csv, to_json, write_texts};

/// Rows of the metrics' table that are not folded.
const OPEN_ROWS: usize = 40;

/// Writes the record, the table and the page of both runs into `folder`, creating it. Returns the paths.
///
/// # Errors
/// [`ReportError::Write`] with the path that failed, [`ReportError::Plot`] from the page.
pub fn write_diff(a: &Record, b: &Record, names: [&str; 2], folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let both = over_each_other(a, b, names);
    write_texts(&part_paths(folder), [to_json(&both), to_csv(&both), diff_page(a, b, names)?], folder)
}

/// The page.
///
/// # Errors
/// [`ReportError::Plot`] when the drawing library fails.
pub fn diff_page(a: &Record, b: &Record, names: [&str; 2]) -> Result<String, ReportError> {
    page(&over_each_other(a, b, names), "nicforge diff", [&section(&diff(a, b, names)), ""])
}

fn section(diff: &Differences) -> String {
    let rows: Vec<String> = main_rows(diff)
        .map(|(verdict, cells)| {
            let class = if matches!(verdict, Verdict::Differs(_)) { " class=\"best\"" } else { "" };
            format!("<tr{class}>{}</tr>\n", line(&cells))
        })
        .collect();
    let said = significance(diff);
    let said = match (said.trim(), rows.is_empty()) {
        _ if diff.points.is_empty() => "No point is in both runs.".to_owned(),
        (_, true) => "No main metric differs.".to_owned(),
        ("", _) => "Without intervals no test tells the values apart.".to_owned(),
        (said, _) => capitalised(said) + ".",
    };
    let mut section = format!("<section class=\"findings\">\n<h2>Answer</h2>\n<p><b>{}</b></p>\n", escape(&said));
    for (points, run) in diff.alone.iter().zip(["A", "B"]) {
        if !points.is_empty() {
            section += &format!("<p>Only in {run}: {}.</p>\n", escape(&points.join("; ")));
        }
    }
    section += "</section>\n";
    if diff.points.is_empty() && diff.settings.is_empty() {
        return section;
    }
    section += "<section>\n<h2>Settings that differ</h2>\n";
    section += &if diff.settings.is_empty() {
        "<p class=\"note\">Settings, machine and program are the same.</p>\n".to_owned()
    } else {
        let rows: Vec<String> =
            diff.settings.iter().map(|row| format!("<tr>{}</tr>\n", line(&cells_of(row)))).collect();
        table(&["", "A", "B"], &rows)
    };
    section += "</section>\n";
    if rows.is_empty() {
        return section;
    }
    let (open, folded) = rows.split_at(rows.len().min(OPEN_ROWS));
    section += &format!(
        "<section>\n<h2>Main metrics</h2>\n<p class=\"note\">Those that are not equal; shaded where a test tells them \
         apart.</p>\n{}",
        table(&HEAD, open)
    );
    if !folded.is_empty() {
        let count = folded.len();
        section += &format!("<details>\n<summary>{count} more</summary>\n{}</details>\n", table(&HEAD, folded));
    }
    section + "</section>\n"
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn line<const CELLS: usize>(cells: &[String; CELLS]) -> String {
    let cell = |(index, cell): (usize, &String)| match index {
        0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
        _ => format!("<td>{}</td>", escape(cell)),
    };
    cells.iter().enumerate().map(cell).collect()
}

fn table(head: &[&str], rows: &[String]) -> String {
    let head: String = head.iter().map(|cell| format!("<th scope=\"col\">{cell}</th>")).collect();
    let rows = rows.concat();
    format!(
        "<div class=\"scroll wraps\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}
