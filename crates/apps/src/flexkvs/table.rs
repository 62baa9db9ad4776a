//! The block-chain hash table of FlexKVS (flexnic, section 3.1): buckets of one line with a lock, five items and their
//! hashes; further items hang on the last one.
//!
//! All cores share it. Keys that are steered to one core have their lines and locks in that core's caches.

use bytemuck::{Pod, Zeroable};
use nicforge_nic::Segment;
use nicforge_platform::{Addr, AddressSpace, Atomic, Cpu};
use nicforge_units::CACHE_LINE_BYTES;

/// Items of a bucket that its own line names.
const SLOTS: usize = 5;

/// Where an item is: 8-byte words from the beginning of the log, plus one; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct ItemId(u32);

impl ItemId {
    /// The item at `offset` bytes from the beginning of the log, a multiple of 8.
    pub fn at(offset: u64) -> ItemId {
        ItemId((offset / 8) as u32 + 1)
    }

    /// Its offset; `None` of none.
    pub fn offset(self) -> Option<u64> {
        self.0.checked_sub(1).map(|words| u64::from(words) * 8)
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Bucket {
    lock: u64,
    items: [ItemId; SLOTS],
    hashes: [u32; SLOTS],
    unused: [u64; 2],
}

const _: () = assert!(size_of::<Bucket>() as u64 == CACHE_LINE_BYTES);

/// What stands before key and value of an item.
///
/// | bytes | field |
/// | --- | --- |
/// | 0–3 | the next item of the chain |
/// | 4–7 | when it expires, in seconds of the run; 0: never |
/// | 8–11 | hash of the key |
/// | 12–15 | length of the value |
/// | 16–17 | references: one of the table, one of each GET that holds it |
/// | 18–19 | length of the key |
/// | 20–23 | the client's flags |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ItemHeader {
    /// The next item of the chain.
    pub next: ItemId,
    /// When it expires, in seconds of the run; 0: never.
    pub expires: u32,
    /// Hash of the key.
    pub hash: u32,
    /// Bytes of value.
    pub value_len: u32,
    /// One of the table, one of each GET that holds it.
    pub references: u16,
    /// Bytes of key.
    pub key_len: u16,
    /// The client's flags, as bytes on the wire.
    pub flags: [u8; 4],
}

/// The word whose lowest bits are the references.
const REFERENCES: u64 = std::mem::offset_of!(ItemHeader, references) as u64;

/// Bytes of an item's header.
pub const ITEM_HEADER: u64 = size_of::<ItemHeader>() as u64;

impl ItemHeader {
    /// That of a new item.
    pub fn new(hash: u32, key_len: u16, value_len: u32, flags: [u8; 4], expires: u32) -> ItemHeader {
        ItemHeader { next: ItemId::default(), expires, hash, value_len, references: 1, key_len, flags }
    }

    /// Bytes of the log that the item takes.
    pub fn size(&self) -> u64 {
        item_bytes(u64::from(self.key_len), u64::from(self.value_len))
    }
}

/// Bytes of the log that an item takes.
pub const fn item_bytes(key: u64, value: u64) -> u64 {
    (ITEM_HEADER + key + value).next_multiple_of(8)
}

/// An item that was found, and what names it.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The item.
    pub item: ItemId,
    /// Its header.
    pub header: ItemHeader,
    /// Where its value lies.
    pub value: Segment,
    link: Link,
}

/// Who names an item.
#[derive(Clone, Copy, Debug)]
enum Link {
    Slot(usize),
    /// The item before it in the chain.
    Item(Addr),
}

/// The table, over items of a log that begins at `log`.
#[derive(Clone, Debug)]
pub struct Table {
    buckets: Addr,
    mask: u32,
    log: Addr,
}

/// A bucket that is locked. Whoever has one unlocks it.
#[derive(Clone, Copy, Debug)]
pub struct Locked {
    at: Addr,
}

impl Table {
    /// Takes address space for `buckets` buckets, a power of two. The memory must be zero.
    pub fn allocate(space: &mut AddressSpace, buckets: u32, log: Addr) -> Table {
        let buckets = buckets.next_power_of_two();
        let bytes = u64::from(buckets) * CACHE_LINE_BYTES;
        Table { buckets: space.data(bytes, CACHE_LINE_BYTES), mask: buckets - 1, log }
    }

    /// Locks the bucket of `hash`.
    pub fn lock<C: Cpu>(&self, cpu: &mut C, hash: u32) -> Locked {
        let at = self.buckets + u64::from(hash & self.mask) * CACHE_LINE_BYTES;
        cpu.lock(at);
        Locked { at }
    }

    /// Unlocks it.
    pub fn unlock<C: Cpu>(&self, cpu: &mut C, bucket: Locked) {
        cpu.unlock(bucket.at);
    }

