//! Which threads a live run has, and what they do without work.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use nicforge_nic::Pool;
use nicforge_options::{ConfigError, choice, options};
use nicforge_platform::live::{LiveError, WakeEvent};
use serde::{Deserialize, Serialize};

use super::assemble::Assembly;
use super::config::LiveConfig;
use super::device::{Device, Step};
use super::pin::{Places, go_to};
use super::worker::{Worker, WorkerCounts};
use super::{LiveRun, LiveRunError, Shared, Watch, finish, follow, held_by, locked};
use crate::run::heuristic;

choice! {
    /// What device and workers do without work.
    #[derive(Serialize, Deserialize)]
    pub enum Idle {
        /// Poll a few times more, then sleep until a wake-up.
        Sleep = "sleep",
        /// Poll on: the shortest reaction, for a whole core each.
        Spin = "spin",
        /// Workers poll no empty ring twice: the device interrupts them by an eventfd.
        Interrupt = "interrupt",
    }
}

choice! {
    /// Which threads a run has.
    pub enum Threads {
        /// One for both where there is one worker, else apart.
        Auto = "auto",
        /// One for the device and one for each worker.
        Apart = "apart",
        /// One for both, in turns, where there is one worker.
        One = "one",
    }
}

options! {
    /// The run's threads, and what they do without work.
    pub struct ThreadOptions {
        /// Whether device and worker have a thread each, or one for both in turns; auto: one for both where there is one
        /// worker. Nobody has to wake anybody then, and no line moves between cores.
        threads: Threads = Threads::Auto, "", Threads::ALLOWED;
        /// What device and workers do without work: sleep until a wake-up, poll on, or wait for the device's interrupt.
        idle: Idle = Idle::Sleep, "", Idle::ALLOWED;
    }
}

/// Checks that the threads of `config` can do what it wants of them.
///
/// # Errors
/// Workers that attach and shall be interrupted; one thread for more than a device and a worker.
pub(super) fn check(config: &LiveConfig) -> Result<(), ConfigError> {
    let ThreadOptions { threads, idle } = config.live.read();
    let refused = |key, wrong, right| Err(ConfigError::new(config.live.place_of(key), wrong, right));
    let interrupted = idle == Idle::Interrupt;
    if interrupted && config.attach().is_some() {
        let wrong = "workers that attach cannot be interrupted: the event is this process's";
        return refused("idle", wrong, "set idle to \"sleep\", or leave `attach` out");
    }
    if threads != Threads::One {
        return Ok(());
    }
    let right = "set threads to \"apart\"";
    if config.attach().is_some() {
        return refused("threads", "workers that attach are no threads of this process", right);
    }
    if config.tcp.is_some() {
        return refused("threads", "a TCP stack has threads of its own", right);
    }
    if config.settings.cores() > 1 {
        return refused("threads", "one thread cannot be several workers", "set cores to 1, or threads to \"apart\"");
    }
    if heuristic(&config.settings).is_some() {
        return refused("threads", "steering counts the receive calls of a worker with a thread of its own", right);
    }
    if interrupted {
        return refused("threads", "one thread need not interrupt itself", "set idle to \"sleep\"");
    }
    Ok(())
}

/// All workers are threads of this process.
///
/// # Errors
/// A port that fails, and counts that do not add up.
pub(super) fn run(
    config: &LiveConfig,
    assembly: Assembly,
    places: &Places,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    if are_one(config) {
        run_as_one(config, assembly, places, stop, watch)
    } else {
        run_apart(config, assembly, places, stop, watch)
    }
}

/// Whether device and worker of `config` share a thread.
fn are_one(config: &LiveConfig) -> bool {
    let ThreadOptions { threads, idle } = config.live.read();
    match threads {
        // Steering credits a sleeping worker with receive calls, which only a thread of its own counts.
        Threads::Auto => config.settings.cores() == 1 && idle == Idle::Sleep && heuristic(&config.settings).is_none(),
        Threads::Apart => false,
        Threads::One => true,
    }
}

