//! Two sets of queues, of which steering uses one at a time: what a switch does to packets that still
//! wait in physical rings.

use nicforge_nic::DropCause;
use nicforge_platform as platform;
use nicforge_units::Time;

use super::super::played;
use super::setup;
use crate::sh_ring_dynamic::{PRIVATE, SHARED};
use crate::suite::{Bench, Flat, Ground, Setup, Sim};

fn up<G: Ground>(rx_entries: usize) -> Bench<G> {
    let setup = Setup { rx_entries, ..setup("sh_ring_dynamic") };
    Bench::new("emulated", &setup)
}

/// So long that the emulating core keeps up.
fn keep_up<G: Ground>(bench: &mut Bench<G>) {
    bench.pass(Time::from_us(10));
    bench.pass(Time::from_us(10));
}

/// Rings of 16 entries, where core 1 stopped while `set` was in use: frames for it came until one was
/// dropped, and fill a ring of the emulated NIC and a physical one.
fn core_1_stopped<G: Ground>(set: u16) -> Bench<G> {
    let mut bench = up(16);
    bench.switch(set);
    let mut sent = 0;
    while bench.send(1, 60).is_ok() {
        keep_up(&mut bench);
        sent += 1;
    }
    assert_eq!(sent, 2 * 16);
    bench
}

/// Core 0 receives all frames that come for it.
fn core_0_goes_on<G: Ground>(bench: &mut Bench<G>) {
    for _ in 0..100 {
        bench.send(0, 60).unwrap();
        keep_up(bench);
        assert_eq!(bench.poll(0, 32), 1);
        bench.release_all();
    }
}

fn take_all<G: Ground>(bench: &mut Bench<G>, queue: usize) -> usize {
    let calls = std::iter::repeat_with(|| bench.poll(queue, 32));
    let taken = calls.take_while(|&taken| taken > 0).sum();
    bench.release_all();
    taken
}

/// Frames lie in the physical rings of both sets when the emulating core comes to them, and workers take
/// what there is after each of its steps.
#[test]
fn frames_for_the_emulating_core_keep_their_order() {
    let mut bench: Bench<Flat> = up(128);
    for round in 0..3 {
        bench.emulator_rests = true;
        for set in [PRIVATE, SHARED, PRIVATE, SHARED, PRIVATE] {
            bench.switch(set);
            for number in 0..40 {
                bench.send(number % 3, 60).unwrap();
            }
        }
        let mut steps = 0;
        loop {
            let step = bench.emulate_once().unwrap();
            assert_eq!(step.lost, []);
            // The bench checks the order of each flow.
            let taken = [0, 1].map(|queue| take_all(&mut bench, queue));
            assert_eq!(taken[0] + taken[1], step.passed, "round {round}");
            if !step.more {
                break;
            }
            steps += 1;
            assert!(steps < 200, "round {round}: it never ends");
        }
        assert!(steps >= 200 / 32, "{steps} steps");
        bench.emulator_rests = false;
    }
    assert_eq!(bench.taken, 3 * 200);
    bench.audit();
}

/// Core 1 stops while rings are shared: its packets have all descriptors of the shared ring and wait in the
/// physical one, so that core 0 receives nothing either. Steering leaves the set: those that wait are
/// dropped, as the emulated NIC would have dropped them at once, and core 0 goes on.
fn a_core_that_stops<G: Ground>() {
    let mut bench: Bench<G> = core_1_stopped(SHARED);
    assert_eq!(bench.send(0, 60), Err(DropCause::NO_DESCRIPTOR));
    assert_eq!(bench.drops.causes(), [("no_descriptor", 2)]);
    bench.switch(PRIVATE);
    core_0_goes_on(&mut bench);
    // Nothing waits in the shared physical ring any more.
    assert_eq!(bench.drops.causes(), [("no_descriptor", 2 + 16)]);
    assert_eq!(bench.nic.waiting(3).entries, 16);
    // What the shared ring had is there when core 1 comes back.
    assert_eq!(take_all(&mut bench, 1), 16);
    bench.audit();
}

#[test]
fn a_core_that_stops_stops_others_until_rings_are_private() {
    a_core_that_stops::<Flat>();
    a_core_that_stops::<Sim>();
}

/// The same on the way to shared rings: core 1 has a full private ring, and packets behind it.
fn a_core_that_stopped_before<G: Ground>() {
    let mut bench: Bench<G> = core_1_stopped(PRIVATE);
    bench.switch(SHARED);
    core_0_goes_on(&mut bench);
    bench.send(1, 60).unwrap();
    keep_up(&mut bench);
    assert_eq!(bench.drops.causes(), [("no_descriptor", 1 + 16)]);
    // First what its private ring had; the bench checks the order.
    assert_eq!(take_all(&mut bench, 1), 17);
    bench.audit();
}

#[test]
fn packets_of_the_set_that_steering_left_hold_up_no_others() {
    a_core_that_stopped_before::<Flat>();
    a_core_that_stopped_before::<Sim>();
}

/// A packet that waits costs the core nothing until a doorbell, or a packet of the other set that ends its
/// waiting: that one wakes the core.
#[test]
fn a_packet_of_the_other_set_ends_the_waiting() {
    let mut bench: Bench<Flat> = core_1_stopped(SHARED);
    bench.emulator_rests = true;
    let step = bench.emulate_once().unwrap();
    assert_eq!((step.moved(), step.stuck, step.more), (0, 1, false));
    bench.switch(PRIVATE);
    bench.send(0, 60).unwrap();
    assert!(!played::<platform::Flat>(&mut *bench.nic).unwrap().will_wait(0));
    let step = bench.emulate_once().unwrap();
    assert_eq!((step.passed, step.lost.len(), step.stuck), (1, 16, 0));
    assert_eq!(bench.poll(0, 32), 1);
    bench.emulator_rests = false;
    bench.release_all();
    bench.audit();
}
