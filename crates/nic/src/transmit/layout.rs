//! The transmit ring in host memory.
//!
//! | word | writer | content |
//! | --- | --- | --- |
//! | 0 | driver | address of the first segment |
//! | 1 | driver | its length (low 32 bits), length of the second segment (high 32, 0: none) |
//! | 2 | driver | address of the second segment |
//! | 3 | driver | stamp that the packet carries, ps |
//! | 4 | driver | flags: bit 0 report, bit 1 fill L3 checksum, bit 2 fill L4 checksum, bit 3 inline; bits 16–31: payload bytes of each frame to cut it into (0: none) |
//! | 5 | driver | keys of the two segments (low and high 32 bits), 0 for host memory |
//! | 6 | driver | mark: the host's word to stages |
//! | 7 | – | zero |
//!
//! In a ring that inlines headers each descriptor has a second line. With the inline bit the first
//! segment is no memory: its bytes stand there (nicmem, section 2.2.2).
//!
//! One word of control memory per ring counts the descriptors whose buffers the NIC is done
//! with; only the NIC writes it.

use nicforge_platform::{Addr, AddressSpace, Owner, SpaceError};
use nicforge_units::Time;

use crate::{Application, Key, Segment, TxOffload};

/// Bytes of one descriptor.
pub const TX_DESCRIPTOR_BYTES: u64 = 64;
const _: () = assert!(size_of::<[u64; 8]>() as u64 == TX_DESCRIPTOR_BYTES);

const REPORT: u64 = 1;
const FILL_L3: u64 = 2;
const FILL_L4: u64 = 4;
const INLINE: u64 = 8;
const SEGMENT_SHIFT: u32 = 16;

/// Bytes of a frame that an inlining descriptor holds.
pub const INLINE_BYTES: u32 = 64;

/// One frame to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxDescriptor {
    /// The frame, or its first part.
    pub head: Segment,
    /// The rest; `len` 0 when there is none.
    pub rest: Segment,
    /// Carried to the wire for measurement.
    pub stamp: Time,
    /// Tell software when this and all earlier descriptors are done.
    pub report: bool,
    /// Checksums to compute, and whether to cut it.
    pub offload: TxOffload,
    /// What `head` is named by, where that is memory of the NIC.
    pub head_key: Key,
    /// What `rest` is named by.
    pub rest_key: Key,
    /// The bytes of `head` stand in the descriptor's second line.
    pub inline: bool,
    /// The host's word to stages.
    pub mark: u64,
}

impl TxDescriptor {
    /// As it lies in memory.
    pub fn encode(&self) -> [u64; 8] {
        let flags = u64::from(self.report) * REPORT
            + u64::from(self.offload.l3_checksum) * FILL_L3
            + u64::from(self.offload.l4_checksum) * FILL_L4
            + u64::from(self.inline) * INLINE
            + (u64::from(self.offload.segment) << SEGMENT_SHIFT);
        [
            self.head.at.0,
            u64::from(self.head.len) | u64::from(self.rest.len) << 32,
            self.rest.at.0,
            self.stamp.as_ps(),
            flags,
            u64::from(self.head_key.0) | u64::from(self.rest_key.0) << 32,
            self.mark,
            0,
        ]
    }

    /// From memory; any bits make a descriptor, the engine checks what it names.
    pub fn decode(words: &[u64]) -> TxDescriptor {
        TxDescriptor {
            head: Segment { at: Addr(words[0]), len: words[1] as u32 },
            rest: Segment { at: Addr(words[2]), len: (words[1] >> 32) as u32 },
            stamp: Time::from_ps(words[3]),
            report: words[4] & REPORT != 0,
            offload: TxOffload {
                l3_checksum: words[4] & FILL_L3 != 0,
                l4_checksum: words[4] & FILL_L4 != 0,
                segment: (words[4] >> SEGMENT_SHIFT) as u16,
            },
            head_key: Key(words[5] as u32),
            rest_key: Key((words[5] >> 32) as u32),
            inline: words[4] & INLINE != 0,
            mark: words[6],
        }
    }

    /// Bytes of the frame.
    pub fn len(&self) -> u64 {
        u64::from(self.head.len) + u64::from(self.rest.len)
    }

    /// Bytes of the frame that come over the bus and wait in the NIC's internal buffer; those in
    /// its own memory do not.
    pub fn gathered(&self) -> u64 {
        let over_bus = |segment: Segment, key: Key| match key {
            Key::HOST => u64::from(segment.len),
            _ => 0,
        };
        over_bus(self.head, self.head_key) + over_bus(self.rest, self.rest_key)
    }

    /// Whether it names no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where a transmit ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxRing {
    /// First descriptor.
    pub base: Addr,
    /// Entries, a power of two.
    pub entries: u64,
    /// The word that counts finished descriptors.
    pub done: Addr,
    /// The position that both sides count from: 0, but in tests of wrapping.
    pub first: u64,
    /// Whether descriptors have a second line for headers.
    pub inlines: bool,
    /// Whose it is: memory of the NIC that its descriptors name must be this application's.
    pub application: Application,
}

impl TxRing {
    /// A new ring of `entries` (a power of two).
    pub fn new(space: &mut AddressSpace, entries: usize) -> Result<TxRing, SpaceError> {
        TxRing::with(space, entries, false)
    }

    /// A new ring of `entries` (a power of two), whose descriptors have room for headers if it
    /// `inlines`.
    pub fn with(space: &mut AddressSpace, entries: usize, inlines: bool) -> Result<TxRing, SpaceError> {
        let entries = entries as u64;
        let mut ring =
            TxRing { base: Addr(0), entries, done: Addr(0), first: 0, inlines, application: Application::default() };
        ring.base = space.data(entries * ring.stride(), 64);
        ring.done = space.control(8, Owner::NOBODY)?;
        Ok(ring)
    }

    /// From one descriptor to the next.
    #[inline]
    pub fn stride(&self) -> u64 {
        if self.inlines { TX_DESCRIPTOR_BYTES + u64::from(INLINE_BYTES) } else { TX_DESCRIPTOR_BYTES }
    }

    /// The descriptor at ring position `position`, which may have wrapped any number of times.
    pub fn descriptor(&self, position: u64) -> Addr {
        self.base + (position & (self.entries - 1)) * self.stride()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_survives_memory() {
        let descriptor = TxDescriptor {
            head: Segment { at: Addr(123), len: 64 },
            rest: Segment { at: Addr(1 << 40), len: 1436 },
            stamp: Time::from_us(7),
            report: true,
            offload: TxOffload { l3_checksum: false, l4_checksum: true, segment: 1448 },
            head_key: Key(5),
            rest_key: Key(u32::MAX),
            inline: true,
            mark: u64::MAX - 9,
        };
        assert_eq!(TxDescriptor::decode(&descriptor.encode()), descriptor);
        assert_eq!(descriptor.len(), 1500);
    }
}
