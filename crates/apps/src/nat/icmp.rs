//! ICMP errors through a NAT (RFC 5508, section 4; RFC 3022, section 4.3).
//!
//! ```text
//!  IPv4 header │ ICMP header │ quoted IPv4 header │ first bytes of the quoted L4 header …
//!  ▲ address     ▲ checksum    ▲ address, checksum  ▲ port, checksum if it is there
//! ```
//!
//! The quoted packet went the other way: its inner end is the error's outer one. What is
//! quoted is translated back so that the receiver knows its own flow in it. An error never
//! opens a flow and never keeps one alive.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::checksum::update16;
use nicforge_wire::headers::{ICMP_HEADER_LEN, Ipv4View, icmp_type, ip_protocol};

use super::flow::{Flows, NatEntry};
use crate::headers::Headers;
use crate::tables::{FlowKey, Side};
use nicforge_wire::rewrite::{self, End};

/// Whether a message quotes the packet that caused it.
#[inline]
pub fn is_error(message: u8) -> bool {
    matches!(
        message,
        icmp_type::UNREACHABLE
            | icmp_type::SOURCE_QUENCH
            | icmp_type::REDIRECT
            | icmp_type::TIME_EXCEEDED
            | icmp_type::PARAMETER_PROBLEM
    )
}

/// What is quoted: where it is in the frame, and the flow that it belongs to, as that flow's
/// packets arrive from the side of the error.
struct Quoted {
    l3: usize,
    l4: usize,
    /// End of what there is of it.
    end: usize,
    key: FlowKey,
}

/// The most that is read: quoted headers, with IPv4 options, as far as the TCP checksum.
const QUOTED_MAX: usize = 60 + 18;

/// Translates an ICMP error that came from `side`; returns the address that its own header
/// got. Errors are names of drops.
pub fn translate<C: Cpu>(
    cpu: &mut C,
    flows: &mut Flows,
    packet: &Packet,
    headers: &Headers,
    side: Side,
) -> Result<u32, &'static str> {
    let summary = &headers.summary;
    let message = usize::from(summary.l4_offset);
    let end =
        (summary.l3_end.min(packet.head.len) as usize).min(message + ICMP_HEADER_LEN + QUOTED_MAX);
    let bytes = cpu.bytes(packet.head.at, end);
    let quoted = read(bytes, message + ICMP_HEADER_LEN, side).ok_or("icmp_error_malformed")?;
    let (_, entry) = flows.find(cpu, &quoted.key).ok_or("icmp_error_no_flow")?;
    let outer = match side {
        Side::Inside => End::Source,
        Side::Outside => End::Destination,
    };
    let frame = cpu.bytes_mut(packet.head.at, end);
    let l3 = usize::from(summary.l3_offset);
    rewrite::replace_address(&mut frame[l3..], outer, entry.address);
    replace_quoted(frame, message, &quoted, &entry, side);
    Ok(entry.address)
}

fn read(bytes: &[u8], l3: usize, side: Side) -> Option<Quoted> {
    let ip = Ipv4View::new(bytes.get(l3..)?).ok()?;
    if ip.fragment_offset() != 0 {
        return None;
    }
    let l4 = l3 + ip.header_len();
    // At least the 8 bytes that RFC 792 asks for.
    let segment = bytes.get(l4..l4 + 8)?;
    let (source_port, destination_port) = match (ip.protocol(), side) {
        (ip_protocol::TCP | ip_protocol::UDP, _) => {
            (rewrite::get16(segment, 0), rewrite::get16(segment, 2))
        }
        // An echo's identifier is the port of its inner end.
        (ip_protocol::ICMP, Side::Outside) if segment[0] == icmp_type::ECHO_REQUEST => {
            (rewrite::get16(segment, 4), 0)
        }
        (ip_protocol::ICMP, Side::Inside) if segment[0] == icmp_type::ECHO_REPLY => {
            (0, rewrite::get16(segment, 4))
        }
        _ => return None,
    };
    let source = (ip.source().to_bits(), source_port);
    let destination = (ip.destination().to_bits(), destination_port);
    Some(Quoted {
        l3,
        l4,
        end: bytes.len(),
        key: FlowKey::new(destination, source, ip.protocol(), side),
    })
}

/// Replaces the inner end of what is quoted, and makes the ICMP checksum follow each word.
fn replace_quoted(frame: &mut [u8], message: usize, quoted: &Quoted, entry: &NatEntry, side: Side) {
    // A packet from outside came back from the inner network's destination, and the reverse.
    let end = match side {
        Side::Inside => End::Destination,
        Side::Outside => End::Source,
    };
    let protocol = quoted.key.protocol();
    let address_at = quoted.l3 + if end == End::Source { 12 } else { 16 };
    let port_at = quoted.l4 + rewrite::port_offset(protocol, end);
    let l4_checksum_at = rewrite::checksum_offset(protocol)
        .map(|offset| quoted.l4 + offset)
        .filter(|at| at + 2 <= quoted.end);
    let words = [
        Some(quoted.l3 + 10),
        Some(address_at),
        Some(address_at + 2),
        Some(port_at),
        l4_checksum_at,
    ];
    let before = words.map(|at| at.map(|at| rewrite::get16(frame, at)));
    let old = rewrite::replace_address(&mut frame[quoted.l3..quoted.end], end, entry.address);
    let segment = &mut frame[quoted.l4..quoted.end];
    let change = (old, entry.address);
    rewrite::replace_l4(segment, protocol, end, change, Some(entry.port));
    let mut checksum = rewrite::get16(frame, message + 2);
    for (at, before) in words.into_iter().zip(before) {
        if let (Some(at), Some(before)) = (at, before) {
            checksum = update16(checksum, before, rewrite::get16(frame, at));
        }
    }
    rewrite::put16(frame, message + 2, checksum);
}
