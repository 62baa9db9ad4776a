//! The device's half: physical rings. What the emulated NIC does on them is in emulator.rs.

use nicforge_nic::{Arriving, DropCause, Pool, ReceiveHalf, Waiting};
use nicforge_platform::Dma;

use super::emulator::Emulator;
use crate::AnyNic;
use crate::priv_ring::nic::Queue;

/// A NIC with physical rings, and the NIC that a core makes of it.
#[derive(Debug)]
pub struct NicHalf {
    physical: Vec<Queue>,
    /// The one that each queue's frames come into.
    ring_of: Vec<usize>,
    /// The register that is the first one's doorbell.
    first_doorbell: u32,
    pool: Pool,
    /// The emulated NIC's half, which only the emulating core runs.
    pub(super) inner: Box<AnyNic>,
    /// Registers of the emulated NIC that were written and that its core has not read yet, each
    /// once, with the value.
    pub(super) bells: Vec<(u32, u64)>,
    pub(super) emulator: Emulator,
}

impl NicHalf {
    /// `inner` behind physical rings, with the number of each queue's; their doorbells begin with
    /// register `first_doorbell`.
    pub fn new(
        (physical, ring_of, first_doorbell): (Vec<Queue>, Vec<usize>, u32),
        pool: Pool,
        inner: AnyNic,
        emulator: Emulator,
    ) -> NicHalf {
        NicHalf {
            physical,
            ring_of,
            first_doorbell,
            pool,
            inner: Box::new(inner),
            bells: Vec::new(),
            emulator,
        }
    }
}

impl ReceiveHalf for NicHalf {
    fn queues(&self) -> u16 {
        self.inner.queues()
    }

    fn receive<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let ring = self.ring_of[usize::from(frame.queue)];
        let outcome = self.physical[ring].receive(dma, frame, &self.pool);
        // A descriptor that names no buffer is told of too.
        if matches!(outcome, Ok(()) | Err(DropCause::BAD_DESCRIPTOR)) {
            self.emulator.announced(ring);
        }
        outcome
    }

    fn write_register<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let Some(ring) = index.checked_sub(self.first_doorbell) else {
            match self.bells.iter_mut().find(|(written, _)| *written == index) {
                Some((_, before)) => *before = value,
                None => self.bells.push((index, value)),
            }
            return true;
        };
        let Some(physical) = self.physical.get_mut(ring as usize) else {
            return false;
        };
        let possible = physical.doorbell(dma, value);
        if possible {
            self.emulator.filled_to(ring as usize, value);
        }
        possible
    }

    /// Entries of the physical ring and of the emulated one.
    fn waiting(&self, queue: u16) -> Waiting {
        let physical = self.physical[self.ring_of[usize::from(queue)]].waiting();
        let emulated = self.inner.waiting(queue);
        Waiting {
            entries: physical.entries + emulated.entries,
            of: physical.of + emulated.of,
        }
    }
}
