//! A ring of empty buffers, as the driver that fills it sees it.

use nicforge_platform::{Addr, Cpu, Hint, Register};

use super::layout::Ring;

/// Descriptors ahead of the tail that the core says it will write: a few lines, as the NIC has read
/// them since they were last written.
pub const EXPECTED: u64 = 16;

/// The driver's side of a ring of descriptors that name empty buffers.
#[derive(Clone, Debug)]
pub struct Supply {
    /// Where the descriptors lie.
    pub ring: Ring,
    doorbell: Register,
    /// Descriptors written so far, and what the NIC was told.
    tail: u64,
    rung: u64,
}

impl Supply {
    /// An empty ring.
    pub fn new(ring: Ring, doorbell: Register) -> Supply {
        Supply { ring, doorbell, tail: ring.first, rung: ring.first }
    }

    /// Descriptors written so far, counted from the ring's first position.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Puts an empty buffer at the tail; returns the entry.
    #[inline(always)]
    pub fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) -> u64 {
        let index = self.ring.post(cpu, self.tail, mbuf);
        self.tail += 1;
        cpu.hint(Hint::Write(self.ring.descriptor(self.ring.index(self.tail + EXPECTED))));
        index
    }

    /// Tells the NIC of what it was not told of yet.
    #[inline]
    pub fn ring_doorbell<C: Cpu>(&mut self, cpu: &mut C) {
        if self.rung != self.tail {
            self.rung = self.tail;
            cpu.mmio_write(self.doorbell, self.tail);
        }
    }
}
