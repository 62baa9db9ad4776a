//! What the engine does with descriptors that are as they should be.

use nicforge_platform::Cpu;
use nicforge_units::{Bytes, Time};
use nicforge_wire::{checksum, parse_frame};

use super::bench::Bench;
use crate::mock::{READ, spec, udp_frame};
use crate::transmit::TxDescriptor;
use crate::{NicSpec, Segment, TxOffload};

fn ps(ps: u64) -> Time {
    Time::from_ps(ps)
}

#[test]
fn one_frame_to_the_picosecond() {
    let mut bench = Bench::new(1, 8);
    let descriptor = TxDescriptor { report: true, ..bench.frame(1_000, 7) };
    bench.write(0, &descriptor);
    bench.doorbells();
    bench.run();
    // Descriptor 1 us, payload 1 us, pipeline 100 ns, 1000 bytes at 100 ps.
    let sent = &bench.wire.sent[0];
    assert_eq!(sent.issued, ps(1_000_000));
    assert_eq!(sent.last_bit, ps(1_000_000 + 1_000_000 + 100_000 + 100_000));
    assert_eq!(sent.stamp, ps(7));
    assert_eq!(bench.reports(0), [(ps(2_000_000), 1)]);
    assert_eq!(bench.host.reads, [64, 1_000]);
}

#[test]
fn frames_follow_each_other_with_preamble_and_gap() {
    let mut bench = Bench::new(1, 8);
    for number in 0..3 {
        bench.write(0, &bench.frame(1_000, number));
    }
    bench.doorbells();
    bench.run();
    // All reads overlap; on the wire each frame takes 1000 + 20 bytes at 100 ps.
    let last_bits: Vec<Time> = bench.wire.sent.iter().map(|sent| sent.last_bit).collect();
    let first = 2_200_000;
    assert_eq!(last_bits, [ps(first), ps(first + 102_000), ps(first + 204_000)]);
    assert!(bench.wire.sent.iter().all(|sent| sent.issued == ps(1_000_000)));
}

#[test]
fn rings_take_turns_and_keep_their_order() {
    let mut bench = Bench::new(3, 8);
    for number in 0..4 {
        for ring in 0..3 {
            bench.write(ring, &bench.frame(100, 10 * ring as u64 + number));
        }
    }
    bench.doorbells();
    bench.run();
    assert_eq!(bench.stamps(), [0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23]);
    assert_eq!(bench.engine.served(), 12);
}

#[test]
fn a_ring_alone_is_served_whatever_its_number() {
    let mut bench = Bench::new(3, 8);
    for number in 0..3 {
        bench.write(1, &bench.frame(100, number));
    }
    bench.doorbells();
    bench.run();
    assert_eq!(bench.stamps(), [0, 1, 2]);
}

#[test]
fn two_segments_become_one_frame() {
    let mut bench = Bench::new(1, 8);
    let descriptor = TxDescriptor { rest: Segment { at: bench.data + 300, len: 936 }, ..bench.frame(64, 0) };
    bench.write(0, &descriptor);
    bench.doorbells();
    bench.run();
    let head = bench.host.memory.bytes(bench.data, 64).to_vec();
    let rest = bench.host.memory.bytes(bench.data + 300, 936).to_vec();
    assert_eq!(bench.wire.sent[0].bytes, [head, rest].concat());
    assert_eq!(bench.host.reads, [64, 64, 936], "the descriptor and each segment");
}

#[test]
fn checksums_are_filled_on_the_way_and_only_where_asked() {
    let good = udp_frame(100, 1_000);
    let mut broken = good.clone();
    broken[24..26].fill(0xee);
    broken[40..42].fill(0xee);
    for (l3, l4) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut bench = Bench::new(1, 8);
        let len = broken.len();
        bench.host.memory.bytes_mut(bench.data, len).copy_from_slice(&broken);
        let descriptor = TxDescriptor {
            offload: TxOffload { l3_checksum: l3, l4_checksum: l4, segment: 0 },
            ..bench.frame(len as u32, 0)
        };
        bench.write(0, &descriptor);
        bench.doorbells();
        bench.run();
        let sent = &bench.wire.sent[0].bytes;
        let verdict = checksum::verify(sent, &parse_frame(sent).unwrap());
        assert_eq!((verdict.l3, verdict.l4), (Some(l3), Some(l4)));
        assert_eq!(*sent == good, l3 && l4);
        assert_eq!(bench.host.memory.bytes(bench.data, len), broken, "the host's bytes stay");
    }
}

