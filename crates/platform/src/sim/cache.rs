//! A core's private cache: tags, recency, dirty bits. No latency, no policy between levels:
//! that is the hierarchy's.
//!
//! A set fits one cache line of the machine that simulates, and a look-up is two vector
//! compares, because this is where most of a simulation's time goes.

mod private;
mod set;
mod two_way;

use nicforge_units::CACHE_LINE_BYTES;

use super::CacheConfig;
use super::ahead::expect;
use set::{EMPTY_SET, Set, TAG_BITS};

pub use private::{Kind, OwnCache, PrivateCaches, Sharing};

/// Most ways that the model holds.
pub const WAYS_MAX: usize = 16;

/// A line that had to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Its number.
    pub line: u64,
    /// Memory does not have its content yet.
    pub dirty: bool,
    /// Other caches may have it, too.
    pub shared: bool,
}

/// A cache.
pub struct Cache {
    sets: Vec<Set>,
    set_bits: u32,
    ways: usize,
}

impl Cache {
    /// An empty cache of `config`'s size and ways.
    pub fn new(config: &CacheConfig) -> Cache {
        let sets = Cache::sets(config);
        assert!(
            sets.is_power_of_two() && config.ways <= WAYS_MAX,
            "a cache has a power of two of sets and at most {WAYS_MAX} ways"
        );
        Cache { sets: vec![EMPTY_SET; sets as usize], set_bits: sets.trailing_zeros(), ways: config.ways }
    }

    fn sets(config: &CacheConfig) -> u64 {
        config.size.0 / CACHE_LINE_BYTES / config.ways as u64
    }

    /// How many lines of address space a cache of `config` can tell apart.
    pub fn lines_max(config: &CacheConfig) -> u64 {
        Cache::sets(config) << TAG_BITS
    }

    #[inline(always)]
    fn place(&self, line: u64) -> (usize, u32) {
        let index = line as usize & (self.sets.len() - 1);
        (index, (line >> self.set_bits) as u32)
    }
}

impl Cache {
    /// It will be asked for `line` soon.
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        expect(&self.sets, self.place(line).0);
    }
}

impl OwnCache for Cache {
    #[inline(always)]
    fn hit(&mut self, line: u64, write: bool) -> Option<Sharing> {
        let (set, tag) = self.place(line);
        let set = &mut self.sets[set];
        let bit = set.find(tag);
        if bit == 0 {
            return None;
        }
        set.touch(bit.trailing_zeros() as usize & (WAYS_MAX - 1));
        set.dirty |= if write { bit } else { 0 };
        Some(Sharing(set.shared & bit != 0))
    }

    fn share(&mut self, line: u64) -> bool {
        let (set, tag) = self.place(line);
        let bit = self.sets[set].find(tag);
        self.sets[set].shared |= bit;
        bit != 0
    }

    #[cfg(test)]
    fn holds(&self, line: u64) -> bool {
        let (set, tag) = self.place(line);
        self.sets[set].find(tag) != 0
    }

    #[inline(always)]
    fn next_out(&self, line: u64) -> Option<u64> {
        let (index, _) = self.place(line);
        let set = &self.sets[index];
        let way = set.victim(self.ways);
        let line = u64::from(set.tag(way)) << self.set_bits | index as u64;
        (set.valid & 1 << way != 0).then_some(line)
    }

    #[inline(always)]
    fn fill(&mut self, line: u64, dirty: bool, shared: bool) -> Option<Evicted> {
        let (index, tag) = self.place(line);
        let set = &mut self.sets[index];
        let way = set.victim(self.ways);
        let bit = 1u16 << way;
        let evicted = (set.valid & bit != 0).then(|| Evicted {
            line: u64::from(set.tag(way)) << self.set_bits | index as u64,
            dirty: set.dirty & bit != 0,
            shared: set.shared & bit != 0,
        });
        set.set_tag(way, tag);
        set.valid |= bit;
        set.dirty = set.dirty & !bit | if dirty { bit } else { 0 };
        set.shared = set.shared & !bit | if shared { bit } else { 0 };
        set.renew(way);
        evicted
    }

    #[inline(always)]
    fn remove(&mut self, line: u64) -> Option<bool> {
        let (set, tag) = self.place(line);
        let set = &mut self.sets[set];
        let bit = set.find(tag);
        if bit == 0 {
            return None;
        }
        set.valid &= !bit;
        set.forget(bit.trailing_zeros() as usize & (WAYS_MAX - 1));
        Some(set.dirty & bit != 0)
    }
}

#[cfg(test)]
mod tests;
