//! The bytes of a simulated host, and when published words become visible.
//!
//! Data written by a device is read only after the word that announces it was seen, so only
//! announcements need a time. They live in control memory; beside each of its words stand the
//! time from which it counts and the value before.

use std::collections::{BTreeMap, VecDeque};

use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::ahead::expect;
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
    /// One bit per line that is known to hold zeros only: most of a synthetic payload, which then
    /// need not be written again.
    zeros: Vec<u64>,
    /// Whether any such bit was ever set.
    any_zeros: bool,
    pending: Vec<Pending>,
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
        assert_eq!(
            bytes.len() as u64,
            space.end(),
            "memory and address space agree"
        );
        let words = space.control_end().div_ceil(8) as usize;
        let mut owners = vec![Owner::NOBODY; space.control_end().div_ceil(64) as usize];
        for &(at, len, owner) in space.owners() {
            owners[at.line() as usize..(at + (len - 1)).line() as usize + 1].fill(owner);
        }
        SimMemory {
            zeros: vec![0; space.end().div_ceil(64 * CACHE_LINE_BYTES) as usize],
            any_zeros: false,
            bytes,
            pending: vec![Pending::default(); words],
            owners,
            counters: BTreeMap::new(),
            wakes: Vec::new(),
        }
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

    /// The bytes of `line` will be asked for soon.
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        expect(&self.bytes, (line * CACHE_LINE_BYTES) as usize);
    }

    /// An entry of a line will be published at `at` soon.
    #[inline(always)]
    pub fn expect_publish(&self, at: Addr) {
        self.expect(at.line());
        expect(&self.pending, (at.line() as usize + 1) * WORDS_OF_LINE - 1);
    }

    /// `len` bytes at `at`, to write.
    #[inline(always)]
    pub fn slice_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        if self.any_zeros {
            self.forget_zeros(at, len);
        }
        &mut self.bytes[at.0 as usize..][..len]
    }

    #[inline(never)]
    fn forget_zeros(&mut self, at: Addr, len: usize) {
        let (first, end) = (at.line(), (at.0 + len as u64).div_ceil(CACHE_LINE_BYTES));
        if end == first + 1 {
            self.zeros[(first / 64) as usize] &= !(1 << (first % 64));
        } else {
            for (word, bits) in words_of(first, end) {
                self.zeros[word] &= !bits;
            }
        }
    }

    /// Copies `len` bytes from `from` to `to`.
    #[inline]
    pub fn copy(&mut self, from: Addr, to: Addr, len: usize) {
        self.slice_mut(to, len);
        let from = from.0 as usize;
        self.bytes.copy_within(from..from + len, to.0 as usize);
    }

    /// Makes `len` bytes at `at` zero.
    pub fn zero(&mut self, at: Addr, len: usize) {
        let end = at + len as u64;
        // Whole lines are in the map; bytes before and behind them are not.
        let first = at.0.div_ceil(CACHE_LINE_BYTES);
        let last = end.line().max(first);
        let known = |(word, bits): (usize, u64)| self.zeros[word] & bits == bits;
        if !words_of(first, last).all(known) {
            self.bytes[(first * CACHE_LINE_BYTES) as usize..(last * CACHE_LINE_BYTES) as usize]
                .fill(0);
            for (word, bits) in words_of(first, last) {
                self.zeros[word] |= bits;
                self.any_zeros = true;
            }
        }
        let before = (first * CACHE_LINE_BYTES).min(end.0);
        let behind = (last * CACHE_LINE_BYTES).clamp(before, end.0);
        self.slice_mut(at, (before - at.0) as usize).fill(0);
        self.slice_mut(Addr(behind), (end.0 - behind) as usize)
            .fill(0);
    }

    /// The word at `at`, as it is in memory now.
    #[inline]
    pub fn word(&self, at: Addr) -> u64 {
        bytemuck::pod_read_unaligned(self.slice(at, 8))
    }

    /// The word at `at` as somebody sees it at `now`: a publish counts from its time on.
    #[inline]
    pub fn word_at(&self, at: Addr, now: Time) -> u64 {
        match self.pending.get(at.0 as usize / 8) {
            Some(pending) if pending.visible_at > now => self.earlier(at, pending, now),
            _ => self.word(at),
        }
    }

    /// What stood at `at` before the latest publish counted.
    fn earlier(&self, at: Addr, latest: &Pending, now: Time) -> u64 {
        let Some(counter) = self.counters.get(&at.0) else {
            return latest.before;
        };
        let visible = counter
            .published
            .iter()
            .rev()
            .find(|(time, _)| *time <= now);
        visible.map_or(counter.before, |&(_, value)| value)
    }

    /// Remembers what a counter was until its new value counts.
    fn remember(&mut self, at: Addr, value: u64, visible_at: Time) {
        let before = self.word(at);
        let counter = self.counters.entry(at.0).or_insert_with(|| Counter {
            before,
            published: VecDeque::new(),
        });
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
    #[inline]
    pub fn publish(&mut self, at: Addr, entry: &[u8], visible_at: Time) {
        let word = at + (entry.len() as u64 - 8);
        let before = self.word(word);
        if let Ok(value) = <[u8; 8]>::try_from(entry) {
            self.remember(word, u64::from_ne_bytes(value), visible_at);
        }
        self.slice_mut(at, entry.len()).copy_from_slice(entry);
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
        if let Some(pending) = self.pending.get_mut(word.0 as usize / 8) {
            *pending = Pending { visible_at, before };
        }
        match self.owners.get(word.line() as usize) {
            Some(&owner) if owner != Owner::NOBODY => self.wakes.push((owner, visible_at)),
            _ => {}
        }
    }

    /// Cores to wake since the last call, each with the time of the publish.
    #[inline]
    pub fn take_wakes(&mut self) -> std::vec::Drain<'_, (Owner, Time)> {
        self.wakes.drain(..)
    }
}

