//! What lies in memory.
//!
//! Ax ring: empty buffers, descriptors as in a private ring ([`crate::priv_ring::layout`]), written by the
//! driver, read by the NIC. Bx ring: one [`Completion`] per entry, written by the NIC, read by
//! the driver, with these meanings:
//!
//! | entry | `ring`, `entry` | `len` | `mbuf` | flags |
//! | --- | --- | --- | --- | --- |
//! | packet | Ax ring and entry that gave the buffer | of the frame | the buffer | as verified |
//! | consumption notice | Ax ring and entry that is used up | 0 | 0 | none |
//! | return | Ax ring and entry that named no buffer | 0 | what it named | [`RETURNED`] |
//!
//! A packet in a buffer of the core's own Ax ring is packet and notice in one.
//!
//! Receive registers, counted without end in 64 bits: `a` is the tail of Ax ring `a`; after
//! them `b` is how many entries of Bx ring `b` software has consumed.

use nicforge_nic::{Arriving, Completion, RxFlags};
use nicforge_platform::Addr;

/// The entry's buffer comes back unused.
pub const RETURNED: RxFlags = RxFlags(1 << 7);

/// An entry of an Ax ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxEntry {
    /// Number of the ring.
    pub ring: u16,
    /// Which of its entries.
    pub entry: u32,
}

/// `frame` lies in `mbuf`, which `from` held.
// Always inlined, as whoever writes it encodes it at once.
#[inline(always)]
pub fn packet(frame: &Arriving<'_>, from: AxEntry, mbuf: Addr) -> Completion {
    Completion {
        mark: frame.mark,
        entry: from.entry,
        len: frame.bytes.len() as u32,
        rss_hash: frame.rss_hash,
        flags: frame.flags,
        port: frame.port.0,
        ring: from.ring,
        stamp: frame.stamp,
        mbuf,
        head: 0,
        segment: frame.segment,
    }
}

/// `used` is used up.
#[inline(always)]
pub fn notice(used: AxEntry) -> Completion {
    Completion { entry: used.entry, ring: used.ring, ..Completion::default() }
}

/// `used` is used up, and what it named, `mbuf`, comes back.
pub fn returned(used: AxEntry, mbuf: Addr) -> Completion {
    Completion { flags: RETURNED, mbuf, ..notice(used) }
}
