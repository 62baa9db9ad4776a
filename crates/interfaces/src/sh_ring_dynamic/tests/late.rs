//! Packets become visible while a core looks for them, at whichever of its looks.

use std::collections::BTreeMap;

use nicforge_nic::DriverHalf;
use nicforge_platform::bytemuck::Pod;
use nicforge_platform::{Addr, Cpu, FlatCpu, Part, Register};
use nicforge_units::{Cycles, Time};

use super::{NAME, PRIVATE, SHARED};
use crate::suite::{Bench, Flat, Ground, Setup};

/// A core that sees some completions late: from so many looks on at words that a device publishes.
struct Late<'a> {
    cpu: &'a mut FlatCpu,
    from: BTreeMap<Addr, usize>,
    looks: Vec<Addr>,
}

impl Cpu for Late<'_> {
    fn acquire(&mut self, at: Addr) -> u64 {
        self.looks.push(at);
        let hidden = self
            .from
            .get(&at)
            .is_some_and(|&from| self.looks.len() < from);
        self.cpu.acquire(at) ^ u64::from(hidden)
    }

    fn load<T: Pod>(&mut self, at: Addr) -> T {
        self.cpu.load(at)
    }

    fn store<T: Pod>(&mut self, at: Addr, value: T) {
        self.cpu.store(at, value);
    }

    fn release(&mut self, at: Addr, value: u64) {
        self.cpu.release(at, value);
    }

    fn fetch_or(&mut self, at: Addr, bits: u64) -> u64 {
        self.cpu.fetch_or(at, bits)
    }

    fn fetch_and(&mut self, at: Addr, bits: u64) -> u64 {
        self.cpu.fetch_and(at, bits)
    }

    fn fetch_add(&mut self, at: Addr, value: u64) -> u64 {
        self.cpu.fetch_add(at, value)
    }

    fn lock(&mut self, at: Addr) {
        self.cpu.lock(at);
    }

    fn unlock(&mut self, at: Addr) {
        self.cpu.unlock(at);
    }

    fn bytes(&mut self, at: Addr, len: usize) -> &[u8] {
        self.cpu.bytes(at, len)
    }

    fn bytes_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        self.cpu.bytes_mut(at, len)
    }

    fn prefetch(&mut self, at: Addr, len: usize) {
        self.cpu.prefetch(at, len);
    }

    fn mmio_read(&mut self, register: Register) -> u64 {
        self.cpu.mmio_read(register)
    }

    fn mmio_write(&mut self, register: Register, value: u64) {
        self.cpu.mmio_write(register, value);
    }

    fn work(&mut self, cycles: Cycles) {
        self.cpu.work(cycles);
    }

    fn enter(&mut self, part: Part) -> Part {
        self.cpu.enter(part)
    }

    fn now(&self) -> Time {
        self.cpu.now()
    }
}

/// Polls once, as one who sees completions late; returns the stamps of what comes, and the looks.
fn poll(bench: &mut Bench<Flat>, from: BTreeMap<Addr, usize>) -> (Vec<Time>, Vec<Addr>) {
    let mut packets = Vec::new();
    let mut late = Late {
        cpu: bench.ground.core(0),
        from,
        looks: Vec::new(),
    };
    bench.drivers[0].rx_burst(&mut late, &mut bench.caches[0], &mut packets, 32);
    let stamps = packets.iter().map(|packet| packet.stamp);
    (stamps.collect(), late.looks)
}

/// One packet goes to the set that is not polled, and after a switch another one to the set that is: the first
/// one becomes visible at look `first`, the second at the same one or later.
#[test]
fn a_packet_that_becomes_visible_between_two_looks_is_not_overtaken() {
    let setup = Setup {
        queues: 1,
        ..Setup::default()
    };
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
            let what =
                format!("set {polled} polled, visible at looks {first} and {second}: {stamps:?}");
            assert!(stamps.len() == 2 && stamps.is_sorted(), "{what}");
        }
    }
}