/// Then a port does it, or the NIC behind it; and a segment may be longer than a frame.
#[test]
fn an_engine_that_leaves_frames_unfinished_says_what_is_left() {
    let offload = TxOffload { l3_checksum: true, l4_checksum: true, segment: 1448 };
    for leaves in [false, true] {
        let mut bench = Bench::new(1, 8);
        if leaves {
            bench.engine.leave_unfinished();
        }
        for len in [1_000, 60_000] {
            let descriptor = TxDescriptor { offload, ..bench.frame(len, 0) };
            bench.write(0, &descriptor);
        }
        bench.doorbells();
        bench.run();
        let left: Vec<TxOffload> = bench.wire.sent.iter().map(|sent| sent.left).collect();
        if leaves {
            assert_eq!(left, [offload; 2])
        } else {
            assert_eq!(left, [TxOffload::default()], "the long one is refused")
        }
        let as_it_lay = bench.host.memory.bytes(bench.data, 1_000);
        assert_eq!(bench.wire.sent[0].bytes, as_it_lay, "no packet, so nothing to fill");
    }
}

#[test]
fn frames_without_checksum_leave_unmodified() {
    let mut bench = Bench::new(1, 8);
    let descriptor =
        TxDescriptor { offload: TxOffload { l3_checksum: true, l4_checksum: true, segment: 0 }, ..bench.frame(13, 0) };
    bench.write(0, &descriptor);
    bench.doorbells();
    bench.run();
    let data = bench.data;
    assert_eq!(bench.wire.sent[0].bytes, bench.host.memory.bytes(data, 13));
}

#[test]
fn one_report_for_each_descriptor_that_asks() {
    let mut bench = Bench::new(2, 16);
    for number in 0..12u64 {
        let descriptor = TxDescriptor { report: number % 4 == 3, ..bench.frame(100, number) };
        bench.write((number % 4 == 3) as usize / 2, &descriptor);
    }
    bench.doorbells();
    bench.run();
    let values: Vec<u64> = bench.reports(0).iter().map(|report| report.1).collect();
    assert_eq!(values, [4, 8, 12]);
    assert!(bench.reports(1).is_empty());
}

/// A report says that the NIC has read all that came before, so it waits for the slowest.
#[test]
fn nothing_is_reported_before_its_read_is_back() {
    let mut bench = Bench::new(1, 16);
    bench.write(0, &bench.frame(1_000, 0));
    bench.doorbells();
    bench.run_until(READ);
    let slow = bench.wire.sent[0].issued + READ;
    // The next descriptors are here at once, and so is the payload of the last.
    bench.host.read = Time::ZERO;
    let descriptor = TxDescriptor { report: true, ..bench.frame(1_000, 1) };
    bench.write(0, &descriptor);
    bench.doorbells();
    bench.run();
    assert_eq!(bench.reports(0), [(slow, 2)]);
}

#[test]
fn the_internal_buffer_is_never_overfull() {
    let spec = NicSpec { tx_buffer: Bytes(4_000), tx_resume_room: Bytes(1_000), ..spec() };
    let mut bench = Bench::with(&spec, 3, 64, 0);
    for number in 0..64u64 {
        for ring in 0..3 {
            let len = 60 + (number * 977 + ring as u64 * 331) % 1_940;
            bench.write(ring, &bench.frame(len as u32, number));
        }
    }
    bench.doorbells();
    bench.run();
    assert_eq!(bench.wire.sent.len(), 3 * 64);
    let most = bench.buffered_most();
    assert!(most <= Bytes(4_000) && most > Bytes(2_000), "{most:?}");
    assert!(bench.engine.counters().deschedules > 0);
}

#[test]
fn a_ring_wraps_and_passes_position_2_to_the_32() {
    for first in [0, (1 << 32) - 6, u64::from(u32::MAX), 1 << 60] {
        let mut bench = Bench::with(&spec(), 1, 4, first);
        for burst in 0..10 {
            for number in 0..4 {
                let descriptor = TxDescriptor { report: number == 3, ..bench.frame(100, 4 * burst + number) };
                bench.write(0, &descriptor);
            }
            bench.doorbells();
            bench.run();
            let done = bench.rings[0].done;
            assert_eq!(bench.host.memory.acquire(done), first + 4 * (burst + 1));
        }
        assert_eq!(bench.stamps(), (0..40).collect::<Vec<u64>>());
        assert_eq!(bench.engine.served(), 40);
    }
}
