//! How many bytes a second go through memory and caches.

use std::hint::black_box;
use std::io;

use super::Effort;
use super::chase::Arena;
use super::clock::fastest;

/// Bytes of an element of the triad's arrays.
const ELEMENT: usize = 8;
/// What memory moves for an element: two reads, a write, and the line that is read to be written
/// into (no processor knows that all of it will be overwritten).
pub const TRIAD_TRAFFIC: usize = 4 * ELEMENT;

/// Bytes per second that memory moves while `threads` threads do `a = b + 3 c` over arrays of `bytes`
/// together, as STREAM's triad (McCalpin 1995) does.
pub fn triad(effort: Effort, threads: usize, bytes: usize) -> f64 {
    let elements = (bytes / 3 / ELEMENT).max(threads);
    let mut a = vec![0.0f64; elements];
    let (b, c) = (vec![1.0f64; elements], vec![2.0f64; elements]);
    let part = elements.div_ceil(threads);
    let seconds = fastest(effort, elements * TRIAD_TRAFFIC, || {
        std::thread::scope(|scope| {
            let parts = a.chunks_mut(part).zip(b.chunks(part)).zip(c.chunks(part));
            for ((a, b), c) in parts {
                scope.spawn(move || {
                    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                        *a = b + 3.0 * c;
                    }
                    black_box(a);
                });
            }
        });
    });
    1.0 / seconds
}

/// Words read or copied at a time: so few that it ends before another program has its turn. Arrays
/// in memory are far larger, so that the next part is in no cache.
const PART: usize = (1 << 20) / ELEMENT;

/// Bytes per second that one core reads in order, `bytes` of them again and again.
pub fn reads(effort: Effort, bytes: usize) -> io::Result<f64> {
    let mut arena = Arena::new(bytes)?;
    let words = arena.words();
    words.fill(1);
    let part = words.len().min(PART);
    let mut parts = words.chunks_exact(part).cycle();
    let passes = PART / part;
    let seconds = fastest(effort, passes * part * ELEMENT, || {
        for words in parts.by_ref().take(passes) {
            let sum = words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
            black_box(sum);
        }
    });
    Ok(1.0 / seconds)
}

/// Bytes per second that one core copies between two halves of `bytes`.
pub fn copies(effort: Effort, bytes: usize) -> io::Result<f64> {
    let mut arena = Arena::new(bytes)?;
    let words = arena.words();
    words.fill(1);
    let (from, to) = words.split_at_mut(words.len() / 2);
    let part = from.len().min(PART);
    let (passes, parts) = (PART / part, from.len() / part);
    let mut next = 0;
    let seconds = fastest(effort, passes * part * ELEMENT, || {
        for _ in 0..passes {
            let here = next * part..(next + 1) * part;
            to[here.clone()].copy_from_slice(&from[here]);
            black_box(&mut *to);
            next = (next + 1) % parts;
        }
    });
    Ok(1.0 / seconds)
}
