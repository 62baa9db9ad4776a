//! A device's writes of runs of lines.

use std::ops::Range;

use super::{Llc, NOTHING, Ways, expect, oldest_of, replace, take_oldest};

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
        // Two I/O ways are the usual case, and much of a simulation's time goes here: for a
        // number that the compiler knows it needs no loop.
        match self.ways.io_ways {
            0 => self.write_into::<MOST>(first, count, done, Ways::take_alike),
            2 => self.write_into::<MOST>(first, count, done, |ways, set, line| {
                let pair = &mut ways.io.as_chunks_mut::<2>().0[set];
                let (number, _) = oldest_of(pair, ways.clock);
                replace(pair, number, line, ways.clock)
            }),
            io_ways => self.write_into::<MOST>(first, count, done, |ways, set, line| {
                let io = &mut ways.io[set * io_ways..][..io_ways];
                take_oldest(io, line, ways.clock)
            }),
        }
    }

    /// `take` gives a line a way of its set, and returns it and what it held; no two lines may have the same
    /// set, or one could make room for another that is put in with it. The words of the lines
    /// that make room are far from this machine: all are asked for before the first is needed.
    #[inline(always)]
    fn write_into<const MOST: usize>(
        &mut self,
        first: u64,
        count: usize,
        done: &mut WriteRun,
        take: impl Fn(&mut Ways, usize, u64) -> (usize, u32),
    ) {
        let Llc { lines, ways } = self;
        let clock = ways.clock;
        let (mut taken, mut made_room) = ([0u16; MOST], [NOTHING; MOST]);
        let mut allocated = 0;
        // All of them lie in one block, whose scramble is the same.
        let mask = ways.set_mask;
        let scramble = ways.set(first) as u64 ^ (first & mask);
        let run = first as usize..first as usize + count;
        for ((place, word), taken) in (0u64..).zip(&lines[run.clone()]).zip(&mut taken) {
            let line = first + place;
            let set = ((line ^ scramble) & mask) as usize;
            let way = match word.way() {
                Some(way) => {
                    ways.way_mut(set, way).used = clock;
                    way
                }
                None => {
                    let (way, before) = take(ways, set, line);
                    expect(lines, before as usize);
                    made_room[allocated % MOST] = before;
                    allocated += 1;
                    way
                }
            };
            *taken = way as u16;
        }
        done.allocated += allocated as u64;
        // What made room leaves before the lines come: a line that several L2s had may make room for
        // itself.
        for &before in made_room.iter().take(allocated) {
            if let Some(word) = lines.get_mut(before as usize) {
                let state = word.state();
                done.written_back += u64::from(state.dirty);
                done.fresh_lost += u64::from(state.fresh);
                word.leave();
            }
        }
        for (word, &way) in lines[run].iter_mut().zip(&taken) {
            word.written(way.into());
        }
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

impl Ways {
    /// Whether lines of this run that are put in together may have the same set: those of one block have
    /// not, but for an LLC of very few sets.
    #[inline(always)]
    fn may_meet(&self, first: u64, count: u64) -> bool {
        let (block, last) = (first >> self.set_bits, (first + count - 1) >> self.set_bits);
        block != last || self.set_mask < count.min(TOGETHER as u64) - 1
    }
}
