//! Seeds and draws, the same on every machine.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014): a bijection that spreads every input bit over the output.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The `index`th number of the SplitMix64 sequence that begins at `seed`.
pub(super) fn nth(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// A generator for one purpose, so that a change of one model leaves the others' draws alone.
pub(super) fn generator(seed: u64, purpose: u64) -> Pcg64 {
    Pcg64::seed_from_u64(nth(seed, purpose))
}

/// A number in [0, 1), in steps of 2^-53.
pub(super) fn unit(random: &mut Pcg64) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in 0..`bound`, by multiplication (bias below bound / 2^64).
pub(super) fn below(random: &mut Pcg64, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}
