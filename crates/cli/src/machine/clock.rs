//! The clock and the cost of an atomic, by chains of instructions that wait for each other.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Effort;

/// Dependent instructions in a row, between which nothing else has to be done.
const ROW: usize = 32;

/// Seconds per unit, the fastest of several times; `work` does `units` of them.
pub fn fastest(effort: Effort, units: usize, mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64() / units as f64
    };
    // A clock that did not move would be a division by zero for whoever needs a rate.
    (0..effort.repeats).map(once).fold(f64::MAX, f64::min).max(1e-12)
}

/// Cycles per second: additions and exclusive ors in turn, each of which needs the one before. Every
/// processor of today takes a cycle for either.
pub fn frequency(effort: Effort) -> f64 {
    // Unknown to the compiler, so that it cannot do several at once.
    let (add, flip) = (black_box(0x9e37_79b9_7f4a_7c15u64), black_box(0x5bf0_3635u64));
    let mut value = black_box(1u64);
    let seconds = fastest(effort, effort.steps * ROW, || {
        for _ in 0..effort.steps {
            for _ in 0..ROW / 2 {
                value = value.wrapping_add(add) ^ flip;
            }
        }
        black_box(value);
    });
    1.0 / seconds
}

/// Seconds that an atomic addition to a word in the nearest cache takes, alone on its line.
pub fn atomic(effort: Effort) -> f64 {
    let word = AtomicU64::new(0);
    fastest(effort, effort.steps, || {
        for _ in 0..effort.steps {
            black_box(&word).fetch_add(1, Ordering::AcqRel);
        }
    })
}
