//! The NIC's half: two halves, told apart by queue and register numbers.

use std::ops::Range;

use nicforge_nic::{Arriving, DropCause, Queues, ReceiveHalf, Recoverable, Waiting};
use nicforge_platform::Dma;

use super::layout::SETS;
use crate::{priv_ring, sh_ring};

/// Both sets of rings of one NIC.
#[derive(Debug)]
pub struct NicHalf {
    private: priv_ring::NicHalf,
    shared: sh_ring::NicHalf,
    /// Queues of each set.
    cores: u16,
}

impl NicHalf {
    /// Both have a queue for each core.
    pub fn new(private: priv_ring::NicHalf, shared: sh_ring::NicHalf) -> NicHalf {
        NicHalf { cores: private.queues(), private, shared }
    }

    /// What the shared half calls `queues`.
    fn in_shared_set(&self, queues: Range<u16>) -> Range<u16> {
        queues.start + self.cores..queues.end + self.cores
    }
}

impl Queues for NicHalf {
    fn queues(&self) -> u16 {
        self.private.queues() + self.shared.queues()
    }

    fn sets(&self) -> &'static [&'static str] {
        SETS
    }

    fn waiting(&self, queue: u16) -> Waiting {
        match queue.checked_sub(self.cores) {
            None => self.private.waiting(queue),
            Some(queue) => self.shared.waiting(queue),
        }
    }
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    #[inline]
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        match frame.queue.checked_sub(self.cores) {
            None => self.private.receive(dma, frame),
            Some(queue) => self.shared.receive(dma, &Arriving { queue, ..*frame }),
        }
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        match index.checked_sub(self.cores.into()) {
            None => self.private.write_register(dma, index, value),
            Some(index) => self.shared.write_register(dma, index, value),
        }
    }

    fn recovery(&self) -> Option<&dyn Recoverable> {
        Some(self)
    }

    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        Some(self)
    }
}

impl Recoverable for NicHalf {
    fn together(&self, queue: u16) -> Range<u16> {
        match queue.checked_sub(self.cores) {
            None => self.private.together(queue),
            Some(queue) => self.in_shared_set(self.shared.together(queue)),
        }
    }

    fn restart(&mut self, dma: &mut dyn Dma, queues: Range<u16>) -> Option<Vec<u32>> {
        let cores = self.cores;
        match queues.start.checked_sub(cores) {
            None => self.private.restart(dma, queues),
            Some(start) => {
                let registers = self.shared.restart(dma, start..queues.end - cores)?;
                let own = |register| register + u32::from(cores);
                Some(registers.into_iter().map(own).collect())
            }
        }
    }

    fn blamed(&self, queue: u16) -> Range<u16> {
        match queue.checked_sub(self.cores) {
            None => self.private.blamed(queue),
            Some(queue) => self.in_shared_set(self.shared.blamed(queue)),
        }
    }

    fn rung_by(&self, index: u32) -> Range<u16> {
        match index.checked_sub(self.cores.into()) {
            None => self.private.rung_by(index),
            Some(index) => self.in_shared_set(self.shared.rung_by(index)),
        }
    }
}
