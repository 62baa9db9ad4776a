//! What is special to two sets of rings; the shared suite covers the rest, random switches
//! included.

use nicforge_nic::DropCause;
use nicforge_platform::Dma;
use nicforge_units::Time;

use super::layout::{PRIVATE, SHARED};
use crate::suite::{Bench, Flat, Ground, Setup, Sim};

mod late;

const NAME: &str = "sh_ring_dynamic";

fn fill<G: Ground>(bench: &mut Bench<G>, flow: u32) -> usize {
    (0..1_000).take_while(|_| bench.send(flow, 60).is_ok()).count()
}

#[test]
fn each_set_has_rings_of_its_own() {
    let mut bench: Bench<Flat> = Bench::new(NAME, &Setup::default());
    assert_eq!((bench.nic.queues(), bench.nic.sets()), (4, &["private", "shared"][..]));
    // Two private rings of 64, one shared of 64.
    assert_eq!((fill(&mut bench, 0), fill(&mut bench, 1)), (64, 64));
    bench.switch(SHARED);
    assert_eq!((fill(&mut bench, 0), fill(&mut bench, 1)), (64, 0));
    bench.audit();
}

/// Whatever a NIC asks about a queue or a register of the shared set is answered in numbers of both sets.
#[test]
fn advice_on_shared_queues_names_shared_queues() {
    let bench: Bench<Flat> = Bench::new(NAME, &Setup::default());
    let nic = bench.recovery();
    // Queues 0 and 1 with registers 0 and 1 are private; 2 and 3 share register 2.
    for queue in 0..2 {
        let own = queue..queue + 1;
        assert_eq!(nic.rung_by(queue.into()), own);
        assert_eq!((nic.together(queue), nic.blamed(queue)), (own.clone(), own));
    }
    for queue in 2..4 {
        // Nobody wrote anything bad yet: the first one would be asked.
        assert_eq!((nic.together(queue), nic.blamed(queue)), (2..4, 2..3));
    }
    assert_eq!(nic.rung_by(2), 2..4);
    assert!(nic.rung_by(3).is_empty());
}

#[test]
fn packets_left_in_one_set_come_before_the_other() {
    let mut bench: Bench<Flat> = Bench::new(NAME, &Setup::default());
    for _ in 0..3 {
        for set in [SHARED, PRIVATE] {
            // The bench checks that a flow's packets come in the order in which they were sent.
            for _ in 0..20 {
                bench.send(0, 60).unwrap();
            }
            bench.switch(set);
            for _ in 0..20 {
                bench.send(0, 60).unwrap();
            }
            assert_eq!([bench.poll(0, 16), bench.poll(0, 16)], [16, 4]);
            assert_eq!([bench.poll(0, 16), bench.poll(0, 16)], [16, 4]);
            bench.release_all();
        }
    }
    bench.audit();
}

/// Packets are still on their way when the core finds the old set empty.
#[test]
fn a_set_is_not_left_before_what_is_on_its_way_has_come() {
    let mut bench: Bench<Sim> = Bench::new(NAME, &Setup::default());
    bench.pass(Time::from_us(100));
    for round in 0..200 {
        bench.switch(round % 2);
        for _ in 0..5 {
            bench.send(0, 1_500).unwrap();
            bench.pass(Time::from_ns(37));
            bench.poll(0, 32);
        }
        bench.release_all();
        // The other core follows later, or not for a long time.
        if round % 7 == 0 {
            bench.send(1, 60).unwrap();
            bench.poll(1, 32);
        }
    }
    bench.audit();
}

/// Without buffers entries of private rings stay empty. The shared ring's packets come all the same, and all goes on when
/// buffers come back.
#[test]
fn a_core_without_buffers_does_not_leave_packets_behind() {
    let setup = Setup { queues: 1, rx_entries: 16, spare: 8, cache: 2, ..Setup::default() };
    let mut bench: Bench<Flat> = Bench::new(NAME, &setup);
    while fill(&mut bench, 0) > 0 {
        while bench.poll(0, 32) > 0 {}
    }
    bench.switch(SHARED);
    bench.send(0, 60).unwrap();
    assert_eq!(bench.poll(0, 32), 1);
    bench.release_all();
    bench.drain();
    assert_eq!(fill(&mut bench, 0), 16);
    bench.audit();
}

#[test]
fn a_shared_ring_that_started_short_of_buffers_is_filled_while_private_ones_are_polled() {
    let setup = Setup { queues: 1, ..Setup::default() };
    let mut bench: Bench<Flat> = Bench::down(NAME, &setup);
    let count = bench.pool.count();
    let cache = &mut bench.caches[0];
    let mut take = || cache.take(bench.ground.core(0)).unwrap();
    // Enough for the private ring of 64 alone.
    let kept: Vec<_> = (0..count - 64).map(|_| take()).collect();
    bench.drivers[0].start(bench.ground.core(0), &mut bench.caches[0]);
    bench.ring();
    for mbuf in kept {
        bench.caches[0].give(bench.ground.core(0), mbuf);
    }
    bench.switch(SHARED);
    assert_eq!(bench.send(0, 60), Err(DropCause::NO_DESCRIPTOR));
    bench.poll(0, 32);
    assert_eq!(fill(&mut bench, 0), 64);
    bench.audit();
}

#[test]
fn a_core_that_stops_stops_others_in_the_shared_set_only() {
    for (set, expected) in [(PRIVATE, Ok(())), (SHARED, Err(DropCause::NO_DESCRIPTOR))] {
        let mut bench: Bench<Sim> = Bench::new(NAME, &Setup::default());
        bench.switch(set);
        fill(&mut bench, 1);
        assert_eq!(bench.send(0, 60), expected);
        let began = bench.ground.device().now();
        // Switching to private rings frees the core that did not stop.
        bench.switch(PRIVATE);
        bench.send(0, 60).unwrap();
        bench.pass(Time::from_us(10));
        bench.poll(0, 32);
        assert!(bench.taken > 0 && bench.ground.device().now() > began);
        bench.audit();
    }
}
