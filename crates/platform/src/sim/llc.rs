//! The last-level cache: which lines its ways hold, and which line makes room.
//!
//! Whether a line is here says the line's own word (lines.rs); the ways are looked at only to
//! choose what makes room. The ways that devices may write into lie apart from the others, so
//! that a device's run of lines walks through few lines of the machine that simulates.

use nicforge_units::CACHE_LINE_BYTES;

use super::CacheConfig;
use super::ahead::{expect, table};
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

/// The last-level cache, with the words of all lines of memory.
pub struct Llc {
    /// All lines of memory, by number.
    pub lines: Vec<Line>,
    ways: Ways,
}

/// Which line each way holds.
struct Ways {
    /// `io_ways` ways of each set, numbered from 0.
    io: Vec<Way>,
    /// The other ways of each set, numbered from `io_ways`.
    rest: Vec<Way>,
    io_ways: usize,
    rest_ways: usize,
    /// Where all ways are alike, because devices may write into all of them or into none, they are
    /// the rest, and these bits say which ways of each set are empty, whatever stands there; else
    /// there are none.
    empty: Vec<u16>,
    set_bits: u32,
    /// As many bits, all of them set.
    set_mask: u64,
    /// Counts operations: who was used at the lowest count makes room. It may wrap: only
    /// differences count.
    clock: u32,
}

impl Ways {
    fn new(config: &CacheConfig, io_ways: usize) -> Ways {
        let sets = config.size.0 / CACHE_LINE_BYTES / config.ways as u64;
        assert!(
            sets.is_power_of_two() && config.ways <= WAYS_MAX,
            "an LLC has a power of two of sets, and at most {WAYS_MAX} ways"
        );
        let alike = io_ways == 0 || io_ways == config.ways;
        let io_ways = if alike { 0 } else { io_ways };
        let rest_ways = config.ways - io_ways;
        let nothing = Way {
            line: NOTHING,
            used: LONG_AGO,
        };
        let all_empty = ((1u32 << config.ways) - 1) as u16;
        Ways {
            io: table(nothing, sets as usize * io_ways),
            rest: table(nothing, sets as usize * rest_ways),
            io_ways,
            rest_ways,
            empty: vec![all_empty; if alike { sets as usize } else { 0 }],
            set_bits: sets.trailing_zeros(),
            set_mask: sets - 1,
            clock: 0,
        }
    }

    /// The set of `line`: a hash of the address, as in sliced LLCs. As many consecutive lines as
    /// there are sets go to different ones.
    #[inline(always)]
    fn set(&self, line: u64) -> usize {
        let block = line >> self.set_bits;
        let scramble = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        ((line ^ scramble) & self.set_mask) as usize
    }

    #[inline(always)]
    fn way_mut(&mut self, set: usize, way: usize) -> &mut Way {
        if way < self.io_ways {
            &mut self.io[set * self.io_ways + way]
        } else {
            &mut self.rest[set * self.rest_ways + way - self.io_ways]
        }
    }

    /// `line` leaves `way` of its set.
    #[inline(always)]
    fn vacate(&mut self, line: u64, way: usize) {
        let set = self.set(line);
        if let Some(empty) = self.empty.get_mut(set) {
            *empty |= 1 << way;
        } else {
            let used = self.clock.wrapping_sub(LONG_AGO);
            *self.way_mut(set, way) = Way {
                line: NOTHING,
                used,
            };
        }
    }

    /// The way of `set` that was not used for longest.
    #[inline(always)]
    fn oldest_any(&self, set: usize) -> usize {
        let io = &self.io[set * self.io_ways..][..self.io_ways];
        let rest = &self.rest[set * self.rest_ways..][..self.rest_ways];
        let (in_io, io_age) = oldest(io, self.clock);
        let (in_rest, rest_age) = oldest(rest, self.clock);
        match self.io_ways > 0 && io_age >= rest_age {
            true => in_io,
            false => self.io_ways + in_rest,
        }
    }

    /// Which way of `set` makes room: an empty one if there is one.
    #[inline(always)]
    fn choose(&self, set: usize) -> usize {
        match self.empty.get(set) {
            None | Some(0) => self.oldest_any(set),
            Some(empty) => empty.trailing_zeros() as usize,
        }
    }

    /// What `way` of `set` holds.
    #[inline(always)]
    fn held(&self, set: usize, way: usize) -> u32 {
        match way.checked_sub(self.io_ways) {
            None => self.io[set * self.io_ways + way].line,
            Some(in_rest) => self.rest[set * self.rest_ways + in_rest].line,
        }
    }

