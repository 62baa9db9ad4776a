//! The NIC's half.

use std::ops::Range;

use nicforge_nic::{
    Arriving, CompletionWriter, DropCause, Fit, Pool, Queues, ReceiveHalf, Recoverable, Waiting, data_of,
};
use nicforge_platform::{Dma, Hint};

use super::feed::{Feed, Fetched};
use crate::priv_ring::fetch::frame_in;

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
        Queue { ring, completions, slot: 0, current: Fetched::default() }
    }
}

/// A shared ring at the NIC.
#[derive(Debug)]
struct Shared {
    feed: Feed,
    /// Empty slots of all cores' current descriptors.
    open: u64,
    /// The queues that share it.
    queues: Range<u16>,
    /// Who wrote the descriptor that last named no buffer, as it says itself.
    blamed: u16,
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
        let of_ring = |number| {
            let first = queues.partition_point(|queue| queue.ring < number);
            let end = queues.partition_point(|queue| queue.ring <= number);
            first as u16..end as u16
        };
        let rings = (0..).zip(feeds).map(|(number, feed)| Shared { feed, open: 0, queues: of_ring(number), blamed: 0 });
        let rings = rings.collect();
        NicHalf { queues, rings, pool }
    }
}

impl Queues for NicHalf {
    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    #[inline]
    fn waiting(&self, queue: u16) -> Waiting {
        let Shared { feed, open, .. } = &self.rings[self.queues[usize::from(queue)].ring];
        let of = feed.ring.entries;
        Waiting {
            // A driver that gives what the NIC still has makes more than there are.
            entries: of.saturating_sub(feed.unused() * feed.ring.slots + open),
            of,
        }
    }
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    #[inline(always)]
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let queue = &mut self.queues[usize::from(frame.queue)];
        let Shared { feed, open, queues, blamed } = &mut self.rings[queue.ring];
        feed.fetch(dma);
        let slots = feed.ring.slots;
        let current = match queue.slot {
            0 => match feed.next(dma) {
                Ok(next) => next,
                Err(cause) => {
                    *blamed = feed.last_writer;
                    return Err(cause);
                }
            },
            _ => &queue.current,
        };
        let (entry, mbuf) = current.slot(queue.slot, slots);
        let (room, len) = (current.room(), frame.bytes.len());
        let fit = self.pool.fit(dma, queues, mbuf, room, len);
        if fit == Fit::TooLong {
            return Err(DropCause::OVERSIZED);
        }
        if fit == Fit::NoBuffer {
            *blamed = current.writer();
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
        if queue.slot > 0 {
            // Frames of other cores come before the next one of this core, so that its place is prefetched
            // once more, for the machine that simulates.
            let (_, next) = queue.current.slot(queue.slot, slots);
            dma.hint(Hint::Frame { at: frame_in(next), len });
        }
        if fit == Fit::NoBuffer {
            return queue.completions.refuse(dma, frame, entry);
        }
        frame.write(dma, data_of(mbuf));
        queue.completions.announce(dma, frame, entry, mbuf);
        Ok(())
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        match self.rings.get_mut(index as usize) {
            Some(ring) => ring.feed.doorbell(dma, value),
            None => false,
        }
    }

    fn recovery(&self) -> Option<&dyn Recoverable> {
        Some(self)
    }

    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        Some(self)
    }
}

impl Recoverable for NicHalf {
    fn together(&self, queue: u16) -> Range<u16> {
        let ring = self.queues[usize::from(queue)].ring;
        self.rings[ring].queues.clone()
    }

    fn restart(&mut self, dma: &mut dyn Dma, queues: Range<u16>) -> Option<Vec<u32>> {
        let mut registers = Vec::new();
        for queue in &mut self.queues[usize::from(queues.start)..usize::from(queues.end)] {
            queue.completions.restart(dma);
            queue.slot = 0;
            if registers.last() != Some(&(queue.ring as u32)) {
                registers.push(queue.ring as u32);
            }
        }
        for &ring in &registers {
            let ring = &mut self.rings[ring as usize];
            ring.feed.restart(dma);
            ring.open = 0;
        }
        Some(registers)
    }

    /// All cores of a ring write its descriptors; each signs them.
    fn blamed(&self, queue: u16) -> Range<u16> {
        let ring = &self.rings[self.queues[usize::from(queue)].ring];
        let writer = ring.queues.start + ring.blamed;
        if ring.queues.contains(&writer) { writer..writer + 1 } else { ring.queues.clone() }
    }

    fn rung_by(&self, index: u32) -> Range<u16> {
        let ring = self.rings.get(index as usize);
        ring.map_or(0..0, |ring| ring.queues.clone())
    }
}
