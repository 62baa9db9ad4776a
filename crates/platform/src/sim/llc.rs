//! The last-level cache: which lines its ways hold, and which line makes room.
//!
//! Whether a line is here says the line's own word (lines.rs); the ways are looked at only to
//! choose what makes room. The ways that devices may write into lie apart from the others, so
//! that a device's run of lines walks through few lines of the machine that simulates.

use nicforge_units::CACHE_LINE_BYTES;

use super::CacheConfig;
use super::cache::WAYS_MAX;
use super::lines::{self, Line, LineState};

/// A way that holds nothing.
const NOTHING: u32 = u32::MAX;
/// How long ago an empty way was used: longer than any line.
const LONG_AGO: u32 = 1 << 31;

/// One way of one set.
#[derive(Clone, Copy)]
struct Way {
    /// The number of the line.
    line: u32,
    /// The clock when it was last used.
    used: u32,
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

/// The last-level cache, with the words of all lines of memory.
pub struct Llc {
    /// All lines of memory, by number.
    pub lines: Vec<Line>,
    /// `io_ways` ways of each set, numbered from 0.
    io: Vec<Way>,
    /// The other ways of each set, numbered from `io_ways`.
    rest: Vec<Way>,
    io_ways: usize,
    rest_ways: usize,
    set_bits: u32,
    /// Counts operations: who was used at the lowest count makes room. It may wrap: only
    /// differences count.
    clock: u32,
}

impl Llc {
    /// An empty LLC as `config` describes it, `io_ways` of its ways open to devices, over `lines`
    /// lines of memory.
    pub fn new(config: &CacheConfig, io_ways: usize, lines: u64) -> Llc {
        let sets = config.size.0 / CACHE_LINE_BYTES / config.ways as u64;
        assert!(
            sets.is_power_of_two() && config.ways <= WAYS_MAX && lines < u64::from(NOTHING),
            "an LLC has a power of two of sets, at most {WAYS_MAX} ways, and lines of 32 bits"
        );
        let rest_ways = config.ways - io_ways;
        let empty = Way {
            line: NOTHING,
            used: LONG_AGO,
        };
        Llc {
            lines: vec![Line::default(); lines as usize],
            io: vec![empty; sets as usize * io_ways],
            rest: vec![empty; sets as usize * rest_ways],
            io_ways,
            rest_ways,
            set_bits: sets.trailing_zeros(),
            clock: 0,
        }
    }

    /// The set of `line`: a hash of the address, as in sliced LLCs. As many consecutive lines as
    /// there are sets go to different ones.
    #[inline(always)]
    fn set(&self, line: u64) -> usize {
        let block = line >> self.set_bits;
        let scramble = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        ((line ^ scramble) & ((1 << self.set_bits) - 1)) as usize
    }

    #[inline(always)]
    fn way_mut(&mut self, set: usize, way: usize) -> &mut Way {
        if way < self.io_ways {
            &mut self.io[set * self.io_ways + way]
        } else {
            &mut self.rest[set * self.rest_ways + way - self.io_ways]
        }
    }

    /// Takes `line` out.
    #[inline(always)]
    pub fn remove(&mut self, line: u64) -> Option<LineState> {
        let word = &mut self.lines[line as usize];
        let way = word.way()?;
        let state = word.state();
        word.leave();
        let used = self.clock.wrapping_sub(LONG_AGO);
        let set = self.set(line);
        *self.way_mut(set, way) = Way {
            line: NOTHING,
            used,
        };
        Some(state)
    }

    /// A device writes `count` lines from `first` on somewhere else: takes out those that are here.
    pub fn remove_run(&mut self, first: u64, count: u64) {
        let run = first as usize..(first + count) as usize;
        if lines::any_in_llc(&self.lines[run.clone()]) {
            for line in first..first + count {
                self.remove(line);
            }
        }
        for word in &mut self.lines[run] {
            word.touch();
        }
    }

