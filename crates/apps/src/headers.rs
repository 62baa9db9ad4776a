//! Reading a packet's headers: one cache line, and the next ones only if headers reach there.

use nicforge_nic::{Packet, RxFlags};
use nicforge_platform::Cpu;
use nicforge_units::CACHE_LINE_BYTES;
use nicforge_wire::headers::{MacAddress, TcpFlags, ip_protocol};
use nicforge_wire::{FrameError, FrameSummary, IpAddresses, PacketId, parse_headers};

use crate::{PortMap, forwardable};

/// What applications need to know of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// The hardware address that the frame is for.
    pub to: MacAddress,
    /// Where everything is.
    pub summary: FrameSummary,
    /// How many bytes from the frame's beginning were read: all headers lie in them, except
    /// the options of TCP.
    pub window: usize,
    /// Time to live or hop limit; 0 when not IP.
    pub hops: u8,
    /// Which packet it is a fragment of; `None` when it is none of IPv4.
    pub fragment_of: Option<PacketId>,
    /// Bytes of the TCP, UDP or ICMP header with options; 0 when there is none.
    pub l4_header_len: usize,
    /// TCP flags; none when not TCP.
    pub tcp_flags: TcpFlags,
    /// ICMP message type; 0 when not ICMP.
    pub icmp_type: u8,
    /// ICMP echo identifier; meaningless for other messages.
    pub icmp_identifier: u16,
}

/// Ethernet, IPv4 and UDP headers: with fewer bytes there is no use in trying.
const LEAST_HEADERS: usize = 14 + 20 + 8;

/// As [`read_checked`], for a router with `ports`: it drops what no router forwards (`forwardable.rs`).
#[inline(always)]
pub fn read_routed<C: Cpu>(cpu: &mut C, packet: &Packet, ports: &PortMap) -> Result<Headers, &'static str> {
    let headers = read_checked(cpu, packet)?;
    forwardable::check(packet, &headers, ports)?;
    Ok(headers)
}

/// As [`read`], for applications that forward by IP header: they drop packets whose header checksum is wrong (RFC 1812,
/// section 5.2.2). The NIC has verified it.
#[inline(always)]
pub fn read_checked<C: Cpu>(cpu: &mut C, packet: &Packet) -> Result<Headers, &'static str> {
    if packet.flags.contains(RxFlags::L3_BAD) {
        return Err(crate::IP_CHECKSUM);
    }
    read(cpu, packet)
}

/// Reads the headers through `cpu`. An error is the name of a drop: the frame is malformed, or its
/// headers do not lie in the packet's first part.
// Always inlined: a call would copy the result once more.
#[inline(always)]
pub fn read<C: Cpu>(cpu: &mut C, packet: &Packet) -> Result<Headers, &'static str> {
    let held = packet.head.len as usize;
    let frame_len = packet.len() as usize;
    // To the end of the first line; of the second, if the frame begins late in the first.
    let line = (CACHE_LINE_BYTES - packet.head.at.0 % CACHE_LINE_BYTES) as usize;
    let lines = if line < LEAST_HEADERS { line + CACHE_LINE_BYTES as usize } else { line };
    let mut window = lines.min(held);
    loop {
        let bytes = cpu.bytes(packet.head.at, window);
        match parse_headers(bytes, frame_len) {
            Ok(summary) => return Ok(details(bytes, summary)),
            Err(error) if window == held => return Err(cause_of(error, packet)),
            // Perhaps only because the headers go on in the next line.
            Err(_) => window = (window * 2).min(held),
        }
    }
}

/// The name of the drop of a packet whose first part cannot be parsed. What is short only because the rest
/// lies in a second part, as the split is within the headers, is no malformed frame.
#[cold]
pub fn cause_of(error: FrameError, packet: &Packet) -> &'static str {
    match error {
        FrameError::EthernetTruncated
        | FrameError::VlanTruncated
        | FrameError::IpTruncated
        | FrameError::Ipv6ExtensionTruncated
        | FrameError::L4Truncated
            if packet.rest.len > 0 =>
        {
            crate::HEADERS_SPLIT
        }
        _ => error.name(),
    }
}

#[inline(always)]
fn details(bytes: &[u8], summary: FrameSummary) -> Headers {
    let l3 = usize::from(summary.l3_offset);
    let l4 = usize::from(summary.l4_offset);
    let mut headers = Headers {
        // A frame that could be parsed has an Ethernet header.
        to: MacAddress(bytes.first_chunk().copied().unwrap_or_default()),
        summary,
        window: bytes.len(),
        hops: 0,
        fragment_of: None,
        l4_header_len: 0,
        tcp_flags: TcpFlags(0),
        icmp_type: 0,
        icmp_identifier: 0,
    };
    // `parse_headers` has checked that these headers are within `bytes`.
    match summary.addresses {
        IpAddresses::None => {}
        IpAddresses::V4 { .. } => {
            headers.hops = bytes[l3 + 8];
            if summary.is_fragment() {
                headers.fragment_of = PacketId::of(bytes, &summary);
            }
        }
        IpAddresses::V6 { .. } => headers.hops = bytes[l3 + 7],
    }
    if summary.has_l4_header {
        headers.l4_header_len = 8;
        match summary.protocol {
            ip_protocol::TCP => {
                headers.l4_header_len = usize::from(bytes[l4 + 12] >> 4) * 4;
                headers.tcp_flags = TcpFlags(bytes[l4 + 13]);
            }
            ip_protocol::ICMP | ip_protocol::ICMPV6 => {
                headers.icmp_type = bytes[l4];
                headers.icmp_identifier = u16::from_be_bytes([bytes[l4 + 4], bytes[l4 + 5]]);
            }
            _ => {}
        }
    }
    headers
}
