//! The device's end.

use std::sync::atomic::Ordering;

use nicforge_nic::{Arriving, DropCause, Pool, data_of};
use nicforge_platform::Addr;
use nicforge_platform::live::hints::{expect_read, expect_write};

use super::super::halves::BURST;
use super::{Cursor, Descriptor, Shared};

/// Bytes of a line.
const LINE: usize = 64;
/// Descriptors that the device reads at a time, when as many or fewer are at hand.
const BATCH: usize = 32;
const AT_HAND: usize = 2 * BATCH;
/// How far ahead lines are called for: those of short and long frames.
const AHEAD: [u64; 2] = [8, 2];

/// A receive queue.
pub struct Queue {
    pool: Pool,
    head: Cursor,
    shown: Cursor,
    held: Vec<[u64; 8]>,
    tail: u64,
    /// Descriptors are read until here, and again when the head is there.
    fetched: u64,
    read_from: u64,
    at_hand: [Descriptor; AT_HAND],
}

impl Queue {
    /// An empty ring, both of whose ends are at `start`.
    pub fn new(pool: Pool, start: Cursor) -> Queue {
        Queue {
            pool,
            head: start,
            shown: start,
            held: Vec::with_capacity(BURST),
            tail: 0,
            fetched: 0,
            read_from: u64::MAX,
            at_hand: [Descriptor::default(); AT_HAND],
        }
    }

    /// Software says how far descriptors are valid, if that is possible.
    pub fn doorbell(&mut self, shared: &Shared) {
        let tail = shared.doorbell.load(Ordering::Acquire);
        if tail >= self.tail && tail - self.head.position <= self.head.entries {
            self.tail = tail;
            self.plan();
        }
    }

    fn plan(&mut self) {
        self.read_from = if self.fetched == self.tail { u64::MAX } else { self.fetched.saturating_sub(BATCH as u64) };
    }

    #[cold]
    fn fetch(&mut self, shared: &Shared) {
        let mask = self.head.entries - 1;
        let (from, to) = ((self.fetched & mask) as usize, self.fetched as usize % AT_HAND);
        let count = BATCH.min((self.tail - self.fetched) as usize);
        let count = count.min(shared.descriptors.len() - from).min(AT_HAND - to);
        self.at_hand[to..to + count].copy_from_slice(&shared.descriptors[from..from + count]);
        self.fetched += count as u64;
        self.plan();
        // Four to a line.
        let next = shared.descriptors[(self.fetched & mask) as usize..].chunks(4);
        next.take(BATCH / 4).for_each(expect_read);
    }

    /// Shows what was delivered: no line before its burst is complete.
    pub fn show(&mut self, shared: &mut Shared) {
        for &[words @ .., done] in &self.held {
            let line = &mut shared.completions[self.shown.index(0)];
            line.words = words;
            line.done.store(done, Ordering::Release);
            self.shown.position += 1;
        }
        self.held.clear();
    }

    /// Where the frame will lie that comes `ahead` of the next one.
    #[inline]
    fn later<'a>(&self, memory: &'a [u8], ahead: u64) -> Option<&'a [u8]> {
        let later = self.head.position + 1 + ahead;
        let mbuf = Addr(self.at_hand[later as usize % AT_HAND].mbuf);
        let place = memory.get(data_of(mbuf).0 as usize..);
        place.filter(|_| later < self.fetched)
    }

    /// Delivers `frame` into the next buffer.
    #[inline]
    pub fn receive(&mut self, shared: &mut Shared, memory: &mut [u8], frame: &Arriving<'_>) -> Result<(), DropCause> {
        if self.head.position >= self.read_from {
            self.fetch(shared);
        }
        if self.head.position >= self.fetched {
            return Err(DropCause::NO_DESCRIPTOR);
        }
        let descriptor = self.at_hand[self.head.position as usize % AT_HAND];
        let mbuf = Addr(descriptor.mbuf);
        let good = self.pool.number_of(mbuf).is_some();
        let len = frame.bytes.len();
        if good && len > descriptor.room.min(self.pool.room()) as usize {
            return Err(DropCause::OVERSIZED);
        }
        // A short frame's line comes from another core's cache; those of a long one are many.
        if len <= LINE
            && let Some(place) = self.later(memory, AHEAD[0])
        {
            expect_write(place);
        }
        let data = data_of(mbuf).0 as usize;
        if good {
            copy(&mut memory[data..data + len], frame.bytes);
        }
        if len > LINE
            && let Some(place) = self.later(memory, AHEAD[1])
        {
            let lines = place.chunks(LINE).take(len.div_ceil(LINE));
            lines.for_each(expect_write);
        }
        let said = if good { len as u64 } else { 0 };
        let entry = self.head.index(0);
        expect_write(&shared.completions[entry]);
        self.held.push([
            entry as u64 | said << 32,
            u64::from(frame.rss_hash) | u64::from(frame.port.0) << 40 | u64::from(frame.queue) << 48,
            frame.stamp.as_ps(),
            mbuf.0,
            u64::from(frame.segment) << 32,
            frame.flags.0.into(),
            frame.mark,
            self.head.done(),
        ]);
        self.head.position += 1;
        good.then_some(()).ok_or(DropCause::BAD_DESCRIPTOR)
    }
}

/// A frame that fits a line is copied in two halves, which may overlap, in place of a call.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    const HALF: usize = LINE / 2;
    if let Some(&first) = from.first_chunk::<HALF>()
        && let Some(&last) = from.last_chunk::<HALF>()
        && from.len() <= LINE
    {
        to[..HALF].copy_from_slice(&first);
        let rest = to.len() - HALF;
        to[rest..].copy_from_slice(&last);
    } else {
        to.copy_from_slice(from);
    }
}
