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
    /// The next slot of the descriptor that this core's packets go to; 0 is that of a new one.
    slot: u64,
    current: Fetched,
}

impl Queue {
    /// A core that shares ring number `ring`.
    pub fn new(ring: usize, completions: CompletionWriter) -> Queue {
        Queue {
            ring,
            completions,
            slot: 0,
            current: Fetched::default(),
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
    #[inline(always)]
    fn receive<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let queue = &mut self.queues[usize::from(frame.queue)];
        let Shared { feed, open } = &mut self.rings[queue.ring];
        feed.fetch(dma);
        let slots = feed.ring.slots;
        let current = match queue.slot {
            0 => feed.next(dma)?,
            _ => &queue.current,
        };
        let (entry, mbuf) = current.slot(queue.slot, slots);
        let fit = self.pool.fit(mbuf, current.room.into(), frame.bytes.len());
        if fit == Fit::TooLong {
            return Err(DropCause::OVERSIZED);
        }
        if queue.slot == 0 {
            if slots > 1 {
                queue.current = *current;
            }
            feed.use_next(dma, frame.bytes.len());
            *open += slots;
        }
        *open -= 1;
        queue.slot = (queue.slot + 1) & (slots - 1);
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
            queue.slot = 0;
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
