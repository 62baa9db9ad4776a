//! A driver that does what no driver may: the NIC counts it, ignores it and carries on.

use super::{Bench, Ground, Setup, for_all};
use nicforge_nic::DropCause;
use nicforge_units::Time;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

for_all! {
    descriptors_that_name_no_buffer,
    doorbells_that_go_back_or_too_far,
    registers_that_there_are_not,
    register_writes_at_random,
}

fn setup() -> Setup {
    Setup { rx_entries: 8, spare: 64, cache: 16, ..Setup::default() }
}

/// A core frees addresses that are no buffers, and its driver gives them to the NIC.
fn descriptors_that_name_no_buffer<G: Ground>(interface: &'static str) {
    let mut bench: Bench<G> = Bench::down(interface, &setup());
    let bad = bench.no_buffers();
    let cache = &mut bench.caches[0];
    for _ in &bad {
        // As many real ones leave, so that the pool's count stays.
        cache.take(&mut *bench.ground.core(0)).unwrap();
    }
    for &address in &bad {
        cache.give(&mut *bench.ground.core(0), address);
    }
    bench.start();
    for _ in 0..200 {
        for flow in 0..2 {
            match bench.send(flow, 1_500) {
                Ok(()) | Err(DropCause::BAD_DESCRIPTOR) => {}
                Err(cause) => panic!("{interface}: {cause:?}"),
            }
        }
        bench.pass(Time::from_us(10));
        for queue in 0..2 {
            bench.poll(queue, 32);
        }
        bench.release_all();
        bench.check_guards();
    }
    let least = if bench.splits() { 4 } else { 8 };
    let causes = bench.drops.causes();
    let bad = causes.iter().find(|(cause, _)| *cause == "bad_descriptor");
    let refused = bad.map_or(0, |(_, count)| *count);
    assert!(refused >= least, "{interface}: {refused} refused");
    // What is no buffer stays in a physical ring, which both queues may have to share.
    let least = if interface.starts_with("emulated") { 100 } else { 200 };
    assert!(bench.taken >= least, "{interface}: the other queue works");
    // Completions that tell of them take room that frames may then lack.
    for &(cause, _) in causes {
        let known = cause == "bad_descriptor" || DropCause(cause).is_of_load();
        assert!(known, "{interface}: {cause}");
    }
}

/// Values that no ring of 8 can have meant when `rung` was its last doorbell.
fn impossible(rung: u64) -> [u64; 9] {
    let back = rung.wrapping_sub(1);
    let far = [1 << 32, 1 << 63].map(|distance| rung.wrapping_add(distance));
    [back, rung.wrapping_sub(8), rung / 2, rung + 9, far[0], far[1], u64::MAX, u64::MAX - 7, 1]
}

fn doorbells_that_go_back_or_too_far<G: Ground>(interface: &'static str) {
    for first_position in [0, 1 << 20, (1 << 32) - 16, 1 << 60] {
        let setup = Setup { first_position, ..setup() };
        let mut bench: Bench<G> = Bench::new(interface, &setup);
        for round in 0..10 {
            let mut last = std::collections::BTreeMap::new();
            last.extend(bench.rung.iter().copied());
            for (&index, &rung) in &last {
                // A doorbell may say again what it said.
                for value in impossible(rung).into_iter().filter(|&value| value != rung) {
                    let taken = bench.write_register(index, value);
                    assert!(!taken, "{interface}: register {index} took {value} after {rung}");
                }
            }
            for flow in 0..2 {
                for _ in 0..=round % 8 {
                    // Queues that share a ring, or lend buffers, may fill it.
                    let outcome = bench.send(flow, 60);
                    let fine = outcome.err().is_none_or(DropCause::is_of_load);
                    assert!(fine, "{interface}: {outcome:?}");
                }
            }
            bench.drain();
        }
        bench.audit();
    }
}

fn registers_that_there_are_not<G: Ground>(interface: &'static str) {
    let mut bench: Bench<G> = Bench::new(interface, &setup());
    for index in [0x1000, 0x4000, 0x7fff, 1 << 16, u32::MAX - 1, u32::MAX] {
        for value in [0, 1, 8, u64::MAX] {
            assert!(!bench.write_register(index, value), "{interface}: register {index:#x}");
        }
    }
    bench.send(0, 60).unwrap();
    bench.audit();
}

/// Whatever is written, nothing outside the pool is, and nothing panics.
fn register_writes_at_random<G: Ground>(interface: &'static str) {
    let mut random = Pcg64::seed_from_u64(7);
    let mut bench: Bench<G> = Bench::new(interface, &setup());
    for _ in 0..5_000 {
        let near = random.next_u64() % 64;
        let value = match random.next_u32() % 4 {
            0 => random.next_u64(),
            1 => near.wrapping_sub(32),
            _ => bench.rung[bench.rung.len() - 1].1.wrapping_add(near).wrapping_sub(16),
        };
        bench.write_register(random.next_u32() % 4, value);
        let queue = random.next_u32() % 2;
        bench.send_unchecked(queue, 60 + near as usize * 32);
        bench.poll_unchecked(queue as usize);
        bench.pass(Time::from_ns(near * 20));
    }
    bench.check_guards();
}
