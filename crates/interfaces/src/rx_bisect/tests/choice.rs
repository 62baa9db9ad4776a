//! Which Ax ring gives the buffer while descriptors are on their way over the bus.

use nicforge_units::Time;

use super::{AxChoice, Bench, CHOICES, Ground, OWN_FIRST, Topology, bench_of, options, waiting};
use crate::rx_bisect::{Consumption, Options};
use crate::suite::{Flat, Sim};

/// Descriptors of one read.
const BATCH: u64 = 32;

/// A read over the bus takes longer.
const ROUND_TRIP: Time = Time::from_ns(100);

/// Two cores with rings of several reads each. A packet in another's buffer puts a notice into the
/// other's Bx ring.
fn two<G: Ground>(choice: AxChoice, own_first: bool) -> Bench<G> {
    let options = Options { own_first, ..options(choice, Consumption::Parallel) };
    bench_of(&Topology::per_core(2, 128, 256), options)
}

/// Each policy with each answer to whether own descriptors on their way are first.
fn each() -> impl Iterator<Item = (AxChoice, bool)> {
    CHOICES.into_iter().flat_map(|choice| OWN_FIRST.map(|own_first| (choice, own_first)))
}

#[test]
fn an_own_descriptor_at_hand_is_taken_first() {
    for (choice, own_first) in each() {
        let mut bench: Bench<Sim> = two(choice, own_first);
        bench.pass(Time::from_us(10));
        for _ in 0..BATCH {
            bench.send(0, 60).unwrap();
        }
        assert_eq!(waiting(&bench), [BATCH, 0], "{choice:?}");
        bench.audit();
    }
}

#[test]
fn one_at_hand_of_another_is_better_than_an_own_one_on_its_way() {
    for choice in CHOICES {
        let mut bench: Bench<Sim> = two(choice, false);
        bench.pass(Time::from_us(10));
        for _ in 0..BATCH {
            bench.send(0, 60).unwrap();
        }
        // The second read takes longer than the packets that it came with.
        let began = bench.ground.now();
        bench.send(0, 60).unwrap();
        assert_eq!(waiting(&bench), [BATCH + 1, 1], "{choice:?}");
        let took = bench.ground.now() - began;
        assert!(took < ROUND_TRIP, "{took:?}: it has waited");
        bench.pass(Time::from_us(10));
        bench.send(0, 60).unwrap();
        assert_eq!(waiting(&bench), [BATCH + 2, 1], "here it is: {choice:?}");
        bench.audit();
    }
}

#[test]
fn where_own_ones_are_first_it_waits_for_them() {
    for choice in CHOICES {
        let mut bench: Bench<Sim> = two(choice, true);
        bench.pass(Time::from_us(10));
        for _ in 0..BATCH {
            bench.send(0, 60).unwrap();
        }
        let began = bench.ground.now();
        bench.send(0, 60).unwrap();
        assert_eq!(waiting(&bench), [BATCH + 1, 0], "{choice:?}");
        let waited = bench.ground.now() - began;
        assert!(waited > ROUND_TRIP, "{waited:?} is no round trip");
        for _ in BATCH + 1..128 {
            bench.send(0, 60).unwrap();
        }
        bench.send(0, 60).unwrap();
        assert_eq!(waiting(&bench), [129, 1], "it is empty: {choice:?}");
        bench.audit();
    }
}

#[test]
fn with_none_at_hand_it_waits_for_its_own() {
    for (choice, own_first) in each() {
        let mut bench: Bench<Sim> = two(choice, own_first);
        // Both doorbells have just rung.
        let began = bench.ground.now();
        bench.send(0, 60).unwrap();
        assert_eq!(waiting(&bench), [1, 0], "{choice:?}");
        let waited = bench.ground.now() - began;
        assert!(waited > ROUND_TRIP, "{waited:?} is no round trip");
        bench.audit();
    }
}

/// Where reads take no time, there is nothing to prefer.
#[test]
fn without_a_bus_the_own_ring_is_emptied_first() {
    for own_first in OWN_FIRST {
        let mut bench: Bench<Flat> = two(AxChoice::Random, own_first);
        for _ in 0..128 {
            bench.send(0, 60).unwrap();
        }
        assert_eq!(waiting(&bench), [128, 0]);
        bench.send(0, 60).unwrap();
        assert_eq!(waiting(&bench), [129, 1]);
        assert_eq!(bench.recovery().lent(1, 0), 1);
        bench.audit();
    }
}
