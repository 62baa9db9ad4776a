//! Which entries are written when, and how many.

use nicforge_units::Time;

use super::{AxChoice, BATCHED, OWN_FIRST, TIMEOUT, Topology, bench_of, bench_with, options, waiting};
use crate::rx_bisect::{Consumption, Options};
use crate::suite::{Bench, Calls, Flat, Ground, Sim};

/// Two cores with 4 buffers each.
fn two<G: Ground>(consumption: Consumption, own_first: bool) -> Bench<G> {
    let options = Options { own_first, ..options(AxChoice::Random, consumption) };
    bench_of(&Topology::per_core(2, 4, 64), options)
}

/// Data writes and publishes of one frame for core 0.
fn sends(bench: &mut Bench<Flat>, flow: u32) -> (u64, u64) {
    let before: Calls = bench.ground.device.calls;
    bench.send(flow, 60).unwrap();
    let after = bench.ground.device.calls;
    (after.writes - before.writes, after.publishes - before.publishes)
}

#[test]
fn one_entry_in_the_common_case_two_in_parallel_otherwise() {
    for own_first in OWN_FIRST {
        let mut bench = two(Consumption::Parallel, own_first);
        for _ in 0..4 {
            assert_eq!(sends(&mut bench, 0), (1, 1), "an own buffer");
        }
        for _ in 0..4 {
            assert_eq!(sends(&mut bench, 0), (1, 2), "a buffer of core 1");
        }
        assert_eq!(waiting(&bench), [8, 4]);
        bench.audit();
    }
}

#[test]
fn notices_wait_for_a_packet_and_go_with_it() {
    for own_first in OWN_FIRST {
        let mut bench = two(BATCHED, own_first);
        for _ in 0..7 {
            assert_eq!(sends(&mut bench, 0), (1, 1));
        }
        // Three notices are due to core 1 and count in its ring; its packet takes them along, three
        // entries in front of its own: 256 bytes by one write.
        assert_eq!(waiting(&bench), [7, 3]);
        assert_eq!(sends(&mut bench, 1), (1, 1));
        assert_eq!(waiting(&bench), [7, 4]);
        assert_eq!(bench.poll(1, 32), 1);
        // Core 1 filled its ring again, so there are four buffers to borrow. With the last of them no packet can bring
        // the notices any more: they go by a write of their own.
        for expected in [(1, 1), (1, 1), (1, 1), (1, 2)] {
            assert_eq!(sends(&mut bench, 0), expected);
        }
        bench.audit();
    }
}

/// Until software sees a notice, no packet can have its entry: what is held back is a small part of the ring.
#[test]
fn held_back_packets_leave_room_for_a_burst() {
    for (entries, held_back) in [(4, 0), (8, 1), (16, 3), (32, 7), (64, 7)] {
        let topology = Topology::in_sets(2, 1, 128, entries, 1);
        let options = options(AxChoice::Random, BATCHED);
        let mut bench: Bench<Flat> = bench_of(&topology, options);
        for round in 1..=entries {
            bench.send(1, 60).unwrap();
            bench.poll(0, 32);
            bench.poll(1, 32);
            // Core 0 has looked, so that what counts in its ring is what it cannot see.
            let hidden = round % (held_back + 1);
            assert_eq!(waiting(&bench), [hidden as u64, 0], "{entries} entries");
        }
        for _ in 0..held_back {
            bench.send(1, 60).unwrap();
        }
        bench.poll(0, 32);
        for _ in held_back..entries {
            assert_eq!(bench.send(0, 60), Ok(()), "{entries} entries");
        }
        bench.audit();
    }
}

#[test]
fn a_notice_waits_no_longer_than_its_time() {
    for own_first in OWN_FIRST {
        let mut bench: Bench<Sim> = two(BATCHED, own_first);
        bench.pass(Time::from_us(10));
        for _ in 0..5 {
            bench.send(0, 60).unwrap();
        }
        let last = bench.ground.now();
        bench.ground.published();
        bench.pass(TIMEOUT - Time::from_ns(100));
        assert_eq!(bench.ground.published().len(), 0, "nothing yet");
        bench.pass(Time::from_ns(100));
        let published = bench.ground.published();
        assert_eq!(published.len(), 1);
        // 64 bytes with a header of 24, at 64 ps a byte, and 300 ns to memory; the time began after
        // the last frame's data and entry had left.
        let took = Time::from_ps((64 + 24) * 64) + Time::from_ns(300);
        assert!(published[0] <= last + TIMEOUT + took);
        bench.audit();
    }
}

