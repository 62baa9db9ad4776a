//! One set-associative cache: tags, recency, dirty bits. No latency, no policy between
//! levels: that is the hierarchy's.
//!
//! A set fits one cache line of the machine that simulates, and a look-up is two vector
//! compares, because this is where most of a simulation's time goes.

use nicforge_units::CACHE_LINE_BYTES;
use wide::{CmpEq, i8x16, i16x16, u8x16};

use super::CacheConfig;

/// Most ways that the model holds.
pub const WAYS_MAX: usize = 16;

/// Recency of a way that holds nothing: older than everything.
const EMPTY: u8 = u8::MAX;
/// Oldest recency of a way that holds a line.
const OLDEST: u8 = EMPTY - 1;

/// Which ways a fill may use; one bit per way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayMask(pub u16);

impl WayMask {
    /// The `count` lowest ways.
    pub fn lowest(count: usize) -> WayMask {
        WayMask(((1u32 << count) - 1) as u16)
    }

    /// The `count` highest of `ways` ways.
    pub fn highest(count: usize, ways: usize) -> WayMask {
        WayMask(WayMask::lowest(ways).0 & !WayMask::lowest(ways - count).0)
    }
}

/// What a cache says about a line that leaves it or is found in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineState {
    /// Memory does not have its content yet.
    pub dirty: bool,
    /// A device wrote it and nobody has read it since.
    pub fresh: bool,
}

/// A line that had to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Its number.
    pub line: u64,
    /// Its state when it left.
    pub state: LineState,
}

/// What a device's read of a run of lines met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRun {
    /// One bit per line that is not here.
    pub missing: u64,
    /// Lines that a device had written and nobody had read.
    pub fresh: u64,
}

/// What a device's write of a run of lines did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRun {
    /// Lines that were not here.
    pub allocated: u64,
    /// Dirty lines that made room.
    pub written_back: u64,
    /// Lines that made room and that nobody had read since a device wrote them.
    pub fresh_lost: u64,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set {
    tags: [i16; WAYS_MAX],
    /// 0 is the most recently used way.
    age: [u8; WAYS_MAX],
    valid: u16,
    dirty: u16,
    fresh: u16,
}

const EMPTY_SET: Set = Set {
    tags: [0; WAYS_MAX],
    age: [EMPTY; WAYS_MAX],
    valid: 0,
    dirty: 0,
    fresh: 0,
};

impl Set {
    /// The way that holds `tag`, as a bit, or 0.
    #[inline(always)]
    fn find(&self, tag: i16) -> u16 {
        let equal = i16x16::new(self.tags).simd_eq(i16x16::splat(tag));
        // All ones stay all ones, and zero stays zero, when saturated to a byte.
        i8x16::from_i16x16_saturate(equal).to_bitmask() as u16 & self.valid
    }

    /// Makes `way` the youngest: all that were younger age by one, up to `OLDEST`.
    #[inline(always)]
    fn touch(&mut self, way: usize) {
        let ages = u8x16::new(self.age);
        let bound = u8x16::splat(self.age[way].min(OLDEST));
        // All ones, which is -1, where the age is not below the bound.
        let keeps = ages.max(bound).simd_eq(ages);
        self.age = (ages + u8x16::splat(1) + keeps).to_array();
        self.age[way] = 0;
    }

    /// The least recently used of the allowed ways; empty ways, which are older than all, first.
    #[inline(always)]
    fn victim(&self, allowed: u16) -> usize {
        let mut best = 0;
        let mut oldest = 0;
        let mut rest = allowed;
        while rest != 0 {
            let way = rest.trailing_zeros() as usize & (WAYS_MAX - 1);
            rest &= rest - 1;
            if self.age[way] >= oldest {
                oldest = self.age[way];
                best = way;
            }
        }
        best
    }

    #[inline(always)]
    fn state(&self, bit: u16) -> LineState {
        LineState {
            dirty: self.dirty & bit != 0,
            fresh: self.fresh & bit != 0,
        }
    }
}

/// A cache.
pub struct Cache {
    sets: Vec<Set>,
    set_bits: u32,
    /// Spreads lines with equal index bits over the sets, as sliced LLCs do.
    hashed: bool,
}

impl Cache {
    /// A cache of `config`'s size and ways; `hashed` when its index is a hash of the address.
    pub fn new(config: &CacheConfig, hashed: bool) -> Cache {
        let sets = config.size.0 / CACHE_LINE_BYTES / config.ways as u64;
        assert!(
            sets.is_power_of_two() && config.ways <= WAYS_MAX,
            "a cache has a power of two of sets and at most {WAYS_MAX} ways"
        );
        Cache {
            sets: vec![EMPTY_SET; sets as usize],
            set_bits: sets.trailing_zeros(),
            hashed,
        }
    }

