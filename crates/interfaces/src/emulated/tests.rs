//! Tests of what is special to emulation; the shared suite covers the rest, around each interface.
//! sets.rs has those of cores that are kept apart, anew.rs those of software that comes and goes,
//! switching.rs those of two sets of queues.

mod restart;
mod sets;
mod switching;

use nicforge_nic::Pool;
use nicforge_platform::{self as platform, AddressSpace, Cpu, Owner};
use nicforge_units::Time;

use super::{played, played_by_cores};
use crate::InterfaceError;
use crate::suite::{Bench, Calls, Flat, Ground, Setup, Sim, build};

fn setup(emulates: &'static str) -> Setup {
    Setup { rx_entries: 16, emulates, ..Setup::default() }
}

/// More frames than all rings have entries, at a pace that the cores keep up with.
fn send_and_receive<G: Ground>(emulates: &'static str) {
    let mut bench: Bench<G> = Bench::new("emulated", &setup(emulates));
    for number in 0..600u32 {
        bench.send(number % 5, 60 + number as usize).unwrap();
        if number % 8 == 7 {
            bench.pass(Time::from_us(5));
            bench.pass(Time::from_us(5));
            (0..2).for_each(|queue| assert!(bench.poll(queue, 32) > 0, "{emulates}"));
            bench.release_all();
        }
    }
    bench.drain();
    assert_eq!(bench.taken, 600, "{emulates}");
    bench.audit();
}

#[test]
fn every_frame_comes_once_and_in_order_whatever_is_emulated() {
    for emulates in played_by_cores() {
        send_and_receive::<Flat>(emulates);
        send_and_receive::<Sim>(emulates);
    }
}

#[test]
fn the_rings_hold_twice_as_many_buffers() {
    for emulates in ["priv_ring", "rx_bisect", "sh_ring", "sh_ring_dynamic"] {
        let alone: Bench<Flat> = Bench::new(emulates, &setup(emulates));
        let emulated: Bench<Flat> = Bench::new("emulated", &setup(emulates));
        assert_eq!(emulated.in_rings(), 2 * alone.in_rings(), "{emulates}");
    }
}

#[test]
fn the_device_writes_the_frame_and_the_core_does_not_copy_it() {
    let mut bench: Bench<Flat> = Bench::new("emulated", &setup("priv_ring"));
    let before = bench.ground.device.calls;
    bench.send(0, 1_500).unwrap();
    let calls = Calls { writes: before.writes + 1, publishes: before.publishes + 1, ..bench.ground.device.calls };
    assert_eq!(bench.ground.device.calls, calls);
    // What software gets is checked byte for byte by the bench.
    bench.pass(Time::from_us(1));
    assert_eq!(bench.poll(0, 1), 1);
}

#[test]
fn with_rx_bisect_a_core_that_stops_does_not_keep_another_from_receiving() {
    let mut bench: Bench<Flat> = Bench::new("emulated", &setup("rx_bisect"));
    let mut taken = 0;
    for _ in 0..400 {
        let _ = bench.send(0, 60);
        let _ = bench.send(1, 60);
        bench.pass(Time::from_us(2));
        taken += bench.poll(1, 32);
        bench.release_all();
    }
    assert!(taken > 300, "{taken} of 400");
    assert!(bench.drops.causes().iter().any(|(cause, _)| *cause == "bx_full"));
}

#[test]
fn packets_wait_in_the_physical_ring_for_descriptors() {
    let mut bench: Bench<Flat> = Bench::new("emulated", &setup("priv_ring"));
    for _ in 0..32 {
        bench.send(0, 60).unwrap();
    }
    assert!(bench.send(0, 60).is_err());
    let waiting = bench.nic.waiting(0);
    assert_eq!((waiting.entries, waiting.of), (32, 32));
    assert_eq!(bench.nic.waiting(1).entries, 0, "rings of their own");
    bench.audit();
}

/// What the core has not seen yet waits in the physical ring, where it leaves less room.
#[test]
fn the_core_deals_with_what_it_can_see() {
    let mut bench: Bench<Flat> = Bench::new("emulated", &setup("priv_ring"));
    bench.emulator_rests = true;
    (0..10).for_each(|_| bench.send(0, 60).unwrap());
    assert_eq!([0, 1].map(|queue| bench.nic.free(queue)), [6, 16]);
    for (seen, passed) in [(0, 0), (3, 3), (0, 0), (7, 7)] {
        let half = played::<platform::Flat>(&mut *bench.nic).unwrap();
        let step = bench.ground.play(|way| half.emulate(way, seen));
        assert_eq!((step.passed, step.more), (passed, false));
    }
    assert_eq!(bench.poll(0, 32), 10);
}

