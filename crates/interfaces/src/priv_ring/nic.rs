//! The NIC's half.

use std::collections::VecDeque;

use nicforge_nic::{
    Arriving, CompletionWriter, DropCause, Pool, ReceiveHalf, Waiting, mbuf_room,
};
use nicforge_platform::{Dma, bytemuck};
use nicforge_units::{Bytes, Time};

use super::layout::{RX_DESCRIPTOR_BYTES, Ring, RxDescriptor};

/// Descriptors fetched by one read, at most.
const BATCH_MAX: usize = 64;

/// One receive ring with its completion ring.
#[derive(Debug)]
pub struct Queue {
    ring: Ring,
    completions: CompletionWriter,
    /// Descriptors before this position are valid: the doorbell.
    tail: u64,
    /// Next position to fill.
    head: u64,
    /// Next position to fetch.
    fetched: u64,
    /// Descriptors at hand, and when they are here.
    at_hand: VecDeque<(Time, RxDescriptor)>,
}

impl Queue {
    /// An empty ring.
    pub fn new(ring: Ring, completions: CompletionWriter) -> Queue {
        Queue {
            ring,
            completions,
            tail: ring.first,
            head: ring.first,
            fetched: ring.first,
            at_hand: VecDeque::new(),
        }
    }

    /// Reads the next batch when one or less is at hand.
    fn prefetch<D: Dma>(&mut self, dma: &mut D, batch: usize) {
        if self.at_hand.len() > batch || self.fetched == self.tail {
            return;
        }
        let index = self.ring.index(self.fetched);
        let count = (self.tail - self.fetched)
            .min(batch as u64)
            .min(self.ring.entries - index);
        let mut descriptors = [RxDescriptor::default(); BATCH_MAX];
        let descriptors = &mut descriptors[..count as usize];
        let from = self.ring.descriptor(index);
        let here = dma.read_ahead(from, bytemuck::cast_slice_mut(descriptors));
        self.at_hand
            .extend(descriptors.iter().map(|&descriptor| (here, descriptor)));
        self.fetched += count;
    }
}

/// All private rings of one NIC.
#[derive(Debug)]
pub struct NicHalf {
    queues: Vec<Queue>,
    pool: Pool,
    batch: usize,
}

impl NicHalf {
    /// Descriptors are fetched `read` bytes at a time; buffers must be `pool`'s.
    pub fn new(queues: Vec<Queue>, pool: Pool, read: Bytes) -> NicHalf {
        let batch = (read.0 / RX_DESCRIPTOR_BYTES) as usize;
        NicHalf {
            queues,
            pool,
            batch: batch.clamp(1, BATCH_MAX),
        }
    }
}

impl ReceiveHalf for NicHalf {
    fn receive<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let queue = &mut self.queues[usize::from(frame.queue)];
        queue.prefetch(dma, self.batch);
        let Some(&(here, descriptor)) = queue.at_hand.front() else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let good = self.pool.number_of(descriptor.mbuf).is_some();
        // A buffer has no more room than it has, whatever its descriptor says.
        if good && frame.bytes.len() > descriptor.room.min(mbuf_room()) as usize {
            return Err(DropCause::OVERSIZED);
        }
        dma.wait_until(here);
        queue.at_hand.pop_front();
        let entry = queue.ring.index(queue.head) as u32;
        queue.head += 1;
        let mbuf = good.then_some(descriptor.mbuf);
        queue.completions.deliver(dma, frame, entry, mbuf)
    }

    fn write_register<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        match self.queues.get_mut(index as usize) {
            Some(queue) if value >= queue.tail && value - queue.head <= queue.ring.entries => {
                queue.tail = value;
                queue.prefetch(dma, self.batch);
                true
            }
            _ => false,
        }
    }

    fn waiting(&self, queue: u16) -> Waiting {
        let queue = &self.queues[usize::from(queue)];
        Waiting {
            entries: queue.ring.entries - (queue.tail - queue.head),
            of: queue.ring.entries,
        }
    }
}