    /// How many lines of address space the model can tell apart.
    pub fn lines_max(&self) -> u64 {
        1 << (self.set_bits + 16)
    }

    #[inline(always)]
    fn place(&self, line: u64) -> (usize, i16) {
        let tag = line >> self.set_bits;
        let index = line ^ self.scramble(tag);
        (index as usize & (self.sets.len() - 1), tag as i16)
    }

    #[inline(always)]
    fn scramble(&self, tag: u64) -> u64 {
        if self.hashed {
            tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
        } else {
            0
        }
    }

    #[inline(always)]
    fn line_at(&self, set: usize, tag: i16) -> u64 {
        let tag = u64::from(tag as u16);
        let low = (set as u64 ^ self.scramble(tag)) & (self.sets.len() as u64 - 1);
        tag << self.set_bits | low
    }

    /// Finds `line` and makes it the most recently used.
    #[inline(always)]
    pub fn hit(&mut self, line: u64) -> Option<LineState> {
        let (set, tag) = self.place(line);
        let set = &mut self.sets[set];
        let bit = set.find(tag);
        if bit == 0 {
            return None;
        }
        set.touch(bit.trailing_zeros() as usize);
        Some(set.state(bit))
    }

    /// Finds `line`, makes it the most recently used and dirty; `fresh` as given.
    #[inline(always)]
    pub fn hit_write(&mut self, line: u64, fresh: bool) -> Option<LineState> {
        let (set, tag) = self.place(line);
        let set = &mut self.sets[set];
        let bit = set.find(tag);
        if bit == 0 {
            return None;
        }
        let state = set.state(bit);
        set.touch(bit.trailing_zeros() as usize);
        set.dirty |= bit;
        set.fresh = if fresh {
            set.fresh | bit
        } else {
            set.fresh & !bit
        };
        Some(state)
    }

    /// A device reads `count` (at most 64) lines from `first` on: those that are here keep their
    /// recency and are no longer fresh.
    #[inline]
    pub fn read_run(&mut self, first: u64, count: u64) -> ReadRun {
        let mut run = ReadRun::default();
        for offset in 0..count {
            let (set, tag) = self.place(first + offset);
            let set = &mut self.sets[set];
            let bit = set.find(tag);
            run.fresh += u64::from(set.fresh & bit != 0);
            run.missing |= u64::from(bit == 0) << offset;
            set.fresh &= !bit;
        }
        run
    }

    /// A device writes `count` lines from `first` on: each is updated where it is, or put into
    /// one of the `allowed` ways.
    #[inline]
    pub fn write_run(&mut self, first: u64, count: u64, allowed: WayMask) -> WriteRun {
        let mut run = WriteRun::default();
        for line in first..first + count {
            let (set, tag) = self.place(line);
            let set = &mut self.sets[set];
            let mut bit = set.find(tag);
            if bit == 0 {
                let way = set.victim(allowed.0);
                bit = 1 << way;
                run.written_back += u64::from(set.valid & set.dirty & bit != 0);
                run.fresh_lost += u64::from(set.valid & set.fresh & bit != 0);
                set.tags[way] = tag;
                set.valid |= bit;
                run.allocated += 1;
            }
            set.dirty |= bit;
            set.fresh |= bit;
            set.touch(bit.trailing_zeros() as usize & (WAYS_MAX - 1));
        }
        run
    }

    /// Whether `line` is here; changes nothing.
    pub fn holds(&self, line: u64) -> bool {
        let (set, tag) = self.place(line);
        self.sets[set].find(tag) != 0
    }

    /// Puts `line`, which must not be here, into one of the `allowed` ways.
    #[inline(always)]
    pub fn fill(&mut self, line: u64, allowed: WayMask, state: LineState) -> Option<Evicted> {
        let (index, tag) = self.place(line);
        let set = &mut self.sets[index];
        let way = set.victim(allowed.0);
        let bit = 1u16 << way;
        let evicted = (set.valid & bit != 0).then(|| (set.tags[way], set.state(bit)));
        set.tags[way] = tag;
        set.valid |= bit;
        set.dirty = if state.dirty {
            set.dirty | bit
        } else {
            set.dirty & !bit
        };
        set.fresh = if state.fresh {
            set.fresh | bit
        } else {
            set.fresh & !bit
        };
        set.touch(way);
        evicted.map(|(tag, state)| Evicted {
            line: self.line_at(index, tag),
            state,
        })
    }

