//! What the memory system counts, each defined where it is counted.

/// Counts of a memory system since its run began.
// In this order, so that look-ups do not stand beside those of them that hit: both would be loaded as one by
// whoever adds to both, and that waits for all stores before the last one of either.
#[repr(C)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounters {
    /// Lines that devices wrote.
    pub device_write_lines: u64,
    /// Of those, lines that were in the LLC and were updated in place.
    pub device_write_hits: u64,
    /// Lines that devices read.
    pub device_read_lines: u64,
    /// Of those, lines served by a cache.
    pub device_read_hits: u64,
    /// Device-written lines that were still in the LLC when first read.
    pub fresh_read: u64,
    /// Device-written lines that left the LLC before anybody read them.
    pub fresh_lost: u64,
    /// Look-ups of applications that reached the LLC.
    pub app_look_ups: u64,
    /// Look-ups of drivers that reached the LLC.
    pub driver_look_ups: u64,
    /// Of an application's look-ups, lines found in the LLC or another L2.
    pub app_hits: u64,
    /// The same of a driver's.
    pub driver_hits: u64,
    /// Dirty lines that the LLC wrote to memory.
    pub llc_write_backs: u64,
}

impl MemoryCounters {
    #[inline(always)]
    pub(super) fn core_look_ups(&mut self, app: bool, look_ups: u64, found: u64) {
        let (all, hits) = if app {
            (&mut self.app_look_ups, &mut self.app_hits)
        } else {
            (&mut self.driver_look_ups, &mut self.driver_hits)
        };
        *all += look_ups;
        *hits += found;
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &MemoryCounters) -> MemoryCounters {
        MemoryCounters {
            device_write_lines: self.device_write_lines - earlier.device_write_lines,
            device_write_hits: self.device_write_hits - earlier.device_write_hits,
            device_read_lines: self.device_read_lines - earlier.device_read_lines,
            device_read_hits: self.device_read_hits - earlier.device_read_hits,
            fresh_read: self.fresh_read - earlier.fresh_read,
            // Quick counters have less of them than those before.
            fresh_lost: self.fresh_lost.saturating_sub(earlier.fresh_lost),
            app_look_ups: self.app_look_ups - earlier.app_look_ups,
            app_hits: self.app_hits - earlier.app_hits,
            driver_look_ups: self.driver_look_ups - earlier.driver_look_ups,
            driver_hits: self.driver_hits - earlier.driver_hits,
            llc_write_backs: self.llc_write_backs - earlier.llc_write_backs,
        }
    }

    /// LLC misses of all agents: look-ups that nothing on the chip could serve.
    pub fn llc_misses(&self) -> u64 {
        self.device_write_lines - self.device_write_hits + self.device_read_lines - self.device_read_hits
            + self.app_look_ups
            - self.app_hits
            + self.driver_look_ups
            - self.driver_hits
    }
}
