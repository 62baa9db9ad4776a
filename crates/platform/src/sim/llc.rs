//! The last-level cache: which lines its ways hold, and which line makes room.
//!
//! Whether a line is here says the line's own word (lines.rs); the ways are looked at only to
//! choose what makes room, and say whether that is dirty. The ways that devices may write into lie apart from the others, so
//! that a device's run of lines walks through few lines of the machine that simulates.

use std::ops::Range;

use nicforge_units::CACHE_LINE_BYTES;

use super::CacheConfig;
use super::ahead::{expect, table};
use super::cache::WAYS_MAX;
use super::lines::{self, Line, LineState, ReadRun};
use replacement::{Order, Replacement};

/// Beside the number of a line: memory does not have its content yet. That stands in the line's word, too;
/// here it is at hand when the line makes room, and its word is far.
const DIRTY: u32 = 1 << 31;
/// Beside the number of a line: it may have another way by now. Whether it is dirty, only its word says.
const STALE: u32 = 1 << 30;
/// The bits of a number, which are the number of no line.
const NOTHING: u32 = STALE - 1;
/// The age of an empty way: above that of any line.
const LONG_AGO: u32 = 1 << 31;

/// One way of one set.
#[derive(Clone, Copy)]
struct Way {
    /// The number of the line, and whether it is [`DIRTY`] or [`STALE`].
    line: u32,
    /// What [`Order::stamp`] makes of its age.
    stamp: u32,
}

/// The last-level cache, with the words of all lines of memory.
pub struct Llc {
    /// All lines of memory, by number.
    pub lines: Vec<Line>,
    ways: Ways,
    /// Lines that a device wrote and that nobody has read or written since, with those that made room:
    /// of these nobody looks whether they are fresh.
    fresh: u64,
    /// Covers every line that a device ever wrote, so that a search for unread ones leaves most tables out. Ends before it
    /// begins until a device writes.
    written: Range<u64>,
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
    order: Replacement,
}

impl Way {
    #[inline(always)]
    fn of(line: u64, dirty: bool, stamp: u32) -> Way {
        let dirty = if dirty { DIRTY } else { 0 };
        Way { line: line as u32 | dirty, stamp }
    }
}

