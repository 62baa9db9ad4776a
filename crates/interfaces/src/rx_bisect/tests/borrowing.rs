//! Whose buffer is used; applications apart; rings of other numbers.

use super::super::policy::Chooser;
use super::{AxChoice, BATCHED, BX_FULL, CHOICES, DropCause, NO_BUFFER, Topology, bench, bench_with, options, waiting};
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
    let topology = Topology::in_sets(4, 2, 16, 64, 2);
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
    let topology = Topology::in_sets(2, 4, 8, 64, 1);
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
fn lent_buffers_are_known_until_a_queue_restarts() {
    let topology = Topology::per_core(3, 8, 64);
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::RoundRobin, Consumption::Parallel);
    for _ in 0..8 + 6 {
        bench.send(0, 60).unwrap();
    }
    let lent = |bench: &Bench<Flat>| [(1, 0), (2, 0), (0, 1), (1, 2)].map(|(from, to)| bench.recovery().lent(from, to));
    assert_eq!(lent(&bench), [3, 3, -3, 0], "eight were its own");
    let counted = |bench: &Bench<Flat>| {
        let of = |queue| bench.nic.lending(queue).unwrap();
        [0, 1, 2].map(|queue| (of(queue).borrowed, of(queue).lent))
    };
    assert_eq!(counted(&bench), [(6, 0), (0, 3), (0, 3)]);
    bench.restart(1..2).unwrap();
    assert_eq!(lent(&bench), [0, 3, 0, 0], "the dead one's are settled");
    assert_eq!(counted(&bench), [(6, 0), (0, 3), (0, 3)], "counts go on");
    bench.restart(0..1).unwrap();
    assert_eq!(lent(&bench), [0, 0, 0, 0], "and the borrower's");
}

/// Whoever follows a core is told nothing of what the one before lent, and each register that counts for it is named.
#[test]
fn notices_for_a_core_that_is_gone_are_gone() {
    let topology = Topology::per_core(2, 8, 64);
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, BATCHED);
    (0..8 + 2).for_each(|_| bench.send(0, 60).unwrap());
    assert_eq!(waiting(&bench), [10, 2]);
    let registers = bench.restart(1..2);
    assert_eq!(registers, Some(vec![1, 2 + 1]));
    assert_eq!(waiting(&bench), [10, 0]);
    assert!(bench.write_register(3, 0));
    assert!(!bench.write_register(3, 1), "nothing was written since");
}

#[test]
fn registers_are_those_of_whose_rings_they_move() {
    let mut topology = Topology::per_core(3, 8, 64);
    topology.links[2].1 = 0;
    let bench: Bench<Flat> = bench(&topology, AxChoice::Random, BATCHED);
    let queues: Vec<_> = (0..7).map(|index| bench.recovery().rung_by(index)).collect();
    assert_eq!(queues, [0..1, 1..2, 0..1, 0..1, 1..2, 2..3, 0..0]);
}

/// A descriptor that names no buffer is its core's fault, whoever's packet finds it, and what it named comes back.
#[test]
fn an_invalid_buffer_returns_to_the_core_that_gave_it() {
    let topology = Topology::per_core(2, 8, 64);
    for consumption in [Consumption::Parallel, BATCHED] {
        let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, consumption);
        let bad = bench.no_buffers()[0];
        // It takes the place of one that lay on top of the stack.
        bench.caches[0].take(&mut *bench.ground.core(0)).unwrap();
        for round in 0..4 {
            // From there the next entry of core 0's has it.
            bench.caches[0].give(&mut *bench.ground.core(0), bad);
            for count in [1, 7] {
                (0..count).for_each(|_| bench.send(0, 60).unwrap());
                bench.poll(0, 32);
            }
            bench.release_all();
            // It is the next of core 0's, behind all of core 1's.
            (0..8).for_each(|_| bench.send(1, 60).unwrap());
            assert_eq!(bench.send(1, 60), Err(DropCause::BAD_DESCRIPTOR), "{round}");
            assert_eq!(bench.recovery().blamed(1), 0..1);
            assert_eq!(waiting(&bench), [1, 8]);
            bench.poll(1, 32);
            bench.poll(0, 32);
            assert_eq!(bench.in_rings(), 16, "what came back is no ring's");
            bench.release_all();
            let core = &mut *bench.ground.core(0);
            let held: Vec<_> =
                std::iter::from_fn(|| bench.caches[0].take(core)).take_while(|&mbuf| mbuf != bad).collect();
            assert!(held.len() < 64, "it is lost");
            held.into_iter().for_each(|mbuf| bench.caches[0].give(core, mbuf));
        }
    }
}

/// Its own notice may stand in front of packets in buffers of others: it hands them out although the pool is empty.
#[test]
fn a_core_that_neither_borrows_nor_lends_delivers_without_buffers() {
    let mut topology = Topology::per_core(2, 8, 64);
    topology.bx[1].associated = vec![1];
    let options = options(AxChoice::Random, Consumption::Parallel);
    let mut bench: Bench<Flat> = bench_with(&topology, options, 16, 0);
    assert_eq!(bench.in_rings(), 16);
    (0..8 + 4).for_each(|_| bench.send(0, 60).unwrap());
    assert_eq!(bench.poll(0, 32), 12);
    bench.release_all();
    bench.audit();
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
        assert!((900..1_100).contains(&share), "ring {ring}: {share} of 4000");
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
        assert_eq!(choice.word(), name);
    }
}

#[test]
fn a_full_reception_ring_is_a_cause_of_its_own() {
    let topology = Topology::per_core(2, 8, 8);
    let mut bench: Bench<Flat> = bench(&topology, AxChoice::Random, BATCHED);
    for _ in 0..8 {
        bench.send(0, 60).unwrap();
    }
    assert_eq!(bench.send(0, 60), BX_FULL, "core 1 has buffers, core 0 no entry");
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
        assert_eq!(bench.send(0, 60), NO_BUFFER, "12 buffers that core 1 cannot be told of");
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
        topology.ax.push(AxRing { entries: 8, domain: MemoryDomain::default() });
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
