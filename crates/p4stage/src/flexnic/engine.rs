//! The DMA engine: makes a packet's transfers, all or none, and lets none leave the memory that is the packet's.

use std::sync::atomic::{AtomicU64, Ordering};

use nicforge_flexnic::p4::{AtomicOp, Direction, Transfer};
use nicforge_nic::DropCause;
use nicforge_platform::{Addr, Atomic, Dma, Hint, Registered, Run};

use super::layout::{ENTRY_BYTES, RULE_BYTES};

/// A transfer outside of the entry, the buffer and the registered memory, or of bytes that the packet does not have.
pub const OUTSIDE: DropCause = DropCause("dma_outside");
/// An atomic operation on anything but whole words of registered memory.
pub const BAD_ATOMIC: DropCause = DropCause("dma_atomic");

/// A transfer to a core's own cache, which no machine so far lets devices write to.
pub const BAD_CACHE: DropCause = DropCause("dma_cache");
/// Where a transfer's data may go, besides what the machine does with it (0) and its last-level cache (3).
const MEMORY: u8 = 1;
const OWN_CACHE: u8 = 2;

/// Counters of the engine.
#[derive(Debug, Default)]
pub struct EngineCounters {
    /// Transfers to memory.
    pub writes: AtomicU64,
    /// Their bytes.
    pub written: AtomicU64,
    /// Transfers from memory.
    pub reads: AtomicU64,
    /// Their bytes.
    pub read: AtomicU64,
    /// Words that atomic operations changed.
    pub atomics: AtomicU64,
    /// Packets whose transfers were refused.
    pub refused: AtomicU64,
    /// Rules of software that are in tables now, and those that could not get there.
    pub rules: AtomicU64,
    /// The latter.
    pub bad_rules: AtomicU64,
}

impl EngineCounters {
    /// Each by its name.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("dma_writes", value(&self.writes)),
            ("dma_written_bytes", value(&self.written)),
            ("dma_reads", value(&self.reads)),
            ("dma_read_bytes", value(&self.read)),
            ("dma_atomics", value(&self.atomics)),
            ("dma_refused", value(&self.refused)),
            ("rules_added", value(&self.rules)),
            ("rules_refused", value(&self.bad_rules)),
        ]
    }
}

/// Memory that a packet's transfers may reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reach {
    /// The entry at the head of its queue, if there is one.
    pub entry: Option<Addr>,
    /// The buffer there, if the packet fits.
    pub buffer: Run,
}

/// The outcome of a packet's transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// The entry was filled.
    pub announced: bool,
}

/// The engine of one NIC.
#[derive(Debug)]
pub struct Engine {
    registered: Registered,
    /// Memory that was registered before the first packet.
    pieces: Option<Vec<Run>>,
    /// Counters, shared with those who report them.
    pub counters: std::sync::Arc<EngineCounters>,
}

/// Whether `length` bytes at `address` lie in `run`.
fn inside(run: &Run, address: u64, length: u64) -> bool {
    address
        .checked_sub(run.at.0)
        .is_some_and(|offset| offset.checked_add(length).is_some_and(|end| end <= run.len as u64))
}

impl Engine {
    /// An engine that reaches `registered` memory.
    pub fn new(registered: Registered) -> Engine {
        Engine { registered, pieces: None, counters: Default::default() }
    }

    /// The text of the rule at `at`, if all of it is registered memory.
    pub fn rule<D: Dma>(&mut self, dma: &mut D, at: Addr) -> Option<String> {
        let pieces = self.pieces.get_or_insert_with(|| self.registered.pieces());
        let mut length = [0; 8];
        reaches(pieces, at.0, 8).then(|| dma.read(at, &mut length))?;
        let length = u64::from_le_bytes(length);
        if length > RULE_BYTES || !reaches(pieces, at.0 + 8, length) {
            return None;
        }
        let mut text = vec![0; length as usize];
        dma.read(at + 8, &mut text);
        String::from_utf8(text).ok()
    }

