//! The bytes of a simulated host, and when published words become visible.
//!
//! Data written by a device is read only after the word that announces it was seen, so only
//! announcements need a time. They live in control memory; beside each of its words stand the
//! time from which it counts and the value before.

use std::collections::{BTreeMap, VecDeque};

use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::ahead::{expect, table};
use super::zero_lines::ZeroLines;
use crate::{Addr, AddressSpace, HostBytes, Owner};

/// A published word: what it was, and from when on the new value counts.
#[derive(Clone, Copy, Default)]
struct Pending {
    visible_at: Time,
    before: u64,
}

/// Values of a counter that were published and may not be visible yet, oldest first.
#[derive(Default)]
struct Counter {
    /// What it was before the oldest of `published`.
    before: u64,
    published: VecDeque<(Time, u64)>,
}

/// Publishes of one counter that may be on their way at a time. A link delivers in order, so
/// older ones are long visible to everybody.
const COUNTER_HISTORY: usize = 64;

/// Words of a line, the last of which announces the others.
const WORDS_OF_LINE: usize = CACHE_LINE_BYTES as usize / 8;

/// Host memory with time on its published words.
pub struct SimMemory {
    bytes: HostBytes,
    /// Most of a synthetic payload, which then need not be written again.
    zeros: ZeroLines,
    /// Of each control word, those of the same place in their lines one behind the other: the last
    /// words of a ring's entries lie in few lines of the machine that simulates.
    pending: Vec<Pending>,
    control_lines: usize,
    owners: Vec<Owner>,
    /// Words that are published again and again: counters, by address.
    counters: BTreeMap<u64, Counter>,
    wakes: Vec<(Owner, Time)>,
}

impl SimMemory {
    /// Zeroed memory for everything that `space` handed out.
    pub fn new(space: &AddressSpace) -> SimMemory {
        SimMemory::with_bytes(space, HostBytes::zeroed(space.end()))
    }

    /// Memory that somebody filled before the run; `bytes` holds all of `space`.
    pub fn with_bytes(space: &AddressSpace, bytes: HostBytes) -> SimMemory {
        assert_eq!(bytes.len() as u64, space.end(), "memory and address space agree");
        let control_lines = space.control_end().div_ceil(CACHE_LINE_BYTES) as usize;
        let mut owners = vec![Owner::NOBODY; control_lines];
        for &(at, len, owner) in space.owners() {
            owners[at.line() as usize..(at + (len - 1)).line() as usize + 1].fill(owner);
        }
        // Payload may lie in memory of a NIC.
        let mut zeros = ZeroLines::new(space.end());
        for range in space.nicmem_ranges() {
            zeros.watch(range.at, range.len);
        }
        SimMemory {
            zeros,
            bytes,
            pending: table(Pending::default(), control_lines * WORDS_OF_LINE),
            control_lines,
            owners,
            counters: BTreeMap::new(),
            wakes: Vec::new(),
        }
    }

    /// Nobody has written any of `len` bytes at `at` yet: payload of zeros need not be written there.
    pub fn unwritten(&mut self, at: Addr, len: u64) {
        self.zeros.unwritten(at, len);
    }

    /// Takes all bytes out, when the run is over.
    pub fn take_bytes(&mut self) -> HostBytes {
        std::mem::take(&mut self.bytes)
    }

    /// `len` bytes at `at`.
    #[inline]
    pub fn slice(&self, at: Addr, len: usize) -> &[u8] {
        &self.bytes[at.0 as usize..][..len]
    }

    /// The same, if there is such a place.
    #[inline]
    pub fn get(&self, at: Addr, len: usize) -> Option<&[u8]> {
        self.bytes.get(at.0 as usize..)?.get(..len)
    }

