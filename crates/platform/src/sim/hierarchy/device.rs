//! What devices do to the caches: runs of lines, read and written.

use std::ops::Range;

use nicforge_units::Time;

use super::{Hierarchy, MANY, NONE};
use crate::sim::lines::{self, Line};

/// Lines of a frame that an L2 often has: headers, and those that it brings along.
const HEADER_LINES: usize = 3;

impl Hierarchy {
    /// A device will write a part of `line` next. What no cache has comes from memory first, so that the
    /// line is whole; nobody waits for it (Intel PCM, pcm-pcie: a partial write from PCIe is a read for ownership, RFO,
    /// and a whole line is ItoM).
    #[inline]
    pub fn own_for_device(&mut self, line: u64, now: Time) {
        if self.perfect {
            return;
        }
        self.shared.arrive();
        let word = self.shared.llc.lines[line as usize];
        if word.way().is_none() && word.holder() == NONE {
            self.shared.dram.read(now, 1);
        }
    }

    /// A device writes `count` lines from `first` on; returns how long memory makes it wait.
    #[inline]
    pub fn device_write(&mut self, first: u64, count: u64, now: Time) -> Time {
        if self.perfect {
            return Time::ZERO;
        }
        self.shared.arrive();
        self.shared.counters.device_write_lines += count;
        let any = lines::any(&self.shared.llc.lines[first as usize..][..count as usize]);
        if any.holder() != NONE {
            self.take_from_l2s(first, count);
        }
        if self.io_ways == 0 {
            return self.write_around(first, count, now);
        }
        if count > self.lines_to_cache {
            let beyond = first + self.lines_to_cache;
            let around = self.write_around(beyond, count - self.lines_to_cache, now);
            return around.max(self.write_to_llc(first, self.lines_to_cache, any, now));
        }
        self.write_to_llc(first, count, any, now)
    }

    /// The same, past all caches whatever DDIO does.
    pub fn device_write_past(&mut self, first: u64, count: u64, now: Time) -> Time {
        if self.perfect {
            return Time::ZERO;
        }
        self.shared.arrive();
        self.shared.counters.device_write_lines += count;
        self.take_from_l2s(first, count);
        self.write_around(first, count, now)
    }

    /// A device will write `lines` soon.
    #[inline]
    pub fn expect_device_write(&self, lines: Range<u64>) {
        self.shared.llc.expect_write(lines);
    }

    /// The same, which was [expected](Self::expect_device_write) before: what it will drive out of the LLC is
    /// prefetched, and the L2s that have its headers.
    #[inline]
    pub fn expect_displaced(&self, lines: Range<u64>) {
        for line in lines.clone().take(HEADER_LINES) {
            self.expect_remote_write(line);
            self.shared.llc.expect_leave(line);
        }
        self.shared.llc.expect_displaced(lines);
    }

    /// Writes lines, of which the words of `any` say more.
    #[inline]
    fn write_to_llc(&mut self, first: u64, count: u64, any: Line, now: Time) -> Time {
        let run = self.shared.llc.write_run(first, count, any);
        self.shared.counters.device_write_hits += count - run.allocated;
        self.shared.counters.llc_write_backs += run.written_back;
        self.shared.dram.write(now, run.written_back)
    }

    /// Takes `count` lines from `first` on out of all L2s. What their words say of L2s is overwritten by the write
    /// that follows.
    fn take_from_l2s(&mut self, first: u64, count: u64) {
        let (mut from, end) = (first, first + count);
        while from < end {
            let mut held = lines::held(&self.shared.llc.lines[from as usize..end as usize]);
            while held != 0 {
                self.take_from_l2(from + u64::from(held.trailing_zeros()));
                held &= held - 1;
            }
            from += lines::AT_ONCE as u64;
        }
    }

    fn take_from_l2(&mut self, line: u64) {
        match self.holder(line) {
            NONE => {}
            MANY => {
                self.take_from_other_l2s(usize::MAX - 1, line);
            }
            holder => {
                self.l2.of(usize::from(holder) - 1).remove(line);
            }
        }
    }

    pub(super) fn invalidate_l2_copy(&mut self, line: u64) {
        self.take_from_l2(line);
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
        let run = self.shared.llc.read_run(first, count);
        self.shared.counters.device_read_lines += count;
        self.shared.counters.fresh_read += run.fresh;
        self.shared.counters.device_read_hits += count - run.missing;
        match run.missing {
            0 => self.shared.llc_hit,
            lines => self.shared.llc_hit + self.shared.dram.read(now, lines),
        }
    }
}