    /// A core's content of `line`, which is here, is newer.
    pub fn update(&mut self, line: u64) {
        let Some(way) = self.lines[line as usize].way() else {
            return;
        };
        let state = LineState {
            dirty: true,
            fresh: false,
        };
        self.lines[line as usize].enter(way, state);
        self.clock = self.clock.wrapping_add(1);
        let used = self.clock;
        let set = self.set(line);
        self.way_mut(set, way).used = used;
    }

    /// Puts `line`, which must not be here, into any way; returns the state of what made room.
    #[inline]
    pub fn fill(&mut self, line: u64, state: LineState) -> Option<LineState> {
        self.clock = self.clock.wrapping_add(1);
        let set = self.set(line);
        let io = &mut self.io[set * self.io_ways..][..self.io_ways];
        let rest = &mut self.rest[set * self.rest_ways..][..self.rest_ways];
        let (in_io, io_age) = oldest(io, self.clock);
        let (in_rest, rest_age) = oldest(rest, self.clock);
        let (way, number) = if self.io_ways > 0 && io_age >= rest_age {
            (&mut io[in_io], in_io)
        } else {
            (&mut rest[in_rest], self.io_ways + in_rest)
        };
        let before = way.line;
        *way = Way {
            line: line as u32,
            used: self.clock,
        };
        let evicted = (before != NOTHING).then(|| {
            let word = &mut self.lines[before as usize];
            let state = word.state();
            word.leave();
            state
        });
        self.lines[line as usize].enter(number, state);
        evicted
    }

    /// A device writes `count` lines from `first` on: each is updated where it is, or put into
    /// one of the I/O ways, of which there must be one. The lines of a run are used at the same
    /// time, so it should visit no set twice.
    #[inline]
    pub fn write_run(&mut self, first: u64, count: u64) -> WriteRun {
        // Two I/O ways are the usual case, and much of a simulation's time goes here: for a
        // number that the compiler knows it needs no loop.
        match self.io_ways {
            2 => self.write_run_into(first, count, |io, set| &mut io.as_chunks_mut::<2>().0[set]),
            ways => self.write_run_into(first, count, |io, set| &mut io[set * ways..][..ways]),
        }
    }

