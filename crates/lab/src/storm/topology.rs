//! Which task is what, and where it runs.

use std::net::Ipv4Addr;

use nicforge_apps::flexkvs::lookup3;
use nicforge_wire::headers::MacAddress;

use super::options::Layout;
use super::tuple::Name;

/// Machines.
pub const MACHINES: usize = 3;
/// Tasks of each kind but the last.
const EACH: u32 = 4;
const SPOUTS: u32 = 1;
const COUNTERS: u32 = SPOUTS + EACH;
const RANKERS: u32 = COUNTERS + EACH;
/// The task that ranks what rankers tell.
pub const AGGREGATOR: u32 = RANKERS + EACH;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Tells who wrote.
    Spout,
    /// Counts how often each user did.
    Counter,
    /// Knows those who did most.
    Ranker,
    /// The same of all.
    Aggregator,
}

/// What task `task` does.
pub fn kind_of(task: u32) -> Kind {
    match task {
        ..COUNTERS => Kind::Spout,
        COUNTERS..RANKERS => Kind::Counter,
        RANKERS..AGGREGATOR => Kind::Ranker,
        _ => Kind::Aggregator,
    }
}

/// The counter of a user: grouping by a field.
pub fn counter_of(name: &Name) -> u32 {
    COUNTERS + lookup3(name, 0) % EACH
}

/// The ranker of a user.
pub fn ranker_of(name: &Name) -> u32 {
    RANKERS + lookup3(name, 0) % EACH
}

/// Tasks of each machine; a worker's place among them is its queue (examples/p4/flexnic/storm-entries.py).
pub fn tasks_of(layout: Layout) -> [&'static [u32]; MACHINES] {
    match layout {
        Layout::Balanced => [&[1, 5, 9, 10], &[2, 3, 6, 7, 11], &[4, 8, 12, 13]],
        Layout::Grouped => [&[1, 2, 9, 10], &[5, 6, 7, 8], &[3, 4, 11, 12, 13]],
    }
}

/// The machine of task `task`, if there is one.
pub fn machine_of(layout: Layout, task: u32) -> Option<usize> {
    tasks_of(layout).iter().position(|tasks| tasks.contains(&task))
}

/// The address of machine `machine`.
pub fn address_of(machine: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, machine as u8 + 1)
}

/// The machine of an address.
pub fn machine_at(address: Ipv4Addr) -> Option<usize> {
    (0..MACHINES).find(|&machine| address_of(machine) == address)
}

/// The MAC address of machine `machine`: the switch goes by its last byte.
pub fn mac_of(machine: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, machine as u8 + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_and_balanced_machines_have_as_many_of_each_as_can_be() {
        for layout in [Layout::Balanced, Layout::Grouped] {
            let mut all: Vec<u32> = tasks_of(layout).concat();
            all.sort_unstable();
            assert_eq!(all, (1..=AGGREGATOR).collect::<Vec<_>>());
        }
        let kinds = |machine: usize, kind| {
            tasks_of(Layout::Balanced)[machine].iter().filter(|&&task| kind_of(task) == kind).count()
        };
        let all = [Kind::Spout, Kind::Counter, Kind::Ranker, Kind::Aggregator];
        let each: Vec<[usize; 4]> = (0..MACHINES).map(|machine| all.map(|kind| kinds(machine, kind))).collect();
        assert_eq!(each, [[1, 1, 2, 0], [2, 2, 1, 0], [1, 1, 1, 1]]);
    }
}
