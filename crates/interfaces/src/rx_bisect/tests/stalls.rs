//! A core that stops stops nobody; every size of both rings.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::{
    AxChoice, BATCHED, BX_FULL, CHOICES, NO_BUFFER, OWN_FIRST, Topology, bench, bench_of, bench_with, options,
};
use crate::rx_bisect::{Consumption, Options};
use crate::suite::{Bench, Flat, Ground, Sim, Stalls};
use nicforge_units::Time;

/// Core 0 stops for ever; every frame for the others is received, whatever comes for it.
fn others_go_on<G: Ground>(queues: usize, entries: [usize; 2], own_first: bool) {
    let consumptions = [BATCHED, BATCHED, Consumption::Parallel];
    for (choice, consumption) in CHOICES.into_iter().zip(consumptions) {
        let topology = Topology::per_core(queues, entries[0], entries[1]);
        let options = Options { own_first, ..options(choice, consumption) };
        let mut bench: Bench<G> = bench_of(&topology, options);
        let mut refused = 0;
        for round in 0..2_000 {
            for _ in 0..3 {
                refused += u64::from(bench.send(0, 60).is_err());
            }
            // Whoever goes on has looked since the last frame.
            bench.pass(Time::from_us(10));
            for queue in 1..queues {
                bench.poll(queue, 32);
            }
            bench.release_all();
            bench.pass(Time::from_us(10));
            let flow = 1 + round % (queues as u32 - 1);
            assert_eq!(bench.send(flow, 60), Ok(()), "{entries:?}, round {round}");
        }
        assert!(refused >= 2_000, "core 0 was full: {refused}");
        assert_eq!(bench.send(0, 60), BX_FULL);
        bench.audit();
    }
}

#[test]
fn a_core_that_stops_stops_nobody() {
    for own_first in OWN_FIRST {
        others_go_on::<Flat>(2, [8, 32], own_first);
        others_go_on::<Flat>(4, [2, 2], own_first);
        others_go_on::<Flat>(3, [64, 4], own_first);
        others_go_on::<Sim>(3, [8, 64], own_first);
        others_go_on::<Sim>(2, [128, 256], own_first);
    }
}

/// However long notices may be held back: a core whose last buffers were lent learns of it at once, and goes on.
#[test]
fn a_core_that_lent_its_last_buffer_is_notified_at_once() {
    let consumption = Consumption::Batched(Time::from_ms(100));
    let sizes = [2, 4, 8, 64].into_iter();
    for (entries, own_first) in sizes.flat_map(|size| OWN_FIRST.map(|first| (size, first))) {
        // More notices than such a ring has buffers may be held back.
        let topology = Topology::per_core(2, entries, 256);
        let options = Options { own_first, ..options(AxChoice::Random, consumption) };
        let mut bench: Bench<Sim> = bench_with(&topology, options, 512, 0);
        bench.pass(Time::from_us(10));
        // Core 0 has stopped; its frames use up both Ax rings.
        for _ in 0..2 * entries {
            bench.send(0, 60).unwrap();
        }
        assert_eq!(bench.send(0, 60), NO_BUFFER);
        for round in 0..200 {
            bench.pass(Time::from_us(10));
            bench.poll(1, 32);
            bench.release_all();
            bench.pass(Time::from_us(10));
            assert_eq!(bench.send(1, 60), Ok(()), "{entries} entries, round {round}");
        }
        bench.audit();
    }
}

/// However long notices may be held back: where they take a ring's last entry they are written, or no packet could
/// come that brings them. Core 0 allocates for all and gets little else than notices.
fn small_reception_rings_go_on<G: Ground>(entries: usize) {
    let consumption = Consumption::Batched(Time::from_ms(100));
    let topology = Topology::in_sets(2, 1, 64, entries, 1);
    let options = options(AxChoice::Random, consumption);
    let mut bench: Bench<G> = bench_with(&topology, options, 256, 0);
    bench.pass(Time::from_us(10));
    for round in 0..200 {
        let flow = u32::from(round % 50 < 40);
        assert_eq!(bench.send(flow, 60), Ok(()), "{entries} entries, round {round}");
        bench.pass(Time::from_us(10));
        bench.poll(0, 32);
        bench.poll(1, 32);
        bench.release_all();
    }
    bench.audit();
}

#[test]
fn notices_that_fill_a_reception_ring_are_written_at_once() {
    for entries in [2, 4] {
        small_reception_rings_go_on::<Flat>(entries);
        small_reception_rings_go_on::<Sim>(entries);
        #[cfg(target_os = "linux")]
        small_reception_rings_go_on::<crate::suite::Live>(entries);
    }
}

/// Four cores, of which those with an Ax ring allocate for all. The first of them stops; returns how
/// many of the others' 300 frames are received.
fn received_while_an_allocator_stands(rings: usize) -> (usize, Bench<Flat>) {
    let topology = Topology::in_sets(4, rings, 32, 64, 1);
    assert_eq!(topology.links[0], (0, 0));
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, BATCHED);
    let mut received = 0;
    for round in 0..300 {
        let _ = bench.send(0, 60);
        received += usize::from(bench.send(1 + round % 3, 60).is_ok());
        bench.pass(Time::from_us(10));
        (1..4).for_each(|queue| {
            bench.poll(queue, 32);
        });
        bench.release_all();
    }
    (received, bench)
}

