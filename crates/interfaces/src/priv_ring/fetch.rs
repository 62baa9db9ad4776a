//! The NIC's view of a ring of empty buffers: descriptors read in batches, ahead of need.

use std::collections::VecDeque;

use nicforge_platform::Dma;
use nicforge_platform::bytemuck::{self, Pod};
use nicforge_units::{Bytes, Time};

use super::layout::{Ring, RxDescriptor};

/// Descriptors fetched by one read, at most.
const BATCH_MAX: usize = 64;

/// Where the NIC stands in a ring of descriptors, and those that it has read.
#[derive(Debug)]
pub struct Fetcher<T = RxDescriptor> {
    ring: Ring<T>,
    /// Descriptors before this position are valid: the doorbell.
    tail: u64,
    /// Next position to fill.
    head: u64,
    /// Next position to fetch.
    fetched: u64,
    /// Descriptors by one read.
    batch: usize,
    /// Descriptors at hand, and when they are here.
    at_hand: VecDeque<(Time, T)>,
}

impl<T: Pod> Fetcher<T> {
    /// An empty ring, of which `read` bytes are fetched at a time.
    pub fn new(ring: Ring<T>, read: Bytes) -> Fetcher<T> {
        Fetcher {
            ring,
            tail: ring.first,
            head: ring.first,
            fetched: ring.first,
            batch: (read.0 as usize / size_of::<T>()).clamp(1, BATCH_MAX),
            at_hand: VecDeque::new(),
        }
    }

    /// Begins again with an empty ring.
    pub fn begin_anew(&mut self) {
        let first = self.ring.first;
        (self.tail, self.head, self.fetched) = (first, first, first);
        self.at_hand.clear();
    }

    /// Reads the next batch when one or less is at hand.
    pub fn prefetch<D: Dma>(&mut self, dma: &mut D) {
        if self.at_hand.len() > self.batch || self.fetched == self.tail {
            return;
        }
        let index = self.ring.index(self.fetched);
        let count = (self.tail - self.fetched)
            .min(self.batch as u64)
            .min(self.ring.entries - index);
        let mut descriptors = [T::zeroed(); BATCH_MAX];
        let descriptors = &mut descriptors[..count as usize];
        let from = self.ring.descriptor(index);
        let here = dma.read_ahead(from, bytemuck::cast_slice_mut(descriptors));
        self.at_hand
            .extend(descriptors.iter().map(|&descriptor| (here, descriptor)));
        self.fetched += count;
    }

    /// The next descriptor, and when it is here; prefetches before.
    pub fn peek<D: Dma>(&mut self, dma: &mut D) -> Option<(Time, T)> {
        self.prefetch(dma);
        self.at_hand.front().copied()
    }

    /// The descriptor `ahead` of the next one, if it was read, and when it is here.
    pub fn at_hand(&self, ahead: usize) -> Option<(Time, T)> {
        self.at_hand.get(ahead).copied()
    }

    /// Uses the next descriptor up; returns its entry.
    pub fn pop(&mut self) -> u32 {
        self.at_hand.pop_front();
        self.head += 1;
        self.ring.index(self.head - 1) as u32
    }

    /// Descriptors that software gave and that are not used up.
    #[inline]
    pub fn available(&self) -> u64 {
        self.tail - self.head
    }

    /// Whether the next descriptor is here at `now`: nobody would wait for it.
    #[inline]
    pub fn is_ready(&self, now: Time) -> bool {
        self.at_hand.front().is_some_and(|&(here, _)| here <= now)
    }

    /// Entries that software owes a descriptor.
    pub fn used_up(&self) -> u64 {
        self.ring.entries - self.available()
    }

    /// Entries there are.
    pub fn entries(&self) -> u64 {
        self.ring.entries
    }

    /// The doorbell tells a new tail; `false` if it goes back, or too far.
    pub fn doorbell<D: Dma>(&mut self, dma: &mut D, tail: u64) -> bool {
        let possible = tail >= self.tail && tail - self.head <= self.ring.entries;
        if possible {
            self.tail = tail;
            self.prefetch(dma);
        }
        possible
    }
}
