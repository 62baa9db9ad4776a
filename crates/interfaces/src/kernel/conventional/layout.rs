//! What lies in memory, and the registers.
//!
//! Descriptor, 32 bytes, the same for both directions: Linux's driver of the DP83820 gives each so many, of which the NIC
//! reads 16 (`DESC_SIZE` of `ns83820.c`). The driver writes it, the NIC reads it, and the NIC writes the status back when
//! it is done with it:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0–7 | address of the first byte |
//! | 8–15 | status, below |
//! | 16–31 | unused |
//!
//! | bit of the status | content |
//! | --- | --- |
//! | 63 | done: written by the NIC |
//! | 62 | more: the frame goes on in the next descriptor |
//! | 61, 60 | transmit: compute the IPv4, the TCP or UDP checksum |
//! | 59 | given: the NIC may use it |
//! | 58 | tell: an event when it is done |
//! | 32–39 | receive: what the NIC verified |
//! | 0–31 | bytes: of the piece, of the buffer's room, or of the received frame |

use nicforge_nic::{RxFlags, TxOffload};
use nicforge_platform::bytemuck::{Pod, Zeroable};

/// Registers, by the data sheet's names.
pub mod registers {
    /// CR, write: bits of [`command`](super::command).
    pub const COMMAND: u32 = 0;
    /// ISR, read: what happened since the last read, which clears it.
    pub const STATUS: u32 = 1;
    /// IMR, write: which bits of `STATUS` interrupt.
    pub const MASK: u32 = 2;
    /// IHR, write: holds interrupts back; without effect, as in M5.
    pub const HOLDOFF: u32 = 3;
    /// TXDP, read: the entry that the transmit list is at.
    pub const TX_POINTER: u32 = 4;
    /// RXDP, write: where the receive list goes on; it goes on where it stopped.
    pub const RX_POINTER: u32 = 5;
}

/// Bits of `COMMAND`.
pub mod command {
    /// TXE: looks at the transmit list again, where it found nothing last.
    pub const TRANSMIT: u64 = 1;
    /// RXE: the same for the receive list.
    pub const RECEIVE: u64 = 4;
}

/// Bits of `STATUS` and `MASK`, as in the data sheet.
pub mod events {
    /// RXDESC: a receive descriptor that asked for it is done.
    pub const RECEIVED: u64 = 1 << 1;
    /// RXIDLE: the next descriptor of the receive list is not given.
    pub const RECEIVE_IDLE: u64 = 1 << 4;
    /// TXDESC: a transmit descriptor that asked for it is done.
    pub const TRANSMITTED: u64 = 1 << 7;
    /// TXIDLE: the next descriptor of the transmit list is not given.
    pub const TRANSMIT_IDLE: u64 = 1 << 9;
    /// All of them.
    pub const ALL: u64 = RECEIVED | RECEIVE_IDLE | TRANSMITTED | TRANSMIT_IDLE;
}

/// A descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Descriptor {
    /// The first byte.
    pub at: u64,
    /// See the table above.
    pub status: Status,
    /// Unused.
    pub rest: [u64; 2],
}

impl Descriptor {
    /// One for what begins at `at`.
    pub fn new(at: u64, status: Status) -> Descriptor {
        Descriptor { at, status, rest: [0; 2] }
    }
}

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u64 = size_of::<Descriptor>() as u64;

/// Bytes of it that the NIC reads.
pub const READ_BYTES: usize = 16;

/// Where the status stands in a descriptor.
pub const STATUS_OFFSET: u64 = 8;

/// The second word of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Status(pub u64);

impl Status {
    const DONE: u64 = 1 << 63;
    const MORE: u64 = 1 << 62;
    const L3: u64 = 1 << 61;
    const L4: u64 = 1 << 60;
    const GIVEN: u64 = 1 << 59;
    const TELLS: u64 = 1 << 58;
    const FLAGS_SHIFT: u32 = 32;

    /// Given to the NIC: a piece of `len` bytes, or room for as many.
    pub fn given(len: u32, more: bool, offload: TxOffload) -> Status {
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        Status(
            Status::GIVEN
                | u64::from(len)
                | bit(more, Status::MORE)
                | bit(offload.l3_checksum, Status::L3)
                | bit(offload.l4_checksum, Status::L4),
        )
    }

    /// The same, with an event when it is done.
    pub fn telling(self) -> Status {
        Status(self.0 | Status::TELLS)
    }

    /// Whether the NIC may use it.
    pub fn is_given(self) -> bool {
        self.0 & Status::GIVEN != 0
    }

    /// Whether an event follows when it is done.
    pub fn tells(self) -> bool {
        self.0 & Status::TELLS != 0
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
