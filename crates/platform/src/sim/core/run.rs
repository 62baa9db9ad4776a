//! Runs of lines: what is copied, parsed or filled lies in many lines, one behind the other.

use std::ops::Range;

use super::SimCpu;
use crate::sim::hierarchy::CoreRun;
use crate::{CopyLoop, Cpu};

/// Lines of a small page.
const PAGE_LINES: u64 = 64;

impl SimCpu {
    /// Copies `count` lines from line `from` on to line `to` and on. Loads and stores alternate, so that a device's link or
    /// memory takes what is stored while the core waits for the next load.
    pub(super) fn copy_lines(&mut self, from: u64, to: u64, count: u64, how: CopyLoop) {
        let streaming_q16 = self.core.streaming_q16;
        for number in 0..count {
            // Hardware prefetchers stop at the end of a page.
            let share_q16 = if (from + number).is_multiple_of(PAGE_LINES) { 1 << 16 } else { streaming_q16 };
            self.touch(from + number, false, share_q16);
            let line = to + number;
            match how.past_caches && !self.host.nicmem.holds(line) {
                true => self.store_past_caches(line),
                false => self.touch(line, true, streaming_q16),
            }
            self.work(how.line);
        }
    }

    /// Writes a line past the caches. It waits in a write-combining buffer, so the core does only where memory is behind.
    fn store_past_caches(&mut self, line: u64) {
        if !self.core.untimed {
            let waits = self.host.hierarchy.core_write_past(line, self.core.cursor);
            self.stall(waits);
        }
    }

    /// Accesses lines that follow one that was waited for: each costs its share of the latency, as
    /// [`touch`](SimCpu::touch) has it line by line. What is the same for all is looked at once.
    #[inline]
    pub(super) fn touch_next(&mut self, lines: Range<u64>, write: bool) {
        let share_q16 = self.core.streaming_q16;
        let core = &mut *self.core;
        let simple = core.config.l2_streamer_lines == 0 && !core.config.l2_pair_line && core.config.l1.0 == 0;
        let plain = core.link.is_none() && simple && !self.host.nicmem.overlaps(&lines);
        if !plain {
            return lines.for_each(|line| self.touch(line, write, share_q16));
        }
        let run = CoreRun { core: core.number, write, app: core.part == crate::Part::App, share_q16, now: core.cursor };
        let hierarchy = &mut self.host.hierarchy;
        let waited = hierarchy.core_run(&run, lines, &mut core.near);
        self.stall(waited);
    }
}