    /// The item of `key` in a locked bucket.
    pub fn find<C: Cpu>(&self, cpu: &mut C, bucket: Locked, hash: u32, key: &[u8]) -> Option<Found> {
        let line: Bucket = cpu.load(bucket.at);
        for slot in 0..SLOTS {
            if line.hashes[slot] == hash
                && let Some(found) = self.item_with(cpu, line.items[slot], hash, key, Link::Slot(slot))
            {
                return Some(found);
            }
        }
        // The chain begins with the last slot's item.
        let mut before = line.items[SLOTS - 1];
        while let Some(at) = self.at(before) {
            let next = cpu.load::<ItemHeader>(at).next;
            if let Some(found) = self.item_with(cpu, next, hash, key, Link::Item(at)) {
                return Some(found);
            }
            before = next;
        }
        None
    }

    /// Adds a reference to `item`, in a locked bucket: the log keeps its bytes until [`release`](Self::release).
    pub fn hold<C: Cpu>(&self, cpu: &mut C, item: ItemId) {
        if let Some(at) = self.at(item) {
            cpu.atomic(at + REFERENCES, Atomic::Add(1));
        }
    }

    /// Drops a reference to `item`; true if it was the last one.
    pub fn release<C: Cpu>(&self, cpu: &mut C, item: ItemId) -> bool {
        self.at(item).is_some_and(|at| cpu.atomic(at + REFERENCES, Atomic::Add(u64::MAX)) & u64::from(u16::MAX) == 1)
    }

    /// Whether `item` is in the table, in a locked bucket.
    pub fn names<C: Cpu>(&self, cpu: &mut C, bucket: Locked, item: ItemId) -> bool {
        let line: Bucket = cpu.load(bucket.at);
        let mut named = line.items[SLOTS - 1];
        if line.items.contains(&item) {
            return true;
        }
        while let Some(at) = self.at(named) {
            named = cpu.load::<ItemHeader>(at).next;
            if named == item {
                return true;
            }
        }
        false
    }

    /// Enters `item`, whose key is not in the bucket.
    pub fn insert<C: Cpu>(&self, cpu: &mut C, bucket: Locked, hash: u32, item: ItemId) {
        let line: Bucket = cpu.load(bucket.at);
        match line.items.iter().position(|named| named.offset().is_none()) {
            Some(slot) => self.name(cpu, bucket, slot, item, hash),
            // It comes first in the chain.
            None => {
                let Some(last) = self.at(line.items[SLOTS - 1]) else { return };
                let chain: ItemId = cpu.load(last);
                if let Some(at) = self.at(item) {
                    cpu.store(at, chain);
                }
                cpu.store(last, item);
            }
        }
    }

    /// Puts `item`, of the same key, in the place of `found`.
    pub fn replace<C: Cpu>(&self, cpu: &mut C, bucket: Locked, found: &Found, item: ItemId) {
        if let Some(at) = self.at(item) {
            cpu.store(at, found.header.next);
        }
        match found.link {
            Link::Slot(slot) => self.name(cpu, bucket, slot, item, found.header.hash),
            Link::Item(before) => cpu.store(before, item),
        }
    }

    /// Removes `found`.
    pub fn remove<C: Cpu>(&self, cpu: &mut C, bucket: Locked, found: &Found) {
        match found.link {
            Link::Slot(slot) => {
                // The chain of the last slot moves up with its first item.
                let next = self.at(found.header.next).map(|at| cpu.load::<ItemHeader>(at).hash);
                self.name(cpu, bucket, slot, found.header.next, next.unwrap_or(0));
            }
            Link::Item(before) => cpu.store(before, found.header.next),
        }
    }

    fn name<C: Cpu>(&self, cpu: &mut C, bucket: Locked, slot: usize, item: ItemId, hash: u32) {
        let items = std::mem::offset_of!(Bucket, items) + slot * size_of::<ItemId>();
        let hashes = std::mem::offset_of!(Bucket, hashes) + slot * size_of::<u32>();
        cpu.store(bucket.at + items as u64, item);
        cpu.store(bucket.at + hashes as u64, hash);
    }

    fn at(&self, item: ItemId) -> Option<Addr> {
        item.offset().map(|offset| self.log + offset)
    }

    fn item_with<C: Cpu>(&self, cpu: &mut C, item: ItemId, hash: u32, key: &[u8], link: Link) -> Option<Found> {
        let at = self.at(item)?;
        let header: ItemHeader = cpu.load(at);
        if header.hash != hash {
            return None;
        }
        if usize::from(header.key_len) != key.len() || cpu.bytes(at + ITEM_HEADER, key.len()) != key {
            return None;
        }
        let value = Segment { at: at + ITEM_HEADER + key.len() as u64, len: header.value_len };
        Some(Found { item, header, value, link })
    }
}
