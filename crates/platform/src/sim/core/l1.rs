//! Which lines a core's first-level data cache has.
//!
//! It only says how long an access to a line takes that the L2 has: what the L2 lacks is not looked for here, and
//! what others write is noticed there.

use nicforge_units::{Bytes, CACHE_LINE_BYTES};

/// Ways (Intel optimization manual, Skylake).
const WAYS: usize = 8;
/// The number of no line.
const EMPTY: u32 = u32::MAX;

/// The first-level data cache of a core, or none. A set has the numbers of its lines, the one used last in front.
pub struct L1 {
    sets: Vec<[u32; WAYS]>,
}

impl L1 {
    /// An empty one of this capacity, which makes a power of two of sets; none for 0.
    pub fn new(size: Bytes) -> L1 {
        let sets = size.0 / CACHE_LINE_BYTES / WAYS as u64;
        assert!(sets == 0 || sets.is_power_of_two(), "a cache has a power of two of sets");
        L1 { sets: vec![[EMPTY; WAYS]; sets as usize] }
    }

    /// Whether it has `line`, one of fewer than 2^32; it does from now on.
    #[inline(always)]
    pub fn has(&mut self, line: u64) -> bool {
        let mask = self.sets.len().wrapping_sub(1);
        let Some(set) = self.sets.get_mut(line as usize & mask) else { return false };
        let way = set.iter().position(|&other| other == line as u32);
        let last = way.unwrap_or(WAYS - 1);
        set.copy_within(0..last, 1);
        set[0] = line as u32;
        way.is_some()
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
}
