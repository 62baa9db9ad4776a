//! A run on other threads, while this one passes on its progress and listens for Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use nicforge_lab::job::{Finished, JobError, Watcher};
use nicforge_lab::run::PointRun;
use pyo3::prelude::*;

use crate::app;

/// How often signals and progress are looked at: soon enough for a person.
const TURN: Duration = Duration::from_millis(100);

/// How far tasks are.
pub struct Watch {
    state: Mutex<State>,
    /// Something has finished.
    news: Condvar,
    stops: AtomicBool,
}

#[derive(Clone, Default)]
struct State {
    /// Of each task: share done, frames so far.
    tasks: Vec<(f64, u64)>,
    finished: usize,
    /// Those that have finished since it was last told.
    since: Vec<usize>,
    /// No task runs any more.
    over: bool,
}

/// Tells nobody.
pub struct Silent;

impl Watcher for Silent {}

impl Watch {
    /// Of `count` tasks.
    pub fn new(count: usize) -> Watch {
        let state = State { tasks: vec![(0.0, 0); count], ..State::default() };
        Watch { state: Mutex::new(state), news: Condvar::new(), stops: AtomicBool::new(false) }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for news, not for long. Returns how far the tasks are, and takes the news.
    fn wait(&self) -> State {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = |state: &mut State| !state.over && state.since.is_empty();
        let waited = self.news.wait_timeout_while(state, TURN, quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let now = state.clone();
        state.since.clear();
        now
    }
}

impl Watcher for Watch {
    fn tick(&self, index: usize, share: f64, packets: u64) {
        self.change(|state| state.tasks[index] = (share.clamp(0.0, 1.0), packets));
    }

    fn finished(&self, index: usize, _: Finished<'_>) {
        self.change(|state| {
            state.tasks[index].0 = 1.0;
            state.finished += 1;
            state.since.push(index);
        });
        self.news.notify_all();
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed) || app::has_failed()
    }
}

/// Does `work` on another thread, with Python free for others. A signal or an error of `progress` stops it.
pub fn run_watched(
    py: Python<'_>,
    watch: &Watch,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> Result<Vec<PointRun>, JobError> + Send,
) -> PyResult<Result<Vec<PointRun>, JobError>> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let runs = work();
            watch.change(|state| state.over = true);
            watch.news.notify_all();
            runs
        });
        let mut trouble = None;
        loop {
            let now = py.detach(|| watch.wait());
            // A worker that panics is over without saying so.
            let over = now.over || worker.is_finished();
            if trouble.is_none()
                && let Err(error) = py.check_signals().and_then(|()| tell(progress, &now))
            {
                watch.stops.store(true, Ordering::Relaxed);
                trouble = Some(error);
            }
            if over {
                break;
            }
        }
        let runs = py.detach(|| worker.join()).unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        trouble.map_or(Ok(runs), Err)
    })
}

fn tell(progress: Option<&Bound<'_, PyAny>>, now: &State) -> PyResult<()> {
    let Some(progress) = progress else {
        return Ok(());
    };
    let share = now.tasks.iter().map(|(share, _)| share).sum::<f64>() / now.tasks.len().max(1) as f64;
    let packets: u64 = now.tasks.iter().map(|(_, packets)| packets).sum();
    progress.call1((now.finished, share, packets, now.since.clone())).map(|_| ())
}
