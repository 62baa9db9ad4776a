//! The NIC's half.

use std::ops::Range;

use nicforge_nic::{
    Application, Arriving, Completion, CompletionWriter, DropCause, Key, KeyTable, Pool,
    RX_INLINE_BYTES, ReceiveHalf, Refusal, Waiting, data_of,
};
use nicforge_platform::{Addr, Dma};
use nicforge_units::Bytes;

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

/// A buffer that the NIC may write, and how much of it.
#[derive(Clone, Copy, Debug)]
struct Room {
    at: Addr,
    len: usize,
}

impl Memory {
    /// Where `buffer` takes bytes; else why the NIC does not touch it.
    fn room(&self, buffer: Buffer) -> Result<Room, DropCause> {
        if buffer.key == Key::HOST.0 {
            if self.pool.number_of(buffer.at).is_none() {
                return Err(DropCause::BAD_DESCRIPTOR);
            }
            let len = buffer.room.min(self.pool.room()) as usize;
            let at = data_of(buffer.at);
            return Ok(Room { at, len });
        }
        let len = u64::from(buffer.room.min(self.pool.room()));
        self.keys
            .check(self.application, Key(buffer.key), buffer.at, len)
            .map_err(Refusal::cause)?;
        Ok(Room {
            at: buffer.at,
            len: len as usize,
        })
    }
}

impl Queue {
    /// Empty rings, whose descriptors are fetched `read` bytes at a time.
    pub fn new(
        rings: [Ring<Buffer>; 2],
        each: u64,
        read: Bytes,
        completions: CompletionWriter,
    ) -> Queue {
        Queue {
            rings: rings.map(|ring| Fetcher::new(ring, read)),
            each,
            completions,
            spilled: 0,
            uses_nicmem: false,
        }
    }

    /// The ring that the next frame goes to: the secondary one when the primary one is dry.
    fn choose(&self) -> Option<usize> {
        let has = |&side: &usize| self.rings[side].available() >= self.each;
        [PRIMARY, SECONDARY].into_iter().find(has)
    }

    fn receive<D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &Arriving<'_>,
        memory: &Memory,
        split: Split,
    ) -> Result<(), DropCause> {
        let Some(side) = self.choose() else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let ring = &mut self.rings[side];
        // The second read is for one that brought only half of the pair.
        ring.prefetch(dma);
        ring.prefetch(dma);
        let last = self.each as usize - 1;
        let pair = (ring.at_hand(0), ring.at_hand(last));
        let (Some((here, first)), Some((also_here, payload))) = pair else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let inlines = self.each == 1;
        let most = match inlines {
            true => RX_INLINE_BYTES,
            false => memory.pool.room() as usize,
        };
        let cut = cut(frame, split, most);
        let room = match (inlines, memory.room(payload)) {
            (true, payload) => payload.map(|payload| (None, payload)),
            (false, payload) => memory.room(first).and_then(|header| {
                let payload = payload?;
                Ok((Some(header), payload))
            }),
        };
        if let Ok((header, payload)) = room {
            let headers_fit = header.is_none_or(|header| cut <= header.len);
            // Cut in two a frame still is no longer than one buffer: that is the longest frame.
            let fits = headers_fit && frame.bytes.len() - cut <= payload.len;
            if !fits || frame.bytes.len() > memory.pool.room() as usize {
                return Err(DropCause::OVERSIZED);
            }
        }
        dma.wait_until(here.max(also_here));
        let entry = frames_of(ring.pop().into(), self.each) as u32;
        if last > 0 {
            ring.pop();
        }
        let len = frame.bytes.len();
        ring.expect(dma, (last + 1, len), Buffer::frame_of);
        self.spilled += u64::from(side == SECONDARY && self.uses_nicmem);
        let mut completion = completion(frame, side, entry, cut);
        let Ok((header, payload)) = room else {
            completion.len = 0;
            completion.head = 0;
            self.completions.publish(dma, &completion);
            return room.map(|_| ());
        };
        let (headers, rest) = frame.bytes.split_at(cut);
        if !rest.is_empty() {
            dma.write_padded(payload.at, rest, frame.head.saturating_sub(cut));
        }
        match header {
            Some(header) => {
                dma.write(header.at, headers);
                self.completions.publish(dma, &completion);
            }
            None => self.completions.publish_inline(dma, &completion, headers),
        }
        Ok(())
    }

    fn doorbell<D: Dma>(&mut self, dma: &mut D, side: usize, tail: u64) -> bool {
        let tail = tail.checked_mul(self.each);
        let possible = tail.is_some_and(|tail| self.rings[side].doorbell(dma, tail));
        self.uses_nicmem |= side == PRIMARY && self.rings[PRIMARY].available() > 0;
        possible
    }

    /// Begins again with empty rings.
    fn begin_anew<D: Dma>(&mut self, dma: &mut D) {
        self.rings.iter_mut().for_each(Fetcher::begin_anew);
        self.completions.begin_anew(dma);
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

fn completion(frame: &Arriving<'_>, side: usize, entry: u32, cut: usize) -> Completion {
    Completion {
        entry,
        len: frame.bytes.len() as u32,
        head: cut as u32,
        rss_hash: frame.rss_hash,
        flags: frame.flags,
        port: frame.port.0,
        ring: side as u16,
        stamp: frame.stamp,
        mbuf: Addr(0),
        segment: frame.segment,
    }
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
            memory: Memory {
                pool,
                keys: options.keys.clone(),
                application: options.application,
            },
            split: options.split,
        }
    }
}

impl ReceiveHalf for NicHalf {
    fn receive<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let queue = &mut self.queues[usize::from(frame.queue)];
        queue.receive(dma, frame, &self.memory, self.split)
    }

    fn write_register<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let queues = self.queues.len();
        let (side, queue) = (index as usize / queues, index as usize % queues);
        side <= SECONDARY && self.queues[queue].doorbell(dma, side, value)
    }

    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    fn waiting(&self, queue: u16) -> Waiting {
        let queue = &self.queues[usize::from(queue)];
        let of = frames_of(queue.rings[PRIMARY].entries(), queue.each);
        let given: u64 = queue.rings.iter().map(Fetcher::available).sum();
        Waiting {
            entries: of.saturating_sub(frames_of(given, queue.each)),
            of,
        }
    }

    fn spilled(&self) -> u64 {
        self.queues.iter().map(|queue| queue.spilled).sum()
    }

    fn begin_anew<D: Dma>(&mut self, dma: &mut D, queues: Range<u16>) -> Option<Vec<u32>> {
        let all = self.queues.len() as u32;
        let mut doorbells = Vec::new();
        for queue in queues {
            self.queues[usize::from(queue)].begin_anew(dma);
            doorbells.extend([u32::from(queue), all + u32::from(queue)]);
        }
        Some(doorbells)
    }
}
