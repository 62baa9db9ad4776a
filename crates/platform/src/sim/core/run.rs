//! Runs of lines: what is copied, parsed or filled lies in many lines, one behind the other.

use std::ops::Range;

use super::SimCpu;
use crate::sim::hierarchy::CoreRun;

impl SimCpu {
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
