//! The tracer takes note of packets on a core. Lines that are driven out unread are a device's doing, and are not counted here.

use super::SimCpu;
use crate::sim::Host;
use crate::tracer::{Counts, Here};
use crate::{BurstMoment, Moment, PacketKey};

impl SimCpu {
    #[cold]
    #[inline(never)]
    pub(super) fn trace(&mut self, key: PacketKey, moment: Moment) {
        let Host { tracer, hierarchy, .. } = &mut *self.host;
        let core = &self.core;
        let counts = || Counts { memory: hierarchy.quick_counters(), core: core.spent.clone(), ..Counts::default() };
        if let Some(tracer) = tracer {
            tracer.packet(key, moment, (Here::Core(core.number), core.cursor), counts);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn trace_burst(&mut self, moment: BurstMoment) {
        let Host { tracer, hierarchy, .. } = &mut *self.host;
        let core = &self.core;
        let counts = Counts { memory: hierarchy.quick_counters(), core: core.spent.clone(), ..Counts::default() };
        let rung = core.mmio.last().map_or(core.cursor, |write| write.arrives);
        if let Some(tracer) = tracer {
            tracer.burst(core.number, moment, core.cursor, (counts, rung));
        }
    }
}
