//! How the NIC gets at the descriptors of a shared ring.

use std::collections::VecDeque;

use nicforge_nic::DropCause;
use nicforge_platform::Dma;
use nicforge_units::Time;

use crate::priv_ring::fetch::expect_frame;

use super::layout::{Descriptor, Order, Ring};

/// Bytes of descriptors that one read brings, at most.
pub const READ_MAX: usize = 1024;

/// A descriptor at the NIC.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// Its place in the ring.
    pub index: u64,
    /// What it says.
    pub descriptor: Descriptor,
    /// When it is here.
    pub here: Time,
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
    /// When the last read is back.
    back: Time,
    at_hand: VecDeque<Fetched>,
}

impl Feed {
    /// An empty ring, whose descriptors are fetched `read` bytes at a time.
    pub fn new(ring: Ring, read: usize) -> Feed {
        Feed {
            run: (read.min(READ_MAX) / ring.stride()).max(1) as u64,
            tail: ring.first,
            head: ring.first,
            fetched: ring.first,
            next: 0,
            back: Time::ZERO,
            at_hand: VecDeque::new(),
            ring,
        }
    }

    /// Begins again with an empty ring, and what drivers share of it is zero.
    pub fn begin_anew<D: Dma>(&mut self, dma: &mut D) {
        let first = self.ring.first;
        (self.tail, self.head, self.fetched, self.next) = (first, first, first, 0);
        self.back = Time::ZERO;
        self.at_hand.clear();
        self.ring.clear(dma);
    }

    /// Reads the next run when one or less is at hand.
    #[inline]
    pub fn fetch<D: Dma>(&mut self, dma: &mut D) {
        if self.at_hand.len() as u64 <= self.run && self.fetched != self.tail {
            self.fetch_run(dma);
        }
    }

    fn fetch_run<D: Dma>(&mut self, dma: &mut D) {
        let waits = self.ring.order == Order::List && self.back > dma.now();
        let (from, end) = (self.next, self.ring.count());
        if waits || from >= end {
            return;
        }
        let count = self.run.min(self.tail - self.fetched).min(end - from);
        let stride = self.ring.stride();
        let mut bytes = [0; READ_MAX];
        let bytes = &mut bytes[..count as usize * stride];
        self.back = dma.read_ahead(self.ring.descriptor(from), bytes);
        for (index, bytes) in (from..).zip(bytes.chunks_exact(stride)) {
            let descriptor = Descriptor::decode(bytes);
            self.at_hand.push_back(Fetched {
                index,
                descriptor,
                here: self.back,
            });
            self.fetched += 1;
            self.next = match self.ring.order {
                Order::Array if index + 1 == end => 0,
                Order::Array => index + 1,
                Order::List => descriptor.next.into(),
            };
            if self.next != index + 1 {
                break;
            }
        }
    }

    /// The descriptor that comes next, which stays the next until it is [used](Self::use_next).
    #[inline]
    pub fn next<D: Dma>(&mut self, dma: &mut D) -> Result<Fetched, DropCause> {
        if self.at_hand.is_empty() && self.fetched != self.tail {
            if self.next >= self.ring.count() {
                // The list leads out of the ring: nobody knows what comes after.
                return Err(DropCause::BAD_DESCRIPTOR);
            }
            dma.wait_until(self.back);
            self.fetch(dma);
        }
        let next = self.at_hand.front().copied();
        next.ok_or(DropCause::NO_DESCRIPTOR)
    }

    /// Waits for the next descriptor and uses it up, for a frame of `len` bytes.
    #[inline]
    pub fn use_next<D: Dma>(&mut self, dma: &mut D, len: usize) {
        if let Some(used) = self.at_hand.pop_front() {
            dma.wait_until(used.here);
            self.head += 1;
        }
        if self.ring.order == Order::List {
            self.fetch(dma);
        }
        if let Some(later) = self.at_hand.get(D::FRAMES_AHEAD) {
            for slot in 0..self.ring.slots {
                expect_frame(dma, later.descriptor.mbuf(slot), len);
            }
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
