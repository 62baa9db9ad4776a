//! The native half of the Python package `nicforge`: jobs and records. The other half, in `python/nicforge`, is what people
//! call.

mod app;
mod errors;
mod job;
mod record;
mod registry;
mod watch;

use std::path::PathBuf;

use pyo3::prelude::*;

/// The names of this module stand in `_native.pyi`, too.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::job::Job;
    #[pymodule_export]
    use super::record::Record;
    #[pymodule_export]
    use super::{metrics, program_is, set_application, version};
}

/// Says that `path` is the file of this module: a finished point is found again by the program that measured it.
#[pyfunction]
fn program_is(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    nicforge_lab::kept::program_is(&path).map_err(|error| errors::of_kept(py, &error))
}

/// The version of the package.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Every metric: its key, words for it, its unit.
#[pyfunction]
fn metrics() -> Vec<(&'static str, &'static str, &'static str)> {
    nicforge_report::metric_names()
}

/// Makes `class` the application `python`; `None` takes it away.
#[pyfunction]
fn set_application(class: Option<Py<PyAny>>) {
    app::set(class);
}
