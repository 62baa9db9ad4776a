//! The caches that cores have for themselves, whatever their ways.

use super::two_way::TwoWayCache;
use super::{Cache, Evicted};
use crate::sim::CacheConfig;

/// Whether other caches may have a line of this one, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing(pub bool);

/// What every core's own cache does.
pub trait OwnCache {
    /// Finds `line` and makes it the most recently used, and dirty if it is written.
    fn hit(&mut self, line: u64, write: bool) -> Option<Sharing>;

    /// Whether `line` is here, which another cache gets, too.
    fn share(&mut self, line: u64) -> bool;

    /// Whether `line` is here.
    #[cfg(test)]
    fn holds(&self, line: u64) -> bool;

    /// Which line would make room for `line`, which is not here.
    fn next_out(&self, line: u64) -> Option<u64>;

    /// Puts `line`, which must not be here, into the cache; others have it, too, if it is `shared`.
    fn fill(&mut self, line: u64, dirty: bool, shared: bool) -> Option<Evicted>;

    /// Takes `line` out; says whether it was dirty.
    fn remove(&mut self, line: u64) -> Option<bool>;
}

/// A core's own cache.
pub enum Kind<'a> {
    /// Of any number of ways.
    Ways(&'a mut Cache),
    /// Of two.
    TwoWays(&'a mut TwoWayCache),
}

/// The own caches of all cores, by number. One of the two lists is empty, so that whether a core has
/// a cache of the first kind is one question with whether there is such a core.
pub struct PrivateCaches {
    ways: Vec<Cache>,
    two_ways: Vec<TwoWayCache>,
}

impl PrivateCaches {
    /// `cores` empty caches of `config`'s size and ways.
    pub fn new(cores: usize, config: &CacheConfig) -> PrivateCaches {
        let (mut ways, mut two_ways) = (Vec::new(), Vec::new());
        match config.ways {
            2 => two_ways.extend((0..cores).map(|_| TwoWayCache::new(config))),
            _ => ways.extend((0..cores).map(|_| Cache::new(config))),
        }
        PrivateCaches { ways, two_ways }
    }

    /// How many lines of address space caches of `config` can tell apart.
    pub fn lines_max(config: &CacheConfig) -> u64 {
        match config.ways {
            2 => TwoWayCache::LINES_MAX,
            _ => Cache::lines_max(config),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ways.len() + self.two_ways.len()
    }

    /// That of `core`.
    #[inline(always)]
    pub fn of(&mut self, core: usize) -> Kind<'_> {
        match self.ways.get_mut(core) {
            Some(cache) => Kind::Ways(cache),
            None => Kind::TwoWays(&mut self.two_ways[core]),
        }
    }

    /// Which line would leave `core`'s for `line`, which is not there.
    #[inline(always)]
    pub fn next_out(&self, core: usize, line: u64) -> Option<u64> {
        match self.ways.get(core) {
            Some(cache) => cache.next_out(line),
            None => self.two_ways[core].next_out(line),
        }
    }

    /// `core`'s will be asked for `line` soon.
    #[inline(always)]
    pub fn expect(&self, core: usize, line: u64) {
        if let Some(cache) = self.ways.get(core) {
            cache.expect(line);
        }
    }

    /// `core`'s will be asked for a `few` lines, counted from `line`, soon, and if `pairs` for the other line of the 128 bytes
    /// of each.
    #[inline(always)]
    pub fn expect_few(&self, core: usize, line: u64, few: [u64; 4], pairs: bool) {
        if let Some(cache) = self.ways.get(core) {
            for behind in few {
                cache.expect(line.wrapping_add(behind));
                if pairs {
                    cache.expect(line.wrapping_add(behind) ^ 1);
                }
            }
        }
    }

    /// Whether `core`'s has `line`.
    #[cfg(test)]
    pub fn holds(&self, core: usize, line: u64) -> bool {
        match self.ways.get(core) {
            Some(cache) => cache.holds(line),
            None => self.two_ways[core].holds(line),
        }
    }
}

impl Kind<'_> {
    /// As [`OwnCache::hit`].
    #[inline(always)]
    pub fn hit(self, line: u64, write: bool) -> Option<Sharing> {
        match self {
            Kind::Ways(cache) => cache.hit(line, write),
            Kind::TwoWays(cache) => cache.hit(line, write),
        }
    }

    /// As [`OwnCache::share`].
    #[inline(always)]
    pub fn share(self, line: u64) -> bool {
        match self {
            Kind::Ways(cache) => cache.share(line),
            Kind::TwoWays(cache) => cache.share(line),
        }
    }

    /// As [`OwnCache::fill`].
    #[inline(always)]
    pub fn fill(self, line: u64, dirty: bool, shared: bool) -> Option<Evicted> {
        match self {
            Kind::Ways(cache) => cache.fill(line, dirty, shared),
            Kind::TwoWays(cache) => cache.fill(line, dirty, shared),
        }
    }

    /// As [`OwnCache::remove`].
    #[inline(always)]
    pub fn remove(self, line: u64) -> Option<bool> {
        match self {
            Kind::Ways(cache) => cache.remove(line),
            Kind::TwoWays(cache) => cache.remove(line),
        }
    }
}
