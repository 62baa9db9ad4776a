//! What devices do to the caches: runs of lines, read and written.

use std::ops::Range;

use nicforge_units::Time;

use super::{Hierarchy, MANY, NONE};
use crate::sim::lines;

/// Lines of a frame that a core may have read: headers, and the line that its L2 brings along.
const HEADER_LINES: usize = 2;

impl Hierarchy {
    /// A device writes `count` lines from `first` on; returns how long memory makes it wait.
    #[inline]
    pub fn device_write(&mut self, first: u64, count: u64, now: Time) -> Time {
        if self.perfect {
            return Time::ZERO;
        }
        self.shared.arrive();
        self.shared.counters.device_write_lines += count;
        if lines::any_held(&self.shared.llc.lines[first as usize..][..count as usize]) {
            self.invalidate_l2_copies(first, count);
        }
        if self.io_ways == 0 {
            return self.write_around(first, count, now);
        }
        if count > self.lines_to_cache {
            let beyond = first + self.lines_to_cache;
            let around = self.write_around(beyond, count - self.lines_to_cache, now);
            return around.max(self.write_to_llc(first, self.lines_to_cache, now));
        }
        self.write_to_llc(first, count, now)
    }

    /// A device will write `lines` soon.
    #[inline]
    pub fn expect_device_write(&self, lines: Range<u64>) {
        self.shared.llc.expect_write(lines);
    }

    /// The same, which was [expected](Self::expect_device_write) before: what it will drive out of the LLC is
    /// called for, and the L2s that have its headers.
    #[inline]
    pub fn expect_displaced(&self, lines: Range<u64>) {
        for line in lines.clone().take(HEADER_LINES) {
            self.expect_remote_write(line);
        }
        self.shared.llc.expect_displaced(lines);
    }

    #[inline]
    fn write_to_llc(&mut self, first: u64, count: u64, now: Time) -> Time {
        let run = self.shared.llc.write_run(first, count);
        self.shared.counters.device_write_hits += count - run.allocated;
        self.shared.counters.fresh_lost += run.fresh_lost;
        self.shared.counters.llc_write_backs += run.written_back;
        self.shared.dram.write(now, run.written_back)
    }

    fn invalidate_l2_copies(&mut self, first: u64, count: u64) {
        let (mut first, end) = (first, first + count);
        while first < end {
            let until = end.min(first + u64::from(u64::BITS));
            let words = &self.shared.llc.lines[first as usize..until as usize];
            let mut held = lines::held(words);
            while held != 0 {
                self.invalidate_l2_copy(first + u64::from(held.trailing_zeros()));
                held &= held - 1;
            }
            first = until;
        }
    }

    pub(super) fn invalidate_l2_copy(&mut self, line: u64) {
        match self.holder(line) {
            NONE => return,
            MANY => {
                self.take_from_other_l2s(usize::MAX - 1, line);
            }
            holder => {
                self.l2.of(usize::from(holder) - 1).remove(line);
            }
        }
        self.set_holder(line, NONE);
    }

    /// A device's write when it may not allocate: to memory, and out of the LLC.
    fn write_around(&mut self, first: u64, count: u64, now: Time) -> Time {
        self.shared.llc.remove_run(first, count);
        self.shared.counters.fresh_lost += count;
        self.shared.dram.write(now, count)
    }

    /// A device reads `count` lines from `first` on; returns the longest latency of them.
    #[inline]
    pub fn device_read(&mut self, first: u64, count: u64, now: Time) -> Time {
        if self.perfect {
            return Time::ZERO;
        }
        self.shared.arrive();
        let run = lines::read_run(&mut self.shared.llc.lines[first as usize..][..count as usize]);
        self.shared.counters.device_read_lines += count;
        self.shared.counters.fresh_read += run.fresh;
        self.shared.counters.device_read_hits += count - run.missing;
        match run.missing {
            0 => self.shared.llc_hit,
            lines => self.shared.llc_hit + self.shared.dram.read(now, lines),
        }
    }
}
