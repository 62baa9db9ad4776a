//! What lies in memory.
//!
//! Receive descriptor, written by drivers, read by the NIC: 16 bytes, or 64 where it names
//! several buffers:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0–7 | address of the first buffer's metadata |
//! | 8–10 | bytes of room for a frame in each buffer |
//! | 11 | who wrote it: the core's rank among those of the ring |
//! | 12–15 | list: index of the descriptor that comes next |
//! | 16–39 | batched list: the other buffers' metadata |
//! | 40–63 | batched list: zero |
//!
//! Shared by the drivers of a ring, in lines of their own, which the NIC does not read:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0–7 | the lock |
//! | 8–15 | descriptors given to the NIC so far |
//! | 16–23 | list: index of the spare descriptor at the end |
//!
//! the doorbell record: as many descriptors as were given, in a line of its own, as mlx5's driver keeps it for the NIC,
//!
//! and for the array the bitmap: bit *i* says that descriptor *i* has a new buffer and was not
//! yet given to the NIC. Registers: receive register `ring` is the doorbell: descriptors given so
//! far, counted without end.

use nicforge_nic::{DATA_BYTES_MAX, mbuf_room};
use nicforge_platform::bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace, Cpu, Dma};

/// Buffers of a descriptor of the batched list (shRing, figure 5.2b).
pub const SLOTS_MAX: usize = 4;

/// What every descriptor begins with; all of those that name one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Descriptor {
    /// The first buffer's metadata.
    pub first: Addr,
    /// Room for a frame in each buffer, in bytes, and in the highest byte who wrote it.
    pub signed: u32,
    /// The descriptor that comes next in a list.
    pub next: u32,
}

/// A descriptor that names several buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BatchDescriptor {
    /// What all have.
    pub descriptor: Descriptor,
    /// The other buffers.
    pub others: [Addr; SLOTS_MAX - 1],
    /// Zero.
    pub reserved: [u64; 3],
}

const _: () = assert!(size_of::<Descriptor>() == 16);

/// Bits of the room in a descriptor; those above say who wrote it.
pub const ROOM_MAX: u32 = (1 << 24) - 1;
const _: () = assert!(DATA_BYTES_MAX <= ROOM_MAX as u64);

/// The rank of the core that wrote a descriptor with `signed` in it.
#[inline]
pub fn writer(signed: u32) -> u16 {
    (signed >> ROOM_MAX.trailing_ones()) as u16
}
const _: () = assert!(size_of::<BatchDescriptor>() == 64);

/// In which order the NIC uses the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they stand in the ring.
    Array,
    /// As each names the next; one more descriptor than can be filled stands at the end.
    List,
}

/// A shared receive ring in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    base: Addr,
    buffers: Addr,
    shared: Addr,
    doorbell_record: Addr,
    bitmap: Addr,
    /// In which order descriptors are used.
    pub order: Order,
    /// Packets that it holds, a power of two.
    pub entries: u64,
    /// Buffers of each descriptor, a power of two.
    pub slots: u64,
    /// The position that both sides count from.
    pub first: u64,
    /// What descriptors say of the room in each buffer, and of who wrote them.
    signed: u32,
}

impl Ring {
    /// The same for buffers with `room` bytes for a frame.
    pub fn with_room(self, room: u32) -> Ring {
        let signed = room & ROOM_MAX;
        Ring { signed, ..self }
    }

    /// The same, whose descriptors are written by the core of rank `rank`.
    pub fn signed_by(self, rank: u64) -> Ring {
        let signed = self.signed & ROOM_MAX | (rank as u32) << ROOM_MAX.trailing_ones();
        Ring { signed, ..self }
    }

    /// A new ring for `entries` packets (a power of two) in descriptors of `slots` buffers.
    pub fn new(space: &mut AddressSpace, order: Order, entries: u64, slots: u64, first: u64) -> Ring {
        let mut ring = Ring {
            base: Addr(0),
            buffers: Addr(0),
            shared: space.data(64, 64),
            doorbell_record: space.data(64, 64),
            bitmap: space.data(entries.div_ceil(64) * 8, 64),
            order,
            entries,
            slots,
            first,
            signed: mbuf_room(),
        };
        ring.base = space.data(ring.count() * ring.stride() as u64, 64);
        ring.buffers = space.data(ring.count() * slots * 8, 64);
        ring
    }

    /// The descriptor that `entry` is in, and which slot of it that is.
    #[inline]
    pub fn place(&self, entry: u64) -> (u64, u64) {
        (self.number_of(entry), entry & (self.slots - 1))
    }

    /// A division by the slots, of which there are a power of two.
    #[inline]
    fn number_of(&self, entry: u64) -> u64 {
        entry >> self.slots.trailing_zeros()
    }

    /// Descriptors that the NIC may have at once.
    pub fn capacity(&self) -> u64 {
        self.number_of(self.entries)
    }

    /// Descriptors there are.
    pub fn count(&self) -> u64 {
        self.capacity() + u64::from(self.order == Order::List)
    }

    /// Bytes from one descriptor to the next.
    pub fn stride(&self) -> usize {
        match self.slots {
            1 => size_of::<Descriptor>(),
            _ => size_of::<BatchDescriptor>(),
        }
    }

    /// Where descriptor `index` lies.
    pub fn descriptor(&self, index: u64) -> Addr {
        self.base + index * self.stride() as u64
    }

    /// Where software keeps its own copy of the buffer of `entry`, which is
    /// `index * slots + slot`.
    pub fn buffer(&self, entry: u64) -> Addr {
        self.buffers + entry * 8
    }

    /// Puts empty buffers into descriptor `index`.
    #[inline]
    pub fn store<C: Cpu>(&self, cpu: &mut C, index: u64, mbufs: [Addr; SLOTS_MAX], next: u32) {
        let [first, others @ ..] = mbufs;
        let (signed, at) = (self.signed, self.descriptor(index));
        let descriptor = Descriptor { first, signed, next };
        if self.slots == 1 {
            cpu.store(at, descriptor);
            return cpu.store(self.buffer(index), first.0);
        }
        let reserved = [0; 3];
        cpu.store(at, BatchDescriptor { descriptor, others, reserved });
        for (slot, mbuf) in (0..self.slots).zip(mbufs) {
            cpu.store(self.buffer(index * self.slots + slot), mbuf.0);
        }
    }

    /// What drivers share is zero again, as in the beginning.
    pub fn clear<D: Dma + ?Sized>(&self, dma: &mut D) {
        dma.write(self.shared, &[0; 64]);
        for word in 0..self.entries.div_ceil(u64::from(u64::BITS)) {
            dma.write(self.bitmap_word(word), &[0; 8]);
        }
    }

    /// The lock of what drivers share.
    pub fn lock(&self) -> Addr {
        self.shared
    }

    /// The word that counts descriptors given to the NIC.
    pub fn given(&self) -> Addr {
        self.shared + 8
    }

    /// The doorbell record.
    pub fn doorbell_record(&self) -> Addr {
        self.doorbell_record
    }

    /// The word that says which descriptor is the spare one at the end of the list.
    pub fn spare(&self) -> Addr {
        self.shared + 16
    }

    /// Word `number` of the bitmap.
    pub fn bitmap_word(&self, number: u64) -> Addr {
        self.bitmap + number * 8
    }
}
