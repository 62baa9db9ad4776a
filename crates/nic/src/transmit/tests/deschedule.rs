//! A ring that fills the internal buffer is not served for a while (nicmem, section 2.1.3).

use nicforge_units::{Bytes, Time};

use super::bench::Bench;
use crate::NicSpec;
use crate::mock::{READ, spec};

/// Frames of 2500 bytes take 250 ns each; ten fill the buffer.
const FRAME: u32 = 2_500;

/// The buffer holds 2.5 us of wire, 1.4 us beyond the way from a read's issue to the wire; a
/// pause is two reads of 1 us.
fn slow_link() -> NicSpec {
    NicSpec {
        wire_overhead: Bytes(0),
        tx_buffer: Bytes(25_000),
        tx_resume_room: Bytes(7_500),
        tx_deschedule_reads: 2.0,
        descriptor_read: Bytes(1_024),
        ..spec()
    }
}

/// Idle times of the wire, once the beginning is over and while all rings have frames.
fn gaps(bench: &Bench) -> Vec<Time> {
    let sent: Vec<_> = bench.wire.sent[20..500].iter().collect();
    let between = |pair: &[&super::bench::Sent]| {
        let frame = spec().rate.time_for(Bytes(u64::from(FRAME)));
        pair[1].last_bit - pair[0].last_bit - frame
    };
    sent.windows(2).map(between).filter(|&gap| gap > Time::ZERO).collect()
}

fn run(rings: usize) -> Bench {
    let mut bench = Bench::with(&slow_link(), rings, 512, 0);
    for number in 0..512 {
        for ring in 0..rings {
            bench.write(ring, &bench.frame(FRAME, number));
        }
    }
    bench.doorbells();
    bench.run();
    assert!(bench.buffered_most() <= Bytes(25_000));
    bench
}

#[test]
fn alone_on_a_slow_link_it_lets_the_wire_run_dry() {
    let bench = run(1);
    let gaps = gaps(&bench);
    assert!(gaps.len() > 10, "{}", gaps.len());
    // When the pause of 2 us begins the buffer holds 2.5 us of frames; after it, new payload
    // needs 1 us for its read and 100 ns of pipeline: the wire is idle for 0.6 us.
    let pause = READ * 2;
    let dry = pause + READ + Time::from_ns(100) - Time::from_ns(2_500);
    let frame = Time::from_ns(250);
    for gap in &gaps {
        assert!(*gap + frame >= dry && *gap <= dry + frame, "{gap} instead of {dry}");
    }
    assert!(bench.engine.counters().deschedules >= gaps.len() as u64);
}

#[test]
fn with_a_second_ring_the_wire_stays_busy() {
    let bench = run(2);
    assert_eq!(gaps(&bench), []);
    assert!(bench.engine.counters().deschedules > 10, "they do pause");
}

/// A frame that fits although others would not: room to resume is not room for it.
#[test]
fn a_frame_larger_than_the_room_to_resume_still_leaves() {
    for pause in [0.0, 1.0, 20.0] {
        for len in [4_001, 9_000, 16_000, 16_384] {
            let spec = NicSpec { tx_deschedule_reads: pause, ..spec() };
            let mut bench = Bench::with(&spec, 1, 8, 0);
            for number in 0..5 {
                bench.write(0, &bench.frame(len, number));
            }
            bench.doorbells();
            bench.run();
            assert_eq!(bench.stamps(), [0, 1, 2, 3, 4], "{len} bytes, pause {pause}");
        }
    }
}

/// A large frame that waits for its room does not hold up another ring's small ones.
#[test]
fn small_frames_of_another_ring_pass_a_large_one_that_waits() {
    let mut bench = Bench::new(2, 8);
    for number in 0..2 {
        bench.write(0, &bench.frame(9_000, number));
    }
    for number in 10..14 {
        bench.write(1, &bench.frame(60, number));
    }
    bench.doorbells();
    bench.run();
    let stamps = bench.stamps();
    assert_eq!(stamps.len(), 6);
    assert_eq!(stamps[5], 1, "{stamps:?}");
}
