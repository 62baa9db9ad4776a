//! What a core that plays a NIC can do to its host: [`Dma`] with a core's accesses.

use std::ops::Range;

use nicforge_nic::{COMPLETION_BYTES, Completion, data_of};
use nicforge_platform::{Addr, Cpu, Dma, Vector, bytemuck};
use nicforge_units::Time;

use super::book::Book;

/// [`Dma`] over a core: reads are loads, and a publish is stores and a release.
///
/// A frame is not copied. Its write only says which buffer the NIC would have used; the
/// completion then names the buffer that the frame lies in instead.
pub struct Way<'a, C> {
    cpu: &'a mut C,
    /// The buffer that the frame lies in.
    holds: Option<Addr>,
    /// The buffer that the NIC would have written it to.
    instead: Option<Addr>,
    /// Where it is written down who has which buffer, and whose queue the frame is for.
    book: Option<(&'a Book, u16)>,
}

impl<'a, C: Cpu> Way<'a, C> {
    /// For work without a frame.
    pub fn new(cpu: &'a mut C) -> Way<'a, C> {
        Way { cpu, holds: None, instead: None, book: None }
    }

    /// For the frame in `mbuf`, which is for `queue`.
    pub fn handing_over(cpu: &'a mut C, (mbuf, queue): (Addr, u16), book: Option<&'a Book>) -> Way<'a, C> {
        Way { holds: Some(mbuf), book: book.map(|book| (book, queue)), ..Way::new(cpu) }
    }

    // Always inlined, down to where it is stored: a call would store the words once more, in other pieces than
    // they are loaded.
    #[inline(always)]
    fn write_entry(&mut self, at: Addr, mut words: [u64; 8]) {
        if let (Some(holds), Some(instead)) = (self.holds, self.instead) {
            Completion::hand_over(&mut words, instead, holds);
        }
        self.cpu.write_entry(at, words);
        // Entries of a ring lie one behind the other.
        self.cpu.expect_store(at + COMPLETION_BYTES);
    }

    /// The buffer that is free because the frame was handed over.
    pub fn instead(&self) -> Option<Addr> {
        self.instead
    }
}

impl<C: Cpu> Dma for Way<'_, C> {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.cpu.copy_out(from, into);
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.read(from, into);
        self.now()
    }

    fn write(&mut self, to: Addr, _bytes: &[u8]) {
        let data = data_of(Addr(0));
        self.instead = to.0.checked_sub(data.0).map(Addr);
        // Before software can know, and give it back.
        if let (Some((book, queue)), Some(holds), Some(instead)) = (self.book, self.holds, self.instead) {
            book.exchange(self.cpu, (holds, queue), instead);
        }
    }

    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        for (line, entry) in (0..).zip(bytes.chunks_exact(COMPLETION_BYTES as usize)) {
            let at = to + line * COMPLETION_BYTES;
            self.write_entry(at, bytemuck::pod_read_unaligned(entry));
        }
    }

    #[inline(always)]
    fn publish_entry<const WORDS: usize>(&mut self, to: Addr, words: [u64; WORDS]) {
        match <[u64; 8]>::try_from(&words[..]) {
            Ok(words) => self.write_entry(to, words),
            Err(_) => self.publish(to, bytemuck::cast_slice(&words)),
        }
    }

    #[inline]
    fn is_from(&mut self, mbuf: Addr, queues: &Range<u16>) -> bool {
        let book = self.book;
        book.is_none_or(|(book, _)| book.is_from(self.cpu, mbuf, queues))
    }

    fn interrupt(&mut self, _vector: Vector) {}

    fn wait_until(&mut self, _time: Time) {}

    fn now(&self) -> Time {
        self.cpu.now()
    }
}
