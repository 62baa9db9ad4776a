//! What all fragments of an IPv4 packet have in common, and its addresses as words.

use crate::headers::be16;
use crate::parse::{FrameSummary, IpAddresses};

impl FrameSummary {
    /// Source and destination of an IPv4 packet as words; `None` of everything else.
    #[inline]
    pub fn ipv4_words(&self) -> Option<(u32, u32)> {
        match self.addresses {
            IpAddresses::V4 { source, destination } => Some((source.to_bits(), destination.to_bits())),
            _ => None,
        }
    }
}

/// Which IPv4 packet a fragment is of (RFC 791, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketId {
    /// Source (high) and destination (low).
    pub addresses: u64,
    /// Chosen by the sender, for each packet anew.
    pub identification: u16,
    /// IP protocol.
    pub protocol: u8,
}

impl PacketId {
    /// Of the packet in `frame`, whose parts are as `summary` says; `None` if it is not IPv4.
    pub fn of(frame: &[u8], summary: &FrameSummary) -> Option<PacketId> {
        let (source, destination) = summary.ipv4_words()?;
        let header = frame.get(usize::from(summary.l3_offset)..)?;
        let identification = header.get(4..6)?;
        Some(PacketId {
            addresses: u64::from(source) << 32 | u64::from(destination),
            identification: be16(identification, 0),
            protocol: summary.protocol,
        })
    }
}
