//! How the NIC gets at the descriptors of a shared ring.

use nicforge_nic::DropCause;
use nicforge_platform::{Addr, Dma, Hint, bytemuck};
use nicforge_units::Time;

use crate::DESCRIPTOR_READ_MAX;
use crate::priv_ring::fetch::{frame_in, frames_ahead};

use super::layout::{BatchDescriptor, Descriptor, Order, ROOM_MAX, Ring, SLOTS_MAX, writer};

#[cfg(test)]
mod tests;

/// A descriptor at the NIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetched {
    /// Its buffers; those that the ring's descriptors have not are of no descriptor.
    mbufs: [Addr; SLOTS_MAX],
    /// Room for a frame in each, and who wrote it, as the descriptor has them.
    signed: u32,
    /// Its place in the ring.
    index: u32,
    /// When it is here.
    here: Time,
}

impl Fetched {
    /// The entry that slot `slot` is, where each descriptor has `slots`, and its buffer.
    #[inline]
    pub fn slot(&self, slot: u64, slots: u64) -> (u32, Addr) {
        let entry = u64::from(self.index) * slots + slot;
        (entry as u32, self.mbufs[slot as usize % SLOTS_MAX])
    }

    /// Room for a frame in each of its buffers, in bytes.
    #[inline]
    pub fn room(&self) -> u64 {
        u64::from(self.signed & ROOM_MAX)
    }

    /// The rank of the core that wrote it.
    pub fn writer(&self) -> u16 {
        writer(self.signed)
    }
}

/// One ring's descriptors, fetched ahead of need: a run of neighbours by each read.
///
/// In an array the next run is known, so that it is read while the last is still on its way. In
/// a list only the last descriptor says what comes next. Where that is not its neighbour, the
/// rest of the run is worth nothing, and the next read cannot begin before this one is back.
#[derive(Debug)]
pub struct Feed {
    /// Where the descriptors lie.
    pub ring: Ring,
    run: u64,
    /// Descriptors before this position are valid: the doorbell.
    tail: u64,
    /// Next position to use, next to fetch, and the index of the latter.
    head: u64,
    fetched: u64,
    next: u64,
    /// Who wrote the last descriptor that was read: the one that says what is next.
    pub last_writer: u16,
    /// When the last read is back.
    back: Time,
    /// What the last read brought.
    bytes: Box<[u8; DESCRIPTOR_READ_MAX]>,
    /// Descriptors that were read, those of positions from `head` until `fetched`, each in the place of
    /// its position: a power of two, room for two runs.
    at_hand: Box<[Fetched]>,
}

impl Feed {
    /// An empty ring, whose descriptors are fetched `read` bytes at a time.
    pub fn new(ring: Ring, read: usize) -> Feed {
        let run = (read.min(DESCRIPTOR_READ_MAX) / ring.stride()).max(1);
        Feed {
            run: run as u64,
            tail: ring.first,
            head: ring.first,
            fetched: ring.first,
            next: 0,
            last_writer: 0,
            back: Time::ZERO,
            bytes: Box::new([0; DESCRIPTOR_READ_MAX]),
            at_hand: vec![Fetched::default(); (2 * run).next_power_of_two()].into(),
            ring,
        }
    }

    /// Begins again with an empty ring, and what drivers share of it is zero.
    pub fn restart<D: Dma + ?Sized>(&mut self, dma: &mut D) {
        let first = self.ring.first;
        (self.tail, self.head, self.fetched, self.next) = (first, first, first, 0);
        self.back = Time::ZERO;
        self.ring.clear(dma);
    }

    /// Where the descriptor of `position` is kept.
    #[inline]
    fn place(&self, position: u64) -> usize {
        position as usize & (self.at_hand.len() - 1)
    }

    /// Reads the next run when one or less is at hand.
    #[inline]
    pub fn fetch<D: Dma>(&mut self, dma: &mut D) {
        if self.fetched - self.head <= self.run && self.fetched != self.tail {
            self.fetch_run(dma);
        }
    }

