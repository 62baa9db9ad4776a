//! One walk over a frame, as the parser of a NIC does it: Ethernet, up to two VLAN tags, IPv4 or
//! IPv6 with extension headers, TCP, UDP or ICMP.
//!
//! Total: any bytes give a summary or a named error. Frames that are not IP are fine; they have no
//! addresses. Checksums are [`crate::checksum`]'s business.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::frame_error::FrameError;
use crate::headers::{
    ETHERNET_HEADER_LEN, ExtensionHeaders, ICMP_HEADER_LEN, IPV4_MIN_HEADER_LEN, IPV6_HEADER_LEN, Ipv4View,
    TCP_MIN_HEADER_LEN, UDP_HEADER_LEN, VLAN_TAG_LEN, array, be16, ethertype, ip_protocol,
};
use crate::plain::summary_of;

/// Most VLAN tags that are walked; with more, a frame counts as not IP.
const VLAN_TAGS_MAX: u8 = 2;
/// Most IPv6 extension headers that are walked.
const EXTENSION_HEADERS_MAX: usize = 8;

/// Source and destination of a frame at layer 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IpAddresses {
    /// Not IP.
    #[default]
    None,
    /// IPv4.
    V4 {
        /// Source.
        source: Ipv4Addr,
        /// Destination.
        destination: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source.
        source: Ipv6Addr,
        /// Destination.
        destination: Ipv6Addr,
    },
}

/// Whether an IP packet is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// Not a fragment.
    #[default]
    Whole,
    /// The first fragment, with the beginning of the L4 header.
    First,
    /// A later fragment: no L4 header.
    Later,
}

/// Where everything is in a frame. Offsets and lengths in bytes from the frame's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameSummary {
    /// The whole frame, with padding.
    pub frame_len: u32,
    /// End of the IP packet; what follows is padding. The frame's length when it is not IP.
    pub l3_end: u32,
    /// Length of header and payload at L4, padding excluded (UDP: by its own length field).
    pub l4_len: u32,
    /// Beginning of what follows Ethernet header and tags.
    pub l3_offset: u16,
    /// Beginning of what follows the IP header, its options and extension headers. 0 if not IP.
    pub l4_offset: u16,
    /// Type of what follows the last tag.
    pub ethertype: u16,
    /// Source port; 0 when there is none.
    pub source_port: u16,
    /// Destination port; 0 when there is none.
    pub destination_port: u16,
    /// VLAN tags in front of `ethertype`, 0 to 2.
    pub vlan_tags: u8,
    /// IP protocol at L4; meaningless when not IP.
    pub protocol: u8,
    /// Whether the IP packet is whole.
    pub fragment: Fragment,
    /// Whether a TCP, UDP or ICMP header stands at `l4_offset`, whole and checked.
    pub has_l4_header: bool,
    /// Whether the packet is on a source route, so that its destination is not the final one.
    pub source_routed: bool,
    /// Addresses at L3.
    pub addresses: IpAddresses,
}

impl FrameSummary {
    /// Whether the frame is IPv4 or IPv6.
    pub fn is_ip(&self) -> bool {
        self.addresses != IpAddresses::None
    }

    /// Whether this is a part of an IP packet only.
    pub fn is_fragment(&self) -> bool {
        self.fragment != Fragment::Whole
    }

    /// Whether the ports were read: TCP or UDP, whole or first fragment.
    pub fn has_ports(&self) -> bool {
        self.has_l4_header && matches!(self.protocol, ip_protocol::TCP | ip_protocol::UDP)
    }
}

/// Walks a whole frame.
pub fn parse_frame(frame: &[u8]) -> Result<FrameSummary, FrameError> {
    parse_headers(frame, frame.len())
}

/// Walks the headers of a frame of `frame_len` bytes of which `bytes` are the first. Headers must
/// be within `bytes`; the payload need not.
// Always inlined, as `summary_of` is.
#[inline(always)]
pub fn parse_headers(bytes: &[u8], frame_len: usize) -> Result<FrameSummary, FrameError> {
    match summary_of(bytes, frame_len) {
        Some((summary, _)) => Ok(summary),
        // Not returned as it comes, so that the summary above need not lie in memory.
        None => {
            let walked = walk_headers(bytes, frame_len)?;
            Ok(walked)
        }
    }
}

