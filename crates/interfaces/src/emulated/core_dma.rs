//! What a core that plays a NIC can do to its host: [`Dma`] with a core's accesses.

use std::ops::Range;
use std::sync::Arc;

use nicforge_nic::{COMPLETION_BYTES, Completion, data_of};
use nicforge_platform::{Addr, Atomic, Cpu, Dma, Hint, Vector, bytemuck, write_entry};
use nicforge_units::Time;

use super::book::Book;

/// [`Dma`] over a core: reads are loads, and a publish is stores and a release.
///
/// A frame that is handed over is not copied. Its write only says which buffer the NIC would have used; the
/// completion then names the buffer that the frame lies in instead. All else is written as it stands.
#[derive(Debug)]
pub struct CoreDma<C> {
    /// The core.
    pub cpu: C,
    /// The frame that is handed over, if one is.
    frame: Option<HandedOver>,
    /// The buffer that the NIC would have written it to.
    instead: Option<Addr>,
}

/// A frame that the core hands over.
#[derive(Clone, Debug)]
pub struct HandedOver {
    /// The buffer that it lies in.
    pub mbuf: Addr,
    /// The queue that it is for.
    pub queue: u16,
    /// Who has which buffer, where a ledger says that.
    pub book: Option<Arc<Book>>,
}

impl<C: Cpu> CoreDma<C> {
    /// The way of `cpu`.
    pub fn new(cpu: C) -> CoreDma<C> {
        CoreDma { cpu, frame: None, instead: None }
    }

    /// What follows is for `frame`.
    pub fn begin(&mut self, frame: HandedOver) {
        self.frame = Some(frame);
    }

    /// The frame is dealt with; returns the buffer that is free because it was handed over.
    pub fn end(&mut self) -> Option<Addr> {
        self.frame = None;
        self.instead.take()
    }

    #[inline(always)]
    fn write_entry(&mut self, at: Addr, mut words: [u64; 8]) {
        if let (Some(frame), Some(instead)) = (&self.frame, self.instead) {
            Completion::hand_over(&mut words, instead, frame.mbuf);
        }
        write_entry(&mut self.cpu, at, words);
        // Entries of a ring lie one behind the other.
        self.cpu.hint(Hint::Write(at + COMPLETION_BYTES));
    }
}

impl<C: Cpu + 'static> Dma for CoreDma<C> {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        into.copy_from_slice(self.cpu.bytes(from, into.len()));
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.read(from, into);
        self.now()
    }

    fn write(&mut self, to: Addr, bytes: &[u8]) {
        if self.frame.is_none() {
            self.cpu.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
            return;
        }
        let data = data_of(Addr(0));
        self.instead = to.0.checked_sub(data.0).map(Addr);
        // Before software can know, and give it back.
        if let (Some(HandedOver { mbuf, queue, book: Some(book) }), Some(instead)) = (&self.frame, self.instead) {
            book.exchange(&mut self.cpu, *mbuf, *queue, instead);
        }
    }

    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        let entries = bytes.chunks_exact(COMPLETION_BYTES as usize);
        let short = entries.remainder();
        for (line, entry) in (0..).zip(entries) {
            let at = to + line * COMPLETION_BYTES;
            self.write_entry(at, bytemuck::pod_read_unaligned(entry));
        }
        // A piece shorter than a line also ends with the word that announces it.
        if let Some((before, last)) = short.split_last_chunk() {
            let at = to + (bytes.len() - short.len()) as u64;
            if !before.is_empty() {
                self.cpu.bytes_mut(at, before.len()).copy_from_slice(before);
            }
            self.cpu.release(at + before.len() as u64, u64::from_ne_bytes(*last));
        }
    }

    fn atomic(&mut self, at: Addr, change: Atomic) -> u64 {
        self.cpu.atomic(at, change)
    }

    #[inline]
    fn is_from(&mut self, mbuf: Addr, queues: &Range<u16>) -> bool {
        let book = self.frame.as_ref().and_then(|frame| frame.book.as_ref());
        book.is_none_or(|book| book.is_from(&mut self.cpu, mbuf, queues))
    }

    fn interrupt(&mut self, _vector: Vector) {}

    fn wait_until(&mut self, _time: Time) {}

    fn now(&self) -> Time {
        self.cpu.now()
    }

    /// Other hints are about a device's accesses, and a core's are its own.
    #[inline(always)]
    fn hint(&mut self, hint: Hint) {
        if let Hint::Packet(..) = hint {
            self.cpu.hint(hint);
        }
    }
}
