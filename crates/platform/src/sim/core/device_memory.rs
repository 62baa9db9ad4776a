//! What a core does to memory of a device: nothing of it is cached.

use nicforge_units::{Bytes, CACHE_LINE_BYTES};

use super::SimCpu;
use crate::Addr;

impl SimCpu {
    /// Reads a line of a device's memory: no cache holds it and nothing overlaps with it.
    pub(super) fn load_from_device(&mut self, line: u64) {
        let Some(device) = self.host.nicmem.device_of(line) else {
            return;
        };
        let link = &mut self.host.links[device];
        let asked = link.inward.send(self.core.cursor, Bytes(0));
        let back = asked + self.core.mmio_read;
        let here = link.out.send(back, Bytes(CACHE_LINE_BYTES));
        self.stall(here - self.core.cursor);
    }

    /// Writes `len` bytes at `offset` of a line of a device's memory.
    pub(super) fn store_to_device(&mut self, line: u64, offset: u64, len: u64) {
        let Some(device) = self.host.nicmem.device_of(line) else {
            return;
        };
        let (now, links) = (self.core.cursor, &mut self.host.links);
        let goes_on = self.core.combining.store(line, device, offset, len, now, links);
        self.stall(goes_on - now);
    }

    /// All lines of `[at, at + len)` of which some bytes are written.
    pub(super) fn store_run_to_device(&mut self, at: Addr, len: u64) {
        let (mut from, end) = (at.0, at.0 + len);
        while from < end {
            let until = (from / CACHE_LINE_BYTES + 1) * CACHE_LINE_BYTES;
            let until = until.min(end);
            self.store_to_device(from / CACHE_LINE_BYTES, from % CACHE_LINE_BYTES, until - from);
            from = until;
        }
    }
}
