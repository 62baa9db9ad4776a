//! The record of a run, and the forms in which people read it.

use std::path::PathBuf;

use nicforge_report::{findings, flat, from_json, report_of_another_run, table, to_csv, to_html, to_json, to_summary};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;

/// What a run measured.
#[pyclass(frozen, module = "nicforge._native")]
pub struct Record(pub nicforge_record::Record);

#[pymethods]
impl Record {
    /// The record in the text of a `report.json`.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Record> {
        from_json(text).map(Record).map_err(|error| errors::of_report(py, &error))
    }

    /// The contents of `report.json`.
    fn json(&self) -> String {
        to_json(&self.0)
    }

    /// The contents of `points.csv`.
    fn csv(&self) -> String {
        to_csv(&self.0)
    }

    /// The page.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| to_html(&self.0)).map_err(|error| errors::of_report(py, &error))
    }

    /// Findings and the summary's table, to stand in another page.
    fn summary(&self) -> String {
        to_summary(&self.0)
    }

    /// The table for terminals.
    fn table(&self) -> String {
        table(&self.0)
    }

    /// What the report says first.
    fn findings(&self) -> Vec<String> {
        findings(&self.0).into_iter().map(|finding| finding.text).collect()
    }

    /// Each point in JSON, its metrics by the names of the columns of `points.csv`.
    fn points(&self) -> String {
        let point = |point: &nicforge_record::PointRecord| {
            let half_widths = point.intervals.iter().map(|(key, interval)| (key.clone(), json!(interval.half_width)));
            json!({
                "variant": point.variant,
                "params": point.params,
                "metrics": flat(&point.metrics).into_iter().collect::<serde_json::Map<_, _>>(),
                "intervals": half_widths.collect::<serde_json::Map<_, _>>(),
                "steady": point.steadiness.is_steady(),
            })
        };
        let points: Vec<_> = self.0.points.iter().map(point).collect();
        json!(points).to_string()
    }

    /// Writes the report into `folder`. Returns its files.
    #[pyo3(signature = (folder, force = false))]
    fn write(&self, py: Python<'_>, folder: PathBuf, force: bool) -> PyResult<Vec<PathBuf>> {
        let run = self.0.origin.as_ref().map_or("", |origin| &origin.run);
        if let Some(file) = report_of_another_run(&folder, run).filter(|_| !force) {
            return Err(errors::of_other_run(py, &file));
        }
        let written = py.detach(|| nicforge_report::write_all(&self.0, &folder));
        written.map_err(|error| errors::of_report(py, &error))
    }
}
