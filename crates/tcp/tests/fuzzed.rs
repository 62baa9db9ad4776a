//! The fuzz targets' functions on bytes from a seed: a second's worth of what `fuzz/` does for longer.

mod exercise;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

fn random(target: fn(&[u8]), rounds: u64, most: u32) {
    let first = std::env::var("NICFORGE_TCP_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in first.map_or(0..rounds, |seed: u64| seed..seed + 1) {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut bytes = vec![0; (rng.next_u32() % most) as usize];
        rng.fill_bytes(&mut bytes);
        eprintln!("NICFORGE_TCP_SEED={seed}");
        target(&bytes);
    }
}

#[test]
fn segments_against_each_state() {
    random(exercise::segments, 800, 1500);
}

#[test]
fn entries_of_context_queues() {
    random(exercise::queues, 3000, 2000);
}

#[test]
fn calls_in_random_order() {
    random(exercise::calls, 500, 1500);
}
