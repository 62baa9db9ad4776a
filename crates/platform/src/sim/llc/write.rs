//! A device's writes of runs of lines.

use std::ops::Range;

use super::{Line, Llc, NOTHING, Ways, expect, oldest, oldest_of, replace, take_oldest};

/// Lines of a device's write that are put into the LLC at once: a usual frame's.
const TOGETHER: usize = 32;

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

impl Llc {
    /// A device writes `count` lines from `first` on: each is updated where it is, or put into
    /// one of the I/O ways, of which there must be one. All lines of a run are used at the same
    /// time.
    #[inline]
    pub fn write_run(&mut self, first: u64, count: u64) -> WriteRun {
        let mut done = WriteRun::default();
        self.ways.clock = self.ways.clock.wrapping_add(1);
        if count == 1 {
            self.write_some::<1>(first, 1, &mut done);
            return done;
        }
        if self.ways.may_meet(first, count) {
            (first..first + count).for_each(|line| self.write_some::<1>(line, 1, &mut done));
            return done;
        }
        let (mut at, mut left) = (first, count as usize);
        while left > 0 {
            let some = left.min(TOGETHER);
            self.write_some::<TOGETHER>(at, some, &mut done);
            at += some as u64;
            left -= some;
        }
        done
    }

    /// The same for up to `MOST` lines.
    #[inline(always)]
    fn write_some<const MOST: usize>(&mut self, first: u64, count: usize, done: &mut WriteRun) {
        // All of them lie in one block, whose scramble is the same.
        let mask = self.ways.set_mask;
        let scramble = self.ways.set(first) as u64 ^ (first & mask);
        let set = |line: u64| ((line ^ scramble) & mask) as usize;
        // Two I/O ways are the usual case, and much of a simulation's time goes here: for a
        // number that the compiler knows it needs no loop.
        match self.ways.io_ways {
            2 => self.write_into_pairs::<MOST>(first, count, done, set),
            _ => self.write_into_any::<MOST>(first, count, done, set),
        }
    }

    /// The same where two ways of each `set` are open to devices.
    #[inline(always)]
    fn write_into_pairs<const MOST: usize>(
        &mut self,
        first: u64,
        count: usize,
        done: &mut WriteRun,
        set: impl Fn(u64) -> usize,
    ) {
        let Llc { lines, ways } = self;
        let (clock, rest_ways) = (ways.clock, ways.rest_ways);
        let (pairs, rest) = (ways.io.as_chunks_mut::<2>().0, &mut ways.rest[..]);
        let mut taken = Taken::<MOST>::new();
        let words = &lines[first as usize..][..count];
        for (place, word) in words.iter().enumerate() {
            let line = first + place as u64;
            let set = set(line);
            let pair = &mut pairs[set];
            taken.ways[place % MOST] = match word.way() {
                None => {
                    let (number, _) = oldest_of(pair, clock);
                    let (_, before) = replace(pair, number, line, clock);
                    expect(lines, before as usize);
                    taken.made_room[taken.count % MOST] = before;
                    taken.count += 1;
                    number as u16
                }
                Some(number) => {
                    match number {
                        0 | 1 => pair[number].used = clock,
                        _ => rest[set * rest_ways + number - 2].used = clock,
                    }
                    number as u16
                }
            };
        }
        taken.settle(lines, first, count, done);
    }

    /// The same for any number of ways that are open to devices.
    #[inline(always)]
    fn write_into_any<const MOST: usize>(
        &mut self,
        first: u64,
        count: usize,
        done: &mut WriteRun,
        set: impl Fn(u64) -> usize,
    ) {
        let Llc { lines, ways } = self;
        let (clock, io_ways) = (ways.clock, ways.io_ways);
        let mut taken = Taken::<MOST>::new();
        let words = &lines[first as usize..][..count];
        for (place, word) in words.iter().enumerate() {
            let line = first + place as u64;
            let set = set(line);
            let number = word.way().unwrap_or_else(|| {
                let (number, before) = match io_ways {
                    0 => {
                        let way = ways.choose(set);
                        (way, ways.take(set, way, line))
                    }
                    _ => take_oldest(&mut ways.io[set * io_ways..][..io_ways], line, clock),
                };
                expect(lines, before as usize);
                taken.made_room[taken.count % MOST] = before;
                taken.count += 1;
                number
            });
            ways.way_mut(set, number).used = clock;
            taken.ways[place % MOST] = number as u16;
        }
        taken.settle(lines, first, count, done);
    }

    /// A device will write `run` soon.
    #[inline]
    pub fn expect_write(&self, run: Range<u64>) {
        // Two ways of four sets are a line of the machine that simulates.
        const SETS: u64 = 4;
        expect(&self.lines, run.start as usize);
        expect(&self.lines, run.end as usize - 1);
        for line in (run.start / SETS..run.end.div_ceil(SETS)).map(|four| four * SETS) {
            let set = self.ways.set(line);
            expect(&self.ways.io, set * self.ways.io_ways);
        }
    }
}

impl Llc {
    /// A device will write `run` next, which was [expected](Self::expect_write) before: what makes room is
    /// called for. That were runs, too, so a few of their lines bring all of them.
    #[inline]
    pub fn expect_displaced(&self, run: Range<u64>) {
        let Llc { lines, ways } = self;
        let (first, last) = (run.start, run.end - 1);
        for line in [first, first.midpoint(last), last] {
            let set = ways.set(line);
            let io = &ways.io[set * ways.io_ways..][..ways.io_ways];
            let (number, _) = oldest(io, ways.clock);
            if let Some(way) = io.get(number) {
                expect(lines, way.line as usize);
            }
        }
    }
}

/// Where the lines of a run go, no two of them into one set: else one could make room for another that is
/// put in with it.
struct Taken<const MOST: usize> {
    /// The way of each.
    ways: [u16; MOST],
    /// What the ways held that were given to another line. The words of these lines are far from
    /// this machine: all are asked for before the first is needed.
    made_room: [u32; MOST],
    /// How many of them.
    count: usize,
}

impl<const MOST: usize> Taken<MOST> {
    #[inline(always)]
    fn new() -> Taken<MOST> {
        Taken {
            ways: [0; MOST],
            made_room: [NOTHING; MOST],
            count: 0,
        }
    }

    /// What made room leaves, and then the lines come: a line that several L2s had may make room for
    /// itself.
    #[inline(always)]
    fn settle(&self, lines: &mut [Line], first: u64, count: usize, done: &mut WriteRun) {
        done.allocated += self.count as u64;
        let (mut dirty, mut fresh) = (0, 0);
        for &before in self.made_room.iter().take(self.count) {
            if let Some(word) = lines.get_mut(before as usize) {
                let state = word.state();
                dirty += u64::from(state.dirty);
                fresh += u64::from(state.fresh);
                word.leave();
            }
        }
        done.written_back += dirty;
        done.fresh_lost += fresh;
        let words = &mut lines[first as usize..][..count];
        for (word, &way) in words.iter_mut().zip(&self.ways) {
            word.written(way.into());
        }
    }
}

impl Ways {
    /// Whether lines of this run that are put in together may have the same set: those of one block have
    /// not, but for an LLC of very few sets.
    #[inline(always)]
    fn may_meet(&self, first: u64, count: u64) -> bool {
        let (block, last) = (first >> self.set_bits, (first + count - 1) >> self.set_bits);
        block != last || self.set_mask < count.min(TOGETHER as u64) - 1
    }
}
