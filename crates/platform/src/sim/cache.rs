//! One set-associative cache: tags, recency, dirty bits. No latency, no policy between
//! levels: that is the hierarchy's.
//!
//! A set fits one cache line of the machine that simulates, and a look-up is two vector
//! compares, because this is where most of a simulation's time goes.

mod set;

use nicforge_units::CACHE_LINE_BYTES;

use super::CacheConfig;
use set::{EMPTY_SET, Set};

/// Most ways that the model holds.
pub const WAYS_MAX: usize = 16;

/// Which ways a fill may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayMask {
    /// One bit per way.
    bits: u16,
    /// The age of the oldest line of a full set, when all ways are allowed.
    highest_age: u8,
}

impl WayMask {
    /// All of `ways` ways.
    pub fn all(ways: usize) -> WayMask {
        WayMask {
            bits: ((1u32 << ways) - 1) as u16,
            highest_age: ways as u8 - 1,
        }
    }

    /// The `count` highest of `ways` ways.
    pub fn highest(count: usize, ways: usize) -> WayMask {
        let lower = ((1u32 << (ways - count)) - 1) as u16;
        WayMask {
            bits: WayMask::all(ways).bits & !lower,
            // No line is that old: each of the few ways is looked at.
            highest_age: u8::MAX,
        }
    }

    /// Whether no way is allowed.
    pub fn is_empty(self) -> bool {
        self.bits == 0
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

/// A cache.
pub struct Cache {
    sets: Vec<Set>,
    set_bits: u32,
    /// Spreads lines with equal index bits over the sets, as sliced LLCs do; 0 when the index is
    /// not hashed.
    multiplier: u64,
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
            multiplier: if hashed { 0x9e37_79b9_7f4a_7c15 } else { 0 },
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
        tag.wrapping_mul(self.multiplier) >> 40
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

    /// Finds `line`, makes it the most recently used, dirty, and no longer fresh.
    #[inline(always)]
    pub fn hit_write(&mut self, line: u64) -> Option<LineState> {
        let (set, tag) = self.place(line);
        let set = &mut self.sets[set];
        let bit = set.find(tag);
        if bit == 0 {
            return None;
        }
        let state = set.state(bit);
        set.touch(bit.trailing_zeros() as usize);
        set.dirty |= bit;
        set.fresh &= !bit;
        Some(state)
    }

    /// A device reads `count` (at most 64) lines from `first` on: those that are here keep their
    /// recency and are no longer fresh.
    #[inline]
    pub fn read_run(&mut self, first: u64, count: u64) -> ReadRun {
        let mut run = ReadRun::default();
        let (start, tag) = self.run_start(first);
        for offset in 0..count {
            let Some(set) = self.run_set(start, offset) else {
                // The run goes on under the next tag.
                let rest = self.read_run(first + offset, count - offset);
                run.missing |= rest.missing << offset;
                run.fresh += rest.fresh;
                break;
            };
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
        let (start, tag) = self.run_start(first);
        for offset in 0..count {
            let Some(set) = self.run_set(start, offset) else {
                let rest = self.write_run(first + offset, count - offset, allowed);
                run.allocated += rest.allocated;
                run.written_back += rest.written_back;
                run.fresh_lost += rest.fresh_lost;
                break;
            };
            let mut bit = set.find(tag);
            if bit == 0 {
                let way = set.oldest_of(allowed);
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

    /// Where a run begins: the index before scrambling with the scramble of its tag, and the tag.
    #[inline(always)]
    fn run_start(&self, first: u64) -> ((u64, u64), i16) {
        let tag = first >> self.set_bits;
        let low = first & (self.sets.len() as u64 - 1);
        ((low, self.scramble(tag)), tag as i16)
    }

    /// The set `offset` lines into a run; `None` where the tag ends.
    #[inline(always)]
    fn run_set(&mut self, (low, scramble): (u64, u64), offset: u64) -> Option<&mut Set> {
        let sets = self.sets.len() as u64;
        let index = low + offset;
        (index < sets).then(|| &mut self.sets[((index ^ scramble) & (sets - 1)) as usize])
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
        let way = set.victim(allowed);
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
        set.forget(bit.trailing_zeros() as usize & (WAYS_MAX - 1));
        Some(state)
    }
}

#[cfg(test)]
mod tests;
