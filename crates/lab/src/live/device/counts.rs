//! What the device counted.

use std::collections::BTreeMap;
use std::ops::Add;

use nicforge_nic::{DropCounters, Lending, Nic, NicCounters, Waiting};
use nicforge_platform::Dma;
use nicforge_platform::live::ports::{Link, PortCounters};

use super::Device;

/// What one NIC and its port counted.
#[derive(Clone, Debug, Default)]
pub struct NicCounts {
    /// The NIC's own counters.
    pub nic: NicCounters,
    /// Receive entries waiting for software, and those there are, summed over arriving frames.
    pub waiting: Waiting,
    /// Its drops, by cause; those of the port among them.
    pub drops: DropCounters,
    /// The port's.
    pub port: PortCounters,
    /// The interface behind it, if there is one.
    pub link: Option<Link>,
    /// What its stages counted.
    pub stages: StageCounts,
    /// Descriptors that it dealt with.
    pub served: u64,
}

impl NicCounts {
    /// Frames that came in, those that the port could not read among them.
    pub fn arrived(&self) -> u64 {
        let unreadable = self.port.unreadable.iter().map(|(_, count)| count);
        self.nic.frames + unreadable.sum::<u64>()
    }
}

/// What the stages of one NIC counted.
#[derive(Clone, Debug, Default)]
pub struct StageCounts {
    /// Frames that they sent of their own.
    pub sent: u64,
    /// Frames that they took to themselves.
    pub kept: u64,
    /// Frames of theirs that are not out yet.
    pub inside: u64,
    /// Their own counters, by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Their own gauges, by name.
    pub gauges: Vec<(&'static str, u64)>,
}

impl StageCounts {
    /// Those of `nic`.
    pub fn of<D: Dma>(nic: &Nic<D>) -> StageCounts {
        let stages = &nic.stages;
        StageCounts {
            sent: stages.injected(),
            kept: stages.consumed(),
            inside: stages.inward() + nic.transmit.internal_inside(),
            counters: stages.counters(),
            gauges: stages.gauges(),
        }
    }

    /// The counter called `name`; 0 where no stage has it.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.iter().filter(|(known, _)| *known == name).map(|(_, count)| count).sum()
    }
}

/// What the device counted.
#[derive(Clone, Debug, Default)]
pub struct DeviceCounts {
    /// By port.
    pub nics: Vec<NicCounts>,
    /// By worker: receive entries of all ports that waited for software, and entries there were,
    /// both summed over looks, some twenty a second, while somebody works there.
    pub receive: Vec<(u64, u64)>,
    /// By worker: frames for its queues of all ports that NICs dropped, by cause.
    pub dropped: Vec<DropCounters>,
    /// By worker: what it borrowed and lent on all ports, where workers take each other's buffers.
    pub lending: Vec<Option<Lending>>,
    /// By worker, where they are processes: descriptors since it began that meant nothing.
    pub nonsense: Vec<u64>,
    /// By worker, where they are processes: whether a register of its has held what cannot be for a while.
    pub impossible: Vec<bool>,
    /// Where the interface has several sets of queues.
    pub sets: Option<SetCounts>,
}

/// Of the sets of queues.
#[derive(Clone, Debug, Default)]
pub struct SetCounts {
    /// The one that steering uses.
    pub active: &'static str,
    /// Entries of each that are no empty buffers, over all NICs.
    pub in_use: BTreeMap<String, u64>,
}

impl Device {
    pub(super) fn sets(&self) -> Option<SetCounts> {
        let first = self.nics.first()?;
        let several = first.receive.sets().len() > 1;
        let mut in_use = BTreeMap::new();
        for (set, entries) in self.nics.iter().flat_map(Nic::in_use) {
            *in_use.entry(set.to_owned()).or_default() += entries;
        }
        let active = first.active_set();
        several.then_some(SetCounts { active, in_use })
    }

    /// What [`DeviceCounts::dropped`] says.
    pub(super) fn count_dropped(&self) -> Vec<DropCounters> {
        let of = |worker: u16| {
            let queues = |nic| Nic::queues_of(nic, worker).map(usize::from);
            let of_nic = |nic| queues(nic).map(|queue| &nic.queue_states()[queue].drops);
            self.nics.iter().flat_map(of_nic).collect()
        };
        (0..self.receive.len() as u16).map(of).collect()
    }

    /// What [`DeviceCounts::lending`] says.
    pub(super) fn count_lending(&self) -> Vec<Option<Lending>> {
        let of = |worker| {
            let nics = self.nics.iter();
            nics.filter_map(|nic| nic.lending(worker)).reduce(Lending::add)
        };
        (0..self.receive.len() as u16).map(of).collect()
    }

    /// Adds how full each worker's receive rings are, of the sets of queues in use.
    pub(super) fn look_at_rings(&mut self) {
        for nic in &self.nics {
            let each = nic.receive.queues() / nic.receive.sets().len() as u16;
            self.receive.resize(usize::from(each), (0, 0));
            let first = nic.steering.active() * each;
            for (queue, (waiting, of)) in (first..).zip(&mut self.receive) {
                // Where nobody works no entry is free either.
                if nic.is_closed(queue) {
                    continue;
                }
                let seen = nic.receive.waiting(queue);
                *waiting += seen.entries;
                *of += seen.of;
            }
        }
    }
}
