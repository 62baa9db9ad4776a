//! One point: warm-up, window, and what was counted between its two ends.

use std::collections::BTreeMap;

use nicforge_nic::DropCounters;
use nicforge_platform::Part;
use nicforge_platform::sim::{CoreCycles, DmaCounters, MemoryCounters, SimCore};
use nicforge_record::{CpuTime, Metrics, drop_fraction};
use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::build::{Systems, build};
use super::stack::KernelCounters;
use super::standstill;
use super::system::System;
use crate::machine::Machine;
use crate::run::batches::intervals;
use crate::run::between::{Counting, count_window};
use crate::run::options::{Run, Workload};
use crate::run::{PointRun, Progress, RunError};
use crate::settings::Settings;
use crate::world::Host;
use crate::world::device::Count;

/// Payload that a miss is counted for.
const KB: f64 = 1024.0;

/// Runs one point.
///
/// # Errors
/// When it cannot be built, or gets stuck, or bytes or buffers do not add up.
pub(crate) fn run_point(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    measure(build(machine, settings, seed)?, settings, progress)
}

/// Runs `world` and measures it.
pub(super) fn measure(mut systems: Systems, settings: &Settings, progress: Progress<'_>) -> Result<PointRun, RunError> {
    let counted = count_window(&mut systems, settings, progress)?;
    let (before, after) = (&counted.before, &counted.after);
    check(&mut systems)?;
    spent(before, after)?;
    let moved = after.kernel.payload() > before.kernel.payload();
    if !moved && before.stands_for_ever && standstill::is_for_ever(&systems) {
        return Err(systems.world.stuck(counted.ended));
    }
    let standstill = (!moved).then(|| standstill::explain(&systems, counted.ended, &after.drops));
    Ok(PointRun {
        intervals: intervals(&counted.batches),
        metrics: metrics(before, after, settings, counted.seconds()),
        cores: Vec::new(),
        stages: Vec::new(),
        simulated: counted.ended,
        steadiness: counted.steadiness(standstill),
        timeline: Vec::new(),
        switches: Vec::new(),
        trace: None,
    })
}

impl Counting for Systems {
    type Snapshot = Snapshot;

    fn run_until(&mut self, to: Time) -> Result<(), RunError> {
        self.world.run_until(to)
    }

    fn packets(&mut self) -> u64 {
        packets(self)
    }

    fn snapshot(&mut self, now: Time) -> Snapshot {
        let stands_for_ever = standstill::is_for_ever(self);
        Snapshot { stands_for_ever, ..Snapshot::of(&mut self.world.hosts[0], &self.systems[0], now) }
    }

    fn metrics(&mut self, settings: &Settings, (before, after): (&Snapshot, &Snapshot), seconds: f64) -> Metrics {
        metrics(before, after, settings, seconds)
    }
}

/// Packets that stacks handled so far.
fn packets(systems: &Systems) -> u64 {
    let counters = systems.systems.iter().map(|system| system.kernel.borrow().counters);
    counters.map(|count| count.packets_in).sum()
}

/// Sums that every run keeps to its end.
fn check(systems: &mut Systems) -> Result<(), RunError> {
    for (system, host) in systems.systems.iter().zip(&mut systems.world.hosts) {
        let bytes = system.kernel.borrow().counters.wrong_bytes;
        if bytes > 0 {
            return Err(RunError::WrongBytes { bytes });
        }
        system.check_buffers()?;
        system.check_frames(host)?;
    }
    Ok(())
}

/// Everything that is counted, at one time.
pub(crate) struct Snapshot {
    now: Time,
    /// No process will ever run again.
    stands_for_ever: bool,
    kernel: KernelCounters,
    cores: Vec<CoreSnapshot>,
    memory: MemoryCounters,
    dram_lines: u64,
    dma: DmaCounters,
    /// Frames and bytes that came in, and that left.
    arrived: Count,
    sent: Count,
    drops: DropCounters,
}

/// Where a core's time went, up to the snapshot, and how far its last step goes beyond it.
struct CoreSnapshot {
    spent: CoreCycles,
    beyond: Time,
}

impl CoreSnapshot {
    /// That of `core` at `now`, if it sleeps then: up to there.
    fn of(core: &SimCore, now: Time) -> CoreSnapshot {
        let mut spent = core.spent().clone();
        spent.idle_ps += now.saturating_sub(core.now()).as_ps();
        CoreSnapshot { spent, beyond: core.now().saturating_sub(now) }
    }
}