    /// Takes `line` out.
    #[inline(always)]
    pub fn remove(&mut self, line: u64) -> Option<LineState> {
        let (set, tag) = self.place(line);
        let set = &mut self.sets[set];
        let bit = set.find(tag);
        if bit == 0 {
            return None;
        }
        let state = set.state(bit);
        set.valid &= !bit;
        set.age[bit.trailing_zeros() as usize] = EMPTY;
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_units::{Bytes, Time};

    const CLEAN: LineState = LineState {
        dirty: false,
        fresh: false,
    };

    fn cache(sets: u64, ways: usize) -> Cache {
        let config = CacheConfig {
            size: Bytes(sets * ways as u64 * CACHE_LINE_BYTES),
            ways,
            hit: Time::ZERO,
        };
        Cache::new(&config, false)
    }

    #[test]
    fn the_least_recently_used_line_makes_room() {
        let mut cache = cache(1, 4);
        let all = WayMask::lowest(4);
        for line in 0..4 {
            assert_eq!(cache.fill(line, all, CLEAN), None);
        }
        assert!(cache.hit(0).is_some());
        assert_eq!(cache.fill(4, all, CLEAN).map(|e| e.line), Some(1));
        assert!(cache.holds(0) && !cache.holds(1));
    }

    #[test]
    fn a_fill_stays_within_its_ways() {
        let mut cache = cache(1, 11);
        for line in 0..9 {
            cache.fill(line, WayMask::lowest(9), CLEAN);
        }
        let io = WayMask::highest(2, 11);
        assert_eq!(io, WayMask(0b110_0000_0000));
        for line in 100..110 {
            cache.fill(line, io, CLEAN);
        }
        assert!((0..9).all(|line| cache.holds(line)));
        assert_eq!((100..110).filter(|&line| cache.holds(line)).count(), 2);
    }

    #[test]
    fn a_cyclic_walk_over_capacity_never_hits_and_within_always_does() {
        let mut cache = cache(16, 4);
        let all = WayMask::lowest(4);
        for (lines, expected) in [(64u64, 64), (80, 0)] {
            cache.sets.fill(EMPTY_SET);
            for line in 0..lines {
                cache.fill(line, all, CLEAN);
            }
            let hits = (0..lines)
                .filter(|&line| {
                    let hit = cache.hit(line).is_some();
                    if !hit {
                        cache.fill(line, all, CLEAN);
                    }
                    hit
                })
                .count();
            assert_eq!(hits, expected, "{lines} lines over 64");
        }
    }

    #[test]
    fn eviction_names_the_line_and_its_state_under_a_hashed_index() {
        let config = CacheConfig {
            size: Bytes(64 * 2 * CACHE_LINE_BYTES),
            ways: 2,
            hit: Time::ZERO,
        };
        let mut cache = Cache::new(&config, true);
        let mut inside = std::collections::BTreeSet::new();
        for line in (0..4096).step_by(3) {
            let state = LineState {
                dirty: line % 2 == 0,
                fresh: line % 5 == 0,
            };
            inside.insert(line);
            if let Some(evicted) = cache.fill(line, WayMask::lowest(2), state) {
                assert!(inside.remove(&evicted.line));
                assert_eq!(evicted.state.dirty, evicted.line % 2 == 0);
                assert_eq!(evicted.state.fresh, evicted.line % 5 == 0);
            }
        }
        assert!(inside.iter().all(|&line| cache.holds(line)));
    }

    #[test]
    fn a_run_says_what_it_met() {
        let mut cache = cache(8, 4);
        let io = WayMask::highest(1, 4);
        let run = cache.write_run(4, 8, io);
        assert_eq!((run.allocated, run.written_back), (8, 0));
        assert_eq!(cache.write_run(4, 8, io).allocated, 0);
        let run = cache.write_run(12, 4, io);
        assert_eq!((run.written_back, run.fresh_lost), (4, 4));
        let run = cache.read_run(4, 12);
        assert_eq!((run.missing, run.fresh), (0b1111, 8));
    }

    #[test]
    fn removal_frees_the_way_first() {
        let mut cache = cache(1, 2);
        let all = WayMask::lowest(2);
        cache.fill(1, all, CLEAN);
        cache.fill(2, all, CLEAN);
        assert_eq!(cache.remove(2), Some(CLEAN));
        assert_eq!(cache.fill(3, all, CLEAN), None);
        assert!(cache.holds(1));
    }

    #[test]
    fn a_device_read_ends_freshness_but_not_dirtiness() {
        let mut cache = cache(1, 2);
        let written = LineState {
            dirty: true,
            fresh: true,
        };
        cache.fill(1, WayMask::lowest(2), written);
        let fresh = |cache: &mut Cache| cache.read_run(1, 1).fresh;
        assert_eq!(fresh(&mut cache), 1);
        assert_eq!(fresh(&mut cache), 0);
        assert!(cache.hit(1).is_some_and(|state| state.dirty));
    }
}
