//! A core's accesses to lines: runs of bytes, and each line of them.

use std::iter::repeat;
use std::ops::Range;

use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::SimCpu;
use crate::{Addr, Part};

impl SimCpu {
    /// All lines of `[at, at + len)`: the first waited for, the rest streaming.
    #[inline(always)]
    pub(super) fn touch_run(&mut self, at: Addr, len: usize, write: bool) {
        if len == 0 || self.core.untimed || self.host.hierarchy.is_perfect() {
            return;
        }
        if write && self.host.nicmem.holds(at.line()) {
            return self.store_run_to_device(at, len as u64);
        }
        let last = (at + (len as u64 - 1)).line();
        self.touch(at.line(), write, 1 << 16);
        if last > at.line() {
            self.touch_next(at.line() + 1..last + 1, write);
        }
    }

    /// The same for `len` bytes, not none, that are nearly always in one line; of the first line and
    /// of the others the core waits for these shares of the latency.
    #[inline(always)]
    pub(super) fn touch_few(&mut self, at: Addr, len: usize, write: bool, shares_q16: [u64; 2]) {
        let (first, last) = (at.line(), (at + (len as u64 - 1)).line());
        if first == last {
            self.touch(first, write, shares_q16[0])
        } else {
            self.touch_several(first..last + 1, write, shares_q16)
        }
    }

    #[cold]
    fn touch_several(&mut self, lines: Range<u64>, write: bool, shares_q16: [u64; 2]) {
        for (share, line) in shares_q16.into_iter().chain(repeat(shares_q16[1])).zip(lines) {
            self.touch(line, write, share);
        }
    }

    /// Accesses one line; the core waits for `share_q16` of its latency.
    #[inline(always)]
    pub(super) fn touch(&mut self, line: u64, write: bool, share_q16: u64) {
        // Lines of a NIC are never near.
        if !self.core.near.has(line, write) {
            self.touch_far(line, write, share_q16);
        }
    }

    /// The same for a line that this burst has not touched yet.
    #[inline(never)]
    fn touch_far(&mut self, line: u64, write: bool, share_q16: u64) {
        if self.core.untimed {
            return;
        }
        let host = &self.host;
        let plain = !host.hierarchy.is_perfect() && self.core.link.is_none();
        if plain && host.paged.may_hold(line) {
            self.translate(line, share_q16);
        }
        let host = &self.host;
        if plain && !host.nicmem.may_hold(line) {
            self.touch_cached(line, write, share_q16)
        } else {
            self.touch_special(line, write, share_q16)
        }
    }

    /// The same where it may be a line of a NIC, or of another socket.
    #[inline(never)]
    fn touch_special(&mut self, line: u64, write: bool, share_q16: u64) {
        if self.host.hierarchy.is_perfect() {
            return;
        }
        if self.host.nicmem.holds(line) {
            return if write { self.store_to_device(line, 0, CACHE_LINE_BYTES) } else { self.load_from_device(line) };
        }
        let Some(link) = self.core.link else {
            return self.touch_cached(line, write, share_q16);
        };
        self.core.near.add(line, write);
        let (host, now) = (&mut self.host, self.core.cursor);
        let memory = host.hierarchy.remote_access(line, write, now);
        self.wait(link + memory, share_q16);
    }

    /// The same for a line that the core's caches may have.
    #[inline(always)]
    fn touch_cached(&mut self, line: u64, write: bool, share_q16: u64) {
        self.core.near.add(line, write);
        self.host.memory.expect(line);
        let (number, hierarchy) = (self.core.number, &mut self.host.hierarchy);
        hierarchy.expect(line);
        match hierarchy.hits_own_l2(number, line, write) {
            // What the L1 has is there at once, unless others give it up first.
            Some(latency) => {
                if !self.core.l1.has(line) || latency != self.host.hierarchy.l2_hit_latency() {
                    self.wait(latency, share_q16);
                }
            }
            None => self.fetch(line, write, share_q16),
        }
    }

    /// The same for a line that the core's L2 does not have.
    #[inline(never)]
    fn fetch(&mut self, line: u64, write: bool, share_q16: u64) {
        let app = self.core.part == Part::App;
        let (number, now) = (self.core.number, self.core.cursor);
        let hierarchy = &mut self.host.hierarchy;
        let latency = hierarchy.fetch_into_l2(number, line, write, app, now);
        // It comes into the L1, too.
        self.core.l1.has(line);
        if write {
            self.core.stores_done = self.core.stores_done.max(now + latency);
        }
        self.wait(latency, share_q16);
        if self.core.config.l2_pair_line {
            self.host.hierarchy.fetch_pair_of(number, line, now);
        }
        if self.core.config.l2_streamer_lines > 0 && share_q16 < 65536 {
            self.stream_ahead(line);
        }
    }

    /// Finds the address of `line`, of a small page: where the TLB does not know the page, the core reads its entry in
    /// the table, as it reads other memory.
    #[inline(never)]
    fn translate(&mut self, line: u64, share_q16: u64) {
        if self.core.tlb.knows(line) {
            return;
        }
        let Some(entry) = self.host.paged.entry_line(line) else { return };
        let (number, now) = (self.core.number, self.core.cursor);
        let served = self.host.hierarchy.core_access(number, entry, false, false, now);
        self.wait(served.latency, share_q16);
    }

    #[inline(always)]
    fn wait(&mut self, latency: Time, share_q16: u64) {
        self.stall(Time::from_ps((latency.as_ps() * share_q16) >> 16));
    }

    /// The L2 streamer: a miss on the first line of a run pulls in the lines after it, up to the
    /// end of the 4 KiB page; nobody waits for them.
    fn stream_ahead(&mut self, line: u64) {
        const PAGE_LINES: u64 = 4096 / CACHE_LINE_BYTES;
        let page_end = (line / PAGE_LINES + 1) * PAGE_LINES;
        let until = page_end.min(line + 1 + self.core.config.l2_streamer_lines as u64).min(self.host.hierarchy.lines());
        for ahead in line + 1..until {
            self.host.hierarchy.core_access(self.core.number, ahead, false, false, self.core.cursor);
        }
    }
}