/// "As long as there is at least one underloaded core with an Ax ring" (paper, section 4.3).
#[test]
fn one_allocator_that_stops_stops_all_and_one_of_two_does_not() {
    let (received, mut alone) = received_while_an_allocator_stands(1);
    assert_eq!(received, 16, "half of the only 32 buffers");
    for flow in 0..4 {
        assert_eq!(alone.send(flow, 60), NO_BUFFER);
    }
    // It looks, and all receive again.
    alone.poll(0, 64);
    (1..4).for_each(|flow| assert_eq!(alone.send(flow, 60), Ok(())));
    alone.audit();
    let (received, of_two) = received_while_an_allocator_stands(2);
    assert_eq!(received, 300);
    of_two.audit();
}

/// "Overloaded cores can only hog packet buffers, leading to more buffers being allocated" (paper,
/// section 4.3): by one core with time to spare, up to the size of the others' reception rings.
/// From then on each packet that one takes out lets one in.
fn overload_fills_reception_rings_and_no_more<G: Ground>(queues: usize, entries: [usize; 2], own_first: bool) {
    let consumptions = [BATCHED, Consumption::Parallel, BATCHED];
    for (choice, consumption) in CHOICES.into_iter().zip(consumptions) {
        let topology = Topology::per_core(queues, entries[0], entries[1]);
        let options = Options { own_first, ..options(choice, consumption) };
        let mut bench: Bench<G> = bench_of(&topology, options);
        // Buffers that hold packets, and all empty ones.
        let overloaded = queues - 1;
        let bound = (overloaded * entries[1] + queues * entries[0]) as u64;
        let mut most = 0;
        for round in 0..20 * entries[1] {
            for flow in 0..overloaded as u32 {
                for _ in 0..4 {
                    let _ = bench.send(flow, 60);
                }
            }
            bench.pass(Time::from_us(10));
            bench.poll(overloaded, 32);
            // Too slow, all of them: one packet in the time in which four come.
            bench.poll(round % overloaded, 1);
            bench.release_all();
            most = most.max(bench.in_rings());
        }
        assert!(most <= bound, "{entries:?}: {most} buffers, {bound} at most");
        let full = (overloaded * entries[1]) as u64;
        assert!(most >= full, "{entries:?}: {most} buffers hold {full} packets");
        // Whoever is not overloaded receives whatever comes.
        for _ in 0..100 {
            assert_eq!(bench.send(overloaded as u32, 60), Ok(()), "{entries:?}");
            bench.pass(Time::from_us(10));
            bench.poll(overloaded, 32);
            bench.release_all();
            bench.pass(Time::from_us(10));
        }
        bench.audit();
    }
}

#[test]
fn overloaded_cores_hold_at_most_their_reception_rings() {
    for own_first in OWN_FIRST {
        overload_fills_reception_rings_and_no_more::<Flat>(2, [4, 32], own_first);
        overload_fills_reception_rings_and_no_more::<Flat>(4, [8, 64], own_first);
        overload_fills_reception_rings_and_no_more::<Sim>(3, [8, 32], own_first);
    }
}

/// Random traffic, and stalls as long as several rings take to fill, until every ring has wrapped and
/// passed position 2^32.
fn at_random(topology: &Topology, consumption: Consumption, buffers: usize, seed: u64) {
    let entries = [topology.ax[0].entries, topology.bx[0].entries];
    let largest = entries[0].max(entries[1]);
    let queues = topology.bx.len();
    let mut stalls = Stalls::new(seed, queues, 4 * largest + 8);
    let options =
        Options { own_first: OWN_FIRST[seed as usize / 2 % 2], ..options(CHOICES[seed as usize % 3], consumption) };
    let first = (1 << 32) - 2 * largest as u64;
    let mut bench: Bench<Flat> = bench_with(topology, options, buffers, first);
    while !stalls.saw(2 * largest + 50) {
        for _ in 0..stalls.below(largest + 4) {
            let _ = bench.send(stalls.below(queues) as u32, 60);
        }
        bench.pass(Time::from_ns(stalls.below(5_000) as u64));
        stalls.polls(&mut bench);
    }
    bench.release_all();
    bench.audit();
}

#[test]
fn every_size_of_both_rings() {
    for ax_bits in 1..=8usize {
        for bx_bits in 1..=8usize {
            let seed = ax_bits * 16 + bx_bits;
            // Large rings take many frames to go around.
            let queues = 1 + seed % if ax_bits.max(bx_bits) < 7 { 5 } else { 2 };
            let topology = Topology::per_core(queues, 1 << ax_bits, 1 << bx_bits);
            let buffers = queues * ((1 << ax_bits) + 14) + 64;
            let seed = seed as u64;
            at_random(&topology, Consumption::Parallel, buffers, seed);
            at_random(&topology, BATCHED, buffers, seed + 1);
        }
    }
}

#[test]
fn any_number_of_cores_with_few_buffers() {
    let config =
        Config { cases: 48, failure_persistence: None, rng_seed: RngSeed::Fixed(0x6269_7365), ..Config::default() };
    let strategy = (1usize..=5, 1u32..=6, 1u32..=6, 0usize..40, any::<u64>());
    let outcome = TestRunner::new(config).run(&strategy, |(queues, ax, bx, spare, seed)| {
        let topology = Topology::per_core(queues, 1 << ax, 1 << bx);
        // Each core may hold back what its stack does, and one must be left to go on.
        let buffers = queues * ((1 << ax) + 14) + spare;
        let consumption = [Consumption::Parallel, BATCHED][seed as usize % 2];
        at_random(&topology, consumption, buffers, seed);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
