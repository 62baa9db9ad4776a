//! The circular log: items one after the other, the oldest overwritten by the newest.
//!
//! ```text
//!  item: hash (8) | key length (2) | value length (2) | words (2) | hot (2) | key | value
//! ```
//!
//! As in MICA (NSDI 2014, section 4.3.1), with which items share nothing but this memory: there
//! is nothing to free. A position counts all words that were ever written, so that an item is
//! still whole as long as no more than the log's size was written since. Items lie in one piece:
//! what does not fit before the end of the memory wraps to its beginning.

use bytemuck::{Pod, Zeroable};
use nicforge_nic::Segment;
use nicforge_platform::{Addr, AddressSpace, Cpu, Hint};
use nicforge_units::Bytes;

/// Bits of a position, as the index keeps it.
pub const POSITION_BITS: u32 = 48;

/// Items begin at multiples of this.
const WORD: u64 = 8;

/// Positions end here, so that one more than each fits the index's bits.
const LAST: u64 = (1 << POSITION_BITS) - 1;

/// Where an item begins: words written before it since the log was empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(pub u64);

/// What stands in front of key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ItemHeader {
    /// The key's hash.
    pub hash: u64,
    /// Bytes of key.
    pub key_len: u16,
    /// Bytes of value.
    pub value_len: u16,
    /// Words that there are for key and value.
    words: u16,
    /// The slot of a hot item, + 1 ([`super::hot`]); 0 for all others.
    pub hot: u16,
}

impl ItemHeader {
    /// Bytes that a value may have in this item.
    fn room(&self) -> usize {
        usize::from(self.words) * WORD as usize - usize::from(self.key_len)
    }
}

/// Bytes of an item's header.
const HEADER: u64 = size_of::<ItemHeader>() as u64;

/// Bytes of the log that a pair takes: header, key and value in whole words.
pub const fn item_bytes(key: u64, value: u64) -> u64 {
    (HEADER + key + value).next_multiple_of(WORD)
}

/// Why an item cannot be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// It is larger than the whole log.
    TooLarge,
    /// Positions are used up: the log must be emptied first.
    PositionsEnd,
}

/// The log of one partition.
#[derive(Clone, Debug)]
pub struct Log {
    at: Addr,
    /// Words that there are, and words that were written.
    words: u64,
    tail: u64,
}

impl Log {
    /// Takes address space for a log of `size`, rounded up to whole words.
    pub fn allocate(space: &mut AddressSpace, size: Bytes) -> Log {
        let words = size.0.div_ceil(WORD).max(1);
        Log { at: space.data(words * WORD, WORD), words, tail: 0 }
    }

    /// How often the log was filled so far.
    pub fn laps(&self) -> u64 {
        self.tail / self.words
    }

    /// Begins as if this much had been written and forgotten.
    #[cfg(test)]
    pub fn begin_at(&mut self, words: u64) {
        self.tail = words.next_multiple_of(self.words).min(LAST);
    }

    /// Forgets everything. No position from before may be used any more.
    pub fn empty(&mut self) {
        self.tail = 0;
    }

    /// Whether the item at `position` has not been overwritten.
    #[inline]
    pub fn holds(&self, position: Position) -> bool {
        position.0 < self.tail && self.tail - position.0 <= self.words
    }

    /// Where the item at `position` lies.
    #[inline]
    pub fn item(&self, position: Position) -> Addr {
        self.at + position.0 % self.words * WORD
    }

    /// Starts fetching an item up to the end of its key.
    #[inline]
    pub fn prefetch<C: Cpu>(&self, cpu: &mut C, position: Position, key_len: usize) {
        // The item may be another key's, shorter than this one and the last of the memory.
        let to_end = (self.words - position.0 % self.words) * WORD;
        let len = (HEADER + key_len as u64).min(to_end);
        cpu.hint(Hint::Fetch { at: self.item(position), len: len as usize });
    }

    /// Reads the header of the item at `item`.
    #[inline]
    pub fn header<C: Cpu>(&self, cpu: &mut C, item: Addr) -> ItemHeader {
        cpu.load(item)
    }

    /// Reads the key of an item.
    #[inline]
    pub fn key<'c, C: Cpu>(&self, cpu: &'c mut C, item: Addr, header: &ItemHeader) -> &'c [u8] {
        cpu.bytes(item + HEADER, usize::from(header.key_len))
    }

    /// Where the value of an item lies.
    #[inline]
    pub fn value(&self, item: Addr, header: &ItemHeader) -> Segment {
        Segment { at: item + HEADER + u64::from(header.key_len), len: u32::from(header.value_len) }
    }

    /// Appends an item. `key` and `value` have at most 65 535 bytes each.
    #[inline]
    pub fn append<C: Cpu>(&mut self, cpu: &mut C, hash: u64, key: &[u8], value: &[u8]) -> Result<Position, NoRoom> {
        let bytes = HEADER + (key.len() + value.len()) as u64;
        let words = item_bytes(key.len() as u64, value.len() as u64) / WORD;
        let position = self.reserve(words)?;
        let item = self.item(position);
        let header = ItemHeader {
            hash,
            key_len: key.len() as u16,
            value_len: value.len() as u16,
            // What the last word has left over is room as well. Two lengths below 2^16 are
            // fewer than 2^16 words.
            words: (bytes - HEADER).div_ceil(WORD) as u16,
            hot: 0,
        };
        let to = cpu.bytes_mut(item, bytes as usize);
        to[..HEADER as usize].copy_from_slice(bytemuck::bytes_of(&header));
        to[HEADER as usize..][..key.len()].copy_from_slice(key);
        to[HEADER as usize + key.len()..].copy_from_slice(value);
        Ok(position)
    }

    /// Replaces the value of an item that has room for it; says whether it has.
    #[inline]
    pub fn replace<C: Cpu>(&self, cpu: &mut C, item: Addr, header: &ItemHeader, value: &[u8]) -> bool {
        if value.len() > header.room() {
            return false;
        }
        let header = ItemHeader { value_len: value.len() as u16, ..*header };
        cpu.store(item, header);
        let place = self.value(item, &header);
        cpu.bytes_mut(place.at, value.len()).copy_from_slice(value);
        true
    }

    /// Makes an item hot, with slot `hot` - 1, or not hot with 0.
    #[inline]
    pub fn set_hot<C: Cpu>(&self, cpu: &mut C, item: Addr, hot: u16) {
        let header = self.header(cpu, item);
        cpu.store(item, ItemHeader { hot, ..header });
    }

    fn reserve(&mut self, words: u64) -> Result<Position, NoRoom> {
        if words > self.words {
            return Err(NoRoom::TooLarge);
        }
        let left = self.words - self.tail % self.words;
        let begin = if words <= left { self.tail } else { self.tail + left };
        if begin + words >= LAST {
            return Err(NoRoom::PositionsEnd);
        }
        self.tail = begin + words;
        Ok(Position(begin))
    }
}
