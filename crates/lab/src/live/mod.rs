//! Live runs: the same interfaces and applications on shared memory, threads and real frames.
//!
//! ```text
//!   port ─► NIC ─► region ─► worker: driver, application ─► region ─► NIC ─► port
//!   └───── device thread ┘   └──── a thread each ────────┘  └─ device thread ─┘
//! ```
//!
//! | file | what it says |
//! | --- | --- |
//! | config.rs, parse.rs | the file of a live run, and its reader |
//! | assemble.rs | from the file to device and workers |
//! | device.rs, worker.rs | what their threads do |
//! | neighbour.rs | ARP |
//! | outcome.rs | what was counted, and whether it adds up |

mod assemble;
mod config;
mod device;
mod neighbour;
mod outcome;
mod parse;
#[cfg(test)]
mod tests;
mod worker;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nicforge_platform::live::{Bell, Clock};
use nicforge_units::Time;

pub use config::{LiveConfig, PortConfig, PortKind};
pub use device::{DeviceCounts, NicCounts};
pub use outcome::{LiveRun, Snapshot};
pub use parse::{load_live, parse_live};
pub use worker::WorkerCounts;

use crate::run::RunError;
use assemble::{Assembly, assemble};
use device::Phase;

/// How often a run looks whether it shall end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often it tells what was counted.
const TELL_EVERY: Time = Time::from_ms(1_000);
/// How long what is inside may take to go out.
const DRAIN: Time = Time::from_ms(5_000);

/// Told about once a second what was counted so far.
pub type Watch<'a> = &'a mut dyn FnMut(&Snapshot);

/// What all threads of a run see.
struct Shared {
    phase: AtomicU8,
    workers_stop: AtomicBool,
    device: Mutex<DeviceCounts>,
    workers: Vec<Mutex<WorkerCounts>>,
}

impl Shared {
    fn snapshot(&self, seconds: f64) -> Snapshot {
        Snapshot {
            seconds,
            device: locked(&self.device).clone(),
            workers: self.workers.iter().map(|w| locked(w).clone()).collect(),
        }
    }
}

impl Shared {
    /// Waits until the run shall end, and tells what was counted; returns its seconds.
    fn watch(
        &self,
        config: &LiveConfig,
        clock: Clock,
        stop: &AtomicBool,
        watch: Watch<'_>,
        works: impl Fn() -> bool,
    ) -> f64 {
        let began = clock.now();
        let duration = config.duration_s.map(Time::from_seconds);
        let ends = duration.map_or(Time::NEVER, |duration| began + duration);
        let mut tell_at = began + TELL_EVERY;
        while works()
            && Phase::of(&self.phase) == Phase::Running
            && !stop.load(Ordering::Acquire)
            && clock.now() < ends
        {
            std::thread::sleep(LOOK_EVERY);
            if clock.now() >= tell_at {
                tell_at += TELL_EVERY;
                watch(&self.snapshot((clock.now() - began).as_seconds()));
            }
        }
        (clock.now() - began).as_seconds()
    }

    /// Lets no more frames in, and waits until what is inside has gone out.
    fn drain(&self, clock: Clock, bell: &Bell, works: impl Fn() -> bool) {
        // The device may have come to the end by itself.
        let _ = self.phase.compare_exchange(
            Phase::Running as u8,
            Phase::Draining as u8,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let patience = clock.now() + DRAIN;
        while works() && Phase::of(&self.phase) == Phase::Draining && clock.now() < patience {
            bell.ring_now();
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn locked<T>(board: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked with the lock left a whole value.
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until `stop`, the configured time, or the end of all captures; then lets out what is
/// inside, completes captures, and checks that nothing was lost.
///
/// # Errors
/// What cannot be assembled, a port that fails, and counts that do not add up.
pub fn run_live(
    config: &LiveConfig,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, RunError> {
    let Assembly {
        mut device,
        mut workers,
        pool,
        control,
        bell,
    } = assemble(config)?;
    let shared = Shared {
        phase: AtomicU8::new(Phase::Running as u8),
        workers_stop: AtomicBool::new(false),
        device: Mutex::default(),
        workers: workers.iter().map(|_| Mutex::default()).collect(),
    };
    let mut seconds = 0.0;
    // Before the first frame comes in.
    workers.iter_mut().for_each(worker::Worker::start);
    std::thread::scope(|scope| {
        let boards = workers.iter_mut().zip(&shared.workers);
        let threads: Vec<_> = boards
            .map(|(worker, board)| scope.spawn(|| worker.run(&shared.workers_stop, board)))
            .collect();
        let device_thread = scope.spawn(|| device.run(&shared.phase, &shared.device));
        let works = || !device_thread.is_finished() && !threads.iter().any(|t| t.is_finished());
        let clock = control.clock();
        seconds = shared.watch(config, clock, stop, watch, works);
        shared.drain(clock, &bell, works);
        shared.workers_stop.store(true, Ordering::Release);
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        shared.phase.store(Phase::Ending as u8, Ordering::Release);
        bell.ring_now();
        // A panic is a defect of ours, and goes on as one.
        let device_ended = device_thread
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic));
        if let Some(panic) = ended.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
        device_ended
    })?;
    let buffers: Vec<(i64, u64)> = workers.iter_mut().map(worker::Worker::buffers).collect();
    let snapshot = shared.snapshot(seconds);
    snapshot.check(pool.count() as u64, &buffers)?;
    Ok(LiveRun {
        metrics: snapshot.metrics(&device.latency),
        snapshot,
    })
}
