//! Errors as exceptions of `nicforge.errors`, with file and line where somebody wrote what is wrong.

use nicforge_lab::job::JobError;
use nicforge_lab::kept::KeptError;
use nicforge_options::{ConfigError, Place};
use nicforge_report::ReportError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception for why a job cannot be loaded or has no result.
pub fn of_job(py: Python<'_>, error: &JobError) -> PyErr {
    match error {
        JobError::Kept(error) => of_kept(py, error),
        _ if error.is_input() => of_input(py, &error.to_string(), error.place()),
        _ => exception(py, "RunError", &error.to_string(), None),
    }
}

/// That for a value of an argument.
pub fn of_config(py: Python<'_>, error: &ConfigError) -> PyErr {
    of_input(py, &error.to_string(), Some(&error.place))
}

/// That for points that cannot be kept.
pub fn of_kept(py: Python<'_>, error: &KeptError) -> PyErr {
    exception(py, "FilesError", &error.to_string(), None)
}

/// That for a report that cannot be read or written.
pub fn of_report(py: Python<'_>, error: &ReportError) -> PyErr {
    exception(py, "FilesError", &error.to_string(), None)
}

fn of_input(py: Python<'_>, text: &str, place: Option<&Place>) -> PyErr {
    let fields = PyDict::new(py);
    let filled = match place {
        Some(Place::Line { file, line, column }) => fields
            .set_item("file", file.display().to_string())
            .and_then(|()| fields.set_item("line", line))
            .and_then(|()| fields.set_item("column", column)),
        Some(Place::File(file)) => fields.set_item("file", file.display().to_string()),
        Some(Place::Argument(_)) | None => Ok(()),
    };
    match filled {
        Ok(()) => exception(py, "ConfigError", text, Some(&fields)),
        Err(error) => error,
    }
}

/// Makes exception `name` of the package; what goes wrong while it is made is raised in its place.
fn exception(py: Python<'_>, name: &str, text: &str, fields: Option<&Bound<'_, PyDict>>) -> PyErr {
    let class = py.import("nicforge.errors").and_then(|module| module.getattr(name));
    class.and_then(|class| class.call((text,), fields)).map_or_else(|error| error, PyErr::from_value)
}

/// That for a folder in which there is the report of another run.
pub fn of_other_run(py: Python<'_>, file: &std::path::Path) -> PyErr {
    let text = format!("{} is of another run; name another folder, or replace it by force=True", file.display());
    exception(py, "FilesError", &text, None)
}