    /// The bytes of `line` will be asked for soon.
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        expect(&self.bytes, (line * CACHE_LINE_BYTES) as usize);
    }

    /// What lies from `line` on in a buffer will be written soon.
    #[inline(always)]
    pub fn expect_frame(&self, line: u64) {
        self.expect(line);
        self.zeros.expect(line);
    }

    /// An entry of a line will be published at `at` soon.
    #[inline(always)]
    pub fn expect_publish(&self, at: Addr) {
        self.expect(at.line());
        let last = (at.line() + 1) * CACHE_LINE_BYTES - 8;
        if let Some(pending) = self.pending.get(self.place(Addr(last))..) {
            expect(pending, 0);
        }
    }

    /// `len` bytes at `at`, to write.
    #[inline(always)]
    pub fn slice_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        self.zeros.written(at, len);
        &mut self.bytes[at.0 as usize..][..len]
    }

    /// Copies `len` bytes from `from` to `to`.
    #[inline]
    pub fn copy(&mut self, from: Addr, to: Addr, len: usize) {
        self.slice_mut(to, len);
        let from = from.0 as usize;
        self.bytes.copy_within(from..from + len, to.0 as usize);
    }

    /// Writes `bytes`, which are all zeros from `head` on, at `at`.
    #[inline(always)]
    pub fn write_padded(&mut self, at: Addr, bytes: &[u8], head: usize) {
        // The header's last line is not known to be zero, so zeros begin with the next one.
        let line = (at.0 + head as u64).div_ceil(CACHE_LINE_BYTES);
        let head = bytes.len().min((line * CACHE_LINE_BYTES - at.0) as usize);
        self.slice_mut(at, head).copy_from_slice(&bytes[..head]);
        // Of the last line all may be known, too.
        let end = at.0 + bytes.len() as u64;
        let last = end.div_ceil(CACHE_LINE_BYTES).max(line);
        if !self.zeros.know(line, last) {
            self.zero_unknown(line, end);
        }
        debug_assert!(self.slice(at, bytes.len()) == bytes);
    }

    /// Makes what lies between the beginning of line `first` and `end` zero, if anything does.
    #[inline(never)]
    fn zero_unknown(&mut self, first: u64, end: u64) {
        let last = end / CACHE_LINE_BYTES;
        let behind = last * CACHE_LINE_BYTES;
        self.bytes[(first * CACHE_LINE_BYTES) as usize..end as usize].fill(0);
        self.zeros.remember(first, last);
        let whole = self.bytes.get(behind as usize..);
        let whole = whole.and_then(|bytes| bytes.first_chunk::<{ CACHE_LINE_BYTES as usize }>());
        if whole.is_some_and(|bytes| *bytes == [0; CACHE_LINE_BYTES as usize]) {
            self.zeros.remember(last, last + 1);
        }
    }

    /// The word at `at`, as it is in memory now.
    #[inline]
    pub fn word(&self, at: Addr) -> u64 {
        bytemuck::pod_read_unaligned(self.slice(at, 8))
    }

    /// The word at `at` as somebody sees it at `now`: a publish counts from its time on.
    #[inline]
    pub fn word_at(&self, at: Addr, now: Time) -> u64 {
        match self.pending.get(self.place(at)) {
            Some(pending) if pending.visible_at > now => self.earlier(at, pending, now),
            _ => self.word(at),
        }
    }

    /// Where in `pending` the word at `at` is; nowhere if it is no control word.
    #[inline(always)]
    fn place(&self, at: Addr) -> usize {
        let (line, word) = (at.line() as usize, at.0 as usize / 8 % WORDS_OF_LINE);
        if line < self.control_lines { word * self.control_lines + line } else { usize::MAX }
    }

    /// What stood at `at` before the latest publish counted.
    fn earlier(&self, at: Addr, latest: &Pending, now: Time) -> u64 {
        let Some(counter) = self.counters.get(&at.0) else {
            return latest.before;
        };
        let visible = counter.published.iter().rev().find(|(time, _)| *time <= now);
        visible.map_or(counter.before, |&(_, value)| value)
    }

    /// Remembers what a counter was `before` its value of now counts.
    fn remember(&mut self, at: Addr, before: u64, visible_at: Time) {
        let value = self.word(at);
        let counter = self.counters.entry(at.0).or_insert_with(|| Counter { before, published: VecDeque::new() });
        if counter.published.len() == COUNTER_HISTORY
            && let Some((_, value)) = counter.published.pop_front()
        {
            counter.before = value;
        }
        counter.published.push_back((visible_at, value));
    }

    /// Writes `entry` so that its last word counts from `visible_at` on, and wakes the core
    /// that watches the line. An entry of one word is a counter, which may be published again
    /// before it is visible; a longer one belongs to a ring, whose reader was there before.
    #[inline(always)]
    pub fn publish(&mut self, at: Addr, entry: &[u8], visible_at: Time) {
        self.publish_with(at, entry.len(), visible_at, |there| {
            there.copy_from_slice(entry);
        });
    }

    /// The same for an entry of `words`, each of which is stored from where it is: put together first, they
    /// would be stored twice.
    #[inline(always)]
    pub fn publish_words<const WORDS: usize>(&mut self, at: Addr, words: [u64; WORDS], visible_at: Time) {
        self.publish_with(at, WORDS * 8, visible_at, |there| {
            for (there, word) in there.as_chunks_mut().0.iter_mut().zip(words) {
                *there = word.to_ne_bytes();
            }
        });
    }

    #[inline(always)]
    fn publish_with(&mut self, at: Addr, len: usize, visible_at: Time, write: impl FnOnce(&mut [u8])) {
        let word = at + (len as u64 - 8);
        let before = self.word(word);
        write(self.slice_mut(at, len));
        if len == 8 {
            self.remember(word, before, visible_at);
        }
        self.announce(word, before, visible_at);
    }

    /// A core at `now` writes the word at `at`, which announces its earlier stores, and wakes
    /// the core that watches the line.
    #[inline]
    pub fn release(&mut self, at: Addr, value: u64, now: Time) {
        let before = self.word(at);
        self.slice_mut(at, 8).copy_from_slice(&value.to_ne_bytes());
        self.announce(at, before, now);
    }

    /// The word at `word` was `before` until `visible_at`.
    #[inline]
    fn announce(&mut self, word: Addr, before: u64, visible_at: Time) {
        let place = self.place(word);
        if let Some(pending) = self.pending.get_mut(place) {
            *pending = Pending { visible_at, before };
        }
        match self.owners.get(word.line() as usize) {
            Some(&owner) if owner != Owner::NOBODY => self.wakes.push((owner, visible_at)),
            _ => {}
        }
    }

    /// Whether anything was published that a core watches since [`take_wakes`](Self::take_wakes).
    #[inline(always)]
    pub fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// Cores to wake since the last call, each with the time of the publish.
    #[inline]
    pub fn take_wakes(&mut self) -> std::vec::Drain<'_, (Owner, Time)> {
        self.wakes.drain(..)
    }
}

#[cfg(test)]
mod tests;
