//! The NIC's half.

use std::ops::Range;

use nicforge_nic::{
    Application, Arriving, Completion, CompletionWriter, DropCause, Fit, Key, KeyTable, Pool, Queues, RX_INLINE_BYTES,
    ReceiveHalf, Recoverable, Waiting, data_of,
};
use nicforge_platform::{Addr, Dma};
use nicforge_units::{Bytes, Time};

use super::layout::{Buffer, PRIMARY, SECONDARY, frames_of};
use super::{Options, Split};
use crate::priv_ring::fetch::Fetcher;
use crate::priv_ring::layout::Ring;

/// The two rings of one queue, and its completion ring.
#[derive(Debug)]
pub struct Queue {
    rings: [Fetcher<Buffer>; 2],
    /// Descriptors of a frame.
    each: u64,
    completions: CompletionWriter,
    /// Frames that went to the secondary ring although the primary one is in use.
    spilled: u64,
    /// Whether the primary ring ever had a buffer.
    uses_nicmem: bool,
}

/// Everything that a queue needs to know of memory.
#[derive(Debug)]
struct Memory {
    pool: Pool,
    keys: KeyTable,
    application: Application,
}

/// Why a part of a frame cannot go where a descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misfit {
    /// There is not so much room.
    TooLong,
    /// The NIC does not touch it.
    Refused(DropCause),
}

impl Memory {
    /// Where `len` bytes go in `buffer`, which software of `own` gave.
    #[inline]
    fn place<D: Dma>(&self, dma: &mut D, own: &Range<u16>, buffer: Buffer, len: usize) -> Result<Addr, Misfit> {
        if buffer.key != Key::HOST.0 {
            return self.place_in_nicmem(buffer, len);
        }
        match self.pool.fit(dma, own, buffer.at, buffer.room.into(), len) {
            Fit::Good => Ok(data_of(buffer.at)),
            Fit::TooLong => Err(Misfit::TooLong),
            Fit::NoBuffer => Err(Misfit::Refused(DropCause::BAD_DESCRIPTOR)),
        }
    }

    #[inline(never)]
    fn place_in_nicmem(&self, buffer: Buffer, len: usize) -> Result<Addr, Misfit> {
        let room = u64::from(buffer.room.min(self.pool.room()));
        self.keys
            .check(self.application, Key(buffer.key), buffer.at, room)
            .map_err(|refusal| Misfit::Refused(refusal.cause()))?;
        match len as u64 <= room {
            true => Ok(buffer.at),
            false if len as u64 <= u64::from(self.pool.room()) => Err(Misfit::Refused(DropCause::BAD_DESCRIPTOR)),
            false => Err(Misfit::TooLong),
        }
    }
}

impl Queue {
    /// Empty rings, whose descriptors are fetched `read` bytes at a time.
    pub fn new(rings: [Ring<Buffer>; 2], each: u64, read: Bytes, completions: CompletionWriter) -> Queue {
        Queue { rings: rings.map(|ring| Fetcher::new(ring, read)), each, completions, spilled: 0, uses_nicmem: false }
    }

    /// The ring that the next frame goes to: the secondary one when the primary one is dry.
    #[inline]
    fn choose(&self, each: usize) -> Option<usize> {
        let has = |&side: &usize| self.rings[side].available() >= each as u64;
        [PRIMARY, SECONDARY].into_iter().find(has)
    }

