//! Rewriting headers in place, checksums included, by incremental update (RFC 1624): a
//! checksum that was right stays right, one that was wrong stays wrong, and the payload is
//! not read.

use std::net::Ipv4Addr;

use crate::checksum::{nonzero, update16, update32};
use crate::headers::{EthernetView, Ipv4View, MacAddress, ip_protocol};
use crate::{Fragment, FrameSummary};

/// Which end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

/// Sets both Ethernet addresses, as a router does on the way out.
#[inline]
pub fn set_macs(frame: &mut [u8], source: MacAddress, destination: MacAddress) {
    if let Ok(mut ethernet) = EthernetView::new(frame) {
        ethernet.set_source(source);
        ethernet.set_destination(destination);
    }
}

/// Takes one hop off the time to live (IPv4) or hop limit (IPv6), which is at least 1.
#[inline]
pub fn decrement_hops(frame: &mut [u8], l3_offset: usize) {
    let packet = &mut frame[l3_offset..];
    match Ipv4View::new(&mut *packet) {
        Ok(mut ip) => {
            let word = |hops: u8, protocol: u8| u16::from_be_bytes([hops, protocol]);
            let (hops, protocol) = (ip.time_to_live(), ip.protocol());
            let fewer = hops.saturating_sub(1);
            ip.set_time_to_live(fewer);
            let checksum = update16(ip.checksum(), word(hops, protocol), word(fewer, protocol));
            ip.set_checksum(checksum);
        }
        Err(_) => packet[7] = packet[7].saturating_sub(1),
    }
}

/// Sets the identification of the IPv4 packet in `frame`, whose IP header begins at `l3_offset`.
#[inline]
pub fn set_identification(frame: &mut [u8], l3_offset: usize, identification: u16) {
    let header = &mut frame[l3_offset..];
    let checksum = update16(get16(header, 10), get16(header, 4), identification);
    put16(header, 4, identification);
    put16(header, 10, checksum);
}

/// Whether the IPv4 packet in `frame`, whose IP header begins at `l3_offset`, is atomic: it is no fragment and no router
/// may make fragments of it, so that its identification means nothing (RFC 6864, section 4).
#[inline]
pub fn is_atomic(frame: &[u8], l3_offset: usize) -> bool {
    const DONT_FRAGMENT: u16 = 0x4000;
    get16(frame, l3_offset + 6) & 0x7fff == DONT_FRAGMENT
}

/// Replaces one end of an IPv4 packet: its address, and its port or ICMP echo identifier if
/// `port` says so. `frame` holds all headers of `summary`, except TCP options.
#[inline]
pub fn replace_end(frame: &mut [u8], summary: &FrameSummary, end: End, address: u32, port: Option<u16>) {
    let old = replace_address(&mut frame[usize::from(summary.l3_offset)..], end, address);
    if summary.fragment == Fragment::Later || !summary.has_l4_header {
        return;
    }
    let segment = &mut frame[usize::from(summary.l4_offset)..];
    replace_l4(segment, summary.protocol, end, AddressChange { old, new: address }, port);
}

/// Replaces an address of the IPv4 header that `packet` begins with and updates the header
/// checksum; returns the address before.
#[inline]
pub fn replace_address(packet: &mut [u8], end: End, address: u32) -> u32 {
    let Ok(mut ip) = Ipv4View::new(packet) else {
        return address;
    };
    let new = Ipv4Addr::from_bits(address);
    let old = match end {
        End::Source => ip.source(),
        End::Destination => ip.destination(),
    };
    match end {
        End::Source => ip.set_source(new),
        End::Destination => ip.set_destination(new),
    }
    ip.set_checksum(update32(ip.checksum(), old.to_bits(), address));
    old.to_bits()
}

/// Where the port of `end`, or the echo identifier, is in an L4 header.
#[inline]
pub fn port_offset(protocol: u8, end: End) -> usize {
    match (protocol, end) {
        (ip_protocol::ICMP, _) => 4,
        (_, End::Source) => 0,
        (_, End::Destination) => 2,
    }
}

/// Where the checksum is in an L4 header; `None` for protocols that we do not translate.
#[inline]
pub fn checksum_offset(protocol: u8) -> Option<usize> {
    match protocol {
        ip_protocol::TCP => Some(16),
        ip_protocol::UDP => Some(6),
        ip_protocol::ICMP => Some(2),
        _ => None,
    }
}

/// An IPv4 address that a rewrite replaces.
#[derive(Clone, Copy, Debug)]
pub struct AddressChange {
    /// Before.
    pub old: u32,
    /// After.
    pub new: u32,
}

/// Replaces a port (or echo identifier) and updates the L4 checksum for it and for `address`. If the segment is cut off before its checksum, as in what an
/// ICMP error quotes, only the port changes.
#[inline(always)]
pub fn replace_l4(segment: &mut [u8], protocol: u8, end: End, address: AddressChange, port: Option<u16>) {
    let Some(checksum_at) = checksum_offset(protocol) else {
        return;
    };
    let port = port.map(|new| (swap16(segment, port_offset(protocol, end), new), new));
    if segment.len() < checksum_at + 2 {
        return;
    }
    let before = get16(segment, checksum_at);
    if protocol == ip_protocol::UDP && before == 0 {
        return; // No checksum was sent: none is made up.
    }
    let mut checksum = before;
    if protocol != ip_protocol::ICMP {
        checksum = update32(checksum, address.old, address.new);
    }
    if let Some((old, new)) = port {
        checksum = update16(checksum, old, new);
    }
    if protocol == ip_protocol::UDP {
        checksum = nonzero(checksum);
    }
    put16(segment, checksum_at, checksum);
}

/// Reads a big-endian word.
#[inline]
pub fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes a big-endian word.
#[inline]
pub fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline]
fn swap16(bytes: &mut [u8], at: usize, value: u16) -> u16 {
    let old = get16(bytes, at);
    put16(bytes, at, value);
    old
}
