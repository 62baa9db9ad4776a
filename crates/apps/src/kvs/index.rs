//! The lossy index: buckets of eight slots, one cache line each.
//!
//! ```text
//!  slot (8 B): 16-bit tag of the key's hash | 48-bit position in the log, in words, + 1 (0: free)
//! ```
//!
//! As in MICA (NSDI 2014, section 4.3.2) a key has one bucket and no other; who finds it full
//! takes the slot of its oldest item. So an insertion costs one line and never fails, and a pair
//! may be lost.

use bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::CACHE_LINE_BYTES;

use super::log::{POSITION_BITS, Position};

/// Slots of a bucket.
pub const BUCKET_SLOTS: usize = 8;

const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;

/// A bucket as it was read.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Bucket {
    slots: [u64; BUCKET_SLOTS],
}

const _: () = assert!(size_of::<Bucket>() as u64 == CACHE_LINE_BYTES);

impl Bucket {
    /// Slots with the tag of `hash`, each with its position; other keys may have the same.
    #[inline]
    pub fn candidates(&self, hash: u64) -> impl Iterator<Item = (usize, Position)> + use<> {
        let slots = self.slots;
        (0..BUCKET_SLOTS)
            .filter(move |&slot| slots[slot] != 0 && slots[slot] >> POSITION_BITS == tag(hash))
            .map(move |slot| (slot, position(slots[slot])))
    }

    /// The position in a slot; `None` when it is free.
    #[inline]
    pub fn position(&self, slot: usize) -> Option<Position> {
        (self.slots[slot] != 0).then(|| position(self.slots[slot]))
    }

    /// The slot for a new item: a free one, else the one of the oldest item.
    #[inline]
    pub fn slot_for_new(&self) -> usize {
        // A free slot is zero, so it counts as the oldest of all.
        (0..BUCKET_SLOTS).min_by_key(|&slot| self.slots[slot] & POSITION_MASK).unwrap_or(0)
    }
}

fn position(slot: u64) -> Position {
    Position((slot & POSITION_MASK) - 1)
}

/// Buckets that have at least `slots` slots.
fn buckets_of(slots: u64) -> u64 {
    let buckets = slots.div_ceil(BUCKET_SLOTS as u64).next_power_of_two();
    buckets.min(1 << 32)
}

/// About how many of `pairs` pairs an index of at least `slots` slots keeps: buckets get more or fewer of them by
/// chance, and one that gets more than it has slots loses the oldest.
pub fn index_keeps(slots: u64, pairs: f64) -> f64 {
    let buckets = buckets_of(slots) as f64;
    let mean = pairs / buckets;
    // Poisson: how likely a bucket gets none, one and so on, and how many slots it then leaves free.
    let (mut likely, mut free) = ((-mean).exp(), 0.0);
    for pairs in 0..BUCKET_SLOTS {
        free += likely * (BUCKET_SLOTS - pairs) as f64;
        likely *= mean / (pairs + 1) as f64;
    }
    buckets * (BUCKET_SLOTS as f64 - free)
}

/// Other bits than those that choose partition and bucket.
fn tag(hash: u64) -> u64 {
    hash >> 32 & 0xffff
}

/// The index of one partition; its buckets live in modelled memory.
#[derive(Clone, Debug)]
pub struct Index {
    buckets: Addr,
    mask: u64,
}

impl Index {
    /// Takes address space for at least `slots` slots, in a power of two of buckets (at most
    /// 2^32). The memory must be zero.
    pub fn allocate(space: &mut AddressSpace, slots: u64) -> Index {
        let buckets = buckets_of(slots);
        Index { buckets: space.data(buckets * CACHE_LINE_BYTES, CACHE_LINE_BYTES), mask: buckets - 1 }
    }

    /// Where the bucket of a hash is: one line.
    #[inline]
    pub fn at(&self, hash: u64) -> Addr {
        self.buckets + (hash & self.mask) * CACHE_LINE_BYTES
    }

    /// Reads the bucket of a hash.
    #[inline]
    pub fn load<C: Cpu>(&self, cpu: &mut C, hash: u64) -> Bucket {
        cpu.load(self.at(hash))
    }

    /// Points a slot of the hash's bucket at an item.
    #[inline]
    pub fn set<C: Cpu>(&self, cpu: &mut C, hash: u64, slot: usize, item: Position) {
        let word = tag(hash) << POSITION_BITS | (item.0 + 1);
        cpu.store(self.at(hash) + slot as u64 * 8, word);
    }

    /// Frees a slot of the hash's bucket.
    #[inline]
    pub fn clear<C: Cpu>(&self, cpu: &mut C, hash: u64, slot: usize) {
        cpu.store(self.at(hash) + slot as u64 * 8, 0u64);
    }

    /// Frees all slots.
    pub fn clear_all<C: Cpu>(&self, cpu: &mut C) {
        for bucket in 0..=self.mask {
            cpu.store(self.at(bucket), Bucket::zeroed());
        }
    }
}
