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
//! | ports.rs, stack.rs | its sections `[[port]]` and `[tcp]` |
//! | layout.rs, assemble.rs | from the file to device and workers |
//! | fingerprint.rs | whether two programs write the same memory alike |
//! | attach/ | workers that are processes of their own |
//! | device.rs, worker.rs | what their threads do |
//! | threads.rs | workers that are threads of the process |
//! | scenario.rs | a point of a scenario, with its traffic over a cable in memory |
//! | software.rs, card.rs | software that is no application, such as a TCP stack, in place of all workers, or on the device's thread |
//! | timeline.rs | counts over time |
//! | watch.rs | a file of servers that changes |
//! | events.rs | what happened |
//! | follow.rs | the lives of some packets |
//! | pin.rs | which core each thread stands on |
//! | neighbour.rs, own_address.rs | ARP, and who is asked for |
//! | outcome.rs | what was counted, and whether it adds up |

mod assemble;
mod attach;
mod card;
mod config;
mod device;
mod error;
mod events;
mod fingerprint;
mod follow;
mod layout;
mod neighbour;
mod outcome;
mod own_address;
mod parse;
mod pin;
mod ports;
mod scenario;
mod software;
mod stack;
#[cfg(test)]
mod tests;
mod threads;
mod timeline;
mod watch;
mod worker;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nicforge_nic::Pool;
use nicforge_platform::live::{Bell, Clock, Control};
use nicforge_units::Time;

pub use attach::{Attached, attach};
pub use card::run_on_card;
pub use config::{Header, LiveConfig, SectionOwners, sections};
pub use device::{DeviceCounts, NicCounts, StageCounts};
pub use error::LiveRunError;
pub use events::Events;
pub use follow::check as check_followed;
pub use nicforge_platform::live::ports::Port;
pub use outcome::{LiveRun, Snapshot};
pub use parse::{load_live, parse_live};
pub use pin::go_to;
pub use ports::{PortConfig, PortKind, PortOptions};
pub use scenario::{check_live, run_point_live};
pub use software::{Software, WorkerEnd};
pub use stack::{FastPath, Prefixed, TcpOptions};
pub use worker::WorkerCounts;

use assemble::{Assembly, assemble, open_ports};
use device::{Device, Phase};
use pin::Places;
use software::{WorkerPort, worker_ports};
use timeline::Timeline;

/// How often a run looks whether it shall end, and tells what was counted.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long what is inside may take to go out.
const DRAIN: Time = Time::from_ms(5_000);

/// Receives the counts so far some fifty times a second.
pub type Watch<'a> = &'a mut dyn FnMut(&Snapshot);

/// The memory of a run, and what wakes its device.
struct Region {
    control: Control,
    bell: Bell,
}

/// What all threads of a run see.
struct Shared {
    phase: AtomicU8,
    workers_stop: AtomicBool,
    device: Mutex<DeviceCounts>,
    workers: Vec<Mutex<WorkerCounts>>,
    events: Mutex<Events>,
}

impl Shared {
    fn new(workers: usize) -> Shared {
        Shared {
            phase: AtomicU8::new(Phase::Running as u8),
            workers_stop: AtomicBool::new(false),
            device: Mutex::default(),
            workers: (0..workers).map(|_| Mutex::default()).collect(),
            events: Mutex::default(),
        }
    }

    /// Workers have stopped: the device sends what is left, and ends.
    fn end(&self, bell: &Bell) {
        self.phase.store(Phase::Ending as u8, Ordering::Release);
        bell.ring_now();
    }

    /// Records an event for the terminal and the record.
    fn tell(&self, event: String) {
        locked(&self.events).push(event);
    }

    fn snapshot(&self, seconds: f64) -> Snapshot {
        Snapshot {
            seconds,
            device: locked(&self.device).clone(),
            workers: self.workers.iter().map(|w| locked(w).clone()).collect(),
            events: locked(&self.events).clone(),
        }
    }
}

