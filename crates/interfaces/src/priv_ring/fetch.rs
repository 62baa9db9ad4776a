//! The NIC's view of a ring of empty buffers: descriptors read in batches, ahead of need.

use nicforge_nic::{Arriving, HEADROOM_BYTES, METADATA_BYTES};
use nicforge_platform::bytemuck::{self, Pod};
use nicforge_platform::{Addr, Dma, Hint};
use nicforge_units::{Bytes, CACHE_LINE_BYTES, Time};

use super::layout::{Ring, RxDescriptor};
use crate::DESCRIPTOR_READ_MAX;

/// Descriptors fetched by one read, at most.
const BATCH_MAX: usize = DESCRIPTOR_READ_MAX / size_of::<RxDescriptor>();
/// Descriptors at hand, at most: the next batch is read when one is left.
const ROOM: usize = 2 * BATCH_MAX;

/// Where a frame lies in buffer `mbuf`, which may be no buffer at all.
#[inline]
pub fn frame_in(mbuf: Addr) -> Addr {
    const OFFSET: u64 = METADATA_BYTES + HEADROOM_BYTES;
    Addr(mbuf.0.wrapping_add(OFFSET))
}

/// How many frames of `len` bytes before its time a write is hinted at. The line of a short one comes from a worker's
/// core, which takes long; the many lines of a long one come side by side, and would drive out what is wanted before.
#[inline]
pub fn frames_ahead(len: usize) -> usize {
    if len as u64 > CACHE_LINE_BYTES { 2 } else { 8 }
}

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
    /// The next batch is read when this position is filled next, or a later one: when one or less is
    /// at hand. `u64::MAX` while there is nothing to fetch.
    read_from: u64,
    /// Descriptors by one read.
    batch: u64,
    /// Descriptors that were read, those of positions from `head` until `fetched`, each in the
    /// place of its position, and room for a batch that begins at the last one.
    read: Box<[T; ROOM + BATCH_MAX]>,
    /// When each is here.
    here: Box<[Time; ROOM]>,
    /// When the next one is; `NEVER` while there is none at hand.
    next_here: Time,
}

/// Where the descriptor of `position` is kept.
#[inline]
fn place(position: u64) -> usize {
    position as usize % ROOM
}

impl<T: Pod> Fetcher<T> {
    /// An empty ring, of which `read` bytes are fetched at a time.
    pub fn new(ring: Ring<T>, read: Bytes) -> Fetcher<T> {
        Fetcher {
            ring,
            tail: ring.first,
            head: ring.first,
            fetched: ring.first,
            read_from: u64::MAX,
            batch: (read.0 / size_of::<T>() as u64).clamp(1, BATCH_MAX as u64),
            read: Box::new([T::zeroed(); ROOM + BATCH_MAX]),
            here: Box::new([Time::ZERO; ROOM]),
            next_here: Time::NEVER,
        }
    }

    /// Begins again with an empty ring.
    pub fn restart(&mut self) {
        let first = self.ring.first;
        (self.tail, self.head, self.fetched) = (first, first, first);
        self.plan_read();
        self.see_next();
    }

    /// Reads the next batch when one or less is at hand.
    #[inline]
    pub fn prefetch<D: Dma>(&mut self, dma: &mut D) {
        if self.head >= self.read_from {
            self.read_batch(dma);
        }
    }

    fn plan_read(&mut self) {
        self.read_from = if self.fetched == self.tail { u64::MAX } else { self.fetched.saturating_sub(self.batch) };
    }

    /// The next batch to be read: where it lies, and its descriptors.
    fn next_batch(&self) -> (Addr, usize) {
        let index = self.ring.index(self.fetched);
        let count = (self.tail - self.fetched).min(self.batch).min(self.ring.entries - index) as usize;
        (self.ring.descriptor(index), count)
    }

