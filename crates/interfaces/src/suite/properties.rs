//! Random traffic, random stalls of the cores, every ring size. Seeds are fixed, so that a
//! failure is the same on every machine.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::frames::{FRAME_LEN_MIN, frame_len_max};
use super::{Bench, Flat, Ground, Setup, Stalls, for_all, interfaces};
use nicforge_nic::DropCause;
use nicforge_units::Time;

for_all! {
    any_steps_in_any_order,
    every_ring_size_under_random_stalls,
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Send { flow: u32, len: usize, times: usize },
    Poll { core: usize, max: usize },
    Release { index: usize, core: usize },
    Pass(Time),
    Switch(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let len = FRAME_LEN_MIN..=frame_len_max() + 1;
    prop_oneof![
        4 => (0u32..9, len, 1usize..20).prop_map(|(flow, len, times)| Step::Send { flow, len, times }),
        4 => (0usize..4, 1usize..=32).prop_map(|(core, max)| Step::Poll { core, max }),
        3 => (any::<usize>(), 0usize..4).prop_map(|(index, core)| Step::Release { index, core }),
        2 => (0u64..3_000_000).prop_map(|ps| Step::Pass(Time::from_ps(ps))),
        1 => (0u16..4).prop_map(Step::Switch),
    ]
}

fn take<G: Ground>(bench: &mut Bench<G>, step: &Step) {
    let cores = bench.drivers.len();
    match *step {
        Step::Send { flow, len, times } => {
            for _ in 0..times {
                match bench.send(flow, len) {
                    Ok(()) => {}
                    Err(cause) if cause.is_of_load() => {}
                    Err(DropCause::OVERSIZED) if len > frame_len_max() => {}
                    Err(cause) => panic!("{}: {cause:?}", bench.interface),
                }
            }
        }
        Step::Poll { core, max } => {
            bench.poll(core % cores, max);
        }
        Step::Release { index, core } if !bench.hands.is_empty() => {
            bench.release(index % bench.hands.len(), core % cores);
        }
        Step::Release { .. } => {}
        Step::Pass(time) => bench.pass(time),
        Step::Switch(set) => bench.switch(set),
    }
}

fn any_steps_in_any_order<G: Ground>(interface: &'static str) {
    let config =
        Config { cases: 24, failure_persistence: None, rng_seed: RngSeed::Fixed(0x6e69_6366), ..Config::default() };
    let setups = (1usize..=4, 1u32..=6, 0usize..60, 0usize..12);
    let strategy = (setups, vec(step(), 1..120));
    let outcome = TestRunner::new(config).run(&strategy, |((queues, bits, spare, cache), steps)| {
        let setup = Setup {
            queues,
            rx_entries: 1 << bits,
            // Each core may hold back what its stack does, and one must be left to go on.
            spare: spare + queues * (cache + cache / 2 + 2),
            cache,
            first_position: (1 << 32) - 64 * 2,
            ..Setup::default()
        };
        let mut bench: Bench<G> = Bench::new(interface, &setup);
        for step in &steps {
            take(&mut bench, step);
        }
        bench.release_all();
        bench.audit();
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{interface}: {failure}");
    }
}

/// Twice around each ring and beyond position 2^32, while cores stop for as long as several rings take
/// to fill, and go on with some of what waits or with all of it.
fn every_ring_size_under_random_stalls<G: Ground>(interface: &'static str) {
    for setup in setups_by_size(interface) {
        twice_around::<G>(interface, &setup);
    }
}

/// A setup for each ring size, in which at least two cores share a ring or lend each other buffers.
fn setups_by_size(interface: &str) -> Vec<Setup> {
    let setup = |bits: usize| {
        // Large rings take many frames to go around.
        let most = if bits < 9 { 5 } else { 2 };
        let queues = 2 + (bits * 3 + interface.len()) % (most - 1);
        let rx_entries = 1 << bits;
        let bx_per_ax = if interface.ends_with("rx_bisect") { 2 } else { 1 };
        Setup {
            queues,
            rx_entries,
            sharing: [2, 3, 8][bits % 3],
            bx_per_ax,
            spare: 64 + 64 * queues,
            first_position: (1 << 32) - 2 * (rx_entries * bx_per_ax) as u64,
            ..Setup::default()
        }
    };
    (1..=12).map(setup).collect()
}

#[test]
fn rings_of_every_size_are_shared_or_lent_and_some_have_one_core() {
    for interface in interfaces() {
        let setups = setups_by_size(interface);
        let sizes = setups.iter().map(|setup| setup.rx_entries);
        assert!(sizes.eq((1..=12).map(|bits| 1 << bits)), "{interface}");
        for setup in &setups {
            let bench: Bench<Flat> = Bench::down(interface, setup);
            let cores = setup.queues;
            assert!(cores.min(setup.sharing) >= 2, "{interface}, {setup:?}");
            let together = |queue| bench.recovery().together(queue).len();
            let most = (0..bench.nic.queues()).map(together).max();
            let expected = if interface.contains("sh_ring") { setup.sharing.min(cores) } else { 1 };
            assert_eq!(most, Some(expected), "{interface}, {setup:?}");
        }
        let mut rests = setups.iter().map(|setup| setup.queues % setup.sharing);
        assert!(rests.any(|rest| rest == 1), "{interface}");
    }
}

fn twice_around<G: Ground>(interface: &'static str, setup: &Setup) {
    let (queues, rx_entries) = (setup.queues, setup.rx_entries);
    let what = format!("{interface}, {rx_entries} entries");
    let seed = u64::from(rx_entries.trailing_zeros());
    let mut stalls = Stalls::new(seed, queues, 4 * rx_entries + 8);
    let mut bench: Bench<G> = Bench::new(interface, setup);
    while !stalls.saw(2 * rx_entries * setup.bx_per_ax + 64) {
        for _ in 0..stalls.below(rx_entries / 2 + 8) {
            let len = FRAME_LEN_MIN + stalls.below(200);
            let outcome = bench.send(stalls.below(3 * queues) as u32, len);
            let fine = outcome.err().is_none_or(DropCause::is_of_load);
            assert!(fine, "{what}: {outcome:?}");
        }
        if stalls.below(8) == 0 {
            bench.switch(stalls.below(2) as u16);
        }
        bench.pass(Time::from_ns(stalls.below(2_000) as u64));
        stalls.polls(&mut bench);
    }
    let borrowed = |queue| bench.nic.lending(queue).map(|lending| lending.borrowed);
    let all: Option<u64> = (0..bench.nic.queues()).map(borrowed).sum();
    assert_ne!(all, Some(0), "{what}: nobody borrowed");
    bench.release_all();
    bench.audit();
}