impl Snapshot {
    fn of(host: &mut Host, system: &System, now: Time) -> Snapshot {
        let kernel = system.kernel.borrow();
        let (mut dma, mut drops) = (DmaCounters::default(), kernel.drops.clone());
        let (mut arrived, mut sent) = (Count::default(), Count::default());
        for device in &mut host.devices {
            let counters = device.port().counters(&host.machine);
            dma.reads += counters.reads;
            dma.read_time_ps += counters.read_time_ps;
            let tally = device.tally();
            for &(cause, count) in tally.drops.causes().iter().chain(tally.errors.causes()) {
                drops.add(cause, count);
            }
            arrived += tally.arrived;
            sent += tally.sent;
        }
        Snapshot {
            now,
            stands_for_ever: false,
            kernel: kernel.counters,
            cores: host.cores.iter().map(|core| CoreSnapshot::of(&core.sim, now)).collect(),
            memory: host.machine.hierarchy.counters(),
            dram_lines: host.machine.hierarchy.dram_lines(),
            dma,
            arrived,
            sent,
            drops,
        }
    }
}

fn metrics(before: &Snapshot, after: &Snapshot, settings: &Settings, seconds: f64) -> Metrics {
    let since = |get: fn(&Snapshot) -> u64| (get(after) - get(before)) as f64;
    let payload = since(|at| at.kernel.payload());
    let memory = after.memory.since(&before.memory);
    let misses = memory.app_look_ups - memory.app_hits + memory.driver_look_ups - memory.driver_hits;
    let drops = after.drops.since(&before.drops);
    let arrived = since(|at| at.arrived.frames);
    let share = |part: f64, all: f64| (all > 0.0).then(|| part / all);
    Metrics {
        throughput_gbps: since(|at| at.sent.bytes) * 8e-9 / seconds,
        offered_gbps: since(|at| at.arrived.bytes) * 8e-9 / seconds,
        throughput_mpps: since(|at| at.sent.frames) * 1e-6 / seconds,
        offered_mpps: arrived * 1e-6 / seconds,
        drop_fraction: drop_fraction(drops.total(), arrived as u64),
        drops: drops.causes().iter().map(|&(cause, count)| (cause.to_string(), count)).collect::<BTreeMap<_, _>>(),
        ddio_hit_rate: None,
        io_read_hit_rate: share(memory.device_read_hits as f64, memory.device_read_lines as f64),
        memory_gb_per_s: Some(since(|at| at.dram_lines) * CACHE_LINE_BYTES as f64 * 1e-9 / seconds),
        pcie_read_us: share(since(|at| at.dma.read_time_ps) * 1e-6, since(|at| at.dma.reads)),
        bandwidth_gbps: Some(payload * 8e-9 / seconds),
        misses_per_kb: share(misses as f64 * KB, payload),
        cpu_time: spent(before, after).ok().map(|spent| cpu_time(&spent, settings)),
        interrupts_khz: Some(since(|at| at.kernel.interrupts) * 1e-3 / seconds),
        ..Metrics::default()
    }
}

/// What each core spent in the window, to the picosecond: all of it, except the step that began
/// before it and with that which ends behind it.
///
/// # Errors
/// When it is not the window.
fn spent(before: &Snapshot, after: &Snapshot) -> Result<Vec<CoreCycles>, RunError> {
    let window = after.now - before.now;
    let cores = after.cores.iter().zip(&before.cores).enumerate();
    let of = |(core, (after, before)): (usize, (&CoreSnapshot, &CoreSnapshot))| {
        let spent = after.spent.since(&before.spent);
        let parts = spent.work_ps.iter().chain(&spent.stall_ps).sum::<u64>();
        let (charged, passed) = (Time::from_ps(parts + spent.idle_ps) + before.beyond, window + after.beyond);
        if charged == passed { Ok(spent) } else { Err(RunError::TimeLost { core, passed, charged }) }
    };
    cores.map(of).collect()
}

/// Shares of what all cores spent.
fn cpu_time(spent: &[CoreCycles], settings: &Settings) -> CpuTime {
    let of = |part: Part| -> u64 {
        let time = |core: &CoreCycles| core.work_ps[part as usize] + core.stall_ps[part as usize];
        spent.iter().map(time).sum()
    };
    let idle: u64 = spent.iter().map(|core| core.idle_ps).sum();
    let all: u64 = Part::ALL.into_iter().map(of).sum::<u64>() + idle;
    let share = |ps: u64| ps as f64 / all.max(1) as f64;
    // A gateway's application is part of its kernel.
    let (user, kernel) = match settings.read::<Run>().workload {
        Workload::NatGateway => (0, of(Part::App)),
        _ => (of(Part::App), 0),
    };
    CpuTime {
        interrupt: share(of(Part::Interrupt)),
        driver: share(of(Part::Driver)),
        // Buffers of packets belong to the stack, and so does a lock, if there were one.
        stack: share(of(Part::Stack) + of(Part::Alloc) + of(Part::Sync) + kernel),
        copy: share(of(Part::Copy)),
        user: share(user),
        idle: share(idle),
    }
}
