//! One point: warm-up, window, and what clients and cores saw between its two ends.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use nicforge_nic::DropCounters;
use nicforge_platform::sim::CoreCycles;
use nicforge_record::{CoreFigures, Metrics, Switch};
use nicforge_units::Time;

use super::build::{Carried, Rpcs, Software, build};
use super::options::RpcOptions;
use super::program::{SharedApp, SharedService};
use super::records::SharedRecords;
use crate::machine::Machine;
use crate::run::batches::intervals;
use crate::run::between::{Counting, count_window};
use crate::run::{PointRun, Progress, RunError};
use crate::settings::Settings;
use crate::tasnic::figures::{StageSnapshot, between, snapshots};
use crate::world::Host;
use crate::world::core_time::Cores;
use crate::world::device::Count;
use crate::world::sink::latency_of;

/// Runs one point.
///
/// # Errors
/// When it cannot be built, or gets stuck, or answers, frames or buffers do not add up.
pub(crate) fn run_point(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    let mut rpcs = build(machine, settings, seed)?;
    let counted = count_window(&mut rpcs, settings, progress)?;
    let (before, after) = (&counted.before, &counted.after);
    check(&mut rpcs)?;
    let moved = after.answered > before.answered;
    let open = rpcs.software[0].open();
    let wanted = settings.read::<RpcOptions>().rpc_connections;
    let standstill = (!moved).then(|| format!("no answer came in the window: {open} of {wanted} connections are open"));
    Ok(PointRun {
        intervals: intervals(&counted.batches),
        metrics: metrics(&mut rpcs, settings, (before, after), counted.seconds()),
        cores: cores(&rpcs, before, after, counted.seconds()),
        simulated: counted.ended,
        steadiness: counted.steadiness(standstill),
        timeline: Vec::new(),
        switches: switches(&rpcs.software[rpcs.measured]),
        trace: None,
        stages: between(&before.stages, &after.stages, counted.ended - counted.from),
    })
}

impl Counting for Rpcs {
    type Snapshot = Snapshot;

    fn run_until(&mut self, to: Time) -> Result<(), RunError> {
        self.world.run_until(to)
    }

    fn packets(&mut self) -> u64 {
        frames(self)
    }

    fn begin_window(&mut self) {
        for app in &self.software[1].apps {
            app.borrow_mut().results.restart();
        }
    }

    fn snapshot(&mut self, now: Time) -> Snapshot {
        Snapshot::of(self, now)
    }

    fn metrics(&mut self, settings: &Settings, between: (&Snapshot, &Snapshot), seconds: f64) -> Metrics {
        metrics(self, settings, between, seconds)
    }
}

/// Frames that arrived at both hosts so far.
fn frames(rpcs: &mut Rpcs) -> u64 {
    let devices = rpcs.world.hosts.iter_mut().flat_map(|host| &mut host.devices);
    devices.map(|device| device.tally().arrived.frames).sum()
}

/// Changes of the number of fast-path cores.
fn switches(software: &Software) -> Vec<Switch> {
    match &software.carried {
        Carried::Service { crew, .. } => crew.borrow().switches.clone(),
        Carried::Nic { .. } => Vec::new(),
    }
}

/// Everything that is counted, at one time.
pub(crate) struct Snapshot {
    answered: u64,
    /// Of the answers since the window began.
    latency_ns: Histogram<u64>,
    /// Frames and bytes that the server's NIC received and sent.
    arrived: (u64, u64),
    sent: (u64, u64),
    spent: Vec<CoreCycles>,
    /// By fast-path core.
    received: Vec<u64>,
    /// Of a NIC that runs TCP, by stage.
    stages: Vec<StageSnapshot>,
    /// Its counters by name.
    counters: BTreeMap<&'static str, u64>,
    drops: DropCounters,
}

impl Snapshot {
    fn of(rpcs: &mut Rpcs, now: Time) -> Snapshot {
        let answered = rpcs.software[1].apps.iter().map(|app| app.borrow().results.answered).sum();
        let mut latency_ns = rpcs.software[1].apps[0].borrow().results.latency_ns.clone();
        for app in &rpcs.software[1].apps[1..] {
            // All have the same bounds.
            let _ = latency_ns.add(&app.borrow().results.latency_ns);
        }
        let tally = rpcs.world.hosts[rpcs.measured].devices[0].tally();
        let host = &rpcs.world.hosts[rpcs.measured];
        let count = |count: Count| (count.frames, count.bytes);
        let received = match &rpcs.software[rpcs.measured].carried {
            Carried::Service { crew, .. } => crew.borrow().received.clone(),
            Carried::Nic { .. } => Vec::new(),
        };
        let in_world = rpcs.world.drops();
        let drops = match &rpcs.software[rpcs.measured].carried {
            Carried::Service { .. } => in_world,
            Carried::Nic { .. } => [in_world, tally.drops].iter().collect(),
        };
        let (stages, counters) = match &rpcs.software[rpcs.measured].carried {
            Carried::Service { groups, .. } => (Vec::new(), service_counters(groups, host)),
            Carried::Nic { nic, .. } => {
                let nic = nic.borrow();
                let mut counters = nic.named_counters();
                nic.flows.iter().filter_map(|flow| flow.records.as_ref()).for_each(|r| add_records(&mut counters, r));
                (snapshots(&nic), counters)
            }
        };
        Snapshot {
            answered,
            latency_ns,
            arrived: count(tally.arrived),
            sent: count(tally.sent),
            spent: host.cores.iter().map(|core| core.spent_until(now)).collect(),
            received,
            stages,
            counters,
            drops,
        }
    }
}

