//! The NIC's half.

use std::ops::Range;

use nicforge_nic::{Arriving, CompletionWriter, DropCause, Fit, Pool, ReceiveHalf, Waiting};
use nicforge_platform::Dma;

use super::feed::{Feed, Fetched};

/// One core's completion ring, and its part in a shared ring.
#[derive(Debug)]
pub struct Queue {
    ring: usize,
    completions: CompletionWriter,
    /// The descriptor that this core's packets go to, as long as it has room.
    current: Option<Fetched>,
    /// The next slot of it.
    slot: u64,
}

impl Queue {
    /// A core that shares ring number `ring`.
    pub fn new(ring: usize, completions: CompletionWriter) -> Queue {
        Queue {
            ring,
            completions,
            current: None,
            slot: 0,
        }
    }
}

/// A shared ring at the NIC.
#[derive(Debug)]
struct Shared {
    feed: Feed,
    /// Empty slots of all cores' current descriptors.
    open: u64,
}

/// All shared rings of one NIC.
#[derive(Debug)]
pub struct NicHalf {
    queues: Vec<Queue>,
    rings: Vec<Shared>,
    pool: Pool,
}

impl NicHalf {
    /// The `queues` of one NIC over the rings that `feeds` read; buffers must be `pool`'s.
    pub fn new(queues: Vec<Queue>, feeds: Vec<Feed>, pool: Pool) -> NicHalf {
        let rings = feeds.into_iter().map(|feed| Shared { feed, open: 0 });
        NicHalf {
            queues,
            rings: rings.collect(),
            pool,
        }
    }
}

impl ReceiveHalf for NicHalf {
    fn receive<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let queue = &mut self.queues[usize::from(frame.queue)];
        let Shared { feed, open } = &mut self.rings[queue.ring];
        feed.fetch(dma);
        let current = match queue.current {
            Some(current) => current,
            None => feed.next(dma)?,
        };
        let mbuf = current.descriptor.mbuf(queue.slot);
        let room = current.descriptor.room.into();
        let fit = self.pool.fit(mbuf, room, frame.bytes.len());
        if fit == Fit::TooLong {
            return Err(DropCause::OVERSIZED);
        }
        let slots = feed.ring.slots;
        if queue.current.is_none() {
            feed.use_next(dma, frame.bytes.len());
            queue.current = Some(current);
            *open += slots;
        }
        let entry = (current.index * slots + queue.slot) as u32;
        *open -= 1;
        queue.slot += 1;
        if queue.slot == slots {
            (queue.current, queue.slot) = (None, 0);
        }
        if fit == Fit::NoBuffer {
            return queue.completions.refuse(dma, frame, entry);
        }
        queue.completions.deliver(dma, frame, entry, mbuf);
        Ok(())
    }

    fn write_register<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        match self.rings.get_mut(index as usize) {
            Some(ring) => ring.feed.doorbell(dma, value),
            None => false,
        }
    }

    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    #[inline]
    fn waiting(&self, queue: u16) -> Waiting {
        let Shared { feed, open } = &self.rings[self.queues[usize::from(queue)].ring];
        let of = feed.ring.entries;
        Waiting {
            // A driver that gives what the NIC still has makes more than there are.
            entries: of.saturating_sub(feed.unused() * feed.ring.slots + open),
            of,
        }
    }

    fn together(&self, queue: u16) -> Range<u16> {
        let ring = self.queues[usize::from(queue)].ring;
        let first = self.queues.partition_point(|other| other.ring < ring);
        let end = self.queues.partition_point(|other| other.ring <= ring);
        first as u16..end as u16
    }

    fn begin_anew<D: Dma>(&mut self, dma: &mut D, queues: Range<u16>) -> Option<Vec<u32>> {
        let mut registers = Vec::new();
        for queue in &mut self.queues[usize::from(queues.start)..usize::from(queues.end)] {
            queue.completions.begin_anew(dma);
            (queue.current, queue.slot) = (None, 0);
            if registers.last() != Some(&(queue.ring as u32)) {
                registers.push(queue.ring as u32);
            }
        }
        for &ring in &registers {
            let ring = &mut self.rings[ring as usize];
            ring.feed.begin_anew(dma);
            ring.open = 0;
        }
        Some(registers)
    }

    /// All cores of a ring write its descriptors.
    fn blamed(&self, queue: u16) -> Option<u16> {
        let together = self.together(queue);
        (together.len() == 1).then_some(queue)
    }
}
