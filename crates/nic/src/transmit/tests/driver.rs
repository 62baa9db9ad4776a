//! The driver's side, alone and with the engine.

use std::collections::BTreeSet;

use nicforge_platform::{Addr, AddressSpace, Cpu, FlatCpu, Register};
use nicforge_units::Cycles;

use super::bench::Wire;
use crate::mock::{MockHost, spec};
use crate::transmit::{TransmitDriver, TransmitEngine, TxDescriptor, TxFull, TxRing};
use crate::{DriverCosts, Packet, Pool, PoolCache, PortId, RxFlags, Segment, TxOffload, data_of, registers};

const DOORBELL: Register = Register { device: 0, index: registers::TRANSMIT };

struct Bench {
    host: MockHost,
    engine: TransmitEngine,
    driver: TransmitDriver,
    cache: PoolCache,
    pool: Pool,
    ring: TxRing,
    wire: Wire,
}

fn bench(entries: usize, first: u64) -> Bench {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 256);
    let ring = TxRing { first, ..TxRing::new(&mut space, entries).unwrap() };
    let driver = TransmitDriver::new(&mut space, ring, DOORBELL, DriverCosts::default());
    let cache = PoolCache::new(&mut space, pool, 32, Cycles(1));
    let mut host = MockHost::new(&space);
    pool.start(&mut host.memory);
    Bench {
        engine: TransmitEngine::new(&spec(), &[ring], Addr(space.end())),
        host,
        driver,
        cache,
        pool,
        ring,
        wire: Wire::default(),
    }
}

impl Bench {
    fn packet(&mut self) -> Packet {
        let mbuf = self.cache.take(&mut self.host.memory).expect("256 are enough");
        Packet {
            mark: 0,
            mbuf,
            tail: Addr(0),
            references: Addr(0),
            head: Segment { at: data_of(mbuf), len: 100 },
            rest: Segment::default(),
            port: PortId(0),
            rss_hash: 0,
            flags: RxFlags::default(),
            offload: TxOffload::default(),
            stamp: nicforge_units::Time::ZERO,
        }
    }

    fn push(&mut self, report: bool) -> Result<(), TxFull> {
        let packet = self.packet();
        let outcome = self.driver.push(&mut self.host.memory, &packet, report);
        if outcome.is_err() {
            self.cache.give(&mut self.host.memory, packet.mbuf);
        }
        outcome
    }

    fn reclaim(&mut self) {
        self.driver.reclaim(&mut self.host.memory, &mut self.cache);
        self.check();
    }

    /// The engine does all that it was told of.
    fn transmit(&mut self) {
        self.driver.ring_doorbell(&mut self.host.memory);
        let tail = self.host.memory.mmio_read(DOORBELL);
        assert!(self.engine.doorbell(&mut self.host, 0, tail));
        loop {
            let next =
                self.engine.advance(&mut self.host, &mut self.wire, &mut crate::stage::Chain::new(crate::PortId(0)));
            if next == nicforge_units::Time::NEVER {
                return;
            }
            self.host.now = next;
        }
    }

    /// Every buffer is in the pool or in the ring.
    fn check(&mut self) {
        let shared = self.pool.available(&mut self.host.memory);
        let inside = shared + self.cache.len() as u64 + self.driver.buffers_held();
        assert_eq!(inside, self.pool.count() as u64);
    }

    fn descriptor(&mut self, position: u64) -> TxDescriptor {
        let words: [u64; 8] = self.host.memory.load(self.ring.descriptor(position));
        TxDescriptor::decode(&words)
    }
}

#[test]
fn a_full_ring_takes_nothing_and_loses_nothing() {
    let mut bench = bench(8, 0);
    for _ in 0..8 {
        assert_eq!(bench.push(false), Ok(()));
    }
    for _ in 0..3 {
        assert_eq!(bench.push(true), Err(TxFull));
    }
    bench.reclaim();
    assert_eq!((bench.driver.in_use(), bench.driver.pushed()), (8, 8));
    assert_eq!(bench.driver.occupancy(), ((1..8).sum::<u64>() + 3 * 8, 11, 8));
}

#[test]
fn each_buffer_comes_back_once() {
    let mut bench = bench(8, (1 << 32) - 3);
    for round in 1..=20 {
        for number in 0..5 {
            bench.push(number == 4).unwrap();
        }
        bench.transmit();
        bench.reclaim();
        bench.reclaim();
        assert_eq!(bench.driver.in_use(), 0);
        assert_eq!(bench.driver.pushed(), 5 * round);
    }
    let mut seen = BTreeSet::new();
    while let Some(mbuf) = bench.cache.take(&mut bench.host.memory) {
        assert!(seen.insert(mbuf), "{mbuf:?} came back twice");
    }
    assert_eq!(seen.len(), 256);
}

#[test]
fn a_burst_larger_than_the_ring_does_not_block_it_for_good() {
    for (entries, burst) in [(2, 32), (16, 32), (32, 32), (32, 33)] {
        let mut bench = bench(entries, 0);
        // One packet in front, so that no burst fits whole.
        bench.push(true).unwrap();
        let mut sent = 1;
        for _ in 0..10 {
            // As a core does: reclaim, push all, report with the last.
            bench.reclaim();
            let pushed = (0..burst).filter(|&n| bench.push(n + 1 == burst).is_ok()).count();
            assert!(pushed > 0, "ring of {entries} is blocked");
            sent += pushed;
            bench.transmit();
        }
        assert_eq!(bench.wire.sent.len(), sent);
    }
}

#[test]
fn the_descriptor_that_fills_the_ring_reports() {
    let mut bench = bench(4, 0);
    for _ in 0..4 {
        bench.push(false).unwrap();
    }
    let reports: Vec<bool> = (0..4).map(|position| bench.descriptor(position).report).collect();
    assert_eq!(reports, [false, false, false, true]);
}

#[test]
fn a_device_that_lies_frees_nothing_that_is_in_use() {
    let mut bench = bench(8, 100);
    for _ in 0..4 {
        bench.push(false).unwrap();
    }
    for (lie, in_use) in [(0, 4), (99, 4), (102, 2), (101, 2), (u64::MAX, 0), (0, 0)] {
        bench.host.memory.release(bench.ring.done, lie);
        bench.reclaim();
        assert_eq!(bench.driver.in_use(), in_use, "after {lie}");
    }
}

#[test]
fn the_doorbell_is_written_once_for_all_that_is_new() {
    fn rung(memory: &FlatCpu) -> Vec<u64> {
        memory.registers().map(|(_, value)| value).collect()
    }
    let mut bench = bench(8, 0);
    bench.driver.ring_doorbell(&mut bench.host.memory);
    assert!(rung(&bench.host.memory).is_empty(), "nothing new, nothing written");
    for _ in 0..3 {
        bench.push(false).unwrap();
    }
    bench.driver.ring_doorbell(&mut bench.host.memory);
    assert_eq!(rung(&bench.host.memory), [3]);
}
