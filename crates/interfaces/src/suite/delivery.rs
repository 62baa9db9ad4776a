//! What arrives is delivered: once, in order, byte for byte, however often the rings wrap.

use super::frames::{FRAME_LEN_MIN, frame_len_max};
use super::{Bench, Ground, Setup, Sim, for_all, interfaces};
use nicforge_units::Time;

for_all! {
    flows_keep_their_order_and_their_bytes,
    the_smallest_ring_wraps_many_times,
    rings_pass_position_2_to_the_32,
    buffers_come_back_from_any_core,
}

fn flows_keep_their_order_and_their_bytes<G: Ground>(interface: &'static str) {
    let setup = Setup { queues: 3, ..Setup::default() };
    let mut bench: Bench<G> = Bench::new(interface, &setup);
    for number in 0..1_500u32 {
        let flow = number.wrapping_mul(7) % 13;
        let len = [FRAME_LEN_MIN, 60, 64, 65, 1_500, frame_len_max()][number as usize % 6];
        bench.send(flow, len).unwrap();
        if number % 20 == 19 {
            bench.pass(Time::from_us(2));
            for queue in 0..3 {
                bench.poll(queue, 32);
            }
            bench.release_all();
        }
    }
    bench.drain();
    assert_eq!(bench.taken, 1_500, "{interface}");
    bench.audit();
}

/// Fills and empties the ring of each queue, `rounds` times.
fn fill_and_empty<G: Ground>(bench: &mut Bench<G>, entries: u32, rounds: u32) {
    for _ in 0..rounds {
        for queue in 0..bench.drivers.len() as u32 {
            for _ in 0..entries {
                bench.send(queue, 60).unwrap();
            }
            // Queues may share a ring, so that each is filled by itself.
            bench.drain();
        }
    }
}

fn the_smallest_ring_wraps_many_times<G: Ground>(interface: &'static str) {
    let setup = Setup { rx_entries: 2, ..Setup::default() };
    let mut bench: Bench<G> = Bench::new(interface, &setup);
    fill_and_empty(&mut bench, 2, 300);
    bench.audit();
}

fn rings_pass_position_2_to_the_32<G: Ground>(interface: &'static str) {
    let setup = Setup { rx_entries: 8, first_position: (1 << 32) - 32, ..Setup::default() };
    let mut bench: Bench<G> = Bench::new(interface, &setup);
    fill_and_empty(&mut bench, 8, 10);
    assert!(bench.taken > 2 * 64, "{interface}: not yet beyond");
    bench.audit();
}

fn buffers_come_back_from_any_core<G: Ground>(interface: &'static str) {
    let setup = Setup { cache: 4, spare: 40, ..Setup::default() };
    let mut bench: Bench<G> = Bench::new(interface, &setup);
    for _ in 0..200 {
        for _ in 0..6 {
            bench.send(0, 100).unwrap();
        }
        bench.pass(Time::from_us(5));
        bench.poll(0, 32);
        while !bench.hands.is_empty() {
            bench.release(0, 1);
        }
    }
    bench.audit();
}

/// The sim leaves the same bytes at the same times when it is run again.
#[test]
fn the_same_steps_leave_the_same_bytes_at_the_same_times() {
    fn run(interface: &'static str) -> (Vec<u8>, Vec<Time>, Time) {
        let mut bench: Bench<Sim> = Bench::new(interface, &Setup::default());
        for number in 0..500u32 {
            let _ = bench.send(number * number % 11, 60 + number as usize);
            if number % 9 == 0 {
                bench.poll(number as usize % 2, 7);
                bench.release_all();
            }
        }
        bench.drain();
        let first = bench.pool.buffer(0);
        let pool = bench.ground.peek(first, bench.pool.count() * 2_048);
        (pool, bench.ground.core_times(), bench.ground.now())
    }
    for interface in interfaces() {
        assert!(run(interface) == run(interface), "{interface}");
    }
}
