//! A device's writes of runs of lines, in the terms of DDIO: a line that is here is updated, one that is not is
//! allocated.

use std::mem::replace;
use std::ops::Range;

use super::{Line, Llc, NOTHING, Way, expect, make_room, oldest};

/// What a device's write of a run of lines did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRun {
    /// Lines that were not here.
    pub allocated: u64,
    /// Dirty lines that made room.
    pub written_back: u64,
}

impl Llc {
    /// A device writes `count` lines from `first` on: each is updated where it is, or put into
    /// one of the I/O ways, of which there must be one. All lines of a run are used at the same
    /// time. None of them is here unless [`any`](crate::sim::lines::any) of their words says so.
    #[inline]
    pub fn write_run(&mut self, first: u64, count: u64, any: Line) -> WriteRun {
        self.ways.clock = self.ways.clock.wrapping_add(1);
        let run = first..first + count;
        // Two I/O ways are usual. Much of a simulation's time goes here.
        if self.ways.io_ways != 2 || !self.ways.is_one_block(first, count) {
            return self.update_or_allocate(run);
        }
        match any.way() {
            Some(_) => self.update_or_allocate_in_two_ways(run),
            None => self.allocate_in_two_ways(run),
        }
    }

    /// Writes lines none of which is here, all of one block, where two ways of each set are open to devices.
    #[inline(never)]
    fn allocate_in_two_ways(&mut self, run: Range<u64>) -> WriteRun {
        let allocated = run.end - run.start;
        let clock = self.ways.clock;
        let scramble = self.ways.set(run.start) as u64 ^ run.start;
        let rest_ways = self.ways.rest_ways;
        let (pairs, rest) = (self.ways.io.as_chunks_mut::<2>().0, &mut self.ways.rest[..]);
        let (lines, mut written_back) = (&mut self.lines[..], 0);
        // As a length less one, so that the compiler sees that a set is one of these.
        let Some(mask) = pairs.len().checked_sub(1) else {
            return WriteRun::default();
        };
        for line in run {
            let set = (line ^ scramble) as usize & mask;
            let pair = &mut pairs[set];
            let number = older(pair, clock);
            let held = replace(&mut pair[number], Way::of(line, true, clock)).line;
            written_back += make_room(lines, || [pair, &mut rest[set * rest_ways..][..rest_ways]], held);
            lines[line as usize] = Line::written(number);
        }
        self.fresh += allocated;
        WriteRun { allocated, written_back: u64::from(written_back) }
    }

    /// Writes lines of which some are here, all of one block, where two ways of each set are open to devices.
    #[inline(never)]
    fn update_or_allocate_in_two_ways(&mut self, run: Range<u64>) -> WriteRun {
        let (clock, mask, rest_ways) = (self.ways.clock, self.ways.set_mask, self.ways.rest_ways);
        let scramble = self.ways.set(run.start) as u64 ^ run.start;
        let (pairs, rest) = (self.ways.io.as_chunks_mut::<2>().0, &mut self.ways.rest[..]);
        let lines = &mut self.lines[..];
        let (mut allocated, mut written_back, mut fresh) = (0, 0, 0);
        for line in run {
            let set = ((line ^ scramble) & mask) as usize;
            let written = Way::of(line, true, clock);
            let (pair, word) = (&mut pairs[set], lines[line as usize]);
            fresh += u32::from(!word.state().fresh);
            let number = match word.way() {
                Some(number @ 0..2) => {
                    pair[number] = written;
                    number
                }
                Some(number) => {
                    rest[set * rest_ways + number - 2] = written;
                    number
                }
                None => {
                    let number = older(pair, clock);
                    let held = replace(&mut pair[number], written).line;
                    allocated += 1;
                    written_back += make_room(lines, || [pair, &mut rest[set * rest_ways..][..rest_ways]], held);
                    number
                }
            };
            lines[line as usize] = Line::written(number);
        }
        self.fresh += u64::from(fresh);
        WriteRun { allocated, written_back: u64::from(written_back) }
    }

    /// Writes lines of which some may be here, whatever ways are open to devices.
    #[inline(never)]
    pub(super) fn update_or_allocate(&mut self, run: Range<u64>) -> WriteRun {
        let Llc { lines, ways, fresh } = self;
        let (clock, io_ways) = (ways.clock, ways.io_ways);
        let (mut allocated, mut written_back) = (0, 0);
        for line in run {
            let (set, word) = (ways.set(line), lines[line as usize]);
            let number = match word.way() {
                Some(number) => {
                    *ways.way_mut(set, number) = Way::of(line, true, clock);
                    number
                }
                None => {
                    let number = match io_ways {
                        0 => ways.choose(set),
                        _ => oldest(&ways.io[set * io_ways..][..io_ways], clock).0,
                    };
                    let held = ways.take(set, number, line, true);
                    allocated += 1;
                    written_back += u64::from(make_room(lines, || ways.of(set), held));
                    number
                }
            };
            *fresh += u64::from(!word.state().fresh);
            lines[line as usize] = Line::written(number);
        }
        WriteRun { allocated, written_back }
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
    /// prefetched. That were runs, too, so a few of their lines bring all of them.
    #[inline]
    pub fn expect_displaced(&self, run: Range<u64>) {
        let Llc { lines, ways, .. } = self;
        let (first, last) = (run.start, run.end - 1);
        for line in [first, first.midpoint(last), last] {
            let set = ways.set(line);
            let io = &ways.io[set * ways.io_ways..][..ways.io_ways];
            let (number, _) = oldest(io, ways.clock);
            if let Some(way) = io.get(number) {
                expect(lines, (way.line & NOTHING) as usize);
            }
        }
    }
}

/// Which of two ways was not used for longer.
#[inline(always)]
fn older(pair: &[Way; 2], clock: u32) -> usize {
    let [one, other] = [pair[0], pair[1]].map(|way| clock.wrapping_sub(way.used));
    usize::from(other > one)
}
