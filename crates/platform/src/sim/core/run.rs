//! Runs of lines: what is copied, parsed or filled lies in many lines, one behind the other.

use std::ops::Range;

use nicforge_units::Time;

use super::{NEAR_LINES, SimCpu};

impl SimCpu<'_> {
    /// Accesses lines that follow one that was waited for: each costs its share of the latency, as
    /// [`touch`](SimCpu::touch) has it line by line. What is the same for all is looked at once.
    #[inline]
    pub(super) fn touch_next(&mut self, lines: Range<u64>, write: bool) {
        let share_q16 = self.core.streaming_q16;
        let core = &mut *self.core;
        let plain = core.link.is_none()
            && core.config.l2_streamer_lines == 0
            && !self.host.nicmem.overlaps(&lines);
        if !plain {
            return lines.for_each(|line| self.touch(line, write, share_q16));
        }
        let hierarchy = &mut self.host.hierarchy;
        let hit = hierarchy.l2_hit_latency().as_ps();
        let app = core.part == crate::Part::App;
        let mut waited = 0;
        for line in lines {
            let near = &mut core.near[line as usize % NEAR_LINES];
            let entry = line << 1 | core.burst;
            if *near == entry | 1 || !write && *near == entry {
                continue;
            }
            *near = entry | u64::from(write);
            let latency = match hierarchy.hits_own_l2(core.number, line, write) {
                true => hit,
                false => {
                    let now = core.cursor + Time::from_ps(waited);
                    let fetched = hierarchy.fetch_into_l2(core.number, line, write, app, now);
                    fetched.as_ps()
                }
            };
            waited += (latency * share_q16) >> 16;
        }
        self.stall(Time::from_ps(waited));
    }
}
