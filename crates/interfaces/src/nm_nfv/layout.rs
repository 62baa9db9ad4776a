//! What lies in memory.
//!
//! A frame takes two buffers, one for headers and one for payload, so it has two adjacent
//! descriptors of 16 bytes, in this order; where headers come in the completion, only the second.
//! Written by the driver, read by the NIC:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0–7 | host memory: address of the buffer's metadata; nicmem: address of its payload |
//! | 8–11 | bytes of room |
//! | 12–15 | key of the memory; 0: host memory |
//!
//! Each queue has two such rings: `PRIMARY`, whose payload buffers are nicmem, and `SECONDARY`, whose
//! payload buffers are host memory. One completion ring says which ring (word 1, receive ring) and
//! which entry (word 0, counted in frames) a frame came into, and how many of its bytes lie in the
//! first buffer, or in front of the completion (word 4).
//!
//! Registers: receive register `queue` is the doorbell of the primary ring, `queues + queue` that of
//! the secondary one: the ring's tail in frames, counted without end.

use nicforge_nic::{HEADROOM_BYTES, Key, METADATA_BYTES};
use nicforge_platform::bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace};

use crate::priv_ring::layout::Ring;

/// Number of the ring whose payload buffers are nicmem.
pub const PRIMARY: usize = 0;
/// Number of the ring whose payload buffers are host memory.
pub const SECONDARY: usize = 1;

/// An empty buffer for the NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Buffer {
    /// Its metadata in host memory, or its payload in the NIC's.
    pub at: Addr,
    /// Room, in bytes.
    pub room: u32,
    /// What the NIC's memory is named by.
    pub key: u32,
}

const _: () = assert!(size_of::<Buffer>() == 16);

impl Buffer {
    /// The buffer whose frame would lie where this one takes bytes, whatever it names.
    pub fn frame_of(&self) -> Addr {
        if self.key == Key::HOST.0 { self.at } else { Addr(self.at.0.wrapping_sub(METADATA_BYTES + HEADROOM_BYTES)) }
    }

    /// A buffer in memory that `key` is for.
    pub fn new(at: Addr, room: u32, key: Key) -> Buffer {
        Buffer { at, room, key: key.0 }
    }
}

/// For how many frames `descriptors` are, `each` (a power of two) of them for one.
#[inline]
pub fn frames_of(descriptors: u64, each: u64) -> u64 {
    descriptors >> each.trailing_zeros()
}

/// A new ring for `frames` (a power of two), each of `each` descriptors, that counts from `first`
/// frames.
pub fn ring(space: &mut AddressSpace, frames: u64, each: u64, first: u64) -> Ring<Buffer> {
    Ring::new(space, frames * each, first * each)
}