/// What the server's NIC and software counted of records, where there are any.
fn service_counters(groups: &[SharedService], host: &Host) -> BTreeMap<&'static str, u64> {
    let mut counters: BTreeMap<&'static str, u64> =
        host.rings().flat_map(|device| device.nic.stages.counters()).collect();
    for group in groups {
        group.borrow().records.all().for_each(|records| add_records(&mut counters, records));
    }
    counters
}

/// Adds the records of a connection.
fn add_records(counters: &mut BTreeMap<&'static str, u64>, records: &SharedRecords) {
    let (read, driver) = (records.borrow().counts(), records.borrow().driver_counters());
    if records.borrow().is_storage() {
        let counts = [
            ("storage_records_offloaded", read.offloaded),
            ("storage_records_not_offloaded", read.not_offloaded),
            ("storage_placed_bytes", read.placed_bytes),
            ("storage_around_offloaded", read.around[0]),
            ("storage_around_partly_offloaded", read.around[1]),
            ("storage_around_not_offloaded", read.around[2]),
        ];
        for (name, count) in counts {
            *counters.entry(name).or_default() += count;
        }
        return;
    }
    let counts = [
        ("records_sent", read.sent),
        ("records_offloaded", read.offloaded),
        ("records_partly_offloaded", read.partly_offloaded),
        ("records_not_offloaded", read.not_offloaded),
        ("records_encrypted_again_bytes", read.encrypted_again_bytes),
        ("records_placed_bytes", read.placed_bytes),
        ("records_around_offloaded", read.around[0]),
        ("records_around_partly_offloaded", read.around[1]),
        ("records_around_not_offloaded", read.around[2]),
        ("records_recoveries", driver.tx_ooo),
        ("records_dump_bytes", driver.tx_dump_bytes),
    ];
    for (name, count) in counts {
        *counters.entry(name).or_default() += count;
    }
}

fn metrics(rpcs: &mut Rpcs, settings: &Settings, (before, after): (&Snapshot, &Snapshot), seconds: f64) -> Metrics {
    let per_second = |get: fn(&Snapshot) -> u64| (get(after) - get(before)) as f64 / seconds;
    let mut latency = after.latency_ns.clone();
    // Both have the same bounds, and the later one holds the earlier.
    let _ = latency.subtract(&before.latency_ns);
    let drops = after.drops.since(&before.drops);
    let rpc: RpcOptions = settings.read();
    let largest = rpc.rpc_bytes.max(rpc.rpc_answer_bytes.unwrap_or(0));
    Metrics {
        throughput_gbps: per_second(|at| at.sent.1) * 8e-9,
        offered_gbps: per_second(|at| at.arrived.1) * 8e-9,
        throughput_mpps: per_second(|at| at.sent.0) * 1e-6,
        offered_mpps: per_second(|at| at.arrived.0) * 1e-6,
        drops: drops.causes().iter().map(|&(cause, count)| (cause.to_string(), count)).collect(),
        latency_us: latency_of(&latency),
        bandwidth_gbps: Some(per_second(|at| at.answered) * f64::from(largest) * 8e-9),
        rpc_mps: Some(per_second(|at| at.answered) * 1e-6),
        fairness: jain(rpcs, rpc.rpc_connections),
        stages: after
            .counters
            .iter()
            .map(|(name, count)| (name.to_string(), count - before.counters.get(name).unwrap_or(&0)))
            .collect(),
        ..Metrics::default()
    }
}

/// Jain's index of the answers that each of so many connections had in the window.
fn jain(rpcs: &Rpcs, connections: usize) -> Option<f64> {
    let counts = |app: &SharedApp| app.borrow().results.by_flow.values().copied().collect::<Vec<_>>();
    let counts: Vec<u64> = rpcs.software[1].apps.iter().flat_map(counts).collect();
    let sum: f64 = counts.iter().map(|count| *count as f64).sum();
    let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
    // Connections that come and go have no share.
    let stay = rpcs.software[1].apps.iter().all(|app| app.borrow().stays());
    (stay && connections > 1 && squares > 0.0).then(|| sum * sum / (connections as f64 * squares))
}

/// The server's cores: the first are the fast path's.
fn cores(rpcs: &Rpcs, before: &Snapshot, after: &Snapshot, seconds: f64) -> Vec<CoreFigures> {
    let clock = rpcs.hardware.core.frequency;
    let each = before.spent.iter().zip(&after.spent).enumerate();
    let figures = each.map(|(core, spent)| {
        let idle = Cores::between(clock, std::iter::once(spent)).idle_share(seconds);
        CoreFigures {
            core,
            received: after.received.get(core).map_or(0, |count| count - before.received[core]),
            busy_fraction: idle.map(|idle| 1.0 - idle),
            ..CoreFigures::default()
        }
    });
    figures.collect()
}

/// Sums that every run keeps to its end.
fn check(rpcs: &mut Rpcs) -> Result<(), RunError> {
    for (software, host) in rpcs.software.iter().zip(&mut rpcs.world.hosts) {
        let wrong: u64 = software.apps.iter().map(|app| app.borrow().results.wrong).sum();
        if wrong > 0 {
            return Err(RunError::WrongBytes { bytes: wrong });
        }
        match &software.carried {
            Carried::Service { pool, .. } => host.check_sums(pool)?,
            Carried::Nic { nic, .. } => nic.borrow().check()?,
        }
    }
    Ok(())
}
