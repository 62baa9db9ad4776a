//! Whose buffer is used; applications apart; rings of other numbers.

use nicforge_nic::ReceiveHalf;

use super::super::policy::Chooser;
use super::{AxChoice, BATCHED, BX_FULL, CHOICES, NO_BUFFER, Topology, bench, waiting};
use crate::rx_bisect::{AxRing, Consumption, MemoryDomain};
use crate::suite::{Bench, Flat, Ground};

#[test]
fn own_buffers_first_then_those_of_others() {
    for choice in CHOICES {
        let topology = Topology::per_core(4, 8, 64);
        let mut bench: Bench<Flat> = bench(&topology, choice, Consumption::Parallel);
        for _ in 0..8 {
            bench.send(0, 60).unwrap();
        }
        assert_eq!(waiting(&bench), [8, 0, 0, 0], "{choice:?}");
        for _ in 0..24 {
            bench.send(0, 60).unwrap();
        }
        // Notices of all the others' buffers.
        assert_eq!(waiting(&bench), [32, 8, 8, 8], "{choice:?}");
        assert_eq!(bench.send(0, 60), NO_BUFFER);
        assert_eq!(bench.send(3, 60), NO_BUFFER);
        // One core that looks makes room for all.
        bench.poll(2, 32);
        bench.send(3, 60).unwrap();
        bench.audit();
    }
}

/// One half of the cores cannot use up the other half's buffers; a core without a ring of its own
/// borrows from its set.
#[test]
fn sets_of_cores_are_apart_and_a_ring_may_serve_several() {
    let topology = Topology::in_sets(4, (2, 16), 64, 2);
    assert_eq!(topology.links, [(0, 0), (1, 2)]);
    let associated = |bx: usize| topology.bx[bx].associated.clone();
    assert_eq!([0, 1, 2, 3].map(associated), [[0], [0], [1], [1]]);
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, Consumption::Parallel);
    for _ in 0..16 {
        bench.send(1, 60).unwrap();
    }
    assert_eq!(bench.send(0, 60), NO_BUFFER);
    bench.send(3, 60).unwrap();
    bench.send(2, 60).unwrap();
    // Core 0, to whose ring they belong, learns of them and fills it again.
    bench.poll(0, 32);
    bench.send(1, 60).unwrap();
    bench.audit();
}

#[test]
fn cores_may_have_several_rings() {
    let topology = Topology::in_sets(2, (4, 8), 64, 1);
    assert_eq!(topology.links, [(0, 0), (1, 1), (2, 0), (3, 1)]);
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, Consumption::Parallel);
    for _ in 0..32 {
        bench.send(0, 60).unwrap();
    }
    assert_eq!(bench.send(0, 60), NO_BUFFER);
    bench.poll(0, 64);
    bench.poll(1, 64);
    bench.send(1, 60).unwrap();
    // All four are full again; those of second choice never give theirs out one by one, as an audit
    // would have it.
    bench.drain();
    assert_eq!((bench.outstanding(), bench.in_rings()), (0, 32));
}

/// Whoever counts buffers after a core's death needs to know what it and the others owe each other.
#[test]
fn what_was_lent_is_known_until_a_queue_begins_anew() {
    let topology = Topology::per_core(3, 8, 64);
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::RoundRobin, Consumption::Parallel);
    for _ in 0..8 + 6 {
        bench.send(0, 60).unwrap();
    }
    let lent = |bench: &Bench<Flat>| {
        [(1, 0), (2, 0), (0, 1), (1, 2)].map(|(from, to)| bench.nic.lent(from, to))
    };
    assert_eq!(lent(&bench), [3, 3, -3, 0], "eight were its own");
    let counted = |bench: &Bench<Flat>| {
        let of = |queue| bench.nic.lending(queue).unwrap();
        [0, 1, 2].map(|queue| (of(queue).borrowed, of(queue).lent))
    };
    assert_eq!(counted(&bench), [(6, 0), (0, 3), (0, 3)]);
    let mut device = bench.ground.device();
    bench.nic.begin_anew(&mut *device, 1..2).unwrap();
    drop(device);
    assert_eq!(lent(&bench), [0, 3, 0, 0], "the dead one's are settled");
    assert_eq!(counted(&bench), [(6, 0), (0, 3), (0, 3)], "counts go on");
}

