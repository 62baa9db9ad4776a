//! Looks at a run's counters at even intervals, for the report's time line.

use std::collections::BTreeMap;

use nicforge_nic::ReceiveHalf;
use nicforge_units::{Lines, Time};

use super::nic_actor::NicActor;
use super::world::World;
use nicforge_record::TimelineEntry;
use nicforge_record::drop_fraction;

/// What counters said at one time.
#[derive(Clone, Copy, Default)]
struct Reading {
    at: Time,
    arrived: u64,
    arrived_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    latency_ps: u64,
    dropped: u64,
    taken: u64,
    dram_lines: u64,
}

/// The probe as an actor.
pub struct Probe {
    interval: Time,
    before: Reading,
    entries: Vec<TimelineEntry>,
}

impl Probe {
    /// A probe that looks every `interval`.
    pub fn new(interval: Time) -> Probe {
        Probe { interval, before: Reading::default(), entries: Vec::new() }
    }

    /// From one look to the next.
    pub fn interval(&self) -> Time {
        self.interval
    }

    /// Adds an entry for the time since the last look.
    pub fn look(&mut self, now: Time, world: &mut World) {
        let reading = Reading::now(now, world);
        let before = std::mem::replace(&mut self.before, reading);
        if now <= before.at {
            return;
        }
        let seconds = (now - before.at).as_seconds();
        let gbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e9;
        let (arrived, drops) = (reading.arrived - before.arrived, reading.dropped - before.dropped);
        let sent = reading.sent - before.sent;
        let dram = Lines(reading.dram_lines - before.dram_lines).bytes();
        let has_sets = |actor: &&NicActor| actor.nic.receive.sets().len() > 1;
        let mut switched = world.nics.iter().filter(has_sets);
        let mut in_use = BTreeMap::new();
        for (set, entries) in switched.clone().flat_map(|actor| actor.nic.in_use()) {
            *in_use.entry(set.to_owned()).or_default() += entries;
        }
        self.entries.push(TimelineEntry {
            ms: now.as_seconds() * 1e3,
            throughput_gbps: gbps(reading.sent_bytes - before.sent_bytes),
            offered_gbps: gbps(reading.arrived_bytes - before.arrived_bytes),
            arrivals: arrived,
            drops,
            drop_fraction: drop_fraction(drops, arrived),
            taken: reading.taken - before.taken,
            backlog: world.backlog(),
            latency_us: (sent > 0).then(|| (reading.latency_ps - before.latency_ps) as f64 / sent as f64 / 1e6),
            memory_gb_per_s: Some(dram.0 as f64 / seconds / 1e9),
            active_set: switched.next().map(|actor| actor.nic.active_set().to_owned()),
            in_use,
        });
    }

    /// All entries.
    pub fn into_entries(self) -> Vec<TimelineEntry> {
        self.entries
    }
}

impl Reading {
    fn now(at: Time, world: &mut World) -> Reading {
        let bytes = world.nics.iter().map(|actor| actor.nic.counters.bytes);
        let (sent_bytes, latency_ps) = world.sink.sums();
        Reading {
            at,
            arrived: world.arrived(),
            arrived_bytes: bytes.sum(),
            sent: world.sink.total(),
            sent_bytes,
            latency_ps,
            dropped: world.dropped(),
            taken: world.taken(),
            dram_lines: world.host.hierarchy.dram_lines(),
        }
    }
}
