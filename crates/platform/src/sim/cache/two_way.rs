//! A cache of two ways, as small first-level caches are. A set is two words, the line that was used
//! last in the first of them, so that its order is the order of their use.

use nicforge_units::CACHE_LINE_BYTES;

use super::{Evicted, OwnCache, Sharing};
use crate::sim::CacheConfig;

/// A line's number and, in the lowest bit, whether memory lacks its content.
type Entry = u32;
/// No line: its number is above [`TwoWayCache::LINES_MAX`].
const EMPTY: Entry = u32::MAX;
const DIRTY: Entry = 1;
/// There is no room to note whether others have a line.
const MAYBE: Sharing = Sharing(true);

/// A cache of two ways.
pub struct TwoWayCache {
    sets: Vec<[Entry; 2]>,
}

impl TwoWayCache {
    /// Lines of address space that it can tell apart.
    pub const LINES_MAX: u64 = (EMPTY >> 1) as u64;

    /// An empty cache of `config`'s size.
    pub fn new(config: &CacheConfig) -> TwoWayCache {
        let sets = config.size.0 / CACHE_LINE_BYTES / 2;
        assert!(sets.is_power_of_two(), "a cache has a power of two of sets, and this one two ways");
        TwoWayCache { sets: vec![[EMPTY; 2]; sets as usize] }
    }

    #[inline(always)]
    fn set(&mut self, line: u64) -> &mut [Entry; 2] {
        let mask = self.sets.len() - 1;
        &mut self.sets[line as usize & mask]
    }
}

impl OwnCache for TwoWayCache {
    #[inline(always)]
    fn hit(&mut self, line: u64, write: bool) -> Option<Sharing> {
        let clean = (line as Entry) << 1;
        let set = self.set(line);
        if set[0] & !DIRTY == clean {
            set[0] |= Entry::from(write);
            return Some(MAYBE);
        }
        if set[1] & !DIRTY == clean {
            *set = [set[1] | Entry::from(write), set[0]];
            return Some(MAYBE);
        }
        None
    }

    fn share(&mut self, line: u64) -> bool {
        let set = self.set(line);
        set.iter().any(|entry| entry >> 1 == line as Entry)
    }

    #[cfg(test)]
    fn holds(&self, line: u64) -> bool {
        let set = self.sets[line as usize & (self.sets.len() - 1)];
        set.iter().any(|entry| entry >> 1 == line as Entry)
    }

    #[inline(always)]
    fn next_out(&self, line: u64) -> Option<u64> {
        let last = self.sets[line as usize & (self.sets.len() - 1)][1];
        (last != EMPTY).then_some(u64::from(last >> 1))
    }

    #[inline(always)]
    fn fill(&mut self, line: u64, dirty: bool, _shared: bool) -> Option<Evicted> {
        let set = self.set(line);
        let [first, last] = *set;
        *set = [(line as Entry) << 1 | Entry::from(dirty), first];
        (last != EMPTY).then_some(Evicted { line: u64::from(last >> 1), dirty: last & DIRTY != 0, shared: MAYBE.0 })
    }

    #[inline(always)]
    fn remove(&mut self, line: u64) -> Option<bool> {
        let set = self.set(line);
        let way = set.iter().position(|entry| entry >> 1 == line as Entry)?;
        let dirty = set[way] & DIRTY != 0;
        *set = [set[1 - way], EMPTY];
        Some(dirty)
    }
}

#[cfg(test)]
mod tests {
    use nicforge_units::{Bytes, Time};

    use super::*;
    use crate::sim::cache::Cache;

    #[test]
    fn it_does_what_a_cache_of_any_ways_does() {
        let config = CacheConfig { size: Bytes(16 * 2 * CACHE_LINE_BYTES), ways: 2, hit: Time::ZERO };
        let (mut two, mut any) = (TwoWayCache::new(&config), Cache::new(&config));
        // Numerical Recipes' generator; its upper bits are disorder enough.
        let mut state = 1u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        let (mut hits, mut evictions) = (0, 0);
        for _ in 0..20_000 {
            let (line, flag) = (u64::from(draw(64)), draw(2) == 0);
            if draw(4) == 0 {
                assert_eq!(two.remove(line), any.remove(line));
            } else if two.hit(line, flag).is_some() {
                assert!(any.hit(line, flag).is_some() && two.holds(line));
                hits += 1;
            } else {
                assert!(any.hit(line, flag).is_none() && !two.holds(line));
                // A cache of two ways takes every line for shared.
                let evicted = two.fill(line, flag, true);
                assert_eq!(evicted, any.fill(line, flag, true));
                evictions += usize::from(evicted.is_some());
            }
        }
        assert!(hits > 1000 && evictions > 1000, "{hits} {evictions}");
    }
}