    fn fetch_run<D: Dma>(&mut self, dma: &mut D) {
        let waits = self.ring.order == Order::List && self.back > dma.now();
        let (from, count) = (self.next, self.next_run());
        if waits || count == 0 {
            return;
        }
        let bytes = &mut self.bytes[..count as usize * self.ring.stride()];
        self.back = dma.read_ahead(self.ring.descriptor(from), bytes);
        for index in from..from + count {
            let next = self.keep((index - from) as usize, index as u32);
            self.next = match self.ring.order {
                Order::Array if index + 1 == self.ring.count() => 0,
                Order::Array => index + 1,
                Order::List => next.into(),
            };
            if self.next != index + 1 {
                break;
            }
        }
        let expected = self.next_run() as usize * self.ring.stride();
        dma.hint(Hint::Read { at: self.ring.descriptor(self.next), len: expected });
    }

    /// How many descriptors the next read would bring; none, where a list leads out of the ring.
    fn next_run(&self) -> u64 {
        let left = self.ring.count().saturating_sub(self.next);
        self.run.min(self.tail - self.fetched).min(left)
    }

    /// Keeps the descriptor that the last read brought as its `number`th, `index` of the ring; returns
    /// what comes next in a list.
    #[inline]
    fn keep(&mut self, number: usize, index: u32) -> u32 {
        let place = self.place(self.fetched);
        let kept = &mut self.at_hand[place];
        let stride = self.ring.stride();
        let bytes = &self.bytes[number * stride..][..stride];
        let descriptor: Descriptor = if stride == size_of::<Descriptor>() {
            bytemuck::pod_read_unaligned(bytes)
        } else {
            let batch: BatchDescriptor = bytemuck::pod_read_unaligned(bytes);
            kept.mbufs[1..].copy_from_slice(&batch.others);
            batch.descriptor
        };
        kept.mbufs[0] = descriptor.first;
        (kept.signed, kept.index, kept.here) = (descriptor.signed, index, self.back);
        self.last_writer = writer(descriptor.signed);
        self.fetched += 1;
        descriptor.next
    }

    /// The descriptor that comes next, which stays the next until it is [used](Self::use_next).
    #[inline]
    pub fn next<D: Dma>(&mut self, dma: &mut D) -> Result<&Fetched, DropCause> {
        if self.head == self.fetched {
            self.fetch_late(dma)?;
        }
        Ok(&self.at_hand[self.place(self.head)])
    }

    /// Nothing is at hand: what is on its way is waited for, or what there is asked for.
    #[cold]
    fn fetch_late<D: Dma>(&mut self, dma: &mut D) -> Result<(), DropCause> {
        if self.fetched != self.tail {
            if self.next >= self.ring.count() {
                // The list leads out of the ring: nobody knows what comes after.
                return Err(DropCause::BAD_DESCRIPTOR);
            }
            dma.wait_until(self.back);
            self.fetch(dma);
        }
        if self.head == self.fetched { Err(DropCause::NO_DESCRIPTOR) } else { Ok(()) }
    }

    /// Waits for the next descriptor, which is at hand, and uses it up, for a frame of `len` bytes.
    #[inline]
    pub fn use_next<D: Dma>(&mut self, dma: &mut D, len: usize) {
        dma.wait_until(self.at_hand[self.place(self.head)].here);
        self.head += 1;
        if self.ring.order == Order::List {
            self.fetch(dma);
        }
        for &mbuf in self.named(frames_ahead(len)) {
            dma.hint(Hint::Frame { at: frame_in(mbuf), len });
        }
        for &mbuf in self.named(0) {
            dma.hint(Hint::NextFrame { at: frame_in(mbuf), len });
        }
    }

    /// The buffers of the descriptor that is `ahead` of the next one, if that was read.
    #[inline]
    fn named(&self, ahead: usize) -> &[Addr] {
        let position = self.head + ahead as u64;
        if position < self.fetched {
            &self.at_hand[self.place(position)].mbufs[..self.ring.slots as usize]
        } else {
            &[]
        }
    }

    /// The doorbell: descriptors before position `value` are valid. `false` when they cannot be.
    pub fn doorbell<D: Dma>(&mut self, dma: &mut D, value: u64) -> bool {
        let possible = value >= self.tail && value - self.head <= self.ring.capacity();
        if possible {
            self.tail = value;
            self.fetch(dma);
        }
        possible
    }

    /// Descriptors that the NIC may still use.
    pub fn unused(&self) -> u64 {
        self.tail - self.head
    }
}
