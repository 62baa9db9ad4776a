//! Latencies of the memory hierarchy, by a walk of pointers: each load's address is what the load
//! before found.

use std::hint::black_box;
use std::io;

use memmap2::{Advice, MmapMut};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::Effort;
use super::clock::fastest;

const LINE_WORDS: usize = 8;
const LINE_BYTES: usize = LINE_WORDS * 8;

/// Lines that are walked through before: more than a cache has.
const WARMED_LINES: usize = 1 << 20;

/// Memory, in large pages where the system gives them: else page walks would be measured too.
pub struct Arena(MmapMut);

impl Arena {
    /// `bytes` of zeros, a whole number of lines.
    ///
    /// # Errors
    /// There is not so much.
    pub fn new(bytes: usize) -> io::Result<Arena> {
        let map = MmapMut::map_anon(bytes.next_multiple_of(LINE_BYTES).max(2 * LINE_BYTES))?;
        // A system without large pages refuses; then the usual ones have to do.
        let _ = map.advise(Advice::HugePage);
        Ok(Arena(map))
    }

    /// All of it.
    pub fn words(&mut self) -> &mut [u64] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// A ring through every line of some memory, in random order.
pub struct Ring(Arena);

impl Ring {
    /// Through `bytes`.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn new(bytes: usize) -> io::Result<Ring> {
        let mut arena = Arena::new(bytes)?;
        let words = arena.words();
        let lines = words.len() / LINE_WORDS;
        let mut next: Vec<usize> = (0..lines).collect();
        let mut random = Pcg64::seed_from_u64(1);
        // Sattolo's shuffle: one cycle through all.
        for last in (1..lines).rev() {
            next.swap(last, random.next_u64() as usize % last);
        }
        for (line, next) in next.into_iter().enumerate() {
            words[line * LINE_WORDS] = (next * LINE_WORDS) as u64;
        }
        Ok(Ring(arena))
    }

    /// Seconds per load where `WALKS` walks go on at once.
    pub fn seconds_per_load<const WALKS: usize>(&mut self, effort: Effort) -> f64 {
        let words = self.0.words();
        let (lines, steps) = (words.len() / LINE_WORDS, effort.steps / WALKS);
        let mut at: [usize; WALKS] = std::array::from_fn(|n| n * lines / WALKS * LINE_WORDS);
        let mut walk = |steps: usize| {
            for _ in 0..steps {
                for at in &mut at {
                    *at = words[*at] as usize;
                }
            }
            black_box(&mut at);
        };
        // Whatever can be in a cache is in it.
        walk(lines.min(WARMED_LINES));
        fastest(effort, steps * WALKS, || walk(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_goes_through_every_line_once() {
        for bytes in [0, 128, 64 * 1000] {
            let mut ring = Ring::new(bytes).unwrap();
            let words = ring.0.words();
            let lines = words.len() / LINE_WORDS;
            let (mut at, mut seen) = (0, vec![false; lines]);
            for _ in 0..lines {
                assert!(!std::mem::replace(&mut seen[at / LINE_WORDS], true));
                at = words[at] as usize;
            }
            assert_eq!(at, 0, "and ends where it began");
        }
    }
}
