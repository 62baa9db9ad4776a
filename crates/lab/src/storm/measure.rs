//! One point: warm-up, window, and what workers did between its two ends.

use std::collections::BTreeMap;

use nicforge_nic::DropCounters;
use nicforge_platform::sim::CoreCycles;
use nicforge_record::{CoreFigures, Metrics, TupleTimes};
use nicforge_units::Time;

use super::build::{Storm, build};
use super::topology::{Kind, kind_of};
use super::worker::Counts;
use crate::machine::Machine;
use crate::run::batches::intervals;
use crate::run::between::{Counting, count_window};
use crate::run::{PointRun, Progress, RunError, RunIo, write_capture};
use crate::settings::Settings;
use crate::world::core_time::Cores;

/// Runs one point.
///
/// # Errors
/// When it cannot be built, or gets stuck, or frames or buffers do not add up.
pub(crate) fn run_point(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    io: &RunIo,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    let mut storm = build(machine, settings, seed)?;
    if io.pcap_out.is_some() {
        storm.world.capture_switch();
    }
    let counted = count_window(&mut storm, settings, progress)?;
    let (before, after, seconds) = (&counted.before, &counted.after, counted.seconds());
    check(&mut storm)?;
    if let Some(path) = &io.pcap_out {
        write_capture(path, storm.world.take_capture())?;
    }
    let moved = after.counts.taken > before.counts.taken;
    let standstill = (!moved).then(|| "no worker took a tuple in the window".to_owned());
    Ok(PointRun {
        intervals: intervals(&counted.batches),
        metrics: Metrics {
            emulator_busy_fraction: emulators_busy(&storm, before, after, seconds),
            ..metrics(before, after, seconds)
        },
        cores: cores(&storm, before, after, seconds),
        stages: Vec::new(),
        simulated: counted.ended,
        steadiness: counted.steadiness(standstill),
        timeline: Vec::new(),
        switches: Vec::new(),
        trace: None,
    })
}

impl Counting for Storm {
    type Snapshot = Snapshot;

    fn run_until(&mut self, to: Time) -> Result<(), RunError> {
        self.world.run_until(to)
    }

    fn packets(&mut self) -> u64 {
        self.world.arrived()
    }

    fn snapshot(&mut self, now: Time) -> Snapshot {
        Snapshot::of(self, now)
    }

    fn metrics(&mut self, _: &Settings, (before, after): (&Snapshot, &Snapshot), seconds: f64) -> Metrics {
        metrics(before, after, seconds)
    }
}

/// Everything that is counted, at one time, over all machines.
pub(crate) struct Snapshot {
    counts: Counts,
    /// Tuples that counters took: what was written and counted.
    counted: u64,
    /// Frames and bytes that NICs received and sent.
    arrived: (u64, u64),
    sent: (u64, u64),
    drops: DropCounters,
    unswitched: u64,
    stages: BTreeMap<String, u64>,
    spent: Vec<CoreCycles>,
    /// Of cores that play NICs.
    players: Vec<CoreCycles>,
    /// By worker; 0 of others.
    taken: Vec<u64>,
}

impl Snapshot {
    fn of(storm: &Storm, now: Time) -> Snapshot {
        let mut at = Snapshot {
            counts: Counts::default(),
            counted: 0,
            arrived: (0, 0),
            sent: (0, 0),
            drops: storm.world.all_drops(),
            unswitched: storm.world.unswitched(),
            stages: BTreeMap::new(),
            spent: Vec::new(),
            players: Vec::new(),
            taken: Vec::new(),
        };
        for (host, software) in storm.world.hosts.iter().zip(&storm.software) {
            for device in host.rings() {
                let (received, out) = (&device.nic.counters, device.nic.transmit.counters());
                at.arrived = (at.arrived.0 + received.frames, at.arrived.1 + received.bytes);
                at.sent = (at.sent.0 + out.frames, at.sent.1 + out.bytes);
                for (name, count) in device.stage_counters() {
                    *at.stages.entry(name.to_string()).or_default() += count;
                }
            }
            at.spent.extend(host.cores.iter().map(|core| core.spent_until(now)));
            at.players.extend(host.players().map(|core| core.spent_until(now)));
            let players = host.players().count();
            at.taken.extend(std::iter::repeat_n(0, host.cores.len() - software.workers.len() - players));
            for worker in &software.workers {
                let worker = worker.borrow();
                at.taken.push(worker.counts.taken);
                at.counts = at.counts.and(&worker.counts);
                at.counted += if kind_of(worker.task) == Kind::Counter { worker.counts.taken } else { 0 };
            }
            at.taken.extend(std::iter::repeat_n(0, players));
        }
        at
    }
}