    #[inline(always)]
    fn write_run_into(
        &mut self,
        first: u64,
        count: u64,
        io_ways_of: impl Fn(&mut [Way], usize) -> &mut [Way],
    ) -> WriteRun {
        let mut run = WriteRun::default();
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        // The lines of a run nearly always lie in one block, whose scramble is the same.
        let mask = (1u64 << self.set_bits) - 1;
        let scramble = self.set(first) as u64 ^ (first & mask);
        let one_block = (first ^ (first + count - 1)) >> self.set_bits == 0;
        let set_of = |llc: &Llc, line: u64| match one_block {
            true => ((line ^ scramble) & mask) as usize,
            false => llc.set(line),
        };
        for line in first..first + count {
            let set = set_of(self, line);
            if let Some(way) = self.lines[line as usize].way() {
                self.way_mut(set, way).used = clock;
                self.lines[line as usize].written(way);
                continue;
            }
            let io = io_ways_of(&mut self.io, set);
            let (way, _) = oldest(io, clock);
            let before = io[way].line;
            io[way] = Way {
                line: line as u32,
                used: clock,
            };
            run.allocated += 1;
            if let Some(word) = self.lines.get_mut(before as usize) {
                let state = word.state();
                run.written_back += u64::from(state.dirty);
                run.fresh_lost += u64::from(state.fresh);
                word.leave();
            }
            self.lines[line as usize].written(way);
        }
        run
    }
}

/// The way that was not used for longest, and for how long; the first of equals.
#[inline(always)]
fn oldest(ways: &[Way], clock: u32) -> (usize, u32) {
    // Eight ways are usual, and with a number that the compiler knows it needs no loop.
    match <&[Way; 8]>::try_from(ways) {
        Ok(ways) => oldest_of(ways, clock),
        Err(_) => oldest_of(ways, clock),
    }
}

#[inline(always)]
fn oldest_of(ways: &[Way], clock: u32) -> (usize, u32) {
    let (mut number, mut age) = (0, 0);
    for (other, way) in ways.iter().enumerate() {
        let other_age = clock.wrapping_sub(way.used);
        number = if other_age > age { other } else { number };
        age = age.max(other_age);
    }
    (number, age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_units::{Bytes, Time};

    const CLEAN: LineState = LineState {
        dirty: false,
        fresh: false,
    };

    fn llc(sets: u64, ways: usize, io_ways: usize) -> Llc {
        let config = CacheConfig {
            size: Bytes(sets * ways as u64 * CACHE_LINE_BYTES),
            ways,
            hit: Time::ZERO,
        };
        Llc::new(&config, io_ways, 1 << 16)
    }

    fn holds(llc: &Llc, line: u64) -> bool {
        llc.lines[line as usize].way().is_some()
    }

    #[test]
    fn the_least_recently_used_line_makes_room() {
        let mut llc = llc(1, 4, 1);
        for line in 0..4 {
            assert_eq!(llc.fill(line, CLEAN), None);
        }
        llc.update(0);
        llc.fill(4, CLEAN);
        assert!(holds(&llc, 0) && !holds(&llc, 1));
    }

    #[test]
    fn device_writes_stay_within_the_io_ways() {
        let mut llc = llc(1, 11, 2);
        for line in 0..11 {
            llc.fill(line, CLEAN);
        }
        for line in 100..110 {
            llc.write_run(line, 1);
        }
        assert_eq!((0..11).filter(|&line| holds(&llc, line)).count(), 9);
        assert_eq!((100..110).filter(|&line| holds(&llc, line)).count(), 2);
    }

    #[test]
    fn a_cyclic_walk_over_capacity_never_hits_and_within_always_does() {
        for (lines, expected) in [(64u64, 64), (80, 0)] {
            let mut llc = llc(16, 4, 4);
            let mut walk = || -> u64 {
                let runs = (0..lines).step_by(16);
                runs.map(|first| 16 - llc.write_run(first, 16).allocated)
                    .sum()
            };
            walk();
            assert_eq!(walk(), expected, "{lines} lines over 64");
        }
    }

    #[test]
    fn an_eviction_says_the_state_of_the_line_that_left() {
        let mut llc = llc(64, 2, 1);
        let state = |line: u64| LineState {
            dirty: line.is_multiple_of(2),
            fresh: line.is_multiple_of(5),
        };
        let mut inside = std::collections::BTreeSet::new();
        for line in (0..4096).step_by(3) {
            let evicted = llc.fill(line, state(line));
            inside.insert(line);
            let left: Vec<u64> = inside
                .iter()
                .copied()
                .filter(|&line| !holds(&llc, line))
                .collect();
            assert_eq!(left.first().map(|&line| state(line)), evicted);
            left.iter().for_each(|line| {
                inside.remove(line);
            });
        }
        assert_eq!(inside.len(), 128);
    }

    #[test]
    fn a_run_says_what_it_met() {
        let mut llc = llc(8, 4, 1);
        let run = llc.write_run(4, 8);
        assert_eq!((run.allocated, run.written_back), (8, 0));
        assert_eq!(llc.write_run(4, 8).allocated, 0);
        let run = llc.write_run(12, 4);
        assert_eq!((run.written_back, run.fresh_lost), (4, 4));
    }

    #[test]
    fn removal_frees_the_way_first() {
        let mut llc = llc(1, 2, 0);
        llc.fill(1, CLEAN);
        llc.fill(2, CLEAN);
        assert_eq!(llc.remove(2), Some(CLEAN));
        assert_eq!(llc.fill(3, CLEAN), None);
        assert!(holds(&llc, 1));
    }
}
