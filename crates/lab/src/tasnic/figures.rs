//! Where the time of each stage went between two moments.

use std::collections::BTreeMap;

use nicforge_platform::sim::npu::StageTime;
use nicforge_record::StageFigures;
use nicforge_units::Time;

use super::nic::Nic;
use crate::LostError;
use crate::run::RunError;

/// A stage at one moment, all flow-groups together.
#[derive(Clone, Copy, Debug)]
pub struct StageSnapshot {
    name: &'static str,
    cores: usize,
    threads: usize,
    time: StageTime,
    /// The busiest core's computing.
    busiest_ps: u64,
}

/// All stages now.
pub fn snapshots(nic: &Nic) -> Vec<StageSnapshot> {
    let mut all: Vec<StageSnapshot> = Vec::new();
    for (pool, (name, cores, threads, time)) in nic.npu.stages().enumerate() {
        let busiest_ps = nic.npu.busiest(pool);
        match all.iter_mut().find(|stage| stage.name == name) {
            Some(stage) => {
                (stage.cores, stage.threads) = (stage.cores + cores, stage.threads + threads);
                stage.time = sum(&stage.time, &time);
                stage.busiest_ps = stage.busiest_ps.max(busiest_ps);
            }
            None => all.push(StageSnapshot { name, cores, threads, time, busiest_ps }),
        }
    }
    all
}

fn sum(one: &StageTime, other: &StageTime) -> StageTime {
    StageTime {
        items: one.items + other.items,
        compute_ps: one.compute_ps + other.compute_ps,
        memory_ps: one.memory_ps + other.memory_ps,
        core_ps: one.core_ps + other.core_ps,
        blocked_ps: one.blocked_ps + other.blocked_ps,
        queued_ps: one.queued_ps + other.queued_ps,
    }
}

/// The work of stages in a `window` between two moments; none, without a NIC processor.
pub fn between(before: &[StageSnapshot], after: &[StageSnapshot], window: Time) -> Vec<StageFigures> {
    let each = before.iter().zip(after).map(|(before, after)| {
        let since = |get: fn(&StageTime) -> u64| (get(&after.time) - get(&before.time)) as f64;
        let items = since(|time| time.items);
        let ns = |ps: f64| if items > 0.0 { ps * 1e-3 / items } else { 0.0 };
        let (compute, memory) = (since(|time| time.compute_ps), since(|time| time.memory_ps));
        let (core, blocked) = (since(|time| time.core_ps), since(|time| time.blocked_ps));
        let all = window.as_ps() as f64;
        StageFigures {
            stage: after.name.to_string(),
            cores: after.cores,
            threads: after.threads,
            items_mps: items * 1e-6 / window.as_seconds(),
            compute_ns: ns(compute),
            memory_ns: ns(memory),
            core_wait_ns: ns(core),
            blocked_ns: ns(blocked),
            queued_ns: ns(since(|time| time.queued_ps)),
            cores_busy: compute / (all * after.cores as f64),
            busiest_core: (after.busiest_ps - before.busiest_ps) as f64 / all,
            threads_busy: (compute + memory + core + blocked) / (all * after.threads as f64),
        }
    });
    each.collect()
}

impl Nic {
    /// Its counters by name.
    pub fn named_counters(&self) -> BTreeMap<&'static str, u64> {
        let counters = &self.counters;
        let [rx, ac, tx, retx] = counters.events;
        let mut named = BTreeMap::from([
            ("events_rx", rx),
            ("events_ac", ac),
            ("events_tx", tx),
            ("events_retx", retx),
            ("idle_departures", counters.idle_departures),
            ("went_back", counters.went_back),
            ("bad_entries", counters.bad_entries),
            ("exceptions", counters.exceptions),
            ("opened", counters.opened),
            ("closed", counters.closed),
            ("probes", counters.probes),
            ("records_read_again_bytes", counters.read_again),
            ("dma_operations", self.dma_operations()),
        ]);
        named.extend(self.extensions.iter().flat_map(|extensions| extensions.counters()));
        for group in &self.groups {
            let state = group.cache.counters;
            let each = [("state_local", state.local), ("state_cls", state.cls), ("state_emem", state.emem)];
            for (name, count) in each.into_iter().chain([("state_dram", state.dram)]) {
                *named.entry(name).or_default() += count;
            }
        }
        named
    }

    /// Checks at the end of a run that every frame that came is in one place, and that nothing left too early.
    pub fn check(&self) -> Result<(), RunError> {
        let (arrived, inside) = (self.counters.arrived.0 + self.counters.again, self.waiting_frames());
        let dropped = self.arrival_drops;
        let left = self.counters.events[0];
        if arrived != left + dropped + inside {
            return Err(LostError::Frames { arrived, left, dropped, inside }.into());
        }
        match self.witness.early {
            0 => Ok(()),
            early => Err(LostError::Early { early }.into()),
        }
    }
}
