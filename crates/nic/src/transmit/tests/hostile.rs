//! Doorbells and descriptors that mean nothing: counted, skipped, never in the way of others.

use nicforge_platform::{Addr, Cpu};
use nicforge_units::Time;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::bench::Bench;
use crate::mock::{READ, spec};
use crate::transmit::TxDescriptor;
use crate::{NicSpec, Segment, TxOffload};

#[test]
fn impossible_doorbells_are_refused() {
    for first in [0, 1 << 20, (1 << 32) - 2] {
        let mut bench = Bench::with(&spec(), 2, 8, first);
        for _ in 0..4 {
            bench.write(0, &bench.frame(100, 0));
        }
        bench.doorbells();
        let tail = bench.tails[0];
        let beyond = [tail + 5, tail + (1 << 32), tail + (1 << 63), u64::MAX, u64::MAX - 3];
        for value in beyond.into_iter().chain([tail - 1, tail / 2]) {
            assert!(!bench.engine.doorbell(&mut bench.host, 0, value), "{value} after {tail}");
        }
        for queue in [2, 3, 0x7fff, usize::MAX] {
            assert!(!bench.engine.doorbell(&mut bench.host, queue, 1));
        }
        assert!(bench.engine.doorbell(&mut bench.host, 0, tail), "the same again is harmless");
        bench.run();
        assert_eq!(bench.wire.sent.len(), 4);
    }
}

/// Segments that are no host memory, or too much of it.
fn bad_segments(bench: &Bench) -> Vec<Segment> {
    let end = bench.memory_end.0;
    let places = [
        (0, 64),
        (end, 1),
        (end - 63, 64),
        (end - 64, u32::MAX),
        (u64::MAX, 64),
        (u64::MAX - 10, u32::MAX),
        (1 << 63, 64),
        (bench.data.0, u32::MAX),
        (bench.data.0, (16 << 10) + 1),
    ];
    let segment = |(at, len)| Segment { at: Addr(at), len };
    places.into_iter().map(segment).collect()
}

#[test]
fn descriptors_that_name_no_memory_are_counted_and_come_back() {
    let mut bench = Bench::new(1, 64);
    let mut bad = vec![bench.frame(0, 0)];
    for segment in bad_segments(&bench) {
        bad.push(TxDescriptor { head: segment, ..bench.frame(64, 0) });
        bad.push(TxDescriptor { rest: segment, ..bench.frame(64, 0) });
    }
    for descriptor in &bad {
        bench.write(0, descriptor);
        bench.write(0, &bench.frame(64, 1));
    }
    bench.doorbells();
    bench.run();
    let counters = bench.engine.counters();
    assert_eq!(counters.refused.total(), bad.len() as u64);
    assert_eq!(counters.frames, bad.len() as u64, "the good ones between them leave");
    // Each comes back by itself, though none asked for a report.
    let values: Vec<u64> = bench.reports(0).iter().map(|report| report.1).collect();
    assert_eq!(values, (0..bad.len() as u64).map(|n| 2 * n + 1).collect::<Vec<_>>());
}

/// A bad descriptor behind a good one is not reported before the good one is read.
#[test]
fn a_bad_descriptor_does_not_give_back_what_is_being_read() {
    let mut bench = Bench::new(1, 8);
    bench.write(0, &bench.frame(1_000, 0));
    bench.write(0, &bench.frame(0, 1));
    bench.doorbells();
    bench.run();
    assert_eq!(bench.reports(0), [(READ + READ, 2)]);
}

/// Gigabytes that nobody will send need no room, and cost other rings nothing.
#[test]
fn absurd_lengths_do_not_fill_the_internal_buffer() {
    let sent = |with_absurd: bool| {
        let spec = NicSpec { tx_deschedule_reads: 50.0, ..spec() };
        let mut bench = Bench::with(&spec, 2, 8, 0);
        for number in 0..4 {
            bench.write(0, &bench.frame(1_000, number));
            if with_absurd {
                bench.write(1, &bench.frame(u32::MAX, number));
            }
        }
        bench.doorbells();
        bench.run();
        assert_eq!(bench.engine.counters().deschedules, 0);
        bench.wire.sent.iter().map(|sent| sent.last_bit).collect::<Vec<Time>>()
    };
    assert_eq!(sent(true), sent(false));
}

/// A descriptor of likely and unlikely numbers.
fn any_descriptor(bench: &Bench, random: &mut Pcg64) -> TxDescriptor {
    let mut pick = |from: &[u64]| match random.next_u64() as usize % (from.len() + 1) {
        all if all == from.len() => random.next_u64(),
        one => from[one],
    };
    let (data, end) = (bench.data.0, bench.memory_end.0);
    let mut segment = |len: &[u64]| Segment {
        at: Addr(pick(&[data, data, data + 1, data + 77, end - 100, 0])),
        len: pick(len) as u32,
    };
    TxDescriptor {
        head: segment(&[14, 60, 60, 1_500, 1_500, 9_000, 0]),
        rest: segment(&[0, 0, 0, 40, 1_460]),
        report: random.next_u32().is_multiple_of(4),
        offload: TxOffload {
            l3_checksum: random.next_u32().is_multiple_of(2),
            l4_checksum: random.next_u32().is_multiple_of(2),
            segment: random.next_u32() as u16,
        },
        ..TxDescriptor::default()
    }
}

#[test]
fn every_descriptor_is_served_once_whatever_software_writes() {
    for seed in 0..50 {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut bench = Bench::with(&spec(), 3, 16, seed << 31);
        let mut doorbells = 0;
        for _ in 0..200 {
            let ring = (random.next_u32() % 3) as usize;
            let descriptor = any_descriptor(&bench, &mut random);
            let at = bench.rings[ring].base + u64::from(random.next_u32() % 16) * 64;
            bench.host.memory.store(at, descriptor.encode());
            let tail = match random.next_u32() % 4 {
                0 => random.next_u64(),
                _ => bench.tails[ring] + u64::from(random.next_u32() % 20),
            };
            if bench.engine.doorbell(&mut bench.host, ring, tail) {
                doorbells += tail - bench.tails[ring];
                bench.tails[ring] = tail;
            }
            bench.run_until(bench.host.now + Time::from_ns(u64::from(random.next_u32() % 3_000)));
        }
        bench.run();
        let counters = bench.engine.counters();
        assert_eq!(bench.engine.served(), doorbells, "seed {seed}");
        assert_eq!(counters.frames + counters.refused.total(), doorbells, "seed {seed}");
        assert_eq!(bench.wire.sent.len() as u64, counters.frames, "seed {seed}");
        for ring in 0..3 {
            assert!(bench.reports(ring).is_sorted(), "seed {seed}: reports go back");
        }
        assert!(doorbells > 200, "seed {seed}: hardly a doorbell was taken");
    }
}
