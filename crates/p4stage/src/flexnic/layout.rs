//! Layout of memory: a queue is a ring of entries of one line in control memory, and beside it a ring of empty buffers, as
//! private rings have it (`RxDescriptor`), of as many entries.
//!
//! | word of an entry | written by the program, most significant byte first |
//! | --- | --- |
//! | 0 | bytes written to the buffer (high 32 bits), RSS hash |
//! | 1 | arrival of the first bit, ps |
//! | 2 | flags (high 32 bits), bytes of each frame of a segment (next 16), port (low 16) |
//! | 3 | mark |
//! | 4–6 | the program's own |
//! | 7 | 1: the entry is full; software writes 0 when it is free again |
//!
//! Registers: receive register `queue` is the tail, counted without end. Register `queues * (1 + n) + queue` is element `queue`
//! of the program's register `host0`, `host1` or `host2`, `n` being its number. Register `queues * 4`, which queue 0's software has,
//! names a rule in registered memory: 8 bytes that say how long its text is, and the text, as files of entries have it. The low
//! six bits of the address tell registrations from each other.

use bytemuck::{Pod, Zeroable};
use nicforge_nic::{Completion, RxFlags};
use nicforge_units::Time;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Entry(pub [u64; 8]);

/// Bytes of an entry.
pub const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// Offset of the word that says whether an entry is full: the last.
pub const FULL: u64 = 56;

/// Registers of a queue that a program may have, besides its tail.
pub const HOST_REGISTERS: usize = 3;

/// Bytes of a rule's text, at most.
pub const RULE_BYTES: u64 = 4096;

/// The bits of a rule's register that are no address.
pub const RULE_NUMBER: u64 = 63;

/// Reads a full entry.
pub fn decode(entry: Entry) -> Completion {
    let [len, stamp, flags, mark, ..] = entry.0.map(u64::from_be);
    Completion {
        len: (len >> 32) as u32,
        rss_hash: len as u32,
        stamp: Time::from_ps(stamp),
        flags: RxFlags((flags >> 32) as u32),
        segment: (flags >> 16) as u16,
        port: flags as u8,
        mark,
        ..Completion::default()
    }
}
