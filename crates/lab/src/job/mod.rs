//! A job: a scenario with overrides, checked, its machine and its points; how it runs, and the record of it.
//!
//! ```text
//! Request ── Job::load ──► Job ── tasks ── run ──► a PointRun for each task ── record ──► Record
//!                           │               │
//!                           └ keys ──► Kept ┘ finished points on disk
//! ```
//!
//! `Job::parcel` makes text of all tasks, for other machines. The command line and the Python package differ only in how they make the request and in how they show what comes.

mod error;
mod files;
mod kept;
mod notes;
mod parcel;
mod queue;
mod request;
mod work;

use std::sync::Arc;

use nicforge_record::{MachineFile, Record, RunOrigin};

pub use error::JobError;
pub use kept::Kept;
pub use notes::about as about_capture;
pub use parcel::{MachineText, Parcel, run_packed};
pub use request::Request;
pub use work::{Finished, Watcher};

use crate::kept::{Keys, hash_of, program_hash};
use crate::machine::Machine;
use crate::record::of_scenario;
use crate::run::{PointRun, RunError, at_fault, check_point, merged};
use crate::scenario::{Point, Scenario};
use crate::settings::Catalogue;

/// A scenario that can run.
pub struct Job {
    /// The scenario; its seed is the one to use.
    pub scenario: Scenario,
    /// Its machine.
    pub machine: Machine,
    /// What to run, in order.
    pub points: Vec<Point>,
    /// What is to be said that is no error.
    pub notes: Vec<String>,
    /// How many seeds each point runs with.
    pub seeds: u64,
    /// The overrides, as they were given.
    said: Vec<String>,
}

/// A run of a point.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The point that runs.
    pub point: &'a Point,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Job {
    /// Loads and checks all that a run needs.
    ///
    /// # Errors
    /// A file or an override that is wrong, with its place.
    pub fn load(request: Request, catalogue: &Arc<Catalogue>) -> Result<Job, JobError> {
        let (scenario, machine) = request.files(catalogue)?;
        let points = scenario.expand(&machine, &request.overrides, catalogue)?;
        let Request { seeds, said, overrides, .. } = request;
        let mut job = Job { scenario, machine, points, notes: Vec::new(), seeds, said };
        job.notes = files::try_files(&job)?;
        job.notes.extend(notes::about_equal_points(&job.points));
        let moot = notes::about_unused_keys(&job.scenario, &overrides, &job.points);
        job.notes.extend(moot);
        for point in &job.points {
            check_point(&job.machine, &point.settings, job.scenario.seed).map_err(|cause| at_fault_in(point, cause))?;
            for note in notes::about_settings(point, &job.machine) {
                if !job.notes.contains(&note) {
                    job.notes.push(note);
                }
            }
        }
        Ok(job)
    }

    /// Each point with each of its seeds.
    pub fn tasks(&self) -> Vec<Task<'_>> {
        let first = self.scenario.seed;
        let of = |point| (0..self.seeds).map(move |number| Task { point, seed: first.wrapping_add(number) });
        self.points.iter().flat_map(of).collect()
    }

    /// The keys by which finished tasks are found, in their order.
    ///
    /// # Errors
    /// A file that a setting names cannot be read.
    pub fn keys(&self) -> Result<Vec<String>, JobError> {
        let mut keys = Keys::default();
        let tasks = self.tasks();
        let each = tasks.iter().map(|task| Ok(keys.of_point(&self.machine, &task.point.settings, task.seed)?));
        each.collect()
    }

    /// Which run this is, with tasks of `keys`, of a program that was built from `commit`.
    ///
    /// # Errors
    /// The program's own file cannot be read.
    pub fn origin(&self, keys: &[String], commit: Option<&str>) -> Result<RunOrigin, JobError> {
        let Scenario { name, title, description, .. } = &self.scenario;
        let program = program_hash()?;
        let mut parts = vec![program, &self.machine.name, name, title, description];
        let params: Vec<String> = self.points.iter().map(|point| format!("{:?}", point.params)).collect();
        for (point, params) in self.points.iter().zip(&params) {
            parts.extend([point.variant.as_str(), params]);
        }
        parts.extend(keys.iter().map(String::as_str));
        let path = self.machine.file.display().to_string();
        Ok(RunOrigin {
            run: hash_of(parts),
            program: program.to_owned(),
            commit: commit.map(str::to_owned),
            machine_file: MachineFile { path, sha256: self.machine.hash.clone() },
            overrides: self.said.clone(),
        })
    }

    /// One result for each point, of `runs` of all tasks.
    pub fn of_points(&self, runs: Vec<PointRun>) -> Vec<PointRun> {
        let mut runs = runs.into_iter();
        let each = self.points.iter().filter_map(|_| merged(runs.by_ref().take(self.seeds as usize).collect()));
        each.collect()
    }

    /// The record of its points; `runs` in their order.
    pub fn record(&self, runs: Vec<PointRun>, origin: Option<RunOrigin>, wall_seconds: f64) -> Record {
        let mut record = of_scenario(&self.scenario, &self.machine, &self.points, runs, (origin, wall_seconds));
        if self.seeds > 1 {
            let all: Vec<u64> = (0..self.seeds).map(|number| record.seed.wrapping_add(number)).collect();
            record.points.iter_mut().for_each(|point| point.seeds = all.clone());
        }
        record
    }

    /// What readers of the measurements `runs`, one for each point, must know.
    pub fn notes_of_runs(&self, runs: &[PointRun]) -> Vec<String> {
        let of = |(point, run): (&Point, &PointRun)| {
            let none = "no frame came in the window: use a larger window_ms, or more offered_gbps".to_owned();
            let none = run.steadiness.no_frame_arrived.then_some(none);
            let notes = none.into_iter().chain(run.steadiness.standstill.clone());
            notes.map(|note| format!("{}: {note}", point.variant)).collect::<Vec<_>>()
        };
        self.points.iter().zip(runs).flat_map(of).collect()
    }

    /// Each point by its variant and by what differs between the points.
    pub fn names(&self) -> Vec<String> {
        let differs = differing(&self.points);
        let name = |point: &Point| {
            let params = point.params.iter().filter(|(key, _)| differs.contains(key));
            let params: String = params.map(|(key, value)| format!(" {key}={}", plain(value))).collect();
            format!("{}{params}", point.variant)
        };
        self.points.iter().map(name).collect()
    }

    /// Each task by its point's name, and by its seed where that differs.
    pub fn labels(&self) -> Vec<String> {
        let of_seeds = |name: String| {
            let label = move |seed| format!("{name} seed={seed}");
            (0..self.seeds).map(|number| self.scenario.seed.wrapping_add(number)).map(label).collect::<Vec<_>>()
        };
        if self.seeds > 1 { self.names().into_iter().flat_map(of_seeds).collect() } else { self.names() }
    }
}

/// The error with the place of the setting that it is about.
fn at_fault_in(point: &Point, cause: RunError) -> JobError {
    let keys = at_fault(&point.settings, &cause);
    JobError::Setting { place: point.place_of(&keys).clone(), cause: Box::new(cause) }
}

/// The parameters that are not the same in all points.
pub fn differing(points: &[Point]) -> Vec<&String> {
    let Some((first, rest)) = points.split_first() else {
        return Vec::new();
    };
    let differs = |key: &String| rest.iter().any(|point| point.params.get(key) != first.params.get(key));
    first.params.keys().filter(|key| differs(key)).collect()
}

/// A parameter without the quotes of JSON.
pub fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_u64() => float.to_string(),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
