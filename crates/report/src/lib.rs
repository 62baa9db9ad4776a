//! Writes a run's record for readers: `report.json`, `points.csv`, `report.html` and a terminal table.
//!
//! Everything here is a function of the [`Record`]. The JSON is its serialisation, so all other forms can be made
//! again from `report.json`.

mod beside;
mod capacity;
pub mod claims;
mod columns;
mod comparison;
mod csv;
mod diff;
mod figures;
mod findings;
mod html;
mod live;
mod number;
mod plots;
mod shape;
mod stages;
mod terminal;
mod trace;

use std::path::{Path, PathBuf};

use nicforge_record::Record;

pub use columns::{flat, metric_keys, metric_names, rate};
pub use comparison::{LiveSide, compare, comparison_table};
pub use csv::to_csv;
pub use diff::{diff, diff_table, over_each_other, write_diff};
pub use findings::{Finding, findings};
pub use html::{to_html, to_summary};
pub use live::live_page;
pub use terminal::table;
pub use trace::{PointTrace, trace_events, trace_paths, trace_text};

/// A report cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or folder cannot be written.
    #[error("cannot write {}: {cause}; choose another folder with --out", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// Text is not a report.
    #[error("not a report.json: {0}; it must be written by `nicforge run`")]
    Json(#[from] serde_json::Error),
    /// A report that another version wrote in a form of its own.
    #[error("a report of version {version}, which {} cannot read: {cause}; run its scenario again", env!("CARGO_PKG_VERSION"))]
    OtherVersion {
        /// Which.
        version: String,
        /// What is not as it is now.
        cause: serde_json::Error,
    },
    /// A plot cannot be drawn.
    #[error("cannot draw a plot: {0}")]
    Plot(String),
}

/// The contents of `report.json`.
pub fn to_json(record: &Record) -> String {
    // Strings, numbers and maps with string keys always serialise.
    let mut json = serde_json::to_string_pretty(record).expect("a record has no other kinds of value");
    json.push('\n');
    json
}

/// The record in the contents of `report.json`.
///
/// # Errors
/// [`ReportError::Json`] with line and column when the text does not follow the schema.
pub fn from_json(json: &str) -> Result<Record, ReportError> {
    serde_json::from_str(json).map_err(|cause| {
        let tree: Option<serde_json::Value> = serde_json::from_str(json).ok();
        let version = tree.and_then(|tree| Some(tree.get("version")?.as_str()?.to_owned()));
        match version.filter(|version| version != env!("CARGO_PKG_VERSION")) {
            Some(version) => ReportError::OtherVersion { version, cause },
            None => ReportError::Json(cause),
        }
    })
}

/// The files of a report in `folder`, in this order: JSON, CSV and the page. Each behind the file
/// that it is written to first.
pub fn part_paths(folder: &Path) -> [(PathBuf, PathBuf); 3] {
    ["report.json", "points.csv", "report.html"].map(|name| (folder.join(format!(".{name}.part")), folder.join(name)))
}

/// A file of the report in `folder`, if that is of another run than `run`; of any if `run` is empty.
pub fn report_of_another_run(folder: &Path, run: &str) -> Option<PathBuf> {
    let (_, there) = part_paths(folder).into_iter().find(|(_, path)| path.is_file())?;
    let record = std::fs::read_to_string(folder.join("report.json")).unwrap_or_default();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap_or_default();
    (run.is_empty() || record["origin"]["run"] != run).then_some(there)
}

/// Writes `report.json`, `points.csv` and `report.html` into `folder`, creating it.
///
/// All are written beside their place first and then moved, so that a reader never sees half
/// a file and a failure leaves older results whole, and nothing beside them. Returns the paths.
///
/// # Errors
/// [`ReportError::Write`] with the path that failed, [`ReportError::Plot`] from the page.
pub fn write_all(record: &Record, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    write_traced(record, &[], folder)
}

/// The same with the lives of packets, if any were followed: in the page, and in `trace.json` and `trace.txt`.
///
/// # Errors
/// As [`write_all`].
pub fn write_traced(record: &Record, traces: &[PointTrace], folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let run = record.origin.as_ref().map_or("", |origin| &origin.run);
    let replaces = report_of_another_run(folder, run).is_some();
    let page = html::page(record, "nicforge report", ["", &trace::trace_section(traces)])?;
    let mut written = write_texts(&part_paths(folder), [to_json(record), to_csv(record), page], folder)?;
    if !traces.is_empty() {
        written.extend(trace::write_traces(traces, folder)?);
    } else if replaces {
        // Packets of the run that was here are not of this one; usually there are none.
        trace_paths(folder).into_iter().for_each(|(_, path)| drop(std::fs::remove_file(path)));
    }
    Ok(written)
}

/// Writes `texts` to the files of `moves` in `folder`.
fn write_texts<const N: usize>(
    moves: &[(PathBuf, PathBuf); N],
    texts: [String; N],
    folder: &Path,
) -> Result<Vec<PathBuf>, ReportError> {
    std::fs::create_dir_all(folder).map_err(|cause| ReportError::Write { path: folder.into(), cause })?;
    let written = move_into(moves, texts).inspect_err(|_| {
        for (part, _) in moves {
            // It says why it failed; that some of it is left as well would not help.
            let _ = std::fs::remove_file(part);
        }
    });
    written.map(|()| moves.iter().map(|(_, path)| path.clone()).collect())
}

/// Writes each of `texts` to its part, and when all are whole moves them to their places.
fn move_into<const N: usize>(moves: &[(PathBuf, PathBuf); N], texts: [String; N]) -> Result<(), ReportError> {
    let failed = |path: &Path, cause| ReportError::Write { path: path.into(), cause };
    for ((part, _), text) in moves.iter().zip(texts) {
        std::fs::write(part, text).map_err(|cause| failed(part, cause))?;
    }
    for (part, path) in moves {
        std::fs::rename(part, path).map_err(|cause| failed(path, cause))?;
    }
    Ok(())
}

#[cfg(test)]
mod write_tests {
    use super::*;

    #[test]
    fn a_failure_leaves_no_parts_and_older_files_whole() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_all(&fake::single(), folder.path()).unwrap();
        let before = std::fs::read(at("report.json")).unwrap();
        // Nothing can be written where a folder is.
        std::fs::create_dir(at(".points.csv.part")).unwrap();
        write_all(&fake::two_variants(), folder.path()).unwrap_err();
        std::fs::remove_dir(at(".points.csv.part")).unwrap();
        assert_eq!(std::fs::read(at("report.json")).unwrap(), before);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
#[cfg(test)]
mod browser;
#[cfg(test)]
mod chromium;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
