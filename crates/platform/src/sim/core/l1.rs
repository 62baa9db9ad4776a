//! Which lines a core's first-level data cache has.
//!
//! It only says how long an access to a line takes that the L2 has: what the L2 lacks is not looked for here, and
//! what others write is noticed there.

use nicforge_units::{Bytes, CACHE_LINE_BYTES};
use wide::{CmpEq, u32x8};

/// Ways (Intel optimization manual, Skylake).
const WAYS: usize = 8;
/// The number of no line.
const EMPTY: u32 = u32::MAX;
/// A one in each four bits.
const ONES: u32 = 0x1111_1111;

/// The first-level data cache of a core, or none. Most accesses are looked for here, so neither a look-up nor the order of use
/// takes a loop.
pub struct L1 {
    sets: Vec<Set>,
}

/// The ways of one index.
#[derive(Clone, Copy)]
struct Set {
    /// The number of each way's line.
    lines: [u32; WAYS],
    /// The numbers of the ways in the order of their use, four bits each, the one used last in the lowest.
    order: u32,
}

const EMPTY_SET: Set = Set { lines: [EMPTY; WAYS], order: 0x7654_3210 };

impl Set {
    /// `way` was used.
    #[inline(always)]
    fn touch(&mut self, way: u32) {
        // Zero where the way stands; the borrow sets the highest bit of the lowest such four bits.
        let others = self.order ^ (way * ONES);
        let place = (others.wrapping_sub(ONES) & !others & (ONES << 3)).trailing_zeros() & !3;
        // Those in front of it move back by one place.
        let moving = (0xf << place) | ((1 << place) - 1);
        self.order = (self.order & !moving) | ((self.order << 4 | way) & moving);
    }

    /// `line` takes the way that was used longest ago.
    #[inline(always)]
    fn fill(&mut self, line: u32) {
        let way = self.order >> (4 * (WAYS - 1));
        self.lines[way as usize % WAYS] = line;
        self.order = self.order << 4 | way;
    }
}

impl L1 {
    /// An empty one of this capacity, which makes a power of two of sets; none for 0.
    pub fn new(size: Bytes) -> L1 {
        let sets = size.0 / CACHE_LINE_BYTES / WAYS as u64;
        assert!(sets == 0 || sets.is_power_of_two(), "a cache has a power of two of sets");
        L1 { sets: vec![EMPTY_SET; sets as usize] }
    }

    /// Whether it has `line`, one of fewer than 2^32; it does from now on.
    #[inline(always)]
    pub fn has(&mut self, line: u64) -> bool {
        let mask = self.sets.len().wrapping_sub(1);
        let Some(set) = self.sets.get_mut(line as usize & mask) else { return false };
        let line = line as u32;
        let found = u32x8::new(set.lines).simd_eq(u32x8::splat(line)).to_bitmask();
        match found {
            0 => set.fill(line),
            _ => set.touch(found.trailing_zeros()),
        }
        found != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_was_used_last() {
        let mut l1 = L1::new(Bytes(32 << 10));
        assert!((0..512).all(|line| !l1.has(line)));
        assert!((0..512).all(|line| l1.has(line)));
        // A walk over more than fits finds nothing again.
        assert!((0..1024).filter(|&line| l1.has(line)).count() <= 512);
        assert!((0..512).all(|line| !l1.has(line)));
        assert!(!L1::new(Bytes(0)).has(3));
    }

    #[test]
    fn what_was_used_longest_ago_leaves() {
        let (mut l1, mut order) = (L1::new(Bytes(512)), std::collections::VecDeque::new());
        let mut state = 1u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let line = u64::from((state >> 16) % 13);
            let place = order.iter().position(|&other| other == line);
            assert_eq!(l1.has(line), place.is_some());
            if let Some(place) = place {
                order.remove(place);
            }
            order.push_front(line);
            order.truncate(WAYS);
        }
    }
}
