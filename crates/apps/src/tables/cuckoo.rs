//! A cuckoo hash table: two candidate buckets of one cache line each, and an entry array.
//!
//! ```text
//!  bucket (64 B): 8 x 16-bit signature | 8 x 32-bit entry number + 1 (0: free) | 16 B unused
//!  entry  (64 B): key, value            one line each, never moved
//!  free   (4 B each): a stack of entry numbers given back
//! ```
//!
//! The lay-out is that of DPDK's `rte_hash`: a hit costs the line of its bucket (the second
//! one if it is not in the first) and the line of its entry; a miss costs two bucket lines,
//! except for signatures that agree by chance. An insertion into two full buckets searches
//! breadth first for the shortest chain of moves, within [`SEARCH_BUCKETS`] buckets.
//! Not here: growth, and more than one writer.

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::CACHE_LINE_BYTES;
use wide::{CmpEq, u16x8, u32x8};

/// What a table holds: one cache line that knows its key.
pub trait Entry: Pod {
    /// What entries are found by.
    type Key: Copy + Eq;
    /// This entry's key.
    fn key(&self) -> Self::Key;
    /// The key's hash.
    fn hash(key: &Self::Key) -> u64;
    /// Whether the entry is in use; an all-zero one must not be.
    fn in_use(&self) -> bool;
}

/// The table has no free entry, or no chain of moves within the search limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

const WAYS: usize = 8;

/// How many buckets an insertion looks at before it gives up: bounds the work of a packet.
pub const SEARCH_BUCKETS: usize = 256;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Bucket {
    signatures: [u16; WAYS],
    numbers: [u32; WAYS],
    unused: [u32; 4],
}

const _: () = assert!(size_of::<Bucket>() as u64 == CACHE_LINE_BYTES);

impl Bucket {
    /// The slots in use with this signature, as bits. Without branches: which slot it is
    /// cannot be predicted.
    #[inline(always)]
    fn hits(&self, signature: u16) -> u32 {
        let equal = u16x8::new(self.signatures).simd_eq(u16x8::splat(signature));
        let free = u32x8::new(self.numbers).simd_eq(u32x8::splat(0));
        equal.to_bitmask() & !free.to_bitmask()
    }

    #[inline]
    fn free_slot(&self) -> Option<usize> {
        self.numbers.iter().position(|&number| number == 0)
    }
}

/// A look-up to come: a simulator prefetches the lines that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// The bucket that it looks at first: one line.
    pub bucket: Addr,
    signature: u16,
    entries: Addr,
}

impl LookUp {
    /// The entry that it reads next, one line, if the first bucket, which holds `line`, has one with its signature.
    #[inline]
    pub fn entry(&self, line: &[u8; CACHE_LINE_BYTES as usize]) -> Option<Addr> {
        let bucket: Bucket = bytemuck::pod_read_unaligned(line);
        let slot = bucket.hits(self.signature).trailing_zeros() as usize;
        let number = bucket.numbers.get(slot)?;
        Some(self.entries + u64::from(number - 1) * CACHE_LINE_BYTES)
    }
}

/// A step of the search for a free slot: `bucket` was reached by moving `slot` of `parent`.
#[derive(Clone, Copy, Default)]
struct Step {
    bucket: u32,
    parent: u16,
    slot: u8,
}

/// The table; its bytes live in modelled memory, only addresses and counts live here.
#[derive(Clone, Debug)]
pub struct Cuckoo<E> {
    buckets: Addr,
    mask: u32,
    entries: Addr,
    free: Addr,
    capacity: u32,
    /// Entries below this number have been used at least once.
    fresh: u32,
    free_len: u32,
    hand: u32,
    entry: PhantomData<E>,
}

impl<E: Entry> Cuckoo<E> {
    const ENTRY_IS_A_LINE: () = assert!(size_of::<E>() as u64 == CACHE_LINE_BYTES);

