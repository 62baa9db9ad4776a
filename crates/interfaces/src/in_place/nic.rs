//! The NIC's half.

use std::ops::Range;

use nicforge_nic::{Arriving, DropCause, Fit, Pool, Queues, ReceiveHalf, Recoverable, Waiting};
use nicforge_platform::{Dma, Hint, publish_entry};
use nicforge_units::Bytes;

use super::layout::{Descriptor, ENTRY_BYTES, completion};
use crate::priv_ring::fetch::Fetcher;
use crate::priv_ring::layout::Ring;

/// Entries between the one that is written and the one whose line is prefetched: more than are read at
/// a time.
const ENTRIES_AHEAD: u64 = 40;

/// One ring, as the NIC sees it.
#[derive(Debug)]
pub struct Queue {
    ring: Ring<Descriptor>,
    buffers: Fetcher<Descriptor>,
}

impl Queue {
    /// An empty ring, whose descriptors are fetched `read` bytes at a time.
    pub fn new(ring: Ring<Descriptor>, read: Bytes) -> Queue {
        Queue { ring, buffers: Fetcher::new(ring, read) }
    }
}

/// All rings of one NIC.
#[derive(Debug)]
pub struct NicHalf {
    queues: Vec<Queue>,
    pool: Pool,
}

impl NicHalf {
    /// Buffers must be `pool`'s.
    pub fn new(queues: Vec<Queue>, pool: Pool) -> NicHalf {
        NicHalf { queues, pool }
    }
}

impl Queues for NicHalf {
    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    fn waiting(&self, queue: u16) -> Waiting {
        let buffers = &self.queues[usize::from(queue)].buffers;
        Waiting { entries: buffers.used_up(), of: buffers.entries() }
    }
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let Queue { ring, buffers } = &mut self.queues[usize::from(frame.queue)];
        let Some((here, descriptor)) = buffers.peek(dma) else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let len = frame.bytes.len();
        let fit = self.pool.fit(dma, &frame.own(), descriptor.mbuf, descriptor.room, len);
        if fit == Fit::TooLong {
            return Err(DropCause::OVERSIZED);
        }
        dma.wait_until(here);
        let index = u64::from(buffers.pop());
        let entry = ring.descriptor(index);
        // Buffers and entries of frames to come, for real caches.
        let later = buffers.later(frame, |later| later.mbuf);
        dma.hint(Hint::Write(ring.descriptor(ring.index(index + ENTRIES_AHEAD))));
        if fit == Fit::NoBuffer {
            publish_entry(dma, entry, completion(frame, 0));
            return Err(DropCause::BAD_DESCRIPTOR);
        }
        frame.write_to(dma, descriptor.mbuf, later);
        buffers.expect_next(dma, frame, |next| next.mbuf);
        publish_entry(dma, entry, completion(frame, len as u32));
        Ok(())
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let queue = self.queues.get_mut(index as usize);
        queue.is_some_and(|queue| queue.buffers.doorbell(dma, value))
    }

    fn recovery(&self) -> Option<&dyn Recoverable> {
        Some(self)
    }

    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        Some(self)
    }
}

impl Recoverable for NicHalf {
    fn restart(&mut self, dma: &mut dyn Dma, queues: Range<u16>) -> Option<Vec<u32>> {
        for queue in queues.clone() {
            let Queue { ring, buffers } = &mut self.queues[usize::from(queue)];
            buffers.restart();
            for index in 0..ring.entries {
                dma.write(ring.descriptor(index), &[0; ENTRY_BYTES as usize]);
            }
        }
        Some(queues.map(u32::from).collect())
    }
}