impl Shared {
    /// Waits until the run shall end, and tells what was counted; returns its seconds, and how it went on.
    fn watch(
        &self,
        config: &LiveConfig,
        clock: Clock,
        stop: &AtomicBool,
        watch: Watch<'_>,
        works: impl Fn() -> bool,
    ) -> (f64, Timeline) {
        let began = clock.now();
        let mut timeline = Timeline::new(&config.settings, began);
        let duration = config.live.read::<Header>().duration_s.map(Time::from_seconds);
        let ends = duration.map_or(Time::NEVER, |duration| began + duration);
        while works() && Phase::of(&self.phase) == Phase::Running && !stop.load(Ordering::Acquire) && clock.now() < ends
        {
            std::thread::sleep(LOOK_EVERY);
            let snapshot = self.snapshot((clock.now() - began).as_seconds());
            timeline.look(&snapshot);
            watch(&snapshot);
        }
        ((clock.now() - began).as_seconds(), timeline)
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
pub fn run_live(config: &LiveConfig, stop: &AtomicBool, watch: Watch<'_>) -> Result<LiveRun, LiveRunError> {
    run_live_over(config, open_ports(config)?, stop, watch)
}

/// The same over `ports`, one for each that `config` names, in place of those: a program may hold
/// the other ends itself ([`pair`](nicforge_platform::live::ports::pair)).
///
/// # Errors
/// As [`run_live`].
pub fn run_live_over(
    config: &LiveConfig,
    ports: Vec<Box<dyn Port>>,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    let places = Places::new(&config.live, config.settings.cores())?;
    let assembly = assemble(config, ports, stop)?;
    match config.attach() {
        None => threads::run(config, assembly, &places, stop, watch),
        Some(_) => run_processes(config, places, assembly, stop, watch),
    }
}

/// As [`run_live`], with `software` in place of an application: the file has a `[tcp]`.
///
/// # Errors
/// As [`run_live`], and what the software says.
pub fn run_live_with(
    config: &LiveConfig,
    software: Software<'_>,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    run_software(config, open_ports(config)?, software, stop, watch)
}

/// The same over a port that a program holds the other end of, see [`run_live_over`].
///
/// # Errors
/// As [`run_live_with`].
pub fn run_software(
    config: &LiveConfig,
    ports: Vec<Box<dyn Port>>,
    software: Software<'_>,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    let places = Places::new(&config.live, config.settings.cores())?;
    let own = config.ports.first().and_then(|set| set.options().mac.map(|mac| mac.0));
    let behind = ports.first().map_or((own, None), |port| (own.or(port.hardware_address()), port.link().cloned()));
    let mut assembly = assemble(config, ports, stop)?;
    let workers = worker_ports(config, &mut assembly, &behind)?;
    let Assembly { mut device, pool, nicmem, control, bell, .. } = assembly;
    let shared = Shared::new(workers.len());
    let mut watched = None;
    workers.iter().for_each(WorkerPort::start);
    std::thread::scope(|scope| {
        let ends = workers
            .iter()
            .cloned()
            .enumerate()
            .map(|(number, port)| WorkerEnd { port: Box::new(port), core: places.worker(number) });
        let ends: Vec<WorkerEnd> = ends.collect();
        let stop_software = &shared.workers_stop;
        let worker = scope.spawn(move || software(ends, stop_software));
        let device_thread = scope.spawn(|| {
            go_to(places.device());
            device.run(&shared)
        });
        let tell = || {
            let boards = shared.workers.iter().zip(&workers);
            boards.for_each(|(board, port)| *locked(board) = port.counts());
        };
        let works = || {
            tell();
            !device_thread.is_finished() && !worker.is_finished()
        };
        let clock = control.clock();
        watched = Some(shared.watch(config, clock, stop, watch, works));
        shared.drain(clock, &bell, works);
        shared.workers_stop.store(true, Ordering::Release);
        let ended = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        tell();
        shared.end(&bell);
        device_thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        ended.map_err(LiveRunError::Software)
    })?;
    let buffers: Vec<(i64, u64)> = workers.iter().map(WorkerPort::buffers).collect();
    let pools: Vec<Pool> = std::iter::once(pool).chain(nicmem).collect();
    finish(&shared, &device, &pools, held_by(&buffers), watched)
}

/// Buffers at all workers, with those that the shared level of their pool has.
fn held_by(workers: &[(i64, u64)]) -> i64 {
    let held: i64 = workers.iter().map(|(held, _)| held).sum();
    held.wrapping_add_unsigned(workers.first().map_or(0, |(_, available)| *available))
}

/// All workers are processes that attach.
fn run_processes(
    config: &LiveConfig,
    places: Places,
    assembly: Assembly,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    let Assembly { mut device, pool, control, bell, workers, blueprint, nicmem, .. } = assembly;
    let shared = Shared::new(workers.len());
    let groups = (0..workers.len()).map(|worker| device.together(worker));
    let groups = groups.collect();
    if !device.close_all(workers.len()) {
        return Err(LiveRunError::Attach(format!(
            "queues of {} cannot restart when one dies: leave `attach` out",
            config.settings.interface()
        )));
    }
    let region = Region { control: control.clone(), bell: bell.clone() };
    let mut keeper = attach::Keeper::new(groups, blueprint, places.clone(), region, device.orderer())?;
    let pools: Vec<Pool> = std::iter::once(pool).chain(nicmem).collect();
    let mut watched = None;
    let held = std::thread::scope(|scope| {
        let device_thread = scope.spawn(|| {
            go_to(places.device());
            device.run(&shared)
        });
        let kept = scope.spawn(|| keeper.run(&shared, &shared.workers_stop, &pools));
        let works = || !device_thread.is_finished() && !kept.is_finished();
        let clock = control.clock();
        watched = Some(shared.watch(config, clock, stop, watch, works));
        shared.drain(clock, &bell, works);
        shared.workers_stop.store(true, Ordering::Release);
        let held = kept.join().unwrap_or_else(|panic| resume_unwind(panic));
        shared.end(&bell);
        let device_ended = device_thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        device_ended?;
        held
    })?;
    finish(&shared, &device, &pools, held, watched)
}

/// Checks that nothing was lost, when all have stopped and `held` buffers were found at workers.
fn finish(
    shared: &Shared,
    device: &Device,
    pools: &[Pool],
    held: i64,
    watched: Option<(f64, Timeline)>,
) -> Result<LiveRun, LiveRunError> {
    let (seconds, switches, timeline) = watched.map_or_else(Default::default, |watched| {
        let (seconds, timeline) = watched;
        let switches = timeline.switches(device.switches());
        (seconds, switches, timeline.into_entries())
    });
    let snapshot = shared.snapshot(seconds);
    let buffers: usize = pools.iter().map(Pool::count).sum();
    let held = held + device.buffers();
    let adds_up = snapshot.check(buffers as u64, held as u64);
    let metrics = snapshot.metrics(&device.latency);
    let run = LiveRun { metrics, cores: snapshot.by_core(), timeline, switches, snapshot, trace: None };
    match adds_up {
        Ok(()) => Ok(run),
        Err(cause) => Err(LiveRunError::Lost { cause, run: Box::new(run) }),
    }
}
