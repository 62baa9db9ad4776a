//! Seeded swarms of the toy protocol: loss, duplication, reordering, every split, evicted contexts, wrap-around.

use crate::common::rigs::ToyRig;
use crate::common::{Dice, World, drawn, quiet, seeds};

#[test]
fn a_clean_stream_is_processed_entirely() {
    let mut world = World::new(ToyRig::new(1, 3000), 1, quiet(1448));
    world.run(50);
    assert_eq!(world.packets, world.packets_processed);
}

#[test]
fn every_split_of_messages_into_packets() {
    for mss in 1..40 {
        let mut world = World::new(ToyRig::new(u32::MAX - 100, 60), mss as u64, quiet(mss));
        world.run(20);
        assert_eq!(world.packets, world.packets_processed);
    }
}

#[test]
fn faults_cost_speed_never_correctness() {
    for seed in seeds(150) {
        let mut dice = Dice::new(seed);
        let faults = drawn(&mut dice);
        let tcpsn = if dice.percent(50) { u32::MAX - dice.below(50_000) as u32 } else { dice.below(1 << 32) as u32 };
        let largest = [0, 40, 3000, 30_000][dice.below(4) as usize];
        let largest = largest.min(faults.mss * 200);
        let outcome = std::panic::catch_unwind(move || {
            let mut world = World::new(ToyRig::new(tcpsn, largest), seed, faults);
            world.run(40);
            world.check_return(12);
        });
        assert!(outcome.is_ok(), "NICFORGE_SEED={seed} {faults:?} largest {largest}");
    }
}

#[test]
fn software_that_denies_genuine_headers_costs_speed_only() {
    for seed in seeds(60) {
        let mut dice = Dice::new(seed);
        let mut faults = drawn(&mut dice);
        faults.lies = 60;
        faults.loss = faults.loss.max(3);
        let mut world = World::new(ToyRig::new(5, 2000.min(faults.mss * 100)), seed, faults);
        world.run(40);
        world.check_return(12);
    }
}

#[test]
fn software_that_gives_wrong_numbers_gets_an_error_never_wrong_data() {
    for seed in seeds(60) {
        let mut dice = Dice::new(seed);
        let mut faults = drawn(&mut dice);
        faults.lies = 60;
        faults.lies_numbers = true;
        faults.loss = faults.loss.max(3);
        let mut rig = ToyRig::new(5, 2000.min(faults.mss * 100));
        rig.may_break = true;
        World::new(rig, seed, faults).run(40);
    }
}

#[test]
fn a_nic_that_proves_resynchronisation_believes_no_lie() {
    for seed in seeds(60) {
        let mut dice = Dice::new(seed);
        let mut faults = drawn(&mut dice);
        faults.lies = 60;
        faults.lies_numbers = true;
        faults.confirms_false = true;
        faults.loss = faults.loss.max(3);
        let mut world = World::new(ToyRig::new(5, 2000.min(faults.mss * 100)), seed, faults);
        world.run(40);
        world.check_return(20);
    }
}
