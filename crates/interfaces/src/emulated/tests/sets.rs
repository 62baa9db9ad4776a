//! Cores whose buffers must not mix: each set has a physical ring of its own.

use std::collections::BTreeMap;

use nicforge_nic::Pool;
use nicforge_options::Values;
use nicforge_platform::{Addr, AddressSpace};
use nicforge_units::Time;

use crate::describe::Supply;
use crate::suite::{Bench, Flat, Ground, Setup, Sim, build};

/// Ax rings of 16 entries: `rings` of them, 0 for one per core, in `sets` sets.
fn with_rings(values: &Values, (rings, sets): (usize, usize)) -> Values {
    let values = values.clone().with("ax_entries", 16).with("association_sets", sets);
    if rings == 0 { values } else { values.with("ax_rings", rings) }
}

/// Four cores on an emulated NIC, whose queues are down.
fn down<G: Ground>(rings: (usize, usize), cache: usize) -> Bench<G> {
    let setup = Setup { queues: 4, rx_entries: 16, spare: 256, cache, emulates: "rx_bisect", ..Setup::default() };
    Bench::built("emulated", &setup, |plan, space| {
        let mut plan = plan.clone();
        plan.values = with_rings(&plan.values, rings);
        build("emulated", &plan, space).unwrap()
    })
}

#[test]
fn physical_rings_are_as_large_as_the_rings_that_they_stand_for() {
    let rings = |emulates, queues, rings| {
        let pool = Pool::new(&mut AddressSpace::default(), 1);
        let mut plan = Setup { queues, rx_entries: 64, sharing: 2, emulates, ..Setup::default() }.plan(pool);
        plan.values = with_rings(&plan.values, rings);
        let supplies = plan.shape_of(plan.emulates.as_ref().unwrap()).supplies;
        supplies.into_iter().map(|Supply { queues, entries }| (queues, entries.next_power_of_two())).collect::<Vec<_>>()
    };
    let each = |entries| [0, 1, 2].map(|queue| (vec![queue], entries));
    assert_eq!(rings("priv_ring", 3, (0, 1)), each(64));
    assert_eq!(rings("sh_ring", 3, (0, 1)), [(vec![0, 1], 64), (vec![2], 64)]);
    // Queues 3 to 5 are the shared set.
    let shared = [(vec![3, 4], 64), (vec![5], 64)];
    let both = [&each(64)[..], &shared].concat();
    assert_eq!(rings("sh_ring_dynamic", 3, (0, 1)), both);
    assert_eq!(rings("rx_bisect", 3, (0, 1)), [(vec![0, 1, 2], 64)]);
    assert_eq!(rings("rx_bisect", 3, (0, 3)), each(16));
    assert_eq!(rings("rx_bisect", 3, (0, 2)), [(vec![0, 1], 32), (vec![2], 16)]);
    // Rings of another number than cores.
    assert_eq!(rings("rx_bisect", 4, (2, 1)), [(vec![0, 1, 2, 3], 32)]);
    assert_eq!(rings("rx_bisect", 2, (8, 2)), [(vec![0], 64), (vec![1], 64)]);
}

#[test]
fn rings_of_another_number_than_cores_hold_twice_as_many_buffers() {
    for (rings, sets, in_rings) in [(0, 1, 128), (2, 1, 64), (2, 2, 64), (8, 2, 256)] {
        let mut bench: Bench<Flat> = down((rings, sets), 16);
        bench.start();
        assert_eq!(bench.in_rings(), in_rings, "{rings} rings in {sets} sets");
        // More than all rings have entries.
        for number in 0..800u32 {
            bench.send(number % 4, 60).unwrap();
            bench.pass(Time::from_us(5));
            (0..4).for_each(|queue| {
                bench.poll(queue, 32);
            });
            bench.release_all();
        }
        bench.drain();
        assert_eq!((bench.taken, bench.in_rings()), (800, in_rings));
    }
}

/// A set of one core that never looks, nor has anybody to borrow from: its frames wait in its own
/// physical ring, and then are dropped.
fn a_set_without_buffers<G: Ground>() {
    let mut bench: Bench<G> = down((0, 4), 16);
    bench.start();
    for _ in 0..200 {
        let _ = bench.send(0, 60);
        for queue in 1..4 {
            assert_eq!(bench.send(queue as u32, 60), Ok(()));
            bench.pass(Time::from_us(5));
            bench.pass(Time::from_us(5));
            assert_eq!(bench.poll(queue, 32), 1);
        }
        bench.release_all();
    }
    // An Ax ring and a physical ring of 16 each.
    assert_eq!(bench.drops.causes(), [("no_descriptor", 200 - 32)]);
    assert_eq!(bench.nic.waiting(0).entries, 32);
    bench.audit();
}

#[test]
fn a_set_without_buffers_keeps_no_other_from_receiving() {
    a_set_without_buffers::<Flat>();
    a_set_without_buffers::<Sim>();
}

/// Cores 0 and 1 are a set, 2 and 3 another. All buffers of the pool are dealt out to them, and no core
/// has so many that it gives some back.
#[test]
fn buffers_stay_in_their_set() {
    let set_of = |queue: usize| queue / 2;
    let mut bench: Bench<Flat> = down((0, 2), 512);
    let mut set_of_buffer: BTreeMap<Addr, usize> = BTreeMap::new();
    let all = bench.buffers();
    let mut taken = Vec::new();
    while let Some(mbuf) = bench.caches[0].take(&mut *bench.ground.core(0)) {
        taken.push(mbuf);
    }
    assert_eq!(taken.len(), all);
    for (number, mbuf) in taken.into_iter().enumerate() {
        let core = number % 4;
        bench.caches[core].give(&mut *bench.ground.core(core), mbuf);
        set_of_buffer.insert(mbuf, set_of(core));
    }
    bench.start();
    for round in 0..600u32 {
        // Bursts that borrow: now for a core of this set, now of that.
        for frame in 0..7 {
            let _ = bench.send(round / 3 % 4, 60 + frame);
        }
        bench.pass(Time::from_us(5));
        if round % 5 == 4 {
            (0..4).for_each(|queue| {
                bench.poll(queue, 32);
            });
        }
        while let Some((packet, _)) = bench.hands.last() {
            let queue = packet.rss_hash as usize % 4;
            assert_eq!(set_of_buffer[&packet.mbuf], set_of(queue), "round {round}");
            bench.release(bench.hands.len() - 1, queue);
        }
    }
    let taken = |queue: usize| bench.drivers[queue].taken();
    assert!((0..4).all(|queue| taken(queue) > 100));
}