/// The time-out of a notice is not begun anew by one that comes behind it, nor forgotten when that of another ring is over.
#[test]
fn each_notice_has_its_own_time() {
    let (first, second) = (Time::from_us(2), Time::from_us(1));
    assert_eq!(first + second, TIMEOUT);
    let mut bench: Bench<Sim> = two(BATCHED, true);
    bench.pass(Time::from_us(10));
    (0..5).for_each(|_| bench.send(0, 60).unwrap());
    bench.pass(first);
    bench.send(0, 60).unwrap();
    bench.ground.published();
    bench.pass(second);
    assert_eq!(bench.ground.published().len(), 2, "both");
    bench.pass(Time::from_us(10));
    assert_eq!(bench.ground.published().len(), 0);
    bench.audit();
    // Cores 1 and 2 lend in turn.
    let topology = Topology::per_core(3, 4, 64);
    let in_turn = options(AxChoice::RoundRobin, BATCHED);
    let mut bench: Bench<Sim> = bench_of(&topology, in_turn);
    bench.pass(Time::from_us(10));
    (0..5).for_each(|_| bench.send(0, 60).unwrap());
    bench.pass(first);
    bench.send(0, 60).unwrap();
    assert_eq!(waiting(&bench), [6, 1, 1]);
    bench.ground.published();
    for time in [second, first] {
        bench.pass(time);
        assert_eq!(bench.ground.published().len(), 1, "one after the other");
    }
    bench.audit();
}

#[test]
fn a_notice_that_takes_the_last_entry_is_written_at_once() {
    let topology = Topology::in_sets(2, 1, 128, 32, 1);
    let mut bench: Bench<Flat> = bench_of(&topology, options(AxChoice::Random, BATCHED));
    (0..31).for_each(|_| bench.send(0, 60).unwrap());
    assert_eq!(sends(&mut bench, 1), (1, 2));
    assert_eq!(waiting(&bench), [32, 1]);
    bench.audit();
}

#[test]
fn held_back_packets_cannot_have_been_read() {
    let mut bench: Bench<Flat> = two(BATCHED, true);
    (0..5).for_each(|_| bench.send(0, 60).unwrap());
    assert_eq!(waiting(&bench), [5, 1]);
    assert!(!bench.write_register(3, 1));
    bench.pass(TIMEOUT);
    bench.pass(TIMEOUT);
    assert!(bench.write_register(3, 1));
}

/// Somebody else moved core 0's tail, so that it is told of more buffers than it gave; the pool has none left.
#[test]
fn notices_of_what_was_never_given_are_not_counted() {
    let options = options(AxChoice::Random, Consumption::Parallel);
    let mut bench: Bench<Flat> = bench_with(&Topology::per_core(2, 8, 64), options, 16, 0);
    (0..8).for_each(|_| bench.send_unchecked(0, 60));
    assert!(bench.write_register(0, 16));
    (0..4).for_each(|_| bench.send_unchecked(0, 60));
    for _ in 0..3 {
        bench.poll_unchecked(0);
        assert!(bench.drivers[0].buffers_held() <= 8);
    }
}

/// When the packet's entry is visible to its core, after the end of the frame.
fn latency(bench: &mut Bench<Sim>, consumption: Consumption, borrowed: bool) -> Time {
    // What was held back is written at the end of the first pause.
    bench.pass(Time::from_us(100));
    bench.pass(Time::from_us(1));
    bench.ground.published();
    let began = bench.ground.now();
    bench.send(0, 1_500).unwrap();
    let published = bench.ground.published();
    let entries = 1 + usize::from(borrowed && consumption == Consumption::Parallel);
    assert_eq!(published.len(), entries);
    published[0] - began
}

#[test]
fn a_borrowed_buffer_adds_nothing_to_the_critical_path() {
    let each = [Consumption::Parallel, BATCHED].into_iter();
    for (consumption, own_first) in each.flat_map(|each| OWN_FIRST.map(|first| (each, first))) {
        let mut bench: Bench<Sim> = two(consumption, own_first);
        // 1500 bytes in six packets and an entry of 64, with 24 bytes of header each, at 64 ps a
        // byte; and 300 ns to memory.
        let expected = Time::from_ps((1_500 + 6 * 24 + 64 + 24) * 64) + Time::from_ns(300);
        for borrowed in [false, false, false, false, true, true] {
            assert_eq!(latency(&mut bench, consumption, borrowed), expected);
        }
    }
}

#[test]
fn software_tells_how_far_it_has_read() {
    let mut bench = two::<Flat>(Consumption::Parallel, true);
    for _ in 0..3 {
        bench.send(0, 60).unwrap();
    }
    assert_eq!(waiting(&bench), [3, 0]);
    bench.poll(0, 2);
    assert_eq!(waiting(&bench), [1, 0]);
    // Registers: Ax tails, then Bx positions. Nothing back, nothing that was not written.
    assert!(!bench.write_register(2, 1));
    assert!(!bench.write_register(2, 4));
    assert!(bench.write_register(2, 2));
    assert!(!bench.write_register(4, 0));
}