/// Device and workers have a thread each.
pub(super) fn run_apart(
    config: &LiveConfig,
    mut assembly: Assembly,
    places: &Places,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    let mut workers = assembly.take_workers();
    let Assembly { mut device, pool, nicmem, control, bell, events, .. } = assembly;
    let shared = Shared::new(workers.len());
    let mut watched = None;
    follow::begin(config, control.clock(), &mut device, &mut workers);
    // Before the first frame comes in.
    workers.iter_mut().for_each(Worker::start);
    std::thread::scope(|scope| {
        let boards = workers.iter_mut().zip(&shared.workers).enumerate();
        let threads: Vec<_> = boards
            .map(|(number, (worker, board))| {
                let tell = |counts: &WorkerCounts| *locked(board) = counts.clone();
                let stop = &shared.workers_stop;
                scope.spawn(move || {
                    go_to(places.worker(number));
                    worker.run(stop, tell)
                })
            })
            .collect();
        let device_thread = scope.spawn(|| {
            go_to(places.device());
            device.run(&shared)
        });
        let works = || !device_thread.is_finished() && !threads.iter().any(|t| t.is_finished());
        let clock = control.clock();
        watched = Some(shared.watch(config, clock, stop, watch, works));
        shared.drain(clock, &bell, works);
        shared.workers_stop.store(true, Ordering::Release);
        events.iter().for_each(WakeEvent::raise);
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        shared.end(&bell);
        // A panic is a defect of ours, and goes on as one.
        let device_ended = device_thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        if let Some(panic) = ended.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
        device_ended
    })?;
    let buffers: Vec<(i64, u64)> = workers.iter_mut().map(Worker::buffers).collect();
    let pools: Vec<Pool> = std::iter::once(pool).chain(nicmem).collect();
    let trace = follow::end(config, &mut device, &mut workers);
    let run = finish(&shared, &device, &pools, held_by(&buffers), watched)?;
    Ok(LiveRun { trace, ..run })
}

/// Device and worker share a thread.
fn run_as_one(
    config: &LiveConfig,
    mut assembly: Assembly,
    places: &Places,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    let mut workers = assembly.take_workers();
    let Assembly { mut device, pool, nicmem, control, bell, .. } = assembly;
    let shared = Shared::new(workers.len());
    let mut watched = None;
    follow::begin(config, control.clock(), &mut device, &mut workers);
    std::thread::scope(|scope| {
        let worker = &mut workers[0];
        worker.start();
        let thread = scope.spawn(|| {
            go_to(places.device());
            take_turns(&mut device, worker, &shared)
        });
        let works = || !thread.is_finished();
        let clock = control.clock();
        watched = Some(shared.watch(config, clock, stop, watch, works));
        shared.drain(clock, &bell, works);
        shared.end(&bell);
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let buffers: Vec<(i64, u64)> = workers.iter_mut().map(Worker::buffers).collect();
    let pools: Vec<Pool> = std::iter::once(pool).chain(nicmem).collect();
    let trace = follow::end(config, &mut device, &mut workers);
    let run = finish(&shared, &device, &pools, held_by(&buffers), watched)?;
    Ok(LiveRun { trace, ..run })
}

/// Empty turns of both before the thread sleeps.
const TURNS_BEFORE_SLEEP: u32 = 4;

/// The device and its worker work in turns until the run ends and neither has anything left to do.
fn take_turns(device: &mut Device, worker: &mut Worker, shared: &Shared) -> Result<(), LiveError> {
    let mut told = |counts: &WorkerCounts| *locked(&shared.workers[0]) = counts.clone();
    let (mut round, mut turn) = (device.begin(shared), worker.begin());
    loop {
        let step = device.step(&mut round, shared)?;
        let busy = worker.step(&mut turn, step == Step::Busy, &mut told);
        match step {
            _ if busy => {}
            Step::Busy => {}
            Step::Over => break,
            Step::Idle if round.empty.min(turn.empty) > TURNS_BEFORE_SLEEP && device.sleeps() => {
                device.sleep(worker.may_rest())?;
            }
            Step::Idle => std::hint::spin_loop(),
        }
    }
    told(worker.counts());
    device.end(shared)
}
