//! Memory of a NIC that software uses (nicmem, sections 2.2.1 and 2.3): who gets which part of
//! it, and the keys by which the NIC tells whose it is.
//!
//! ```text
//!   alloc_nicmem ─► Allocation { at, len, key } ─► packet pool, value buffers …
//!                                    │
//!   driver ── descriptor { at, len, key } ──► NIC: KeyTable::check(application of the ring, …)
//! ```
//!
//! [`Nicmem`] is the kernel's part: it hands out and takes back. [`KeyTable`] is the NIC's: it
//! says of every descriptor whether its ring's application holds what it names. A key is never
//! given out twice, so that one who kept the key of freed memory is refused whoever has it now.

mod keys;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nicforge_platform::{Addr, AddressSpace};
use nicforge_units::CACHE_LINE_BYTES;

pub use keys::{Application, Key, KeyTable, Refusal};

use crate::DropCounters;

/// A piece of a NIC's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where it begins: a whole line.
    pub at: Addr,
    /// Bytes.
    pub len: u64,
    /// What descriptors name it by.
    pub key: Key,
}

impl Allocation {
    /// Whether `at` lies in it.
    #[inline]
    pub fn holds(&self, at: Addr) -> bool {
        at.0.wrapping_sub(self.at.0) < self.len
    }
}

/// Why memory of a NIC was not given, or not taken back.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum NicmemError {
    /// There is not so much in one piece.
    #[error(
        "{wanted} bytes of nicmem wanted, the largest free piece has {largest} of {capacity}: ask for less, or raise nicmem_kib"
    )]
    OutOfNicmem {
        /// What was asked for.
        wanted: u64,
        /// The largest free piece, in bytes.
        largest: u64,
        /// All there is.
        capacity: u64,
    },
    /// Nothing was asked for.
    #[error("0 bytes of nicmem wanted: ask for at least 1")]
    Nothing,
    /// As many pieces as the NIC has keys for.
    #[error("the NIC has no key left: free a piece first, or ask for fewer and larger ones")]
    OutOfKeys,
    /// It was given back before.
    #[error("nicmem at {0:?} is freed twice: give every piece back once")]
    DoubleFree(Addr),
    /// No piece begins there.
    #[error("no piece of nicmem begins at {0:?}: give back what alloc_nicmem returned")]
    NeverAllocated(Addr),
    /// Another application holds it.
    #[error("nicmem at {0:?} belongs to another application: only its holder gives it back")]
    ForeignKey(Addr),
}

impl NicmemError {
    /// The name of its counter.
    pub fn name(&self) -> &'static str {
        match self {
            NicmemError::OutOfNicmem { .. } => "out_of_nicmem",
            NicmemError::Nothing => "nothing_wanted",
            NicmemError::OutOfKeys => "out_of_keys",
            NicmemError::DoubleFree(_) => "double_free",
            NicmemError::NeverAllocated(_) => "never_allocated",
            NicmemError::ForeignKey(_) => "foreign_key",
        }
    }
}

/// All memory that one NIC gives to software.
#[derive(Debug)]
pub struct Nicmem {
    at: Addr,
    capacity: u64,
    /// Free pieces, length by beginning; no two of them touch.
    free: BTreeMap<u64, u64>,
    /// Given pieces by beginning.
    given: BTreeMap<u64, (Application, Allocation)>,
    /// Where pieces that were given back began, until one begins there again.
    gone: BTreeMap<u64, Application>,
    keys: KeyTable,
    refused: DropCounters,
}

impl Nicmem {
    /// `capacity` bytes of NIC `device`. Call it before anything else takes from `space`.
    pub fn new(space: &mut AddressSpace, device: u8, capacity: u64) -> Nicmem {
        let at = match capacity {
            0 => Addr(0),
            _ => space.nicmem(device, capacity),
        };
        Nicmem {
            at,
            capacity,
            free: (capacity > 0).then_some((at.0, capacity)).into_iter().collect(),
            given: BTreeMap::new(),
            gone: BTreeMap::new(),
            keys: KeyTable::new(at, capacity),
            refused: DropCounters::default(),
        }
    }

    /// `len` bytes for `application`, in whole lines: the first free piece that is large enough.
    ///
    /// # Errors
    /// There is no such piece, or no key for it; counted by cause.
    pub fn alloc_nicmem(&mut self, application: Application, len: u64) -> Result<Allocation, NicmemError> {
        let outcome = self.try_alloc(application, len);
        self.count(outcome)
    }

    /// Takes back the piece that begins at `at`. From now on its key is worth nothing.
    ///
    /// # Errors
    /// `application` does not hold such a piece; nothing changes, and it is counted by cause.
    pub fn dealloc_nicmem(&mut self, application: Application, at: Addr) -> Result<(), NicmemError> {
        let outcome = self.try_dealloc(application, at);
        self.count(outcome)
    }

    fn count<T>(&mut self, outcome: Result<T, NicmemError>) -> Result<T, NicmemError> {
        if let Err(error) = &outcome {
            self.refused.count(error.name());
        }
        outcome
    }

    fn try_alloc(&mut self, application: Application, len: u64) -> Result<Allocation, NicmemError> {
        if len == 0 {
            return Err(NicmemError::Nothing);
        }
        let lines = len.checked_next_multiple_of(CACHE_LINE_BYTES);
        let found = lines.and_then(|lines| {
            let piece = self.free.iter().find(|&(_, &free)| free >= lines);
            piece.map(|(&at, &free)| (at, free, lines))
        });
        let Some((at, free, lines)) = found else {
            return Err(NicmemError::OutOfNicmem {
                wanted: len,
                largest: self.free.values().copied().max().unwrap_or(0),
                capacity: self.capacity,
            });
        };
        let key = self.keys.issue(application, Addr(at), lines);
        let key = key.ok_or(NicmemError::OutOfKeys)?;
        self.free.remove(&at);
        if free > lines {
            self.free.insert(at + lines, free - lines);
        }
        let allocation = Allocation { at: Addr(at), len: lines, key };
        self.given.insert(at, (application, allocation));
        self.gone.remove(&at);
        Ok(allocation)
    }

    fn try_dealloc(&mut self, application: Application, at: Addr) -> Result<(), NicmemError> {
        let Some(&(holder, allocation)) = self.given.get(&at.0) else {
            return Err(match self.gone.get(&at.0) {
                Some(&holder) if holder == application => NicmemError::DoubleFree(at),
                _ => NicmemError::NeverAllocated(at),
            });
        };
        if holder != application {
            return Err(NicmemError::ForeignKey(at));
        }
        self.given.remove(&at.0);
        self.gone.insert(at.0, application);
        self.keys.revoke(allocation.key);
        self.merge(at.0, allocation.len);
        Ok(())
    }

    /// A piece is free, and one with the free ones that it touches.
    fn merge(&mut self, at: u64, len: u64) {
        let (mut from, mut until) = (at, at + len);
        if let Some((&before, &len)) = self.free.range(..from).next_back()
            && before + len == from
        {
            self.free.remove(&before);
            from = before;
        }
        if let Some(len) = self.free.remove(&until) {
            until += len;
        }
        self.free.insert(from, until - from);
    }

    /// What the NIC checks descriptors by; changes with this.
    pub fn keys(&self) -> KeyTable {
        self.keys.clone()
    }

    /// All bytes there are.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Free bytes.
    pub fn available(&self) -> u64 {
        self.free.values().sum()
    }

    /// Where it begins.
    pub fn at(&self) -> Addr {
        self.at
    }

    /// What was refused, by cause.
    pub fn refused(&self) -> &DropCounters {
        &self.refused
    }
}