    #[cold]
    fn read_batch<D: Dma>(&mut self, dma: &mut D) {
        let (from, count) = self.next_batch();
        // What is left is no more than a batch, so that there is room; what is read beyond the last
        // place belongs into the first ones.
        let begin = place(self.fetched);
        let end = begin + count;
        let read = &mut self.read[begin..end];
        let here = dma.read_ahead(from, bytemuck::cast_slice_mut(read));
        if end > ROOM {
            self.read.copy_within(ROOM..end, 0);
        }
        self.here[begin..end.min(ROOM)].fill(here);
        self.here[..end.saturating_sub(ROOM)].fill(here);
        self.fetched += count as u64;
        self.plan_read();
        self.see_next();
        let (from, count) = self.next_batch();
        dma.hint(Hint::Read { at: from, len: count * size_of::<T>() });
    }

    /// The next descriptor, and when it is here; prefetches before.
    #[inline]
    pub fn peek<D: Dma>(&mut self, dma: &mut D) -> Option<(Time, T)> {
        self.prefetch(dma);
        self.at_hand(0)
    }

    /// The first and the last of the next `count` descriptors, one or two, and when both are here.
    #[inline]
    pub fn peek_both<D: Dma>(&mut self, dma: &mut D, count: usize) -> Option<(Time, [T; 2])> {
        // The second read is for one that brought only half of the pair.
        self.prefetch(dma);
        self.prefetch(dma);
        let (here, last) = self.at_hand(count - 1)?;
        let (first_here, first) = self.at_hand(0)?;
        Some((here.max(first_here), [first, last]))
    }

    /// The descriptor `ahead` of the next one, if it was read, and when it is here.
    #[inline]
    pub fn at_hand(&self, ahead: usize) -> Option<(Time, T)> {
        let position = self.head + ahead as u64;
        let place = place(position);
        (position < self.fetched).then(|| (self.here[place], self.read[place]))
    }

    /// Where a frame to come is written that is best [hinted at](Hint::Frame) now, if they are about as
    /// long as `frame`, whose own descriptor was used up: into the buffer that `names` says.
    #[inline]
    pub fn later(&self, frame: &Arriving<'_>, names: impl Fn(&T) -> Addr) -> Option<Addr> {
        let later = self.at_hand(frames_ahead(frame.bytes.len()));
        later.map(|(_, descriptor)| frame_in(names(&descriptor)))
    }

    /// Says where the frame is written that comes after `frame`, whose own descriptor was used up.
    #[inline]
    pub fn expect_next<D: Dma>(&self, dma: &mut D, frame: &Arriving<'_>, names: impl Fn(&T) -> Addr) {
        if let Some((_, next)) = self.at_hand(0) {
            dma.hint(Hint::NextFrame { at: frame_in(names(&next)), len: frame.bytes.len() });
        }
    }

    /// Says where frames, of about `len` bytes and of `each` descriptors, will be written that come next
    /// and a few frames from now: into the buffers that `names` says.
    #[inline(always)]
    pub fn expect<D: Dma>(&self, dma: &mut D, each: usize, len: usize, names: impl Fn(&T) -> Addr) {
        for part in 0..each {
            if let Some((_, later)) = self.at_hand(frames_ahead(len) * each + part) {
                dma.hint(Hint::Frame { at: frame_in(names(&later)), len });
            }
            if let Some((_, next)) = self.at_hand(part) {
                dma.hint(Hint::NextFrame { at: frame_in(names(&next)), len });
            }
        }
    }

    /// Uses the next descriptor, which is [at hand](Self::at_hand), up; returns its entry.
    #[inline]
    pub fn pop(&mut self) -> u32 {
        self.head += 1;
        self.see_next();
        self.ring.index(self.head - 1) as u32
    }

    /// Notes when the next descriptor is here: who chooses among rings asks many of them.
    #[inline]
    fn see_next(&mut self) {
        self.next_here = self.at_hand(0).map_or(Time::NEVER, |(here, _)| here);
    }

    /// Descriptors that software gave and that are not used up.
    #[inline]
    pub fn available(&self) -> u64 {
        self.tail - self.head
    }

    /// Whether the next descriptor is here at `now`, so that a frame would not wait for it.
    #[inline]
    pub fn is_ready(&self, now: Time) -> bool {
        self.next_here <= now
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
            self.plan_read();
            self.prefetch(dma);
        }
        possible
    }
}
