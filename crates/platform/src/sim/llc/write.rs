//! A device's writes of runs of lines, in the terms of DDIO: a line that is here is updated, one that is not is
//! allocated.

use std::mem::replace;
use std::ops::Range;

use crate::sim::lines;

use super::replacement::{Order, Replacement};
use super::{Line, Llc, NOTHING, Way, Ways, expect, make_room, oldest};

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
        self.ways.order.tick();
        let run = first..first + count;
        // Two I/O ways are usual. Much of a simulation's time goes here.
        if self.ways.io_ways != 2 || !self.ways.is_one_block(first, count) {
            return self.update_or_allocate(run);
        }
        // A copy, which no store to a way may change: it stays in registers.
        match self.ways.order {
            Replacement::LeastRecent(mut order) => {
                let run = self.write_two_ways(run, any, &mut order);
                self.ways.order = Replacement::LeastRecent(order);
                run
            }
            Replacement::Ages(mut order) => {
                let run = self.write_two_ways(run, any, &mut order);
                self.ways.order = Replacement::Ages(order);
                run
            }
        }
    }

    #[inline(always)]
    fn write_two_ways(&mut self, run: Range<u64>, any: Line, order: &mut impl Order) -> WriteRun {
        match any.way() {
            Some(_) => self.update_or_allocate_in_two_ways(run, order),
            None => self.allocate_in_two_ways(run, order),
        }
    }

    /// Writes lines none of which is here, all of one block, where two ways of each set are open to devices.
    #[inline(never)]
    fn allocate_in_two_ways(&mut self, run: Range<u64>, order: &mut impl Order) -> WriteRun {
        let allocated = run.end - run.start;
        let scramble = self.ways.set(run.start) as u64 ^ run.start;
        let Ways { io, rest, rest_ways, .. } = &mut self.ways;
        let (pairs, rest_ways) = (io.as_chunks_mut::<2>().0, *rest_ways);
        let (lines, mut written_back, mut own) = (&mut self.lines[..], 0, *order);
        // As a length less one, so that the compiler sees that a set is one of these.
        let Some(mask) = pairs.len().checked_sub(1) else {
            return WriteRun::default();
        };
        for line in run.clone() {
            let set = (line ^ scramble) as usize & mask;
            let pair = &mut pairs[set];
            let number = older(pair, &own);
            let held = replace(&mut pair[number], allocated_by_device(line, set, &mut own)).line;
            written_back += make_room(lines, || [pair, &mut rest[set * rest_ways..][..rest_ways]], held);
            lines[line as usize] = Line::written(number);
        }
        *order = own;
        self.wrote(run, allocated);
        WriteRun { allocated, written_back: u64::from(written_back) }
    }

    /// Writes lines of which some are here, all of one block, where two ways of each set are open to devices.
    #[inline(never)]
    fn update_or_allocate_in_two_ways(&mut self, run: Range<u64>, order: &mut impl Order) -> WriteRun {
        let scramble = self.ways.set(run.start) as u64 ^ run.start;
        let Ways { io, rest, rest_ways, .. } = &mut self.ways;
        let (pairs, rest_ways) = (io.as_chunks_mut::<2>().0, *rest_ways);
        let (lines, mut updated, mut written_back, mut own) = (&mut self.lines[..], 0, 0, *order);
        let Some(mask) = pairs.len().checked_sub(1) else {
            return WriteRun::default();
        };
        // No line of the run makes room for another: all go to different sets.
        let count = run.end - run.start;
        let fresh = count - lines::fresh(&lines[run.start as usize..run.end as usize]);
        for line in run.clone() {
            let set = (line ^ scramble) as usize & mask;
            let pair = &mut pairs[set];
            let number = match lines[line as usize].way() {
                Some(number) => {
                    let way = match number {
                        0..2 => &mut pair[number],
                        _ => &mut rest[set * rest_ways + number - 2],
                    };
                    *way = Way::of(line, true, own.stamp(own.used(own.stamp(way.stamp))));
                    updated += 1;
                    number
                }
                None => {
                    let number = older(pair, &own);
                    let held = replace(&mut pair[number], allocated_by_device(line, set, &mut own)).line;
                    written_back += make_room(lines, || [pair, &mut rest[set * rest_ways..][..rest_ways]], held);
                    number
                }
            };
            lines[line as usize] = Line::written(number);
        }
        *order = own;
        self.wrote(run, fresh);
        WriteRun { allocated: count - updated, written_back: u64::from(written_back) }
    }

    /// Writes lines of which some may be here, whatever ways are open to devices.
    #[inline(never)]
    pub(super) fn update_or_allocate(&mut self, run: Range<u64>) -> WriteRun {
        let Llc { lines, ways, .. } = self;
        let io_ways = ways.io_ways;
        let (mut allocated, mut written_back, mut fresh) = (0, 0, 0);
        for line in run.clone() {
            let (set, word) = (ways.set(line), lines[line as usize]);
            let number = match word.way() {
                Some(number) => {
                    ways.write_again(set, number, line);
                    number
                }
                None => {
                    ways.order.missed(set);
                    let number = match io_ways {
                        0 => ways.choose(set),
                        _ => ways.oldest_io(set),
                    };
                    let held = ways.take(set, number, line, true);
                    allocated += 1;
                    written_back += u64::from(make_room(lines, || ways.of(set), held));
                    number
                }
            };
            fresh += u64::from(!word.state().fresh);
            lines[line as usize] = Line::written(number);
        }
        self.wrote(run, fresh);
        WriteRun { allocated, written_back }
    }

    /// `fresh` lines of `run` became fresh.
    #[inline(always)]
    fn wrote(&mut self, run: Range<u64>, fresh: u64) {
        self.fresh += fresh;
        self.written = self.written.start.min(run.start)..self.written.end.max(run.end);
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
            let (number, _) = oldest(io, &ways.order);
            if let Some(way) = io.get(number) {
                expect(lines, (way.line & NOTHING) as usize);
            }
        }
    }
}

/// What a way of `set` holds from now on: a device's `line`, which no way had.
#[inline(always)]
fn allocated_by_device(line: u64, set: usize, order: &mut impl Order) -> Way {
    order.missed(set);
    let age = order.new_line(set);
    Way::of(line, true, order.stamp(age))
}

/// Which of two ways makes room.
#[inline(always)]
fn older(pair: &mut [Way; 2], order: &impl Order) -> usize {
    let [one, other] = [pair[0], pair[1]].map(|way| order.stamp(way.stamp));
    let ageing = order.ageing(one.max(other));
    // Whether they get older cannot be predicted, so no branch asks.
    for way in pair {
        way.stamp = way.stamp.wrapping_sub(ageing);
    }
    usize::from(other > one)
}
