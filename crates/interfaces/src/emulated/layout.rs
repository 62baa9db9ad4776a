//! What lies in memory, beside that of the wrapped interface: physical rings.
//!
//! A physical ring is a private ring ([`crate::priv_ring::layout`]) with a completion ring. The
//! device reads its descriptors and writes its completions; the emulating core does the
//! opposite, and notes which buffer is in which entry.
//!
//! Registers: those of the wrapped interface are words in the device's memory that the emulating
//! core reads. `FIRST_PER_QUEUE × queues + r` is the doorbell of physical ring `r`.

use nicforge_platform::{Addr, Cpu, Register};

use crate::priv_ring::layout::Ring;

/// Registers per queue that are the wrapped interface's: none has more.
pub const FIRST_PER_QUEUE: u32 = 2;

/// A physical ring, as the emulating core and whoever fills it at first see it.
#[derive(Clone, Copy, Debug)]
pub struct Physical {
    /// Its descriptors.
    pub ring: Ring,
    /// The buffer in each entry, 8 bytes each.
    pub notes: Addr,
    /// Tells the device the tail.
    pub doorbell: Register,
}

impl Physical {
    /// Puts the empty buffer `mbuf` at `position`.
    pub fn post<C: Cpu>(&self, cpu: &mut C, position: u64, mbuf: Addr) {
        let index = self.ring.post(cpu, position, mbuf);
        cpu.store(self.note(index), mbuf.0);
    }

    /// Where the buffer of entry `index` is noted.
    pub fn note(&self, index: u64) -> Addr {
        self.notes + index * 8
    }
}