/// What [`parse_headers`] says, without a short way for the frames that nearly all are.
#[inline(never)]
pub fn walk_headers(bytes: &[u8], frame_len: usize) -> Result<FrameSummary, FrameError> {
    let frame_len = frame_len.max(bytes.len());
    if bytes.len() < ETHERNET_HEADER_LEN {
        return Err(FrameError::EthernetTruncated);
    }
    let mut ethertype = be16(bytes, ETHERNET_HEADER_LEN - 2);
    let mut l3_offset = ETHERNET_HEADER_LEN;
    let mut vlan_tags = 0;
    while vlan_tags < VLAN_TAGS_MAX && is_vlan(ethertype) {
        let Some(tag) = bytes.get(l3_offset..l3_offset + VLAN_TAG_LEN) else {
            return Err(FrameError::VlanTruncated);
        };
        ethertype = be16(tag, 2);
        l3_offset += VLAN_TAG_LEN;
        vlan_tags += 1;
    }
    let mut summary = FrameSummary {
        frame_len: u32::try_from(frame_len).unwrap_or(u32::MAX),
        l3_end: u32::try_from(frame_len).unwrap_or(u32::MAX),
        l4_len: 0,
        l3_offset: l3_offset as u16,
        l4_offset: 0,
        ethertype,
        source_port: 0,
        destination_port: 0,
        vlan_tags,
        protocol: 0,
        fragment: Fragment::Whole,
        has_l4_header: false,
        source_routed: false,
        addresses: IpAddresses::None,
    };
    match ethertype {
        ethertype::IPV4 => parse_ipv4(bytes, frame_len, &mut summary)?,
        ethertype::IPV6 => parse_ipv6(bytes, frame_len, &mut summary)?,
        _ => return Ok(summary),
    }
    if summary.fragment != Fragment::Later {
        parse_l4(bytes, &mut summary)?;
    }
    Ok(summary)
}

fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, ethertype::VLAN | ethertype::SERVICE_VLAN | ethertype::OLD_SERVICE_VLAN)
}

#[inline]
fn parse_ipv4(bytes: &[u8], frame_len: usize, summary: &mut FrameSummary) -> Result<(), FrameError> {
    let l3_offset = usize::from(summary.l3_offset);
    let packet = &bytes[l3_offset..];
    // The version counts first: one byte is enough to see that this is not IPv4.
    if packet.first().is_some_and(|first| first >> 4 != 4) {
        return Err(FrameError::IpBadVersion);
    }
    let Some(header) = packet.first_chunk::<IPV4_MIN_HEADER_LEN>() else {
        return Err(FrameError::IpTruncated);
    };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header_len < IPV4_MIN_HEADER_LEN {
        return Err(FrameError::IpBadHeaderLength);
    }
    if packet.len() < header_len {
        return Err(FrameError::IpTruncated);
    }
    let total_len = usize::from(be16(header, 2));
    if total_len < header_len {
        return Err(FrameError::IpBadTotalLength);
    }
    if l3_offset + total_len > frame_len {
        return Err(FrameError::IpLengthBeyondFrame);
    }
    let fragment_field = be16(header, 6) & 0x3fff;
    summary.fragment = fragment_of(fragment_field & 0x1fff != 0, fragment_field & 0x2000 != 0);
    summary.protocol = header[9];
    summary.addresses = IpAddresses::V4 {
        source: Ipv4Addr::from(array::<4>(header, 12)),
        destination: Ipv4Addr::from(array::<4>(header, 16)),
    };
    summary.source_routed = header_len > IPV4_MIN_HEADER_LEN && ipv4_source_route_left(packet);
    summary.l4_offset = (l3_offset + header_len) as u16;
    summary.l3_end = (l3_offset + total_len) as u32;
    summary.l4_len = (total_len - header_len) as u32;
    Ok(())
}

/// Whether a loose or strict source route (RFC 791 3.1: kinds 131 and 137) has hops left.
fn ipv4_source_route_left(packet: &[u8]) -> bool {
    Ipv4View::new(packet).is_ok_and(|view| {
        view.options().any(|option| {
            let pointer = option.data.first().copied().unwrap_or(0);
            matches!(option.kind, 131 | 137) && usize::from(pointer) <= option.data.len() + 2
        })
    })
}

