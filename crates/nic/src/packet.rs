//! A packet as drivers hand it to applications, and what applications decide about it.

use nicforge_platform::{Addr, Cpu};
use nicforge_units::Time;
use nicforge_wire::checksum::ChecksumVerdict;
use nicforge_wire::unfinished::TxOffload;

/// A physical port of the machine, counted from 0 over all NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u8);

/// A run of bytes in host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins.
    pub at: Addr,
    /// How long it is, in bytes.
    pub len: u32,
}

/// What the NIC found out about a received frame (bits of the completion). The low 8 bits are the NIC's own, the others
/// are for stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxFlags(pub u32);

impl RxFlags {
    /// The IPv4 header checksum was verified and is right (IPv6: no checksum to check).
    pub const L3_GOOD: RxFlags = RxFlags(1);
    /// The TCP or UDP checksum was verified and is right.
    pub const L4_GOOD: RxFlags = RxFlags(2);
    /// The IPv4 header checksum was verified and is wrong.
    pub const L3_BAD: RxFlags = RxFlags(4);
    /// The TCP or UDP checksum is only begun, as its sender left the rest to the NIC; the frame was
    /// on no wire that could have spoilt it.
    pub const L4_BEGUN: RxFlags = RxFlags(8);
    /// The TCP or UDP checksum was verified and is wrong.
    pub const L4_BAD: RxFlags = RxFlags(16);

    /// Not about the frame: it lies in the buffer that the completion names, and not in that of
    /// the ring's entry ([`Completion::hand_over`](crate::Completion::hand_over)).
    pub const HANDED_OVER: RxFlags = RxFlags(1 << 6);

    /// What a verification found.
    #[inline]
    pub fn of(verdict: ChecksumVerdict) -> RxFlags {
        let of = |verdict, good, bad| match verdict {
            Some(true) => good,
            Some(false) => bad,
            None => RxFlags::default(),
        };
        let l3 = of(verdict.l3, RxFlags::L3_GOOD, RxFlags::L3_BAD);
        l3.with(of(verdict.l4, RxFlags::L4_GOOD, RxFlags::L4_BAD))
    }

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: RxFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether a checksum was verified and is wrong, whichever.
    pub const fn is_checksum_bad(self) -> bool {
        self.0 & (RxFlags::L3_BAD.0 | RxFlags::L4_BAD.0) != 0
    }

    /// Both sets of bits.
    pub const fn with(self, other: RxFlags) -> RxFlags {
        RxFlags(self.0 | other.0)
    }

    /// Those bits that are not set in `other`.
    pub const fn without(self, other: RxFlags) -> RxFlags {
        RxFlags(self.0 & !other.0)
    }
}

/// A received packet: a small value that points at its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The buffer's metadata (two cache lines), which also names the buffer.
    pub mbuf: Addr,
    /// The metadata of a second buffer, in which `rest` lies; address 0 where there is none.
    pub tail: Addr,
    /// `rest` lies in memory that others send from too, and here is the word that counts those
    /// who do: whoever frees the packet takes one off. Address 0 where there is none.
    pub references: Addr,
    /// The frame, or its first part.
    pub head: Segment,
    /// The rest of the frame; `len` 0 when `head` holds all of it.
    pub rest: Segment,
    /// Where it came in.
    pub port: PortId,
    /// The RSS hash, as the NIC computed it.
    pub rss_hash: u32,
    /// What the NIC verified.
    pub flags: RxFlags,
    /// A stage's word to the host, and on transmit the host's to stages.
    pub mark: u64,
    /// What the NIC shall do on transmit.
    pub offload: TxOffload,
    /// When its first bit came in, as the NIC stamped it.
    pub stamp: Time,
}

impl Packet {
    /// A frame of software's own: `len` bytes in buffer `mbuf` at `stamp`. The NIC has nothing to do for it.
    pub fn in_buffer(mbuf: Addr, len: u32, stamp: Time) -> Packet {
        Packet {
            mbuf,
            tail: Addr(0),
            references: Addr(0),
            head: Segment { at: crate::data_of(mbuf), len },
            rest: Segment::default(),
            port: PortId(0),
            rss_hash: 0,
            flags: RxFlags::default(),
            mark: 0,
            offload: TxOffload::default(),
            stamp,
        }
    }

    /// Bytes of the whole frame.
    pub fn len(&self) -> u32 {
        self.head.len + self.rest.len
    }

    /// How many buffers it takes.
    pub fn buffers(&self) -> u64 {
        1 + u64::from(self.tail != Addr(0))
    }

    /// Where bytes `from` to `until` of the frame lie, in its two parts; clipped to its end.
    #[inline]
    pub fn span(&self, from: u32, until: u32) -> [Segment; 2] {
        let part = |segment: Segment, offset: u32| {
            let begin = from.saturating_sub(offset).min(segment.len);
            let end = until.saturating_sub(offset).min(segment.len).max(begin);
            Segment { at: segment.at + u64::from(begin), len: end - begin }
        };
        [part(self.head, 0), part(self.rest, self.head.len)]
    }

    /// Whether the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Takes one off the count of packets that refer to shared memory (nicmem, section 2.2.2). Only the
/// core that counts them does.
pub(crate) fn drop_reference<C: Cpu>(cpu: &mut C, references: Addr) {
    let count: u64 = cpu.load(references);
    cpu.store(references, count.saturating_sub(1));
}

/// What an application decides about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it out of this port.
    Transmit(PortId),
    /// Drop it; the name is the cause that the report counts it under.
    Drop(&'static str),
    /// The application keeps the buffer and frees it later.
    Keep,
    /// The application has taken what it wants of the frame, whose buffer is free.
    Take,
}