#[test]
fn the_device_learns_of_buffers_a_burst_at_a_time() {
    let large = Setup { rx_entries: 128, ..setup("priv_ring") };
    let mut bench: Bench<Flat> = Bench::new("emulated", &large);
    let begun = bench.rung.len();
    for number in 1..=128 {
        bench.send(0, 60).unwrap();
        bench.pass(Time::from_us(1));
        assert_eq!(bench.rung.len() - begun, number / 32);
    }
}

#[test]
fn packets_that_wait_cost_the_core_nothing_until_a_doorbell() {
    let mut bench: Bench<Sim> = Bench::new("emulated", &setup("priv_ring"));
    // Sixteen find descriptors.
    for _ in 0..21 {
        bench.send(0, 60).unwrap();
        bench.pass(Time::from_us(5));
    }
    let emulating = bench.drivers.len();
    let began = bench.ground.core(emulating).now();
    let half = played::<platform::Sim>(&mut *bench.nic).unwrap();
    let step = bench.ground.play(|way| half.emulate(way, usize::MAX));
    assert_eq!((step.moved(), step.stuck, step.more), (0, 1, false));
    assert_eq!(bench.ground.core(emulating).now(), began);
    // Nor does another that will stand behind them wake it.
    bench.emulator_rests = true;
    bench.send(0, 60).unwrap();
    bench.send(1, 60).unwrap();
    let half = played::<platform::Sim>(&mut *bench.nic).unwrap();
    assert_eq!([0, 1].map(|number| half.will_wait(number)), [true, false]);
    bench.emulator_rests = false;
    assert_eq!(bench.poll(0, 32), 16);
    bench.pass(Time::from_us(50));
    assert_eq!(bench.poll(0, 32), 6);
}

/// The pool lacked buffers when the queue came up: what the physical ring has goes around all the same.
#[test]
fn a_physical_ring_that_is_not_full_goes_on() {
    for in_physical in [1, 2, 3, 5] {
        let setup = Setup { queues: 1, spare: 0, ..setup("priv_ring") };
        let mut bench: Bench<Flat> = Bench::down("emulated", &setup);
        let core = &mut *bench.ground.core(0);
        let taken = std::iter::from_fn(|| bench.caches[0].take(core));
        let kept: Vec<_> = taken.take(16 - in_physical).collect();
        bench.drivers[0].start(core, &mut bench.caches[0]);
        kept.into_iter().for_each(|mbuf| bench.caches[0].give(core, mbuf));
        bench.ring();
        for round in 0..100 {
            assert_eq!(bench.send(0, 60), Ok(()), "{in_physical}, round {round}");
            bench.pass(Time::from_us(5));
            assert_eq!(bench.poll(0, 32), 1);
            bench.release_all();
        }
        bench.audit();
    }
}

#[test]
fn without_a_core_to_play_the_nic_it_is_refused() {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 4);
    let mut plan = setup("priv_ring").plan(pool);
    plan.emulator = Owner::NOBODY;
    let error = build::<platform::Flat>("emulated", &plan, &mut space);
    assert!(matches!(error, Err(InterfaceError::NoEmulator)));
}

#[test]
fn interfaces_that_no_core_can_play_are_refused_with_the_reason() {
    let refusal = |emulates| {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 4);
        let plan = setup(emulates).plan(pool);
        build::<platform::Flat>("emulated", &plan, &mut space).unwrap_err()
    };
    for (emulates, why) in [
        ("in_place", "names no buffer"),
        ("split", "two buffers"),
        ("nm_nfv", "two buffers"),
        ("nm_nfv_minus", "two buffers"),
        ("emulated", "already"),
    ] {
        let error = refusal(emulates);
        let says = error.to_string();
        assert!(matches!(error, InterfaceError::NotEmulated { .. }), "{says}");
        assert!(says.contains(emulates) && says.contains(why), "{says}");
        assert!(says.ends_with("sh_ring_dynamic can"), "{says}");
    }
    assert!(matches!(refusal("nothing"), InterfaceError::Unknown(_)));
}
