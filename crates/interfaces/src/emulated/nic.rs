//! The device's half: physical rings. What the emulated NIC does on them is in emulator.rs.

use std::ops::Range;
use std::sync::Arc;

use nicforge_nic::{Arriving, DropCause, Ledger, Lending, Pool, Queues, ReceiveHalf, Recoverable, Waiting, registers};
use nicforge_platform::{Dma, Ground};

use super::book::Book;
use super::emulator::{Emulator, Part, Played};
use super::whole::Whole;
use crate::Plan;
use crate::priv_ring::nic::Queue;

/// A NIC with physical rings, and the NIC that a core makes of it.
pub struct NicHalf<G: Ground> {
    physical: Vec<Queue>,
    /// The one that each queue's frames come into.
    ring_of: Vec<usize>,
    /// The register that is the first one's doorbell.
    first_doorbell: u32,
    pool: Pool,
    /// The emulated NIC.
    pub(super) played: Played<G::Player>,
    /// Registers of the emulated NIC that were written and that its core has not read yet, each
    /// once, with the value.
    pub(super) bells: Vec<(u32, u64)>,
    pub(super) emulator: Emulator,
    /// Whether the emulating core alone puts buffers into physical rings.
    fills: bool,
}

impl<G: Ground> NicHalf<G> {
    /// `inner` behind physical rings, with the number of each queue's; their doorbells begin with
    /// register `first_doorbell`.
    pub fn new(
        physical: Vec<Queue>,
        ring_of: Vec<usize>,
        first_doorbell: u32,
        plan: &Plan,
        inner: Part<G::Player>,
        emulator: Emulator,
    ) -> NicHalf<G> {
        NicHalf {
            physical,
            ring_of,
            first_doorbell,
            pool: plan.pool,
            played: Played { nic: inner, book: None },
            bells: Vec::new(),
            emulator,
            fills: plan.emulator_fills,
        }
    }

    /// From now on it is written down in `ledger` who has which buffer; `plan` is what this was built from.
    pub fn keep_book(&mut self, ledger: Ledger, plan: &Plan) {
        let book = Book::new(ledger, plan.owners.clone(), plan.emulator);
        self.played.book = Some(Arc::new(book));
    }

    /// The NIC, if cores play all of it.
    pub fn whole(&self) -> Option<&Whole<G::Player>> {
        match &self.played.nic {
            Part::Whole(whole) => Some(whole),
            Part::Half(_) => None,
        }
    }

    /// The same, to change something.
    pub fn whole_mut(&mut self) -> Option<&mut Whole<G::Player>> {
        match &mut self.played.nic {
            Part::Whole(whole) => Some(whole),
            Part::Half(_) => None,
        }
    }

    /// The emulating core wrote register `index`, the doorbell of a physical ring; `false` if there is no
    /// such register, or it cannot have that value.
    pub fn rung_by_core<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let number = index.checked_sub(self.first_doorbell);
        let Some(ring) = number.and_then(|ring| self.physical.get_mut(ring as usize)) else {
            return false;
        };
        ring.doorbell(dma, value)
    }
}

impl<G: Ground> Queues for NicHalf<G> {
    fn queues(&self) -> u16 {
        self.played.half().queues()
    }

    fn sets(&self) -> &'static [&'static str] {
        self.played.half().sets()
    }

    /// Entries of the physical ring and of the emulated one.
    fn waiting(&self, queue: u16) -> Waiting {
        let physical = self.physical[self.ring_of[usize::from(queue)]].waiting();
        let emulated = self.played.half().waiting(queue);
        Waiting { entries: physical.entries + emulated.entries, of: physical.of + emulated.of }
    }

    fn free(&self, queue: u16) -> u64 {
        let physical = self.physical[self.ring_of[usize::from(queue)]].waiting();
        self.played.half().free(queue).min(physical.of - physical.entries)
    }

    fn holds(&self) -> u64 {
        self.emulator.holds()
    }

    fn lending(&self, queue: u16) -> Option<Lending> {
        self.played.half().lending(queue)
    }
}

impl<D: Dma, G: Ground> ReceiveHalf<D> for NicHalf<G> {
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let ring = self.ring_of[usize::from(frame.queue)];
        let from = match &self.played.book {
            Some(book) => book.own(),
            None => frame.own(),
        };
        let outcome = self.physical[ring].receive(dma, frame, &self.pool, &from);
        match outcome {
            Ok(()) => self.emulator.announced(ring, Some(frame)),
            // A descriptor that names no buffer is told of too.
            Err(DropCause::BAD_DESCRIPTOR) => self.emulator.announced(ring, None),
            Err(_) => {}
        }
        outcome
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        if let Some(whole) = self.whole_mut()
            && index >= registers::TRANSMIT
        {
            whole.ring(index, value);
            return true;
        }
        let Some(ring) = index.checked_sub(self.first_doorbell) else {
            match self.bells.iter_mut().find(|(written, _)| *written == index) {
                Some((_, before)) => *before = value,
                None => self.bells.push((index, value)),
            }
            return true;
        };
        // Whoever does not fill these rings has no such register.
        let possible = !self.fills && self.rung_by_core(dma, index, value);
        if possible {
            self.emulator.filled_to(ring as usize, value);
        }
        possible
    }

    fn is_whole(&self) -> bool {
        self.whole().is_some()
    }

    fn recovery(&self) -> Option<&dyn Recoverable> {
        Some(self)
    }

    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        Some(self)
    }
}

impl<G: Ground> Recoverable for NicHalf<G> {
    fn together(&self, queue: u16) -> Range<u16> {
        self.played.half().recovery().map_or(queue..queue + 1, |half| half.together(queue))
    }

    /// Packets for these queues that wait in physical rings go, and their buffers stay there. That is for
    /// a core that fills these rings itself: buffers that software of the queues put there went with it.
    fn restart(&mut self, dma: &mut dyn Dma, queues: Range<u16>) -> Option<Vec<u32>> {
        if !self.fills {
            return None;
        }
        self.emulator.forget(&queues);
        let registers = self.played.half_mut().recoverable()?.restart(dma, queues)?;
        self.bells.retain(|(index, _)| !registers.contains(index));
        Some(registers)
    }

    fn lent(&self, from: u16, to: u16) -> i64 {
        self.played.half().recovery().map_or(0, |half| half.lent(from, to))
    }

    /// Descriptors of physical rings are no software's: who wrote there nobody knows. For those of the
    /// emulated rings see [`Step::blamed`](super::Step::blamed).
    fn blamed(&self, _queue: u16) -> Range<u16> {
        0..0
    }

    fn rung_by(&self, index: u32) -> Range<u16> {
        if index < self.first_doorbell {
            self.played.half().recovery().map_or(0..0, |half| half.rung_by(index))
        } else {
            0..0
        }
    }
}