    /// Whether each of `transfers` of a packet of `bytes` bytes may be made.
    pub fn check(&mut self, bytes: usize, transfers: &[Transfer], reach: &Reach) -> Result<(), DropCause> {
        let pieces = self.pieces.get_or_insert_with(|| self.registered.pieces());
        for transfer in transfers {
            let length = u64::from(transfer.length);
            let of_packet = u64::from(transfer.offset) + length <= bytes as u64;
            let is_entry = reach.entry.is_some_and(|entry| entry.0 == transfer.address)
                && length == ENTRY_BYTES
                && transfer.direction == Direction::ToMemory;
            let is_registered = reaches(pieces, transfer.address, length);
            let reached = is_entry || inside(&reach.buffer, transfer.address, length) || is_registered;
            let is_words = length.is_multiple_of(8) && transfer.address.is_multiple_of(8);
            let refused = match transfer.atomic {
                _ if !of_packet || length == 0 || !reached => Some(OUTSIDE),
                Some(_) if !is_registered || !is_words => Some(BAD_ATOMIC),
                _ if transfer.cache == OWN_CACHE => Some(BAD_CACHE),
                _ => None,
            };
            if let Some(cause) = refused {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                return Err(cause);
            }
        }
        Ok(())
    }

    /// Makes `transfers` of a packet, which [`check`](Self::check) allows. Bytes from memory take the place of the packet's.
    pub fn make<D: Dma>(&self, dma: &mut D, packet: &mut [u8], transfers: &[Transfer], reach: &Reach) -> Made {
        let mut made = Made::default();
        for transfer in transfers {
            let at = Addr(transfer.address);
            let bytes = &mut packet[transfer.offset as usize..][..transfer.length as usize];
            let length = bytes.len() as u64;
            if let Some(operation) = transfer.atomic {
                change_words(dma, at, bytes, operation, transfer.direction);
                self.counters.atomics.fetch_add(length / 8, Ordering::Relaxed);
                continue;
            }
            match transfer.direction {
                Direction::FromMemory => {
                    dma.read(at, bytes);
                    self.counters.reads.fetch_add(1, Ordering::Relaxed);
                    self.counters.read.fetch_add(length, Ordering::Relaxed);
                    continue;
                }
                Direction::ToMemory if reach.entry == Some(at) => {
                    dma.publish(at, bytes);
                    made.announced = true;
                }
                Direction::ToMemory => {
                    if transfer.cache == MEMORY {
                        dma.hint(Hint::PastCaches);
                    }
                    dma.write(at, bytes);
                }
            }
            self.counters.writes.fetch_add(1, Ordering::Relaxed);
            self.counters.written.fetch_add(length, Ordering::Relaxed);
        }
        made
    }
}

/// Changes words in memory by those of the packet, most significant byte first there; with direction `FromMemory` the packet
/// gets the words before.
fn change_words<D: Dma>(dma: &mut D, at: Addr, words: &mut [u8], operation: AtomicOp, direction: Direction) {
    for (number, word) in (0..).zip(words.as_chunks_mut::<8>().0) {
        let value = u64::from_be_bytes(*word);
        let change = match operation {
            AtomicOp::Add => Atomic::Add(value),
            AtomicOp::Or => Atomic::Or(value),
            AtomicOp::And => Atomic::And(value),
        };
        let before = dma.atomic(at + number * 8, change);
        if direction == Direction::FromMemory {
            *word = before.to_be_bytes();
        }
    }
}

/// Whether `length` bytes at `address` lie in one of `pieces`, which are in order.
fn reaches(pieces: &[Run], address: u64, length: u64) -> bool {
    let behind = pieces.partition_point(|piece| piece.at.0 <= address);
    behind.checked_sub(1).is_some_and(|before| inside(&pieces[before], address, length))
}
