//! Looks at a run's counters at even intervals, for the report's time line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nicforge_record::{TimelineEntry, drop_fraction};
use nicforge_units::{Lines, Time};

use super::{Observer, World};

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

/// The probe.
pub struct Probe {
    interval: Time,
    before: Reading,
    entries: Vec<TimelineEntry>,
}

/// A probe that the world lets look and that the run takes the time line from.
#[derive(Clone)]
pub struct SharedProbe(Rc<RefCell<Probe>>);

impl SharedProbe {
    /// A probe that looks every `interval`.
    pub fn new(interval: Time) -> SharedProbe {
        SharedProbe(Rc::new(RefCell::new(Probe { interval, before: Reading::default(), entries: Vec::new() })))
    }

    /// What it recorded until `ended`.
    pub fn entries_until(&self, ended: Time, world: &mut World) -> Vec<TimelineEntry> {
        let mut probe = self.0.borrow_mut();
        probe.look(ended, world);
        std::mem::take(&mut probe.entries)
    }
}

impl Observer for SharedProbe {
    fn interval(&self) -> Time {
        self.0.borrow().interval
    }

    fn look(&mut self, now: Time, world: &mut World) {
        self.0.borrow_mut().look(now, world);
    }
}

impl Probe {
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
        let mut switched = world.rings().filter(|device| device.nic.receive.sets().len() > 1);
        let mut in_use = BTreeMap::new();
        for (set, entries) in
            world.rings().filter(|device| device.nic.receive.sets().len() > 1).flat_map(|device| device.nic.in_use())
        {
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
            active_set: switched.next().map(|device| device.nic.active_set().to_owned()),
            in_use,
        });
    }
}

impl Reading {
    fn now(at: Time, world: &mut World) -> Reading {
        let bytes = world.rings().map(|device| device.nic.counters.bytes);
        let (sent_bytes, latency_ps) = world.outside.sink.sums();
        Reading {
            at,
            arrived: world.arrived(),
            arrived_bytes: bytes.sum(),
            sent: world.outside.sink.total(),
            sent_bytes,
            latency_ps,
            dropped: world.dropped(),
            taken: world.taken(),
            dram_lines: world.hosts[0].machine.hierarchy.dram_lines(),
        }
    }
}