    /// Takes a frame of `EACH` descriptors: of one, where headers come in the completion.
    #[inline(always)]
    fn receive<const EACH: usize, D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &Arriving<'_>,
        memory: &Memory,
        split: Split,
    ) -> Result<(), DropCause> {
        let inlines = EACH == 1;
        let Some(side) = self.choose(EACH) else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let ring = &mut self.rings[side];
        let Some((here, [first, payload])) = ring.peek_both(dma, EACH) else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let longest = memory.pool.room() as usize;
        let cut = cut(frame, split, if inlines { RX_INLINE_BYTES } else { longest });
        let (headers, rest) = frame.bytes.split_at(cut);
        let headers_at = if inlines { Ok(Addr(0)) } else { memory.place(dma, &frame.own(), first, cut) };
        let payload_at = memory.place(dma, &frame.own(), payload, rest.len());
        let places = (headers_at, payload_at);
        let (headers_at, payload_at) = match places {
            // Cut in two a frame still is no longer than one buffer: that is the longest frame.
            (Ok(headers), Ok(payload)) if frame.bytes.len() <= longest => (headers, payload),
            (Err(Misfit::Refused(cause)), _) | (_, Err(Misfit::Refused(cause))) => {
                let mut refused = self.use_up::<EACH, D>(dma, frame, side, here);
                refused.len = 0;
                self.completions.publish(dma, &refused);
                return Err(cause);
            }
            _ => return Err(DropCause::OVERSIZED),
        };
        let mut completion = self.use_up::<EACH, D>(dma, frame, side, here);
        completion.head = cut as u32;
        if !rest.is_empty() {
            dma.write_padded(payload_at, rest, frame.head.saturating_sub(cut));
        }
        if inlines {
            self.completions.publish_inline(dma, &completion, headers);
        } else {
            dma.write(headers_at, headers);
            self.completions.publish(dma, &completion);
        }
        Ok(())
    }

    /// Waits for the next descriptors of ring `side` and uses them up; returns what is said of `frame`
    /// for it.
    #[inline(always)]
    fn use_up<const EACH: usize, D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &Arriving<'_>,
        side: usize,
        here: Time,
    ) -> Completion {
        dma.wait_until(here);
        let ring = &mut self.rings[side];
        let entry = frames_of(ring.pop().into(), EACH as u64) as u32;
        if EACH == 2 {
            ring.pop();
        }
        ring.expect(dma, EACH, frame.bytes.len(), Buffer::frame_of);
        self.spilled += u64::from(side == SECONDARY && self.uses_nicmem);
        Completion {
            mark: frame.mark,
            entry,
            len: frame.bytes.len() as u32,
            head: 0,
            rss_hash: frame.rss_hash,
            flags: frame.flags,
            port: frame.port.0,
            ring: side as u16,
            stamp: frame.stamp,
            mbuf: Addr(0),
            segment: frame.segment,
        }
    }

    fn doorbell<D: Dma>(&mut self, dma: &mut D, side: usize, tail: u64) -> bool {
        let tail = tail.checked_mul(self.each);
        let possible = tail.is_some_and(|tail| self.rings[side].doorbell(dma, tail));
        self.uses_nicmem |= side == PRIMARY && self.rings[PRIMARY].available() > 0;
        possible
    }

    /// Begins again with empty rings.
    fn restart<D: Dma + ?Sized>(&mut self, dma: &mut D) {
        self.rings.iter_mut().for_each(Fetcher::restart);
        self.completions.restart(dma);
        self.uses_nicmem = false;
    }
}

/// Bytes of `frame` that go in front, where there is room for `most`.
fn cut(frame: &Arriving<'_>, split: Split, most: usize) -> usize {
    let wanted = match split {
        Split::Headers => frame.headers,
        Split::At(offset) => offset,
    };
    wanted.min(most).min(frame.bytes.len())
}

/// All queues of one NIC.
#[derive(Debug)]
pub struct NicHalf {
    queues: Vec<Queue>,
    memory: Memory,
    split: Split,
}

impl NicHalf {
    /// Buffers in host memory must be `pool`'s.
    pub fn new(queues: Vec<Queue>, pool: Pool, options: &Options) -> NicHalf {
        NicHalf {
            queues,
            memory: Memory { pool, keys: options.keys.clone(), application: options.application },
            split: options.split,
        }
    }
}

impl Queues for NicHalf {
    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    fn waiting(&self, queue: u16) -> Waiting {
        let queue = &self.queues[usize::from(queue)];
        let of = frames_of(queue.rings[PRIMARY].entries(), queue.each);
        let given: u64 = queue.rings.iter().map(Fetcher::available).sum();
        Waiting { entries: of.saturating_sub(frames_of(given, queue.each)), of }
    }

    fn spilled(&self) -> u64 {
        self.queues.iter().map(|queue| queue.spilled).sum()
    }
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    #[inline(always)]
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let queue = &mut self.queues[usize::from(frame.queue)];
        let (memory, split) = (&self.memory, self.split);
        match queue.each {
            1 => queue.receive::<1, D>(dma, frame, memory, split),
            _ => queue.receive::<2, D>(dma, frame, memory, split),
        }
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let queues = self.queues.len();
        let (side, queue) = (index as usize / queues, index as usize % queues);
        side <= SECONDARY && self.queues[queue].doorbell(dma, side, value)
    }

    fn recovery(&self) -> Option<&dyn Recoverable> {
        Some(self)
    }

    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        Some(self)
    }
}

impl Recoverable for NicHalf {
    fn rung_by(&self, index: u32) -> Range<u16> {
        let queues = self.queues.len();
        if index as usize / queues <= SECONDARY {
            let queue = (index as usize % queues) as u16;
            queue..queue + 1
        } else {
            0..0
        }
    }

    fn restart(&mut self, dma: &mut dyn Dma, queues: Range<u16>) -> Option<Vec<u32>> {
        let all = self.queues.len() as u32;
        let mut doorbells = Vec::new();
        for queue in queues {
            self.queues[usize::from(queue)].restart(dma);
            doorbells.extend([u32::from(queue), all + u32::from(queue)]);
        }
        Some(doorbells)
    }
}
