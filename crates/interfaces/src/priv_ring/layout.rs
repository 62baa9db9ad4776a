//! What lies in memory.
//!
//! Receive descriptor, 16 bytes, written by the driver, read by the NIC:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0–7 | address of the buffer's metadata |
//! | 8–11 | bytes of room for a frame |
//! | 12–15 | zero |
//!
//! Registers: receive register `queue` is the doorbell: the ring's tail, counted without end.

use nicforge_platform::bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace};

/// An empty buffer for the NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RxDescriptor {
    /// The buffer's metadata.
    pub mbuf: Addr,
    /// Room for a frame, in bytes.
    pub room: u32,
    /// Zero.
    pub reserved: u32,
}

/// Bytes of one descriptor.
pub const RX_DESCRIPTOR_BYTES: u64 = 16;
const _: () = assert!(size_of::<RxDescriptor>() as u64 == RX_DESCRIPTOR_BYTES);

/// A receive ring in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    base: Addr,
    /// Entries, a power of two.
    pub entries: u64,
    /// The position that both sides count from.
    pub first: u64,
}

impl Ring {
    /// A new ring of `entries` (a power of two) whose positions count from `first`.
    pub fn new(space: &mut AddressSpace, entries: u64, first: u64) -> Ring {
        Ring {
            base: space.data(entries * RX_DESCRIPTOR_BYTES, 64),
            entries,
            first,
        }
    }

    /// The entry of position `position`, which may have wrapped any number of times.
    pub fn index(&self, position: u64) -> u64 {
        position & (self.entries - 1)
    }

    /// Where entry `index` lies.
    pub fn descriptor(&self, index: u64) -> Addr {
        self.base + index * RX_DESCRIPTOR_BYTES
    }
}
