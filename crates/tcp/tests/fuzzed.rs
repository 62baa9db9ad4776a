//! The fuzz targets' functions on bytes from a seed: a second's worth of what `fuzz/` does for longer.
//! `NICFORGE_FUZZ_SECONDS=600` goes on with further seeds for so long; `NICFORGE_TCP_SEED=N` repeats one.

mod exercise;

use std::time::{Duration, Instant};

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Names the seed when its round panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("NICFORGE_TCP_SEED={}", self.0);
        }
    }
}

fn random(target: fn(&[u8]), rounds: u64, most: u32) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let until = number("NICFORGE_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seeds = number("NICFORGE_TCP_SEED").map_or(0..u64::MAX, |seed| seed..seed + 1);
    for (round, seed) in (0..).zip(seeds) {
        if round >= rounds && until.is_none_or(|until| Instant::now() > until) {
            return;
        }
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut bytes = vec![0; (rng.next_u32() % most) as usize];
        rng.fill_bytes(&mut bytes);
        let _named = Seed(seed);
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

/// An acknowledgment that echoes a clock from far away, found by fuzzing: its age in milliseconds does not fit
/// microseconds.
#[test]
fn a_clock_that_was_never_sent_is_no_measurement() {
    const INPUT: &str = "81ff7f0a0b0b0b0b0a0b0b0b0b0b0b0ba00b0b0b7af9f981ff0a2f2fb7ffa1830023a9eed17b0444fdd64004040000000000\
        003b005555557a0a7a7a00000000000000c0ff8300a9eed17b04ff00f9f9f9f9f9f925f9f9f9f900000dd7f9f97ab17a0a24\
        f9e7f9f94d25f9f9f9f9f9f908f9f9f9f9f9f9f9ff00f9f944f9f9f9f9";
    let bytes: Vec<u8> =
        (0..INPUT.len()).step_by(2).map(|at| u8::from_str_radix(&INPUT[at..at + 2], 16).unwrap()).collect();
    exercise::segments(&bytes);
}
