//! Header views: one protocol, one file, one order. Field offsets, a view over borrowed bytes,
//! one length check in `new`, after which no accessor can panic.
//!
//! A view shows any bytes that are long enough, however absurd; [`crate::parse_frame`] judges a
//! whole frame. Views need only the header: a frame whose payload lies elsewhere can be viewed.
//! Setters never change a header's own length, so a view stays valid while it is written.

mod arp;
mod ethernet;
pub(crate) mod icmp;
pub(crate) mod ipv4;
mod ipv6;
mod kvs;
mod memcached;
pub(crate) mod tcp;
pub(crate) mod udp;
mod vlan;

use thiserror::Error;

pub use arp::{ARP_LEN, ArpOperation, ArpView};
pub use ethernet::{ETHERNET_HEADER_LEN, EthernetView, MAC, MacAddress, ethertype};
pub use icmp::{ICMP_HEADER_LEN, IcmpView, icmp_type, icmpv6_type};
pub use ipv4::{IPV4_MIN_HEADER_LEN, Ipv4Option, Ipv4Options, Ipv4View};
pub use ipv6::{ExtensionHeader, ExtensionHeaders, IPV6_HEADER_LEN, Ipv6View};
pub use kvs::{KVS_HEADER_LEN, KVS_PORT, KVS_VERSION, KvsOperation, KvsStatus, KvsView, key_hash, partition_of};
pub use memcached::{
    MAGIC_REQUEST, MAGIC_RESPONSE, MEMCACHED_HEADER_LEN, MEMCACHED_PORT, MemcachedStatus, MemcachedView,
    memcached_opcode,
};
pub use tcp::{TCP_MIN_HEADER_LEN, TcpFlags, TcpOption, TcpOptions, TcpView};
pub use udp::{UDP_HEADER_LEN, UdpView};
pub use vlan::{VLAN_TAG_LEN, VlanView};

/// IP protocol numbers that we act on (IANA protocol-numbers).
pub mod ip_protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// IPsec authentication header.
    pub const AUTHENTICATION: u8 = 51;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6: nothing follows.
    pub const NO_NEXT_HEADER: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: u8 = 60;
}

/// Why bytes cannot be viewed as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// Fewer bytes than the header has.
    #[error("{header} header needs {need} bytes and has {have}")]
    Truncated {
        /// Which header.
        header: &'static str,
        /// Bytes that it needs.
        need: usize,
        /// Bytes that there are.
        have: usize,
    },
    /// The version field is not the one of this header.
    #[error("{header} header has version {found}")]
    BadVersion {
        /// Which header.
        header: &'static str,
        /// What the version field says.
        found: u8,
    },
    /// The header's own length field is below the minimum.
    #[error("{header} header says it is {found} bytes long; the least is {least}")]
    BadHeaderLength {
        /// Which header.
        header: &'static str,
        /// Length in bytes that the field says.
        found: usize,
        /// Least legal length in bytes.
        least: usize,
    },
    /// Hardware or protocol types of an ARP message that is not IPv4 over Ethernet.
    #[error("ARP message is not for IPv4 over Ethernet")]
    UnsupportedArp,
}

fn require(header: &'static str, bytes: &[u8], need: usize) -> Result<(), WireError> {
    let have = bytes.len();
    if have < need {
        return Err(WireError::Truncated { header, need, have });
    }
    Ok(())
}

#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
