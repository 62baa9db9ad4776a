//! Memory of a NIC that software uses (nicmem, section 2.2.1): the NIC reaches it without the
//! bus, cores reach it over the bus, past all caches.
//!
//! ```text
//!   core ─ stores ─► write-combining buffers ─ one posted write per line ─► link ─► nicmem ◄─ NIC
//!   core ◄─ loads ── one read of a line after the other, a round trip each ◄─ link ◄─┘
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use nicforge_units::{Bytes, CACHE_LINE_BYTES, Time};

use super::link::Link;
use crate::{AddressSpace, NicmemRange};

/// Which addresses are memory of a NIC.
pub struct NicmemMap {
    /// Lines in which all of it lies: `count` of them from `first` on.
    first: u64,
    count: u64,
    ranges: Vec<NicmemRange>,
    access: Time,
}

impl NicmemMap {
    /// What `space` handed out; a NIC's own access takes `access`.
    pub fn new(space: &AddressSpace, access: Time) -> NicmemMap {
        let ranges = space.nicmem_ranges().to_vec();
        let firsts = ranges.iter().map(|range| range.at.line());
        let ends = ranges.iter().map(|range| (range.at + range.len).line());
        let first = firsts.min().unwrap_or(0);
        NicmemMap { first, count: ends.max().unwrap_or(0) - first, ranges, access }
    }

    /// Whether `line` is memory of a NIC.
    #[inline(always)]
    pub fn holds(&self, line: u64) -> bool {
        self.may_hold(line) && self.device_of(line).is_some()
    }

    /// Whether `line` lies where memory of NICs lies.
    #[inline(always)]
    pub fn may_hold(&self, line: u64) -> bool {
        line.wrapping_sub(self.first) < self.count
    }

    /// Whether any of `lines` may be memory of a NIC.
    #[inline(always)]
    pub fn overlaps(&self, lines: &Range<u64>) -> bool {
        lines.start < self.first + self.count && self.first < lines.end
    }

    /// Whose memory `line` is.
    pub fn device_of(&self, line: u64) -> Option<usize> {
        let range = self.ranges.iter().find(|range| range.holds_line(line));
        range.map(|range| usize::from(range.device))
    }

    /// How long the NIC's own access takes.
    pub fn access(&self) -> Time {
        self.access
    }
}

/// A line that gathers writes: one bit for each byte written.
#[derive(Clone, Copy, Debug)]
struct Open {
    line: u64,
    device: usize,
    bytes: u64,
}

/// The write-combining buffers of one core.
#[derive(Debug)]
pub struct WriteCombining {
    buffers: usize,
    open: VecDeque<Open>,
    /// When the link has taken what was sent from each other buffer.
    leaving: VecDeque<Time>,
}

/// All bytes of a line.
const WHOLE: u64 = u64::MAX;

impl WriteCombining {
    /// `buffers` (at least 1) empty ones.
    pub fn new(buffers: usize) -> WriteCombining {
        WriteCombining { buffers: buffers.max(1), open: VecDeque::new(), leaving: VecDeque::new() }
    }

    /// Writes `len` bytes at `offset` of `line`, memory of `device`, at `now`; returns when the
    /// core goes on. The bytes lie in the line.
    pub fn store(&mut self, line: u64, device: usize, offset: u64, len: u64, now: Time, links: &mut [Link]) -> Time {
        let bytes = (WHOLE >> (CACHE_LINE_BYTES - len)) << offset;
        let mut now = now;
        let place = match self.open.iter().position(|open| open.line == line) {
            Some(place) => place,
            None => {
                now = self.buffer_free(now, links);
                self.open.push_back(Open { line, device, bytes: 0 });
                self.open.len() - 1
            }
        };
        self.open[place].bytes |= bytes;
        if self.open[place].bytes == WHOLE
            && let Some(open) = self.open.remove(place)
        {
            self.send(&open, now, links);
        }
        now
    }

    /// When a buffer is free: at `now`, or once the oldest that is on its way has left. Where
    /// none is on its way the oldest open one, which is not full, is sent as it is.
    fn buffer_free(&mut self, now: Time, links: &mut [Link]) -> Time {
        while self.leaving.front().is_some_and(|&left| left <= now) {
            self.leaving.pop_front();
        }
        if self.open.len() + self.leaving.len() < self.buffers {
            return now;
        }
        if self.leaving.is_empty()
            && let Some(oldest) = self.open.pop_front()
        {
            self.send(&oldest, now, links);
        }
        let left = self.leaving.pop_front().unwrap_or(now);
        left.max(now)
    }

    /// Sends everything, as a fence does; returns when the links have taken it.
    pub fn flush(&mut self, now: Time, links: &mut [Link]) -> Time {
        while let Some(open) = self.open.pop_front() {
            self.send(&open, now, links);
        }
        self.leaving.drain(..).fold(now, Time::max)
    }

    /// Sends what was written of a line: a packet for each run of bytes.
    fn send(&mut self, open: &Open, now: Time, links: &mut [Link]) {
        let to = &mut links[open.device].inward;
        let mut left = open.bytes;
        let mut done = now;
        while left != 0 {
            left >>= left.trailing_zeros();
            let run = left.trailing_ones();
            done = to.send(now, Bytes(run.into()));
            left = left.checked_shr(run).unwrap_or(0);
        }
        self.leaving.push_back(done);
    }
}
