//! What lies in memory: a queue is a ring of entries of one line in control memory, that both sides write.
//!
//! | word | written by software | written over it by the program, most significant byte first |
//! | --- | --- | --- |
//! | 0 | address of the buffer's metadata | bytes written to the buffer (high 32 bits), RSS hash |
//! | 1 | bytes of room for a frame | arrival of the first bit, ps |
//! | 2 | 0 | flags (high 32 bits), bytes of each frame of a segment (next 16), port (low 16) |
//! | 3 | 0 | mark |
//! | 4–6 | 0 | the program's own |
//! | 7 | 0 | 1: the entry is full |
//!
//! Registers: receive register `queue` is the tail, counted without end. Register `queues * (1 + n) + queue` is element `queue`
//! of the program's register `host0`, `host1` or `host2`, `n` being its number.

use bytemuck::{Pod, Zeroable};
use nicforge_nic::{Completion, RxFlags};
use nicforge_platform::Addr;
use nicforge_units::Time;

/// A free entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// The buffer's metadata.
    pub mbuf: Addr,
    /// Room for a frame, in bytes.
    pub room: u64,
    /// Nothing.
    pub unused: [u64; 5],
    /// 0: the entry is free.
    pub full: u64,
}

/// Bytes of an entry.
pub const ENTRY_BYTES: u64 = 64;
const _: () = assert!(size_of::<Entry>() as u64 == ENTRY_BYTES);

/// Offset of the word that says whether an entry is full: the last.
pub const FULL: u64 = 56;

/// Registers of a queue that a program may have, besides its tail.
pub const HOST_REGISTERS: usize = 3;

/// What a full entry says.
pub fn decode(words: [u64; 8]) -> Completion {
    let [len, stamp, flags, mark, ..] = words.map(u64::from_be);
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
