//! What lies in memory: one ring in control memory, 32 bytes an entry, that both sides write.
//!
//! | word | written by the driver | written over it by the NIC |
//! | --- | --- | --- |
//! | 0 | address of the buffer's metadata | frame length (low 32 bits), RSS hash (high 32) |
//! | 1 | bytes of room for a frame | arrival of the first bit, ps |
//! | 2 | 0 | flags (low 32 bits), port (next 8), bytes of each frame of a segment (next 16), highest bit of the mark (bit 56) |
//! | 3 | 0 | 1: done (bit 0), the other 63 bits of the mark |
//!
//! Registers: receive register `queue` is the doorbell: the ring's tail, counted without end.

use nicforge_nic::{Arriving, Completion, RxFlags};
use nicforge_platform::Addr;
use nicforge_platform::bytemuck::{Pod, Zeroable};
use nicforge_units::Time;

/// An entry as the driver writes it: an empty buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Descriptor {
    /// The buffer's metadata.
    pub mbuf: Addr,
    /// Room for a frame, in bytes.
    pub room: u64,
    /// Nothing yet.
    pub reserved: u64,
    /// 0: the NIC has not written here.
    pub done: u64,
}

/// Bytes of an entry.
pub const ENTRY_BYTES: u64 = 32;
const _: () = assert!(size_of::<Descriptor>() as u64 == ENTRY_BYTES);

/// Offset of the word that says whether an entry is a completion: the last.
pub const DONE: u64 = 24;

/// An entry as the NIC writes it: `frame` came, and lies in the entry's buffer; with `len` 0
/// the entry named no buffer.
pub fn completion(frame: &Arriving<'_>, len: u32) -> [u64; 4] {
    [
        u64::from(len) | u64::from(frame.rss_hash) << 32,
        frame.stamp.as_ps(),
        u64::from(frame.flags.0)
            | u64::from(frame.port.0) << 32
            | u64::from(frame.segment) << 40
            | frame.mark >> 63 << 56,
        frame.mark << 1 | 1,
    ]
}

/// What an entry says that the NIC has written.
pub fn decode(words: [u64; 4]) -> Completion {
    Completion {
        len: words[0] as u32,
        rss_hash: (words[0] >> 32) as u32,
        stamp: Time::from_ps(words[1]),
        flags: RxFlags(words[2] as u32),
        port: (words[2] >> 32) as u8,
        segment: (words[2] >> 40) as u16,
        mark: words[3] >> 1 | words[2] >> 56 << 63,
        ..Completion::default()
    }
}