    /// Takes address space for `capacity` entries (at least 1). The memory must be zero.
    /// Buckets are a power of two, so that at most 95 % of their slots are ever taken.
    pub fn allocate(space: &mut AddressSpace, capacity: u32) -> Cuckoo<E> {
        let () = Self::ENTRY_IS_A_LINE;
        let capacity = capacity.max(1);
        let slots = (u64::from(capacity) * 20).div_ceil(19);
        let buckets = slots.div_ceil(WAYS as u64).next_power_of_two();
        Cuckoo {
            buckets: space.data(buckets * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            mask: (buckets - 1) as u32,
            entries: space.data(u64::from(capacity) * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            free: space.data(u64::from(capacity) * 4, CACHE_LINE_BYTES),
            capacity,
            fresh: 0,
            free_len: 0,
            hand: 0,
            entry: PhantomData,
        }
    }

    /// How many entries are in use.
    pub fn len(&self) -> u32 {
        self.fresh - self.free_len
    }

    /// Whether no entry is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more entries there is room for, if moves allow.
    pub fn room(&self) -> u32 {
        self.capacity - self.len()
    }

    /// Where an entry lives, for stores into single fields of its line.
    #[inline]
    pub fn at(&self, number: u32) -> Addr {
        self.entries + u64::from(number) * CACHE_LINE_BYTES
    }

    /// The lines that a look-up of `key` reads.
    #[inline]
    pub fn look_up(&self, key: &E::Key) -> LookUp {
        let (bucket, signature) = self.place(E::hash(key));
        LookUp { bucket: self.bucket_at(bucket), signature, entries: self.entries }
    }

    /// Reads an entry.
    #[inline]
    pub fn load<C: Cpu>(&self, cpu: &mut C, number: u32) -> E {
        cpu.load(self.at(number))
    }

    /// The entry with this key, and its number.
    // Always inlined, here and in its callers: a call would copy the entry twice.
    #[inline(always)]
    pub fn find<C: Cpu>(&self, cpu: &mut C, key: &E::Key) -> Option<(u32, E)> {
        let (primary, signature) = self.place(E::hash(key));
        let mut bucket = primary;
        // One body for both buckets, so that the entry is copied once.
        for _ in 0..2 {
            let line: Bucket = cpu.load(self.bucket_at(bucket));
            let mut hits = line.hits(signature);
            while hits != 0 {
                let number = line.numbers[hits.trailing_zeros() as usize % WAYS] - 1;
                let entry = self.load(cpu, number);
                if entry.key() == *key {
                    return Some((number, entry));
                }
                hits &= hits - 1;
            }
            bucket = self.other(primary, signature);
        }
        None
    }

    /// Adds an entry whose key is not in the table yet (look first); returns its number.
    pub fn insert<C: Cpu>(&mut self, cpu: &mut C, entry: &E) -> Result<u32, TableFull> {
        if self.room() == 0 {
            return Err(TableFull);
        }
        let (primary, signature) = self.place(E::hash(&entry.key()));
        let (bucket, slot) = self.make_room(cpu, primary, signature)?;
        let number = self.take_number(cpu);
        cpu.store(self.at(number), *entry);
        let mut line: Bucket = cpu.load(self.bucket_at(bucket));
        line.signatures[slot] = signature;
        line.numbers[slot] = number + 1;
        cpu.store(self.bucket_at(bucket), line);
        Ok(number)
    }

    /// Removes an entry by its number; nothing happens when it is not in use.
    pub fn remove<C: Cpu>(&mut self, cpu: &mut C, number: u32) {
        let entry = self.load(cpu, number);
        if !entry.in_use() {
            return;
        }
        let (primary, signature) = self.place(E::hash(&entry.key()));
        for bucket in [primary, self.other(primary, signature)] {
            let mut line: Bucket = cpu.load(self.bucket_at(bucket));
            if let Some(slot) = line.numbers.iter().position(|&n| n == number + 1) {
                line.numbers[slot] = 0;
                cpu.store(self.bucket_at(bucket), line);
                cpu.store(self.at(number), E::zeroed());
                cpu.store(self.free + u64::from(self.free_len) * 4, number);
                self.free_len += 1;
                return;
            }
        }
        unreachable!("an entry in use is in one of its two buckets: insert and moves keep that");
    }

    /// Reads the next entry that a slowly turning hand points at, for whoever reclaims
    /// expired ones; `None` when that entry is free.
    pub fn sweep<C: Cpu>(&mut self, cpu: &mut C) -> Option<(u32, E)> {
        if self.fresh == 0 {
            return None;
        }
        let number = self.hand;
        self.hand = if number + 1 >= self.fresh { 0 } else { number + 1 };
        let entry = self.load(cpu, number);
        entry.in_use().then_some((number, entry))
    }

    fn take_number<C: Cpu>(&mut self, cpu: &mut C) -> u32 {
        if self.free_len > 0 {
            self.free_len -= 1;
            cpu.load(self.free + u64::from(self.free_len) * 4)
        } else {
            self.fresh += 1;
            self.fresh - 1
        }
    }

    /// A bucket out of the two candidates with a free slot, after moves if need be.
    fn make_room<C: Cpu>(&self, cpu: &mut C, primary: u32, signature: u16) -> Result<(u32, usize), TableFull> {
        for bucket in [primary, self.other(primary, signature)] {
            let line: Bucket = cpu.load(self.bucket_at(bucket));
            if let Some(slot) = line.free_slot() {
                return Ok((bucket, slot));
            }
        }
        self.search(cpu, primary, signature)
    }

    #[cold]
    fn search<C: Cpu>(&self, cpu: &mut C, primary: u32, signature: u16) -> Result<(u32, usize), TableFull> {
        let mut steps = [Step::default(); SEARCH_BUCKETS];
        steps[0].bucket = primary;
        steps[1].bucket = self.other(primary, signature);
        let mut len = 2;
        let mut next = 0;
        while next < len {
            let bucket = steps[next].bucket;
            let line: Bucket = cpu.load(self.bucket_at(bucket));
            if let Some(slot) = line.free_slot() {
                return Ok(self.unwind(cpu, &steps, next, slot));
            }
            for slot in 0..WAYS.min(SEARCH_BUCKETS - len) {
                steps[len] =
                    Step { bucket: self.other(bucket, line.signatures[slot]), parent: next as u16, slot: slot as u8 };
                len += 1;
            }
            next += 1;
        }
        Err(TableFull)
    }

    /// Moves entries along the path to step `last`, whose `slot` is free; what becomes free
    /// at its beginning is for the new entry. Each move is from a bucket to the entry's other
    /// one, so the table is right after every one of them.
    fn unwind<C: Cpu>(&self, cpu: &mut C, steps: &[Step; SEARCH_BUCKETS], last: usize, slot: usize) -> (u32, usize) {
        let (mut to, mut to_slot) = (last, slot);
        while to > 1 {
            let (from, from_slot) = (steps[to].parent as usize, steps[to].slot as usize);
            let mut source: Bucket = cpu.load(self.bucket_at(steps[from].bucket));
            let mut target: Bucket = cpu.load(self.bucket_at(steps[to].bucket));
            target.signatures[to_slot] = source.signatures[from_slot];
            target.numbers[to_slot] = source.numbers[from_slot];
            source.numbers[from_slot] = 0;
            cpu.store(self.bucket_at(steps[to].bucket), target);
            cpu.store(self.bucket_at(steps[from].bucket), source);
            (to, to_slot) = (from, from_slot);
        }
        (steps[to].bucket, to_slot)
    }

    #[inline]
    fn place(&self, hash: u64) -> (u32, u16) {
        (hash as u32 & self.mask, (hash >> 48) as u16)
    }

    /// The other bucket of an entry: the same function both ways, of the signature alone.
    #[inline]
    fn other(&self, bucket: u32, signature: u16) -> u32 {
        (bucket ^ (u32::from(signature).wrapping_mul(0x5bd1_e995) | 1)) & self.mask
    }

    #[inline]
    fn bucket_at(&self, bucket: u32) -> Addr {
        self.buckets + u64::from(bucket) * CACHE_LINE_BYTES
    }
}