#[test]
fn the_policies() {
    let rings = [3u16, 5, 6, 9];
    let buffers = |ring: u16| [0, 0, 0, 2, 0, 4, 4, 0, 0, 1][usize::from(ring)];
    let draw = |choice, seed, times: usize| -> Vec<u16> {
        let mut chooser = Chooser::new(choice, seed);
        let draws = (0..times).map(|_| chooser.choose(&rings, buffers).unwrap());
        draws.collect()
    };
    assert_eq!(draw(AxChoice::Fullest, 0, 3), [5, 5, 5]);
    assert_eq!(draw(AxChoice::RoundRobin, 0, 6), [3, 5, 6, 9, 3, 5]);
    let drawn = draw(AxChoice::Random, 1, 4_000);
    for ring in rings {
        let share = drawn.iter().filter(|&&drawn| drawn == ring).count();
        assert!(
            (900..1_100).contains(&share),
            "ring {ring}: {share} of 4000"
        );
    }
    assert_eq!(drawn, draw(AxChoice::Random, 1, 4_000));
    assert_ne!(drawn, draw(AxChoice::Random, 2, 4_000));
    for choice in CHOICES {
        let mut chooser = Chooser::new(choice, 0);
        assert_eq!(chooser.choose(&rings, |_| 0), None, "{choice:?}");
        assert_eq!(chooser.choose(&[], |_| 1), None, "{choice:?}");
        for _ in 0..9 {
            let only = chooser.choose(&rings, |ring| u64::from(ring == 6));
            assert_eq!(only, Some(6), "{choice:?}");
        }
        let name = ["random", "round_robin", "fullest"][choice as usize];
        assert_eq!(AxChoice::named(name), Some(choice));
    }
    assert_eq!(AxChoice::named("emptiest"), None);
}

#[test]
fn a_full_reception_ring_is_a_cause_of_its_own() {
    let topology = Topology::per_core(2, 8, 8);
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, BATCHED);
    for _ in 0..8 {
        bench.send(0, 60).unwrap();
    }
    assert_eq!(
        bench.send(0, 60),
        BX_FULL,
        "core 1 has buffers, core 0 no entry"
    );
    bench.send(1, 60).unwrap();
    assert_eq!(bench.drops.causes(), [("bx_full", 1)]);
    bench.audit();
}

/// What is consumed can always be told: a ring that cannot be told lends nothing more.
#[test]
fn notices_are_never_lost() {
    for consumption in [Consumption::Parallel, BATCHED] {
        let mut topology = Topology::per_core(2, 16, 64);
        topology.bx[1].entries = 4;
        let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, consumption);
        for _ in 0..16 + 4 {
            bench.send(0, 60).unwrap();
        }
        assert_eq!(waiting(&bench), [20, 4]);
        assert_eq!(
            bench.send(0, 60),
            NO_BUFFER,
            "12 buffers that core 1 cannot be told of"
        );
        assert_eq!(bench.send(1, 60), BX_FULL);
        bench.audit();
    }
}

#[test]
fn association_keeps_applications_apart() {
    let mut topology = Topology::per_core(4, 8, 64);
    for (number, bx) in topology.bx.iter_mut().enumerate() {
        bx.associated = if number < 2 { vec![0, 1] } else { vec![2, 3] };
    }
    for consumption in [Consumption::Parallel, BATCHED] {
        let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, consumption);
        for _ in 0..16 {
            bench.send(0, 60).unwrap();
        }
        assert_eq!(bench.send(0, 60), NO_BUFFER);
        assert_eq!(bench.send(1, 60), NO_BUFFER);
        assert_eq!(waiting(&bench), [16, 8, 0, 0]);
        bench.send(2, 60).unwrap();
        bench.send(3, 60).unwrap();
        bench.audit();
    }
}

#[test]
fn one_core_may_allocate_for_all() {
    let mut topology = Topology::per_core(3, 16, 64);
    topology.ax.truncate(1);
    topology.links.truncate(1);
    for bx in &mut topology.bx {
        bx.associated = vec![0];
    }
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, BATCHED);
    for round in 0..200 {
        bench.send(1 + round % 2, 60).unwrap();
        bench.pass(super::TIMEOUT);
        for queue in 0..3 {
            bench.poll(queue, 32);
        }
        bench.release_all();
    }
    bench.drain();
    assert_eq!(bench.taken, 200);
}

#[test]
fn a_core_may_have_several_allocation_rings() {
    let mut topology = Topology::per_core(2, 4, 64);
    for number in 2..4 {
        topology.ax.push(AxRing {
            entries: 8,
            domain: MemoryDomain::default(),
        });
        topology.links.push((number, 0));
    }
    topology.bx[0].associated = vec![0, 2, 3];
    topology.bx[1].associated = vec![1];
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, Consumption::Parallel);
    for _ in 0..5 {
        for _ in 0..4 + 8 + 8 {
            bench.send(0, 60).unwrap();
        }
        assert_eq!(bench.send(0, 60), NO_BUFFER);
        assert_eq!(waiting(&bench), [20, 0], "all of them its own");
        bench.drain();
    }
}
