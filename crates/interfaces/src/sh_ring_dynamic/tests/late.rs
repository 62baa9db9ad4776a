//! Packets become visible while a core looks for them, at whichever of its looks.

use std::collections::BTreeMap;

use nicforge_nic::DriverHalf;
use nicforge_platform::{Addr, Cpu, FlatCpu, forward_cpu};
use nicforge_units::Time;

use super::{NAME, PRIVATE, SHARED};
use crate::suite::{Bench, Flat, Ground, Setup};

/// A core that sees some completions late: from so many looks on at words that a device publishes.
struct Late<'a> {
    cpu: &'a mut FlatCpu,
    from: BTreeMap<Addr, usize>,
    looks: Vec<Addr>,
}

impl Cpu for Late<'_> {
    forward_cpu!(cpu: load store release fetch_or fetch_and fetch_add lock unlock bytes bytes_mut);
    forward_cpu!(cpu: prefetch mmio_read mmio_write work enter now);

    fn acquire(&mut self, at: Addr) -> u64 {
        self.looks.push(at);
        let hidden = self.from.get(&at).is_some_and(|&from| self.looks.len() < from);
        self.cpu.acquire(at) ^ u64::from(hidden)
    }
}

/// Polls once, as one who sees completions late; returns the stamps of what comes, and the looks.
fn poll(bench: &mut Bench<Flat>, from: BTreeMap<Addr, usize>) -> (Vec<Time>, Vec<Addr>) {
    let mut packets = Vec::new();
    let mut late = Late { cpu: bench.ground.core(0), from, looks: Vec::new() };
    bench.drivers[0].rx_burst(&mut late, &mut bench.caches[0], &mut packets, 32);
    let stamps = packets.iter().map(|packet| packet.stamp);
    (stamps.collect(), late.looks)
}

/// One packet goes to the set that is not polled, and after a switch another one to the set that is: the first
/// one becomes visible at look `first`, the second at the same one or later.
#[test]
fn a_packet_that_becomes_visible_between_two_looks_is_not_overtaken() {
    let setup = Setup { queues: 1, ..Setup::default() };
    for (polled, other) in [(PRIVATE, SHARED), (SHARED, PRIVATE)] {
        for (first, second) in (1..8).flat_map(|first| (first..8).map(move |at| (first, at))) {
            let mut bench: Bench<Flat> = Bench::new(NAME, &setup);
            bench.switch(polled);
            bench.send(0, 60).unwrap();
            assert_eq!(bench.poll(0, 32), 1);
            // Where there is nothing the core looks at the next entry of both sets, the polled one first.
            let (none, looks) = poll(&mut bench, BTreeMap::new());
            assert_eq!((none.len(), looks.len() >= 2), (0, true));
            let (of_polled, of_other) = (looks[0], looks[1]);
            assert_ne!(of_polled, of_other);
            for set in [other, polled] {
                bench.switch(set);
                bench.send(0, 60).unwrap();
            }
            let late = [(of_other, first), (of_polled, second)];
            let (mut stamps, _) = poll(&mut bench, late.into());
            for _ in 0..2 {
                stamps.extend(poll(&mut bench, BTreeMap::new()).0);
            }
            let what = format!("set {polled} polled, visible at looks {first} and {second}: {stamps:?}");
            assert!(stamps.len() == 2 && stamps.is_sorted(), "{what}");
        }
    }
}
