//! One partition of the store: the index says where in the log a key's item may be.
//!
//! | operation | lines touched |
//! | --- | --- |
//! | GET | bucket, header and key of the item; the value is the caller's to read |
//! | PUT | bucket, then the item where it is, or a new one at the log's end and its slot |
//! | DELETE | bucket, header and key; the item stays in the log until it is overwritten |
//!
//! With hot items a GET touches the item's slot besides, and a line of the sketch where one finds them.
//!
//! Bucket and item are prefetched, one after the other. MICA does so for a batch of packets at a
//! time, each stage of one packet behind the work of others; here what overlaps is the model's.
//!
//! Exclusive to one core, as MICA's EREW mode is, so there are no locks. Older values never come
//! back: a key has at most one slot, and a slot whose item was overwritten is known by its position.

use nicforge_nic::Segment;
use nicforge_platform::{AddressSpace, Cpu, Hint};
use nicforge_units::Bytes;

use super::hot::{HotItems, Item, Lent};
use super::index::{Bucket, Index};
use super::log::{Log, NoRoom};

/// The pair is larger than the log: it was not stored, and an older value stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// An item that was found.
struct Found {
    slot: usize,
    item: Item,
}

/// A value that was found.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// In the log, until the next PUT.
    InLog(Segment),
    /// In memory of the NIC, for one packet.
    Lent(Lent),
}

/// One partition.
#[derive(Clone, Debug)]
pub struct Partition {
    index: Index,
    log: Log,
    /// Those of its items that are hot, where there is memory of the NIC for them.
    hot: Option<Box<HotItems>>,
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
            hot: None,
            index_evictions: 0,
            restarts: 0,
        }
    }

    /// The same with places for hot items.
    pub fn with_hot(self, hot: Option<HotItems>) -> Partition {
        Partition { hot: hot.map(Box::new), ..self }
    }

    /// Its hot items.
    pub fn hot(&self) -> Option<&HotItems> {
        self.hot.as_deref()
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
        cpu.hint(Hint::Fetch { at: self.index.at(hash), len: 1 });
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

    /// The value of a key.
    #[inline]
    pub fn get<C: Cpu>(&mut self, cpu: &mut C, hash: u64, key: &[u8]) -> Option<Value> {
        let bucket = self.index.load(cpu, hash);
        let Found { item, .. } = self.find(cpu, &bucket, hash, key)?;
        let hot = self.hot.as_mut();
        let lent = hot.and_then(|hot| hot.get(cpu, &self.log, &item));
        Some(lent.map_or_else(|| Value::InLog(self.log.value(item.at, &item.header)), Value::Lent))
    }

    /// Makes a key hot before the run, while there is room.
    pub fn preload_hot<C: Cpu>(&mut self, cpu: &mut C, hash: u64, key: &[u8]) {
        let bucket = self.index.load(cpu, hash);
        if let Some(found) = self.find(cpu, &bucket, hash, key)
            && let Some(hot) = &mut self.hot
        {
            hot.preload(cpu, &self.log, &found.item);
        }
    }

    /// Stores a value; other pairs may be lost for it. Key and value have at most 65 535 bytes.
    #[inline]
    pub fn put<C: Cpu>(&mut self, cpu: &mut C, hash: u64, key: &[u8], value: &[u8]) -> Result<(), TooLarge> {
        let mut bucket = self.index.load(cpu, hash);
        let mut found = self.find(cpu, &bucket, hash, key);
        if let Some(Found { item, .. }) = &found
            && self.log.replace(cpu, item.at, &item.header, value)
        {
            self.replaced(cpu, item, value.len());
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
        if let Some(found) = &found {
            self.forget_hot(cpu, &found.item);
        }
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
            self.forget_hot(cpu, &found.item);
        }
        found.is_some()
    }

    /// An item has another value.
    #[inline]
    fn replaced<C: Cpu>(&mut self, cpu: &mut C, item: &Item, len: usize) {
        if let Some(hot) = &mut self.hot
            && let Some(slot) = item.header.hot.checked_sub(1)
            && !hot.replaced(cpu, slot, len)
        {
            self.log.set_hot(cpu, item.at, 0);
        }
    }

    /// An item is no more what its key means.
    #[inline]
    fn forget_hot<C: Cpu>(&mut self, cpu: &mut C, item: &Item) {
        if let Some(hot) = &mut self.hot
            && let Some(slot) = item.header.hot.checked_sub(1)
        {
            hot.forget(cpu, slot);
        }
    }

    #[inline]
    fn find<C: Cpu>(&self, cpu: &mut C, bucket: &Bucket, hash: u64, key: &[u8]) -> Option<Found> {
        for (slot, position) in bucket.candidates(hash) {
            if !self.log.holds(position) {
                continue;
            }
            let at = self.log.item(position);
            let header = self.log.header(cpu, at);
            let same = header.hash == hash
                && usize::from(header.key_len) == key.len()
                && self.log.key(cpu, at, &header) == key;
            if same {
                let item = Item { position, at, header };
                return Some(Found { slot, item });
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

    /// After 2^48 words the positions of the log wrap, and so does everything else.
    #[cold]
    fn restart<C: Cpu>(&mut self, cpu: &mut C) {
        self.index.clear_all(cpu);
        self.log.empty();
        if let Some(hot) = &mut self.hot {
            hot.forget_all(cpu);
        }
        self.restarts += 1;
    }
}
