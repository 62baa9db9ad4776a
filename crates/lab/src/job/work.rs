//! Runs the tasks of a job on a few threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::queue::in_order;
use super::{Job, JobError, Kept, Task};
use crate::run::{PointRun, RunError, RunIo, run_point};

/// Who is told how far the tasks are. Tasks on several threads tell.
pub trait Watcher: Sync {
    /// Task `index` has done `share` (0 to 1) of its run, `packets` so far.
    fn tick(&self, _index: usize, _share: f64, _packets: u64) {}

    /// Task `index` has ended.
    fn finished(&self, _index: usize, _by: Finished<'_>) {}

    /// Whether everything is to stop.
    fn stops(&self) -> bool {
        false
    }
}

/// How a task ended.
#[derive(Clone, Copy)]
pub enum Finished<'a> {
    /// An earlier run had finished it.
    Before,
    /// With this result.
    Now(&'a PointRun),
}

/// What unwinds a point that is stopped.
struct Stop;

impl Job {
    /// Runs all tasks that are not finished on `threads` threads. Returns a result for each task, in their order.
    ///
    /// # Errors
    /// That of the first task that failed; [`JobError::Stopped`] if the watcher stops it.
    pub fn run(
        &self,
        threads: usize,
        io: &RunIo,
        kept: Option<&Kept>,
        watcher: &dyn Watcher,
    ) -> Result<Vec<PointRun>, JobError> {
        let tasks = self.tasks();
        in_order(tasks.len(), threads, |index| {
            if let Some(run) = kept.and_then(|kept| kept.take(index)) {
                watcher.finished(index, Finished::Before);
                return Ok(run);
            }
            let run = self.run_task(tasks[index], index, io, watcher)?;
            if let Some(kept) = kept {
                kept.keep(index, &run)?;
            }
            watcher.finished(index, Finished::Now(&run));
            Ok(run)
        })
    }

    /// Runs `task`, which has number `index`.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn run_task(
        &self,
        task: Task<'_>,
        index: usize,
        io: &RunIo,
        watcher: &dyn Watcher,
    ) -> Result<PointRun, JobError> {
        let Task { point, seed } = task;
        let mut tick = |share: f64, packets: u64| {
            watcher.tick(index, share, packets);
            if watcher.stops() {
                // No part of the simulation has to know that it can be stopped; unwinding frees all of it.
                resume_unwind(Box::new(Stop));
            }
        };
        let run = catch_unwind(AssertUnwindSafe(|| run_point(&self.machine, &point.settings, seed, io, &mut tick)));
        let failed = |cause: RunError| {
            let number = index / self.seeds as usize + 1;
            JobError::Point { number, variant: point.variant.clone(), cause: Box::new(cause) }
        };
        match run {
            Ok(run) => run.map_err(failed),
            Err(payload) if payload.is::<Stop>() => Err(JobError::Stopped),
            Err(payload) => resume_unwind(payload),
        }
    }
}
