//! Seeded swarms of TLS: both versions, all ciphers, control records, key updates, padding, empty records.

use nicforge_l5p::tls::record::{Cipher, Version};

use crate::common::tls_rig::TlsRig;
use crate::common::{Dice, World, drawn, quiet, seeds};

const SUITES: [(Version, Cipher); 6] = [
    (Version::Tls12, Cipher::Aes128Gcm),
    (Version::Tls12, Cipher::Aes256Gcm),
    (Version::Tls12, Cipher::ChaCha20Poly1305),
    (Version::Tls13, Cipher::Aes128Gcm),
    (Version::Tls13, Cipher::Aes256Gcm),
    (Version::Tls13, Cipher::ChaCha20Poly1305),
];

#[test]
fn a_clean_stream_is_processed_entirely() {
    for (version, cipher) in SUITES {
        let mut world = World::new(TlsRig::new(version, cipher, 1, 16384 - 100), 1, quiet(1448));
        world.run(20);
        assert_eq!(world.packets, world.packets_processed);
        assert_eq!(world.rig.reader.counters().offloaded, 20);
    }
}

#[test]
fn every_split_of_records_into_packets() {
    for (version, cipher) in SUITES {
        for mss in 1..60 {
            let mut rig = TlsRig::new(version, cipher, u32::MAX - 200, 50);
            rig.control = 10;
            World::new(rig, mss as u64, quiet(mss)).run(10);
        }
    }
}

#[test]
fn faults_cost_speed_never_correctness() {
    for seed in seeds(120) {
        let mut dice = Dice::new(seed);
        let faults = drawn(&mut dice);
        let (version, cipher) = SUITES[dice.below(6) as usize];
        let tcpsn = if dice.percent(50) { u32::MAX - dice.below(50_000) as u32 } else { dice.below(1 << 32) as u32 };
        let largest = [0, 40, 3000, 16_000][dice.below(4) as usize];
        let largest = largest.min(faults.mss * 100);
        let control = [0, 10, 30][dice.below(3) as usize];
        let outcome = std::panic::catch_unwind(move || {
            let mut rig = TlsRig::new(version, cipher, tcpsn, largest);
            rig.control = control;
            let mut world = World::new(rig, seed, faults);
            world.run(30);
            world.rig.control = 0;
            world.check_return(14);
        });
        assert!(outcome.is_ok(), "NICFORGE_SEED={seed} {faults:?} {version:?} {cipher:?} largest {largest} {control}");
    }
}

#[test]
fn a_nic_that_proves_resynchronisation_believes_no_lie() {
    for seed in seeds(30) {
        let mut dice = Dice::new(seed);
        let mut faults = drawn(&mut dice);
        faults.lies = 60;
        faults.lies_numbers = true;
        faults.confirms_false = true;
        faults.loss = faults.loss.max(3);
        let (version, cipher) = SUITES[dice.below(6) as usize];
        let mut world = World::new(TlsRig::new(version, cipher, 5, 2000.min(faults.mss * 100)), seed, faults);
        world.run(30);
        world.check_return(20);
    }
}
