//! One partition of the store: the index says where in the log a key's item may be.
//!
//! | operation | lines touched |
//! | --- | --- |
//! | GET | bucket, header and key of the item; the value is the caller's to read |
//! | PUT | bucket, then the item where it is, or a new one at the log's end and its slot |
//! | DELETE | bucket, header and key; the item stays in the log until it is overwritten |
//!
//! Bucket and item are prefetched, one after the other. MICA does so for a batch of packets at a
//! time, each stage of one packet behind the work of others; here what overlaps is the model's.
//!
//! Exclusive to one core, as MICA's EREW mode is, so there are no locks. Older values never come
//! back: a key has at most one slot, and a slot whose item was overwritten is known by its position.

use nicforge_nic::Segment;
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::Bytes;

use super::index::{Bucket, Index};
use super::log::{ItemHeader, Log, NoRoom};

/// The pair is larger than the log: it was not stored, and an older value stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// An item that was found.
struct Found {
    slot: usize,
    item: Addr,
    header: ItemHeader,
}

/// One partition.
#[derive(Clone, Debug)]
pub struct Partition {
    index: Index,
    log: Log,
    index_evictions: u64,
    restarts: u64,
}

impl Partition {
    /// Takes address space for an index of at least `slots` slots and a log of `log` bytes. The
    /// memory must be zero.
    pub fn allocate(space: &mut AddressSpace, slots: u64, log: Bytes) -> Partition {
        Partition {
            index: Index::allocate(space, slots),
            log: Log::allocate(space, log),
            index_evictions: 0,
            restarts: 0,
        }
    }

    /// The log, to begin late in its life.
    #[cfg(test)]
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Items that were whole when another one took their slot.
    pub fn index_evictions(&self) -> u64 {
        self.index_evictions
    }

    /// How often the log came to its end since the last restart.
    pub fn log_laps(&self) -> u64 {
        self.log.laps()
    }

    /// How often positions were used up, so that everything was forgotten.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Starts fetching what a look-up of this hash reads first: its bucket.
    #[inline]
    pub fn prefetch_bucket<C: Cpu>(&self, cpu: &mut C, hash: u64) {
        cpu.prefetch(self.index.at(hash), 1);
    }

    /// Starts fetching what it reads then: the items that may be it, up to the key's end.
    #[inline]
    pub fn prefetch_items<C: Cpu>(&self, cpu: &mut C, hash: u64, key: &[u8]) {
        let bucket = self.index.load(cpu, hash);
        for (_, position) in bucket.candidates(hash) {
            if self.log.holds(position) {
                self.log.prefetch(cpu, position, key.len());
            }
        }
    }

    /// Where the value of a key is. It stays there until the next PUT.
    #[inline]
    pub fn get<C: Cpu>(&self, cpu: &mut C, hash: u64, key: &[u8]) -> Option<Segment> {
        let bucket = self.index.load(cpu, hash);
        let found = self.find(cpu, &bucket, hash, key)?;
        Some(self.log.value(found.item, &found.header))
    }

    /// Stores a value; other pairs may be lost for it. Key and value have at most 65 535 bytes.
    #[inline]
    pub fn put<C: Cpu>(
        &mut self,
        cpu: &mut C,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), TooLarge> {
        let mut bucket = self.index.load(cpu, hash);
        let mut found = self.find(cpu, &bucket, hash, key);
        if let Some(found) = &found
            && self.log.replace(cpu, found.item, &found.header, value)
        {
            return Ok(());
        }
        let mut appended = self.log.append(cpu, hash, key, value);
        if appended == Err(NoRoom::PositionsEnd) {
            self.restart(cpu);
            bucket = self.index.load(cpu, hash);
            found = None;
            appended = self.log.append(cpu, hash, key, value);
        }
        let Ok(position) = appended else {
            return Err(TooLarge);
        };
        let slot = found.map_or_else(|| self.free_slot(&bucket), |found| found.slot);
        self.index.set(cpu, hash, slot, position);
        Ok(())
    }

    /// Forgets a key; says whether it was there.
    #[inline]
    pub fn delete<C: Cpu>(&mut self, cpu: &mut C, hash: u64, key: &[u8]) -> bool {
        let bucket = self.index.load(cpu, hash);
        let found = self.find(cpu, &bucket, hash, key);
        if let Some(found) = &found {
            self.index.clear(cpu, hash, found.slot);
        }
        found.is_some()
    }

    #[inline]
    fn find<C: Cpu>(&self, cpu: &mut C, bucket: &Bucket, hash: u64, key: &[u8]) -> Option<Found> {
        for (slot, position) in bucket.candidates(hash) {
            if !self.log.holds(position) {
                continue;
            }
            let item = self.log.item(position);
            let header = self.log.header(cpu, item);
            let same = header.hash == hash
                && usize::from(header.key_len) == key.len()
                && self.log.key(cpu, item, &header) == key;
            if same {
                return Some(Found { slot, item, header });
            }
        }
        None
    }

    fn free_slot(&mut self, bucket: &Bucket) -> usize {
        let slot = bucket.slot_for_new();
        let in_use = bucket.position(slot);
        self.index_evictions += u64::from(in_use.is_some_and(|at| self.log.holds(at)));
        slot
    }

    /// After 2^48 words the positions of the log begin anew, and so does everything else.
    #[cold]
    fn restart<C: Cpu>(&mut self, cpu: &mut C) {
        self.index.clear_all(cpu);
        self.log.empty();
        self.restarts += 1;
    }
}