fn metrics(before: &Snapshot, after: &Snapshot, seconds: f64) -> Metrics {
    let per_second = |get: fn(&Snapshot) -> u64| (get(after) - get(before)) as f64 / seconds;
    let mean_us = |sum: fn(&Counts) -> u64, of: fn(&Counts) -> u64| {
        let count = of(&after.counts) - of(&before.counts);
        (count > 0).then(|| (sum(&after.counts) - sum(&before.counts)) as f64 / count as f64 * 1e-6)
    };
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for &(cause, count) in after.drops.causes() {
        let earlier = before.drops.causes().iter().find(|(known, _)| *known == cause).map_or(0, |(_, count)| *count);
        drops.insert(cause.to_string(), count - earlier);
    }
    drops.insert("no_such_machine".to_owned(), after.unswitched - before.unswitched);
    drops.retain(|_, count| *count > 0);
    // Tuples that nobody took: dropped or still underway.
    let (given, taken) = (after.counts.given - before.counts.given, after.counts.taken - before.counts.taken);
    let in_window = |(name, count): (&String, &u64)| (name.clone(), count - before.stages.get(name).unwrap_or(&0));
    Metrics {
        throughput_gbps: per_second(|at| at.sent.1) * 8e-9,
        offered_gbps: per_second(|at| at.arrived.1) * 8e-9,
        throughput_mpps: per_second(|at| at.sent.0) * 1e-6,
        offered_mpps: per_second(|at| at.arrived.0) * 1e-6,
        drop_fraction: given.saturating_sub(taken) as f64 / given.max(1) as f64,
        drops,
        stages: after.stages.iter().map(in_window).collect(),
        tuples_mps: Some(per_second(|at| at.counts.taken) * 1e-6),
        counted_mps: Some(per_second(|at| at.counted) * 1e-6),
        tuple_us: mean_us(|at| at.waited_ps, |at| at.taken).map(|input| TupleTimes {
            input,
            work: mean_us(|at| at.worked_ps, |at| at.taken).unwrap_or_default(),
            output: mean_us(|at| at.travelled_ps, |at| at.from_others).unwrap_or_default(),
        }),
        ..Metrics::default()
    }
}

/// The share of the time that cores that play NICs did not poll in vain.
fn emulators_busy(storm: &Storm, before: &Snapshot, after: &Snapshot, seconds: f64) -> Option<f64> {
    let cores = Cores::between(storm.hardware.core.frequency, before.players.iter().zip(&after.players));
    cores.idle_share(seconds).map(|idle| 1.0 - idle)
}

/// All cores, machine by machine.
fn cores(storm: &Storm, before: &Snapshot, after: &Snapshot, seconds: f64) -> Vec<CoreFigures> {
    let clock = storm.hardware.core.frequency;
    let each = before.spent.iter().zip(&after.spent).enumerate();
    let figures = each.map(|(core, spent)| {
        let idle = Cores::between(clock, std::iter::once(spent)).idle_share(seconds);
        CoreFigures {
            core,
            received: after.taken[core] - before.taken[core],
            busy_fraction: idle.map(|idle| 1.0 - idle),
            ..CoreFigures::default()
        }
    });
    figures.collect()
}

/// Sums that every run keeps to its end.
fn check(storm: &mut Storm) -> Result<(), RunError> {
    for (software, host) in storm.software.iter().zip(&mut storm.world.hosts) {
        host.check_sums(&software.pool)?;
    }
    Ok(())
}
