//! What lies in memory, and the registers.
//!
//! Descriptor, 16 bytes, the same for both directions. The driver writes it, the NIC reads it, and
//! the NIC writes it back when it is done with it:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0–7 | address of the first byte |
//! | 8–15 | status, below |
//!
//! | bit of the status | content |
//! | --- | --- |
//! | 63 | done: written by the NIC |
//! | 62 | more: the frame goes on in the next descriptor |
//! | 61, 60 | transmit: compute the IPv4, the TCP or UDP checksum |
//! | 32–39 | receive: what the NIC verified |
//! | 0–31 | bytes: of the piece, of the buffer's room, or of the received frame |

use nicforge_nic::{RxFlags, TxOffload};
use nicforge_platform::bytemuck::{Pod, Zeroable};

/// Registers.
pub mod registers {
    /// Read: what happened since the last read, which clears it. A write clears the bits it has.
    pub const STATUS: u32 = 0;
    /// Which bits of `STATUS` interrupt.
    pub const MASK: u32 = 1;
    /// End of the given receive descriptors, counted without end.
    pub const RX_TAIL: u32 = 2;
    /// The same for transmit.
    pub const TX_TAIL: u32 = 3;
}

/// Bits of `STATUS` and `MASK`.
pub mod events {
    /// A frame was received.
    pub const RECEIVED: u64 = 1;
    /// A frame was transmitted: its descriptors are written back.
    pub const TRANSMITTED: u64 = 2;
    /// Both.
    pub const ALL: u64 = RECEIVED | TRANSMITTED;
}

/// A descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Descriptor {
    /// The first byte.
    pub at: u64,
    /// See the table above.
    pub status: Status,
}

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u64 = size_of::<Descriptor>() as u64;

/// The second word of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Status(pub u64);

impl Status {
    const DONE: u64 = 1 << 63;
    const MORE: u64 = 1 << 62;
    const L3: u64 = 1 << 61;
    const L4: u64 = 1 << 60;
    const FLAGS_SHIFT: u32 = 32;

    /// Given to the NIC: a piece of `len` bytes, or room for as many.
    pub fn given(len: u32, more: bool, offload: TxOffload) -> Status {
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        Status(
            u64::from(len)
                | bit(more, Status::MORE)
                | bit(offload.l3_checksum, Status::L3)
                | bit(offload.l4_checksum, Status::L4),
        )
    }

    /// Written back by the NIC.
    pub fn done(len: u32, flags: RxFlags) -> Status {
        Status(Status::DONE | u64::from(flags.0) << Status::FLAGS_SHIFT | u64::from(len))
    }

    /// Whether the NIC has written it back.
    pub fn is_done(self) -> bool {
        self.0 & Status::DONE != 0
    }

    /// Whether the frame goes on in the next descriptor.
    pub fn has_more(self) -> bool {
        self.0 & Status::MORE != 0
    }

    /// Bytes.
    pub fn bytes(self) -> u32 {
        self.0 as u32
    }

    /// What was verified.
    pub fn flags(self) -> RxFlags {
        RxFlags((self.0 >> Status::FLAGS_SHIFT) as u32 & 0xff)
    }

    /// What is to be computed.
    pub fn offload(self) -> TxOffload {
        TxOffload {
            l3_checksum: self.0 & Status::L3 != 0,
            l4_checksum: self.0 & Status::L4 != 0,
            ..TxOffload::default()
        }
    }
}