    /// Gives `way` of `set` to `line`, which is used now. Returns what it held.
    #[inline(always)]
    fn take(&mut self, set: usize, way: usize, line: u64) -> u32 {
        let taken = Way {
            line: line as u32,
            used: self.clock,
        };
        let before = std::mem::replace(self.way_mut(set, way), taken).line;
        match self.empty.get_mut(set) {
            Some(empty) if *empty >> way & 1 != 0 => {
                *empty &= !(1 << way);
                NOTHING
            }
            _ => before,
        }
    }
}

/// The way that a line will go into, if nothing else happens in the LLC before.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    set: u32,
    way: u32,
}

impl Llc {
    /// An empty LLC as `config` describes it, `io_ways` of its ways open to devices, over `lines`
    /// lines of memory.
    pub fn new(config: &CacheConfig, io_ways: usize, lines: u64) -> Llc {
        assert!(
            lines < u64::from(NOTHING),
            "an LLC tells lines of 32 bits apart"
        );
        Llc {
            lines: table(Line::default(), lines as usize),
            ways: Ways::new(config, io_ways),
        }
    }

    /// Takes `line` out.
    #[inline(always)]
    pub fn remove(&mut self, line: u64) -> Option<LineState> {
        let word = &mut self.lines[line as usize];
        let way = word.way()?;
        let state = word.state();
        word.leave();
        self.ways.vacate(line, way);
        Some(state)
    }

    /// Takes `line` out, which the L2 `holder` has from now on.
    #[inline(always)]
    pub fn give(&mut self, line: u64, holder: u8) -> Option<LineState> {
        let word = &mut self.lines[line as usize];
        let before = std::mem::replace(word, word.given(holder));
        let way = before.way()?;
        self.ways.vacate(line, way);
        Some(before.state())
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
        let ways = &mut self.ways;
        ways.clock = ways.clock.wrapping_add(1);
        let (used, set) = (ways.clock, ways.set(line));
        ways.way_mut(set, way).used = used;
    }

    /// Where `line`, which must not be here, will go. What makes room for it is called for.
    #[inline(always)]
    pub fn room(&self, line: u64) -> Room {
        let set = self.ways.set(line);
        let way = self.ways.choose(set);
        expect(&self.lines, line as usize);
        expect(&self.lines, self.ways.held(set, way) as usize);
        Room {
            set: set as u32,
            way: way as u32,
        }
    }

    /// Puts `line` into its [`room`](Self::room); `holder` has it still. Returns the state of what made
    /// room.
    #[inline(always)]
    pub fn fill(&mut self, line: u64, room: Room, dirty: bool, holder: u8) -> Option<LineState> {
        let (set, way) = (room.set as usize, room.way as usize);
        debug_assert!(
            set == self.ways.set(line) && way == self.ways.choose(set),
            "nothing happened here since the room was chosen"
        );
        self.ways.clock = self.ways.clock.wrapping_add(1);
        let before = self.ways.take(set, way, line);
        // What made room leaves before the line comes: a line that several L2s had may make room for
        // itself.
        let evicted = self.lines.get_mut(before as usize).map(|word| {
            let state = word.state();
            word.leave();
            state
        });
        let word = &mut self.lines[line as usize];
        *word = word.filled(way, dirty, holder);
        evicted
    }

    /// `line` will need room soon, or leave.
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        expect(&self.lines, line as usize);
        let (ways, set) = (&self.ways, self.ways.set(line));
        expect(&ways.io, set * ways.io_ways);
        expect(&ways.rest, set * ways.rest_ways);
        expect(&ways.rest, (set + 1) * ways.rest_ways - 1);
    }
}

/// Gives `line` the way that was not used for longest. Returns it, and what it held.
#[inline(always)]
fn take_oldest(ways: &mut [Way], line: u64, clock: u32) -> (usize, u32) {
    let (number, _) = oldest(ways, clock);
    replace(ways, number, line, clock)
}

/// Gives `line` way `number`. Returns it, and what it held.
#[inline(always)]
fn replace(ways: &mut [Way], number: usize, line: u64, clock: u32) -> (usize, u32) {
    let taken = Way {
        line: line as u32,
        used: clock,
    };
    (number, std::mem::replace(&mut ways[number], taken).line)
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
mod tests;
mod write;
