//! A job: what `nicforge.run` and `nicforge.sweep` ask for.

use std::path::PathBuf;

use nicforge_lab::job::{Kept, Request};
use nicforge_lab::run::{PointRun, RunIo};
use nicforge_lab::scenario::{Assignment, parse_setting, push_once};
use nicforge_options::{ConfigError, Place};
use pyo3::prelude::*;

use crate::app;
use crate::errors;
use crate::record::Record;
use crate::registry::catalogue;
use crate::watch::{Silent, Watch, run_watched};

/// Keys, each with the texts of its values.
type Sweeps = Vec<(String, Vec<String>)>;

/// A scenario that can run.
#[pyclass(frozen, module = "nicforge._native")]
pub struct Job {
    job: nicforge_lab::job::Job,
    /// What determines each task.
    keys: Vec<String>,
}

#[pymethods]
impl Job {
    #[new]
    #[pyo3(signature = (scenario, overrides, variants, machine, seed, seeds))]
    fn new(
        py: Python<'_>,
        scenario: PathBuf,
        overrides: (Vec<(String, String)>, Sweeps),
        variants: Vec<String>,
        machine: Option<PathBuf>,
        seed: Option<u64>,
        seeds: u64,
    ) -> PyResult<Job> {
        let (settings, sweeps) = overrides;
        let (overrides, swept) = assignments(&settings, &sweeps).map_err(|error| errors::of_config(py, &error))?;
        let said = settings.iter().map(|(key, text)| format!("{key}={text}"));
        let said = said.chain(sweeps.iter().map(|(key, texts)| format!("{key}=[{}]", texts.join(", "))));
        let request = Request {
            machine,
            seed,
            seeds,
            overrides,
            sweeps: swept,
            said: said.collect(),
            variants,
            ..Request::of(&scenario)
        };
        let loaded = py.detach(|| {
            let job = nicforge_lab::job::Job::load(request, &catalogue())?;
            let keys = job.keys()?;
            Ok(Job { job, keys })
        });
        loaded.map_err(|error| errors::of_job(py, &error))
    }

    /// The scenario's name.
    #[getter]
    fn name(&self) -> &str {
        &self.job.scenario.name
    }

    /// How many points there are.
    #[getter]
    fn points(&self) -> usize {
        self.job.points.len()
    }

    /// What is to be said that is no error.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.job.notes.clone()
    }

    /// Each task in words: a point with a seed.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.job.labels()
    }

    /// Which run this is.
    #[getter]
    fn run_id(&self, py: Python<'_>) -> PyResult<String> {
        let origin = self.job.origin(&self.keys, None).map_err(|error| errors::of_job(py, &error))?;
        Ok(origin.run)
    }

    /// Runs all tasks on `jobs` threads. Returns the result of each in JSON, in their order. `progress` is called on this
    /// thread with the number of finished tasks, the share of all work, the frames so far, and the numbers of those that
    /// have finished since. Finished tasks are kept in `folder`, and found there unless all are to run `anew`; `said` is
    /// called with what is there.
    #[pyo3(signature = (jobs, folder = None, anew = false, progress = None, said = None))]
    fn run(
        &self,
        py: Python<'_>,
        jobs: usize,
        folder: Option<PathBuf>,
        anew: bool,
        progress: Option<Bound<'_, PyAny>>,
        said: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let opened = folder.map(|folder| py.detach(|| Kept::open(&folder, self.keys.clone(), anew)));
        let kept = opened.transpose().map_err(|error| errors::of_kept(py, &error))?;
        if let (Some(said), Some(note)) = (said, kept.as_ref().and_then(|kept| kept.what_is_there("force=True"))) {
            said.call1((note,))?;
        }
        let watch = Watch::new(self.keys.len());
        let work = || self.job.run(jobs.max(1), &RunIo::default(), kept.as_ref(), &watch);
        let runs = run_watched(py, &watch, progress.as_ref(), work)?;
        if let Some(error) = app::take_failure() {
            return Err(error);
        }
        let runs = runs.map_err(|error| errors::of_job(py, &error))?;
        Ok(runs.iter().map(to_text).collect())
    }

    /// Runs the task with number `index` on this thread. Returns its result in JSON.
    fn run_task(&self, py: Python<'_>, index: usize) -> PyResult<String> {
        let tasks = self.job.tasks();
        let Some(task) = tasks.get(index) else {
            let text = format!("task {index} of {}", tasks.len());
            return Err(pyo3::exceptions::PyIndexError::new_err(text));
        };
        let run = py.detach(|| self.job.run_task(*task, index, &RunIo::default(), &Silent));
        run.map(|run| to_text(&run)).map_err(|error| errors::of_job(py, &error))
    }

    /// The record of `runs`, the results of all tasks in their order, and what is to be said about them.
    fn record(&self, py: Python<'_>, runs: Vec<String>, wall_seconds: f64) -> PyResult<(Record, Vec<String>)> {
        let read = |text: &String| serde_json::from_str::<PointRun>(text);
        let runs = runs.iter().map(read).collect::<Result<Vec<_>, _>>();
        let runs = runs.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        if runs.len() != self.keys.len() {
            let text = format!("{} results of {} tasks", runs.len(), self.keys.len());
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        }
        let origin = self.job.origin(&self.keys, None).map_err(|error| errors::of_job(py, &error))?;
        let runs = self.job.of_points(runs);
        let notes = self.job.notes_of_runs(&runs);
        Ok((Record(self.job.record(runs, Some(origin), wall_seconds)), notes))
    }
}

/// A result in JSON; it is the same again when it is read.
fn to_text(run: &PointRun) -> String {
    // Strings, numbers and maps with string keys always serialise.
    serde_json::to_string(run).expect("a result has no other kinds of value")
}

/// The arguments as settings.
fn assignments(
    settings: &[(String, String)],
    sweeps: &Sweeps,
) -> Result<(Vec<Assignment>, Vec<Vec<Assignment>>), ConfigError> {
    let catalogue = catalogue();
    let set = |key: &str, text: &str| parse_setting(key, text, &Place::argument(&format!("{key}={text}")), &catalogue);
    let mut overrides = Vec::new();
    for (key, text) in settings {
        push_once(&mut overrides, set(key, text)?)?;
    }
    let values = |(key, texts): &(String, Vec<String>)| texts.iter().map(|text| set(key, text)).collect();
    let swept: Result<Vec<Vec<Assignment>>, ConfigError> = sweeps.iter().map(values).collect();
    Ok((overrides, swept?))
}
