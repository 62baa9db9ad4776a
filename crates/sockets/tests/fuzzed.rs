//! The fuzz targets' functions on bytes from seeds. `NICFORGE_FUZZ_SECONDS=600` goes on with further seeds for so long.

use std::time::{Duration, Instant};

mod exercise;

/// Seeds of a test: those of `NICFORGE_EXERCISE_SEEDS=FROM..TO`, else `usual` ones and more while there is time.
fn seeds(usual: u64) -> impl Iterator<Item = u64> {
    let range = std::env::var("NICFORGE_EXERCISE_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let seconds = std::env::var("NICFORGE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let usual = if range.is_some() { u64::MAX } else { usual };
    let on = move |seed: &u64| *seed < usual || until.is_some_and(|until| Instant::now() < until);
    range.unwrap_or(0..u64::MAX).take_while(on)
}

/// Bytes that look random, the same every time.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(byte).take(len).collect()
}

#[test]
fn entries_of_any_kind_harm_only_their_author() {
    for seed in seeds(60) {
        exercise::entries(&noise(seed, 1500));
    }
}

#[test]
fn control_messages_of_any_kind_harm_nobody() {
    for seed in seeds(60) {
        exercise::requests(&noise(seed, 800));
    }
}

#[test]
fn calls_in_any_order_give_errors_that_posix_knows() {
    for seed in seeds(200) {
        exercise::calls(&noise(seed, 600));
    }
}
