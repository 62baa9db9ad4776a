//! One point: warm-up, window, and what clients and cores saw between its two ends.

use nicforge_platform::sim::{CoreCycles, SimCpu};
use nicforge_record::{CoreFigures, Metrics, Steadiness};
use nicforge_units::Time;

use super::build::{Rpcs, build};
use super::options::RpcOptions;
use crate::LostError;
use crate::machine::Machine;
use crate::run::options::{Warmup, WindowOptions};
use crate::run::{PointRun, Progress, RunError};
use crate::settings::Settings;
use crate::world::core_time::Cores;
use crate::world::sink::latency_of;

/// How often progress is told.
const STEPS: u64 = 20;

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
    let warm = Time::from_seconds(settings.read::<Warmup>().warmup_ms * 1e-3);
    let ends = warm + Time::from_seconds(settings.read::<WindowOptions>().window_ms * 1e-3);
    let mut run = |rpcs: &mut Rpcs, from: Time, until: Time| {
        for step in 1..=STEPS {
            let part = Time::from_ps((until - from).as_ps() / STEPS * step);
            let to = if step == STEPS { until } else { from + part };
            rpcs.world.run_until(to)?;
            progress(to.as_seconds() / ends.as_seconds(), frames(rpcs));
        }
        Ok::<_, RunError>(())
    };
    run(&mut rpcs, Time::ZERO, warm)?;
    for app in &rpcs.software[1].apps {
        app.borrow_mut().results.restart();
    }
    let before = Snapshot::of(&mut rpcs, warm);
    run(&mut rpcs, warm, ends)?;
    let after = Snapshot::of(&mut rpcs, ends);
    check(&mut rpcs)?;
    let seconds = (ends - warm).as_seconds();
    let moved = after.answered > before.answered;
    let open: usize = rpcs.software[0].groups.iter().map(|group| group.borrow().open()).sum();
    let wanted = settings.read::<RpcOptions>().rpc_connections;
    let standstill = (!moved).then(|| format!("no answer came in the window: {open} of {wanted} connections are open"));
    Ok(PointRun {
        metrics: metrics(&mut rpcs, &before, &after, seconds),
        cores: cores(&rpcs, &before, &after, seconds),
        simulated: ends,
        steadiness: Steadiness { standstill, ..Steadiness::default() },
        timeline: Vec::new(),
        switches: rpcs.software[0].crew.borrow().switches.clone(),
    })
}

/// Frames that arrived at both hosts so far.
fn frames(rpcs: &Rpcs) -> u64 {
    let devices = rpcs.world.hosts.iter().flat_map(|host| &host.devices);
    devices.filter_map(|device| device.rings()).map(|device| device.nic.counters.frames).sum()
}

/// Everything that is counted, at one time.
struct Snapshot {
    answered: u64,
    /// Frames and bytes that the server's NIC received and sent.
    arrived: (u64, u64),
    sent: (u64, u64),
    spent: Vec<CoreCycles>,
    /// By fast-path core.
    received: Vec<u64>,
}

impl Snapshot {
    fn of(rpcs: &mut Rpcs, now: Time) -> Snapshot {
        let answered = rpcs.software[1].apps.iter().map(|app| app.borrow().results.answered).sum();
        let host = &rpcs.world.hosts[0];
        let (mut arrived, mut sent) = ((0, 0), (0, 0));
        for device in rpcs.world.rings() {
            let out = device.nic.transmit.counters();
            arrived = (device.nic.counters.frames, device.nic.counters.bytes);
            sent = (out.frames, out.bytes);
        }
        Snapshot {
            answered,
            arrived,
            sent,
            spent: host.cores.iter().map(|core| core.spent_until(now)).collect(),
            received: rpcs.software[0].crew.borrow().received.clone(),
        }
    }
}

fn metrics(rpcs: &mut Rpcs, before: &Snapshot, after: &Snapshot, seconds: f64) -> Metrics {
    let per_second = |get: fn(&Snapshot) -> u64| (get(after) - get(before)) as f64 / seconds;
    let mut latency = rpcs.software[1].apps[0].borrow().results.latency_ns.clone();
    for app in &rpcs.software[1].apps[1..] {
        // All have the same bounds.
        let _ = latency.add(&app.borrow().results.latency_ns);
    }
    let drops = rpcs.world.drops();
    Metrics {
        throughput_gbps: per_second(|at| at.sent.1) * 8e-9,
        offered_gbps: per_second(|at| at.arrived.1) * 8e-9,
        throughput_mpps: per_second(|at| at.sent.0) * 1e-6,
        offered_mpps: per_second(|at| at.arrived.0) * 1e-6,
        drops: drops.causes().iter().map(|&(cause, count)| (cause.to_string(), count)).collect(),
        latency_us: latency_of(&latency),
        rpc_mps: Some(per_second(|at| at.answered) * 1e-6),
        ..Metrics::default()
    }
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

/// What must hold at the end of each run.
fn check(rpcs: &mut Rpcs) -> Result<(), RunError> {
    for (software, host) in rpcs.software.iter().zip(&mut rpcs.world.hosts) {
        let wrong: u64 = software.apps.iter().map(|app| app.borrow().results.wrong).sum();
        if wrong > 0 {
            return Err(RunError::WrongBytes { bytes: wrong });
        }
        if let Some(device) = host.devices[0].rings() {
            let (arrived, left) = (device.nic.counters.frames, device.nic.counters.delivered);
            let (dropped, inside) = (device.nic.drops().total(), device.nic.held());
            if arrived != left + dropped + inside {
                return Err(LostError::Frames { arrived, left, dropped, inside }.into());
            }
        }
        let in_programs: i64 = host.accounts().map(|account| account.buffers).sum();
        let mut cpu = SimCpu::on(&mut host.machine, &mut host.cores[0].sim);
        let held = software.pool.available(&mut *cpu).wrapping_add_signed(in_programs);
        drop(cpu);
        let buffers = software.pool.count() as u64;
        if held != buffers {
            return Err(LostError::Buffers { buffers, held }.into());
        }
    }
    Ok(())
}