impl Ways {
    fn new(config: &CacheConfig, io_ways: usize, one_young_in: u32) -> Ways {
        let sets = config.size.0 / CACHE_LINE_BYTES / config.ways as u64;
        assert!(
            sets.is_power_of_two() && config.ways <= WAYS_MAX,
            "an LLC has a power of two of sets, and at most {WAYS_MAX} ways"
        );
        let alike = io_ways == 0 || io_ways == config.ways;
        let io_ways = if alike { 0 } else { io_ways };
        let rest_ways = config.ways - io_ways;
        let nothing = Way { line: NOTHING, stamp: LONG_AGO };
        let all_empty = ((1u32 << config.ways) - 1) as u16;
        Ways {
            io: table(nothing, sets as usize * io_ways),
            rest: table(nothing, sets as usize * rest_ways),
            io_ways,
            rest_ways,
            empty: vec![all_empty; if alike { sets as usize } else { 0 }],
            set_bits: sets.trailing_zeros(),
            set_mask: sets - 1,
            order: Replacement::new(one_young_in),
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

    /// Whether the scramble of all these lines is the same.
    #[inline(always)]
    fn is_one_block(&self, first: u64, count: u64) -> bool {
        first >> self.set_bits == (first + count - 1) >> self.set_bits
    }

    #[inline(always)]
    fn way_mut(&mut self, set: usize, way: usize) -> &mut Way {
        if way < self.io_ways {
            &mut self.io[set * self.io_ways + way]
        } else {
            &mut self.rest[set * self.rest_ways + way - self.io_ways]
        }
    }

    /// `line`, which `way` of `set` has, is written there.
    #[inline(always)]
    fn write_again(&mut self, set: usize, way: usize, line: u64) {
        let before = self.way_mut(set, way).stamp;
        let age = self.order.used(self.order.stamp(before));
        *self.way_mut(set, way) = Way::of(line, true, self.order.stamp(age));
    }

    /// `line` leaves `way` of its set.
    #[inline(always)]
    fn vacate(&mut self, line: u64, way: usize) {
        let set = self.set(line);
        if let Some(empty) = self.empty.get_mut(set) {
            *empty |= 1 << way;
        } else {
            let stamp = self.order.stamp(LONG_AGO);
            *self.way_mut(set, way) = Way { line: NOTHING, stamp };
        }
    }

    /// The oldest way of `set`.
    #[inline(always)]
    fn oldest_any(&mut self, set: usize) -> usize {
        let io = &mut self.io[set * self.io_ways..][..self.io_ways];
        let rest = &mut self.rest[set * self.rest_ways..][..self.rest_ways];
        let (in_io, io_age) = oldest(io, &self.order);
        let (in_rest, rest_age) = oldest(rest, &self.order);
        let ageing = self.order.ageing(io_age.max(rest_age));
        grow_older(io, ageing);
        grow_older(rest, ageing);
        if io_age > rest_age { in_io } else { self.io_ways + in_rest }
    }

    /// The oldest of the I/O ways of `set`, of which there is one.
    #[inline(always)]
    fn oldest_io(&mut self, set: usize) -> usize {
        let io = &mut self.io[set * self.io_ways..][..self.io_ways];
        let (number, age) = oldest(io, &self.order);
        grow_older(io, self.order.ageing(age));
        number
    }

    /// The ways of `set`: those that are open to devices, and the others.
    #[inline(always)]
    fn of(&mut self, set: usize) -> [&mut [Way]; 2] {
        [&mut self.io[set * self.io_ways..][..self.io_ways], &mut self.rest[set * self.rest_ways..][..self.rest_ways]]
    }

    /// Which way of `set` makes room: an empty one if there is one.
    #[inline(always)]
    fn choose(&mut self, set: usize) -> usize {
        match self.empty.get(set) {
            None | Some(0) => self.oldest_any(set),
            Some(empty) => empty.trailing_zeros() as usize,
        }
    }

    /// Gives `way` of `set` to `line`, which comes now. Returns what it held.
    #[inline(always)]
    fn take(&mut self, set: usize, way: usize, line: u64, dirty: bool) -> u32 {
        let age = self.order.new_line(set);
        let taken = Way::of(line, dirty, self.order.stamp(age));
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

impl Llc {
    /// As many lines of memory can be told apart: the number of one more says that a way is empty.
    pub const LINES_MAX: u64 = NOTHING as u64;

    /// An empty LLC as `config` describes it, `io_ways` of its ways open to devices, over `lines`
    /// lines of memory. `one_young_in` is [`Hardware::llc_one_young_in`](crate::sim::Hardware::llc_one_young_in).
    pub fn new(config: &CacheConfig, io_ways: usize, one_young_in: u32, lines: u64) -> Llc {
        assert!(lines <= Llc::LINES_MAX, "an LLC tells lines of 30 bits apart");
        let ways = Ways::new(config, io_ways, one_young_in);
        Llc { lines: table(Line::default(), lines as usize), ways, fresh: 0, written: lines..0 }
    }

    /// A core asked for `line`, which no cache has.
    #[inline(always)]
    pub fn missed(&mut self, line: u64) {
        let set = self.ways.set(line);
        self.ways.order.missed(set);
    }

    /// Takes `line` out.
    pub fn remove(&mut self, line: u64) -> Option<LineState> {
        let holder = self.lines[line as usize].holder();
        self.give(line, holder)
    }

    /// Takes `line` out, which the L2 `holder` has from now on.
    #[inline(always)]
    pub fn give(&mut self, line: u64, holder: u8) -> Option<LineState> {
        let word = &mut self.lines[line as usize];
        let before = std::mem::replace(word, word.given(holder));
        let way = before.way()?;
        self.ways.vacate(line, way);
        let state = before.state();
        self.fresh -= u64::from(state.fresh);
        Some(state)
    }

    /// A device writes `count` lines from `first` on somewhere else: takes out those that are here.
    pub fn remove_run(&mut self, first: u64, count: u64) {
        let run = first as usize..(first + count) as usize;
        if lines::any(&self.lines[run.clone()]).way().is_some() {
            for line in first..first + count {
                self.remove(line);
            }
        }
        self.lines[run].fill(Line::written_to_memory());
    }

    /// A core's content of `line`, which is here, is newer.
    pub fn update(&mut self, line: u64) {
        let word = &mut self.lines[line as usize];
        let Some(way) = word.way() else {
            return;
        };
        self.fresh -= u64::from(word.state().fresh);
        *word = word.updated(way);
        let ways = &mut self.ways;
        ways.order.tick();
        let set = ways.set(line);
        ways.write_again(set, way, line);
    }

    /// Somebody reads `line` where it is; returns whether nobody had since a device wrote it.
    pub fn read(&mut self, line: u64) -> bool {
        let fresh = self.lines[line as usize].read();
        self.fresh -= u64::from(fresh);
        fresh
    }

    /// A device reads `count` lines from `first` on, wherever they are.
    #[inline(always)]
    pub fn read_run(&mut self, first: u64, count: u64) -> ReadRun {
        let run = lines::read_run(&mut self.lines[first as usize..][..count as usize]);
        self.fresh -= run.fresh;
        run
    }

    /// Lines that made room, of those that a device had written and nobody had read.
    pub fn fresh_lost(&self) -> u64 {
        let written = self.written.start.min(self.written.end)..self.written.end;
        self.fresh - lines::fresh(&self.lines[written.start as usize..written.end as usize])
    }

    /// Puts `line`, which no way has but a [stale](Self::make_stale) one, into the LLC; `holder` has it still.
    /// Returns whether a dirty line made room.
    #[inline(always)]
    pub fn fill(&mut self, line: u64, dirty: bool, holder: u8) -> bool {
        let Llc { lines, ways, .. } = self;
        let set = ways.set(line);
        let way = ways.choose(set);
        ways.order.tick();
        let held = ways.take(set, way, line, dirty);
        // What made room leaves before the line comes: it may make room for itself.
        let was_dirty = make_room(lines, || ways.of(set), held);
        let word = &mut lines[line as usize];
        *word = word.filled(way, dirty, holder);
        was_dirty != 0
    }

    /// The way that has `line` keeps it although it will be put into another one: several L2s had it, and one of
    /// them wrote it since.
    pub fn make_stale(&mut self, line: u64) {
        if let Some(way) = self.lines[line as usize].way() {
            let set = self.ways.set(line);
            self.ways.way_mut(set, way).line |= STALE;
        }
    }

    /// `line`, which is in `way`, will leave soon.
    #[inline(always)]
    pub fn expect_way(&self, line: u64, way: usize) {
        let (ways, set) = (&self.ways, self.ways.set(line));
        match way.checked_sub(ways.io_ways) {
            Some(way) => expect(&ways.rest, set * ways.rest_ways + way),
            None => expect(&ways.io, set * ways.io_ways + way),
        }
    }

    /// `line` will be written or leave soon, if it is here.
    #[inline(always)]
    pub fn expect_leave(&self, line: u64) {
        if let Some(way) = self.lines.get(line as usize).and_then(|word| word.way()) {
            self.expect_way(line, way);
        }
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

/// What a way of a `set` `held`, as it says, leaves for another line. Returns 1 if it was dirty, and else 0.
#[inline(always)]
fn make_room<'a>(lines: &mut [Line], set: impl FnOnce() -> [&'a mut [Way]; 2], held: u32) -> u32 {
    if held & STALE != 0 {
        return make_room_of_stale(lines, set(), held & NOTHING);
    }
    if let Some(word) = lines.get_mut((held & NOTHING) as usize) {
        word.leave();
    }
    held / DIRTY
}

/// The same where only the word of `line` knows. After that it is not here, even if another way has it.
#[cold]
#[inline(never)]
fn make_room_of_stale(lines: &mut [Line], set: [&mut [Way]; 2], line: u32) -> u32 {
    let word = &mut lines[line as usize];
    let dirty = word.state().dirty;
    word.leave();
    let others = set.into_iter().flatten();
    for way in others.filter(|way| way.line & NOTHING == line) {
        way.line |= STALE;
    }
    u32::from(dirty)
}

/// All lines of a set's `ways` get older.
#[inline(always)]
fn grow_older(ways: &mut [Way], by: u32) {
    if by > 0 {
        for way in ways {
            way.stamp = way.stamp.wrapping_sub(by);
        }
    }
}

/// The way of the highest age, and that age; the first of equals.
#[inline(always)]
fn oldest(ways: &[Way], order: &impl Order) -> (usize, u32) {
    // With a number that the compiler knows it needs no loop: nine of eleven ways, or eight, are usual.
    if let Ok(nine) = <&[Way; 9]>::try_from(ways) {
        return oldest_of(nine, order);
    }
    match <&[Way; 8]>::try_from(ways) {
        Ok(eight) => oldest_of(eight, order),
        Err(_) => oldest_of(ways, order),
    }
}

#[inline(always)]
fn oldest_of(ways: &[Way], order: &impl Order) -> (usize, u32) {
    let (mut number, mut age) = (0, 0);
    for (other, way) in ways.iter().enumerate() {
        let other_age = order.stamp(way.stamp);
        number = if other_age > age { other } else { number };
        age = age.max(other_age);
    }
    (number, age)
}

mod replacement;
#[cfg(test)]
mod tests;
mod write;
