//! The NIC's half.

use std::ops::Range;

use nicforge_nic::{Arriving, CompletionWriter, DropCause, Fit, Pool, Queues, ReceiveHalf, Recoverable, Waiting};
use nicforge_platform::Dma;
use nicforge_units::Bytes;

use super::fetch::Fetcher;
use super::layout::Ring;

/// One receive ring with its completion ring.
#[derive(Debug)]
pub struct Queue {
    buffers: Fetcher,
    completions: CompletionWriter,
}

impl Queue {
    /// An empty ring, whose descriptors are fetched `read` bytes at a time.
    pub fn new(ring: Ring, read: Bytes, completions: CompletionWriter) -> Queue {
        Queue { buffers: Fetcher::new(ring, read), completions }
    }

    /// Delivers `frame` into the next buffer, which must be one of `pool` that `from` have.
    #[inline(always)]
    pub fn receive<D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &Arriving<'_>,
        pool: &Pool,
        from: &Range<u16>,
    ) -> Result<(), DropCause> {
        let Some((here, descriptor)) = self.buffers.peek(dma) else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        match pool.fit(dma, from, descriptor.mbuf, descriptor.room.into(), frame.bytes.len()) {
            Fit::Good => {}
            Fit::TooLong => return Err(DropCause::OVERSIZED),
            Fit::NoBuffer => {
                dma.wait_until(here);
                let entry = self.buffers.pop();
                return self.completions.refuse(dma, frame, entry);
            }
        }
        dma.wait_until(here);
        let entry = self.buffers.pop();
        let later = self.buffers.later(frame, |later| later.mbuf);
        frame.write_to(dma, descriptor.mbuf, later);
        self.buffers.expect_next(dma, frame, |next| next.mbuf);
        self.completions.announce(dma, frame, entry, descriptor.mbuf);
        Ok(())
    }

    /// Its doorbell was rung; `false` if `tail` is impossible.
    pub fn doorbell<D: Dma>(&mut self, dma: &mut D, tail: u64) -> bool {
        self.buffers.doorbell(dma, tail)
    }

    /// Begins again with empty rings.
    fn restart<D: Dma + ?Sized>(&mut self, dma: &mut D) {
        self.buffers.restart();
        self.completions.restart(dma);
    }

    /// How full it is.
    pub fn waiting(&self) -> Waiting {
        Waiting { entries: self.buffers.used_up(), of: self.buffers.entries() }
    }
}

/// All private rings of one NIC.
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

    #[inline]
    fn waiting(&self, queue: u16) -> Waiting {
        self.queues[usize::from(queue)].waiting()
    }
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    #[inline]
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        self.queues[usize::from(frame.queue)].receive(dma, frame, &self.pool, &frame.own())
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let queue = self.queues.get_mut(index as usize);
        queue.is_some_and(|queue| queue.doorbell(dma, value))
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
            self.queues[usize::from(queue)].restart(dma);
        }
        Some(queues.map(u32::from).collect())
    }
}
