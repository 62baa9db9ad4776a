//! The transmit ring in host memory.
//!
//! | word | writer | content |
//! | --- | --- | --- |
//! | 0 | driver | address of the first segment |
//! | 1 | driver | its length (low 32 bits), length of the second segment (high 32, 0: none) |
//! | 2 | driver | address of the second segment |
//! | 3 | driver | stamp that the packet carries, ps |
//! | 4 | driver | flags: bit 0 report, bit 1 fill L3 checksum, bit 2 fill L4 checksum |
//! | 5–7 | – | zero |
//!
//! One word of control memory per ring counts the descriptors whose buffers the NIC is done
//! with; only the NIC writes it.

use nicforge_platform::{Addr, AddressSpace, Owner, SpaceError};
use nicforge_units::Time;

use crate::{Segment, TxOffload};

/// Bytes of one descriptor.
pub const TX_DESCRIPTOR_BYTES: u64 = 64;
const _: () = assert!(size_of::<[u64; 8]>() as u64 == TX_DESCRIPTOR_BYTES);

const REPORT: u64 = 1;
const FILL_L3: u64 = 2;
const FILL_L4: u64 = 4;

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
    /// Checksums to compute.
    pub offload: TxOffload,
}

impl TxDescriptor {
    /// As it lies in memory.
    pub fn encode(&self) -> [u64; 8] {
        let flags = u64::from(self.report) * REPORT
            + u64::from(self.offload.l3_checksum) * FILL_L3
            + u64::from(self.offload.l4_checksum) * FILL_L4;
        [
            self.head.at.0,
            u64::from(self.head.len) | u64::from(self.rest.len) << 32,
            self.rest.at.0,
            self.stamp.as_ps(),
            flags,
            0,
            0,
            0,
        ]
    }

    /// From memory; any bits make a descriptor, the engine checks what it names.
    pub fn decode(words: &[u64]) -> TxDescriptor {
        TxDescriptor {
            head: Segment {
                at: Addr(words[0]),
                len: words[1] as u32,
            },
            rest: Segment {
                at: Addr(words[2]),
                len: (words[1] >> 32) as u32,
            },
            stamp: Time::from_ps(words[3]),
            report: words[4] & REPORT != 0,
            offload: TxOffload {
                l3_checksum: words[4] & FILL_L3 != 0,
                l4_checksum: words[4] & FILL_L4 != 0,
            },
        }
    }

    /// Bytes of the frame.
    pub fn len(&self) -> u64 {
        u64::from(self.head.len) + u64::from(self.rest.len)
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
}

impl TxRing {
    /// A new ring of `entries` (a power of two).
    pub fn new(space: &mut AddressSpace, entries: usize) -> Result<TxRing, SpaceError> {
        let entries = entries as u64;
        Ok(TxRing {
            base: space.data(entries * TX_DESCRIPTOR_BYTES, 64),
            entries,
            done: space.control(8, Owner::NOBODY)?,
            first: 0,
        })
    }

    /// The descriptor at ring position `position`, which may have wrapped any number of times.
    pub fn descriptor(&self, position: u64) -> Addr {
        self.base + (position & (self.entries - 1)) * TX_DESCRIPTOR_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_survives_memory() {
        let descriptor = TxDescriptor {
            head: Segment {
                at: Addr(123),
                len: 64,
            },
            rest: Segment {
                at: Addr(1 << 40),
                len: 1436,
            },
            stamp: Time::from_us(7),
            report: true,
            offload: TxOffload {
                l3_checksum: false,
                l4_checksum: true,
            },
        };
        assert_eq!(TxDescriptor::decode(&descriptor.encode()), descriptor);
        assert_eq!(descriptor.len(), 1500);
    }
}