fn parse_ipv6(bytes: &[u8], frame_len: usize, summary: &mut FrameSummary) -> Result<(), FrameError> {
    let l3_offset = usize::from(summary.l3_offset);
    let packet = &bytes[l3_offset..];
    match packet.first() {
        Some(first) if first >> 4 != 6 => return Err(FrameError::IpBadVersion),
        _ if packet.len() < IPV6_HEADER_LEN => return Err(FrameError::IpTruncated),
        _ => {}
    }
    let payload_len = usize::from(be16(packet, 4));
    let next_header = packet[6];
    if payload_len == 0 && next_header != ip_protocol::NO_NEXT_HEADER {
        return Err(FrameError::Ipv6Jumbogram);
    }
    let l3_end = l3_offset + IPV6_HEADER_LEN + payload_len;
    if l3_end > frame_len {
        return Err(FrameError::IpLengthBeyondFrame);
    }
    summary.addresses = IpAddresses::V6 {
        source: Ipv6Addr::from(array::<16>(packet, 8)),
        destination: Ipv6Addr::from(array::<16>(packet, 24)),
    };
    let payload_held = payload_len.min(packet.len() - IPV6_HEADER_LEN);
    let payload = &packet[IPV6_HEADER_LEN..IPV6_HEADER_LEN + payload_held];
    let mut walk = ExtensionHeaders::over(next_header, payload);
    let mut walked = 0;
    for header in walk.by_ref() {
        walked += 1;
        if walked > EXTENSION_HEADERS_MAX {
            return Err(FrameError::Ipv6TooManyExtensions);
        }
        if let Some((offset, more)) = header.fragment() {
            summary.fragment = fragment_of(offset != 0, more);
            if offset != 0 {
                break;
            }
        }
        // Byte 3 of a routing header: segments left (RFC 8200 4.4).
        summary.source_routed |= header.kind == ip_protocol::ROUTING && header.bytes[3] != 0;
    }
    if summary.fragment != Fragment::Later && walk.is_cut_off() {
        return Err(FrameError::Ipv6ExtensionTruncated);
    }
    summary.protocol = walk.next_header();
    summary.l4_offset = (l3_offset + IPV6_HEADER_LEN + walk.consumed()) as u16;
    summary.l3_end = l3_end as u32;
    summary.l4_len = (payload_len - walk.consumed()) as u32;
    Ok(())
}

fn fragment_of(has_offset: bool, more: bool) -> Fragment {
    match (has_offset, more) {
        (false, false) => Fragment::Whole,
        (false, true) => Fragment::First,
        (true, _) => Fragment::Later,
    }
}

fn parse_l4(bytes: &[u8], summary: &mut FrameSummary) -> Result<(), FrameError> {
    let whole = summary.fragment == Fragment::Whole;
    let over_ipv6 = matches!(summary.addresses, IpAddresses::V6 { .. });
    let need = match summary.protocol {
        ip_protocol::TCP => TCP_MIN_HEADER_LEN,
        ip_protocol::UDP => UDP_HEADER_LEN,
        ip_protocol::ICMP if !over_ipv6 => ICMP_HEADER_LEN,
        ip_protocol::ICMPV6 if over_ipv6 => ICMP_HEADER_LEN,
        _ => return Ok(()),
    };
    let l4_offset = usize::from(summary.l4_offset);
    // Both the packet's own length and the bytes that are here must reach beyond the header.
    if (summary.l4_len as usize) < need || bytes.len() < l4_offset + need {
        return Err(FrameError::L4Truncated);
    }
    let Some(header) = bytes[l4_offset..].first_chunk::<UDP_HEADER_LEN>() else {
        return Err(FrameError::L4Truncated);
    };
    match summary.protocol {
        ip_protocol::TCP => {
            let header_len = usize::from(bytes[l4_offset + 12] >> 4) * 4;
            let beyond = whole && header_len > summary.l4_len as usize;
            if header_len < TCP_MIN_HEADER_LEN || beyond {
                return Err(FrameError::TcpBadHeaderLength);
            }
        }
        ip_protocol::UDP => {
            let length = u32::from(be16(header, 4));
            let beyond = whole && length > summary.l4_len;
            if length < UDP_HEADER_LEN as u32 || beyond {
                return Err(FrameError::UdpBadLength);
            }
            summary.l4_len = summary.l4_len.min(length);
        }
        _ => {}
    }
    summary.has_l4_header = true;
    if summary.has_ports() {
        summary.source_port = be16(header, 0);
        summary.destination_port = be16(header, 2);
    }
    Ok(())
}
