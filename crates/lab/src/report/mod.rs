//! What a run leaves behind: `report.json`, `points.csv`, `report.html` and a terminal table.
//!
//! The JSON is the record and follows the schema of the design; the rest is for reading.
//! Everything is a function of the [`Report`], so the same run gives the same bytes, but for
//! `wall_seconds`, which the caller measures.

mod bounds;
mod columns;
mod comparison;
mod csv;
mod figures;
mod findings;
mod html;
mod number;
mod phases;
mod plots;
mod shape;
mod terminal;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::by_core::CoreFigures;
use crate::metrics::Metrics;
use crate::timeline::{Switch, TimelineEntry};

pub use bounds::Bounds;
pub use columns::rate;
pub use comparison::{ComparedRow, Comparison, comparison_table};
pub use csv::to_csv;
pub use findings::{CHECKSUM_REMEDY, findings};
pub use html::to_html;
pub use phases::Phases;
pub use terminal::table;

/// All that a run measured, and what the reader needs to judge it.
///
/// `report.json` holds the schema's keys only; what is skipped there is for the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The scenario's name (its file without folder and ending).
    pub scenario: String,
    /// A line for the page's heading; the scenario's name when empty.
    #[serde(skip)]
    pub title: String,
    /// What the scenario asks, in prose; blank lines separate paragraphs.
    #[serde(skip)]
    pub description: String,
    /// Seed of all that is random in the run.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// The machine's name.
    pub machine: String,
    /// The machine's parameters.
    #[serde(skip)]
    pub machine_rows: Vec<MachineRow>,
    /// The workload's settings that all points share.
    #[serde(skip)]
    pub settings_rows: Vec<SettingsRow>,
    /// Capacity of the last-level cache, bytes.
    #[serde(skip)]
    pub llc_bytes: Option<u64>,
    /// Capacity of the ways of the last-level cache that DMA may allocate into, bytes.
    #[serde(skip)]
    pub io_way_bytes: Option<u64>,
    /// Real time that the run took, s.
    pub wall_seconds: f64,
    /// Simulated time of all points together, s; absent where nothing was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
    /// One per variant and swept value.
    pub points: Vec<PointResult>,
    /// Points on both grounds side by side; absent unless that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
}

/// A parameter of the machine, with where its value comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineRow {
    /// Key in the machine file.
    pub key: String,
    /// Unit; empty for a plain number.
    pub unit: String,
    /// Value as the machine file has it.
    pub value: String,
    /// Paper, datasheet or measurement.
    pub source: String,
    /// For a fitted value: to which calibration points.
    pub fitted: Option<String>,
}

/// A setting of the workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsRow {
    /// Key in the scenario file.
    pub key: String,
    /// Unit; empty for a plain number or name.
    pub unit: String,
    /// Value in use.
    pub value: String,
}

/// One measured point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// What is compared.
    pub variant: String,
    /// Every swept or varied value, by the scenario's own keys.
    pub params: Map<String, Value>,
    /// What was measured.
    pub metrics: Metrics,
    /// What bounds it.
    #[serde(skip)]
    pub bounds: Bounds,
    /// What each core did; absent in the JSON where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<CoreFigures>,
    /// When it went on in another way.
    #[serde(skip)]
    pub phases: Phases,
    /// How it went on over time; empty, and absent in the JSON, unless it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// Every change of steering, in order; absent in the JSON where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Switch>,
}

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
    /// A plot cannot be drawn.
    #[error("cannot draw a plot: {0}")]
    Plot(String),
}

/// The contents of `report.json`: the keys of the design's schema, in its order.
pub fn to_json(report: &Report) -> String {
    // Strings, numbers and maps with string keys always serialise.
    let mut json = serde_json::to_string_pretty(report).expect("a report has no other kinds of value");
    json.push('\n');
    json
}

/// A report from the contents of `report.json`; what only the page shows stays empty.
///
/// # Errors
/// [`ReportError::Json`] with line and column when the text does not follow the schema.
pub fn from_json(json: &str) -> Result<Report, ReportError> {
    Ok(serde_json::from_str(json)?)
}

/// The files of a report in `folder`, in this order: JSON, CSV and the page. Each behind the file
/// that it is written to first.
pub fn part_paths(folder: &Path) -> [(PathBuf, PathBuf); 3] {
    ["report.json", "points.csv", "report.html"].map(|name| (folder.join(format!(".{name}.part")), folder.join(name)))
}

/// Writes `report.json`, `points.csv` and `report.html` into `folder`, creating it.
///
/// All are written beside their place first and then moved, so that a reader never sees half
/// a file and a failure leaves older results whole, and nothing beside them. Returns the paths.
///
/// # Errors
/// [`ReportError::Write`] with the path that failed, [`ReportError::Plot`] from the page.
pub fn write_all(report: &Report, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let texts = [to_json(report), to_csv(report), to_html(report)?];
    std::fs::create_dir_all(folder).map_err(|cause| ReportError::Write { path: folder.into(), cause })?;
    let moves = part_paths(folder);
    let written = move_into(&moves, texts).inspect_err(|_| {
        for (part, _) in &moves {
            // It says why it failed; that some of it is left as well would not help.
            let _ = std::fs::remove_file(part);
        }
    });
    written.map(|()| moves.into_iter().map(|(_, path)| path).collect())
}

/// Writes each of `texts` to its part, and when all are whole moves them to their places.
fn move_into(moves: &[(PathBuf, PathBuf); 3], texts: [String; 3]) -> Result<(), ReportError> {
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
mod fake;
#[cfg(test)]
mod tests;