/// The words of a map with one bit per line that hold lines `first` to before `end`, each with
/// its bits.
#[inline(always)]
fn words_of(first: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut line = first;
    std::iter::from_fn(move || {
        (line < end).then(|| {
            let bit = line % 64;
            let here = (64 - bit).min(end - line);
            let word = (line / 64) as usize;
            line += here;
            (word, (u64::MAX >> (64 - here)) << bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_memory_is_zero_wherever_it_begins_and_ends() {
        let mut space = AddressSpace::default();
        let data = space.data(4096, 64);
        let mut memory = SimMemory::new(&space);
        for (at, len) in [
            (0, 4096),
            (10, 20),
            (50, 100),
            (64, 128),
            (63, 2),
            (100, 0),
            (1, 1500),
        ] {
            for round in 0..2 {
                memory.slice_mut(data, 4096).fill(7);
                memory.zero(data, 4096);
                memory.slice_mut(data + 70, 3).fill(9);
                memory.slice_mut(data + 640, 64 * round).fill(9);
                memory.zero(data + at, len);
                let mut expected = [0u8; 4096];
                expected[70..73].fill(9);
                expected[640..640 + 64 * round].fill(9);
                expected[at as usize..at as usize + len].fill(0);
                assert!(memory.slice(data, 4096) == expected, "{len} bytes at {at}");
            }
        }
    }

    #[test]
    fn nobody_sees_a_publish_before_its_time() {
        let mut space = AddressSpace::default();
        let ring = space.control(64, Owner(3)).unwrap();
        let mut memory = SimMemory::new(&space);
        let mut entry = [0u8; 64];
        entry[56] = 1;
        let word = ring + 56;
        memory.publish(ring, &entry, Time::from_ns(500));
        for agent_time in [Time::ZERO, Time::from_ps(499_999)] {
            assert_eq!(memory.word_at(word, agent_time), 0);
        }
        assert_eq!(memory.word_at(word, Time::from_ns(500)), 1);
        let wakes: Vec<_> = memory.take_wakes().collect();
        assert_eq!(wakes, [(Owner(3), Time::from_ns(500))]);
        assert_eq!(memory.take_wakes().count(), 0);
    }

    #[test]
    fn a_counter_published_twice_shows_each_value_in_its_time() {
        let mut space = AddressSpace::default();
        let word = space.control(8, Owner::NOBODY).unwrap();
        let mut memory = SimMemory::new(&space);
        for (value, at) in [(1u64, 500), (2, 800), (3, 900)] {
            memory.publish(word, &value.to_ne_bytes(), Time::from_ns(at));
        }
        let seen = [400, 500, 799, 800, 899, 900].map(|at| memory.word_at(word, Time::from_ns(at)));
        assert_eq!(seen, [0, 1, 1, 2, 2, 3]);
    }
}
