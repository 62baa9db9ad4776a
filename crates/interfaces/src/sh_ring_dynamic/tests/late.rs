//! Packets become visible while a core looks for them, at whichever of its looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use nicforge_nic::{DriverHalf, Packet, PoolCache};
use nicforge_platform::{Addr, Cpu, FlatCpu, forward_cpu};
use nicforge_units::Time;

use super::super::{Driver, build};
use super::{NAME, PRIVATE, SHARED};
use crate::Halves;
use crate::suite::{Bench, Flat, Ground, Setup};

/// A core that sees some completions late: from so many looks on at words that a device publishes.
struct Late<'a> {
    cpu: &'a mut FlatCpu,
    from: BTreeMap<Addr, usize>,
    looks: Vec<Addr>,
}

impl Cpu for Late<'_> {
    forward_cpu!(cpu: load store release atomic lock unlock bytes bytes_mut);
    forward_cpu!(cpu: hint mmio_read mmio_write work enter now);

    fn acquire(&mut self, at: Addr) -> u64 {
        self.looks.push(at);
        let hidden = self.from.get(&at).is_some_and(|&from| self.looks.len() < from);
        self.cpu.acquire(at) ^ u64::from(hidden)
    }
}

/// A driver that runs on either of the two cores.
#[derive(Clone)]
struct OnBoth(Arc<Mutex<Driver>>);

impl<C: Cpu> DriverHalf<C> for OnBoth {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.0.lock().unwrap().start(cpu, pool);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        self.0.lock().unwrap().rx_burst(cpu, pool, packets, max);
    }

    fn taken(&self) -> u64 {
        DriverHalf::<C>::taken(&*self.0.lock().unwrap())
    }

    fn buffers_held(&self) -> i64 {
        DriverHalf::<C>::buffers_held(&*self.0.lock().unwrap())
    }
}

/// A bench with one queue, and its driver.
fn bench(setup: &Setup) -> (Bench<Flat>, OnBoth) {
    let mut kept = None;
    let mut bench: Bench<Flat> = Bench::built(NAME, setup, |plan, space| {
        let (nic, mut drivers) = build(plan, space).unwrap();
        let driver = OnBoth(Arc::new(Mutex::new(drivers.remove(0))));
        kept = Some(driver.clone());
        Halves::new(nic, vec![driver])
    });
    bench.start();
    (bench, kept.unwrap())
}

/// Polls once, as one who sees completions late; returns the stamps of what comes, and the looks.
fn poll((bench, driver): &mut (Bench<Flat>, OnBoth), from: BTreeMap<Addr, usize>) -> (Vec<Time>, Vec<Addr>) {
    let mut packets = Vec::new();
    let mut late = Late { cpu: bench.ground.core(0), from, looks: Vec::new() };
    driver.rx_burst(&mut late, &mut bench.caches[0], &mut packets, 32);
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
            let mut both = bench(&setup);
            both.0.switch(polled);
            both.0.send(0, 60).unwrap();
            assert_eq!(both.0.poll(0, 32), 1);
            // Where there is nothing the core looks at the next entry of both sets, the polled one first.
            let (none, looks) = poll(&mut both, BTreeMap::new());
            assert_eq!((none.len(), looks.len() >= 2), (0, true));
            let (of_polled, of_other) = (looks[0], looks[1]);
            assert_ne!(of_polled, of_other);
            for set in [other, polled] {
                both.0.switch(set);
                both.0.send(0, 60).unwrap();
            }
            let late = [(of_other, first), (of_polled, second)];
            let (mut stamps, _) = poll(&mut both, late.into());
            for _ in 0..2 {
                stamps.extend(poll(&mut both, BTreeMap::new()).0);
            }
            let what = format!("set {polled} polled, visible at looks {first} and {second}: {stamps:?}");
            assert!(stamps.len() == 2 && stamps.is_sorted(), "{what}");
        }
    }
}
