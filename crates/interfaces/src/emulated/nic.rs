//! The device's half: physical rings. What the emulated NIC does on them is in emulator.rs.

use std::ops::Range;

use nicforge_nic::{Arriving, DropCause, Ledger, Lending, Pool, ReceiveHalf, Waiting};
use nicforge_platform::Dma;

use super::book::Book;
use super::emulator::Emulator;
use crate::priv_ring::nic::Queue;
use crate::{AnyNic, Plan};

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
    /// Whether the emulating core alone puts buffers into physical rings.
    fills: bool,
    /// Where it is written down who has which buffer, if anybody asks.
    pub(super) book: Option<Book>,
}

impl NicHalf {
    /// `inner` behind physical rings, with the number of each queue's; their doorbells begin with
    /// register `first_doorbell`.
    pub fn new(
        (physical, ring_of, first_doorbell): (Vec<Queue>, Vec<usize>, u32),
        plan: &Plan,
        inner: AnyNic,
        emulator: Emulator,
    ) -> NicHalf {
        NicHalf {
            physical,
            ring_of,
            first_doorbell,
            pool: plan.pool,
            inner: Box::new(inner),
            bells: Vec::new(),
            emulator,
            fills: plan.emulator_fills,
            book: None,
        }
    }

    /// From now on it is written down in `ledger` who has which buffer; `plan` is what this was built from.
    pub fn keep_book(&mut self, ledger: Ledger, plan: &Plan) {
        let book = Book::new(ledger, plan.owners.clone(), plan.emulator);
        self.book = Some(book);
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

impl ReceiveHalf for NicHalf {
    fn queues(&self) -> u16 {
        self.inner.queues()
    }

    fn sets(&self) -> &'static [&'static str] {
        self.inner.sets()
    }

    fn receive<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let ring = self.ring_of[usize::from(frame.queue)];
        let from = match &self.book {
            Some(book) => book.own(),
            None => frame.own(),
        };
        let outcome = self.physical[ring].receive(dma, frame, (&self.pool, &from));
        match outcome {
            Ok(()) => self.emulator.announced(ring, Some(frame)),
            // A descriptor that names no buffer is told of too.
            Err(DropCause::BAD_DESCRIPTOR) => self.emulator.announced(ring, None),
            Err(_) => {}
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
        // Whoever does not fill these rings has no such register.
        let possible = !self.fills && self.rung_by_core(dma, index, value);
        if possible {
            self.emulator.filled_to(ring as usize, value);
        }
        possible
    }

    /// Entries of the physical ring and of the emulated one.
    fn waiting(&self, queue: u16) -> Waiting {
        let physical = self.physical[self.ring_of[usize::from(queue)]].waiting();
        let emulated = self.inner.waiting(queue);
        Waiting { entries: physical.entries + emulated.entries, of: physical.of + emulated.of }
    }

    fn free(&self, queue: u16) -> u64 {
        let physical = self.physical[self.ring_of[usize::from(queue)]].waiting();
        self.inner.free(queue).min(physical.of - physical.entries)
    }

    fn holds(&self) -> u64 {
        self.emulator.holds()
    }

    fn together(&self, queue: u16) -> Range<u16> {
        self.inner.together(queue)
    }

    /// Packets for these queues that wait in physical rings go, and their buffers stay there. That is for
    /// a core that fills these rings itself: buffers that software of the queues put there went with it.
    fn begin_anew<D: Dma>(&mut self, dma: &mut D, queues: Range<u16>) -> Option<Vec<u32>> {
        if !self.fills {
            return None;
        }
        self.emulator.forget(&queues);
        let registers = self.inner.begin_anew(dma, queues)?;
        self.bells.retain(|(index, _)| !registers.contains(index));
        Some(registers)
    }

    fn lending(&self, queue: u16) -> Option<Lending> {
        self.inner.lending(queue)
    }

    fn lent(&self, from: u16, to: u16) -> i64 {
        self.inner.lent(from, to)
    }

    /// Descriptors of physical rings are no software's: who wrote there nobody knows. For those of the
    /// emulated rings see [`Emulated::blamed`](super::Emulated::blamed).
    fn blamed(&self, _queue: u16) -> Range<u16> {
        0..0
    }

    fn rung_by(&self, index: u32) -> Range<u16> {
        match index < self.first_doorbell {
            true => self.inner.rung_by(index),
            false => 0..0,
        }
    }
}
