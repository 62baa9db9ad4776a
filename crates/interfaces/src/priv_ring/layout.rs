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

use std::marker::PhantomData;

use nicforge_nic::mbuf_room;
use nicforge_platform::bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace, Cpu};

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

const _: () = assert!(size_of::<RxDescriptor>() == 16);

/// A ring of descriptors `T` in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring<T = RxDescriptor> {
    base: Addr,
    /// Entries, a power of two.
    pub entries: u64,
    /// What stays of a position that counts entries only.
    mask: u64,
    /// The position that both sides count from.
    pub first: u64,
    /// Room that each buffer in it has for a frame, in bytes.
    pub room: u32,
    descriptor: PhantomData<T>,
}

impl<T> Ring<T> {
    /// A new ring of `entries` (a power of two) whose positions count from `first`.
    pub fn new(space: &mut AddressSpace, entries: u64, first: u64) -> Ring<T> {
        let base = space.data(entries * size_of::<T>() as u64, 64);
        Ring::at(base, entries, first)
    }

    /// The same for buffers with `room` bytes for a frame.
    pub fn with_room(self, room: u32) -> Ring<T> {
        Ring { room, ..self }
    }

    /// The same in memory that begins at `base`.
    pub fn at(base: Addr, entries: u64, first: u64) -> Ring<T> {
        Ring { base, entries, mask: entries - 1, first, room: mbuf_room(), descriptor: PhantomData }
    }

    /// The entry of position `position`, which may have wrapped any number of times.
    pub fn index(&self, position: u64) -> u64 {
        position & self.mask
    }

    /// Where entry `index` lies.
    pub fn descriptor(&self, index: u64) -> Addr {
        self.base + index * size_of::<T>() as u64
    }
}

impl Ring {
    /// Puts the empty buffer `mbuf` at `position`; returns the entry.
    pub fn post<C: Cpu>(&self, cpu: &mut C, position: u64, mbuf: Addr) -> u64 {
        let index = self.index(position);
        let descriptor = RxDescriptor { mbuf, room: self.room, reserved: 0 };
        cpu.store(self.descriptor(index), descriptor);
        index
    }
}
