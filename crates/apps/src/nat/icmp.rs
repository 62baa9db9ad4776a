//! ICMP errors through a NAT (RFC 5508, section 4).
//!
//! The quoted packet went the other way: its inner end is the error's outer one. An error never
//! opens a flow and never keeps one alive. Errors with a wrong checksum, and errors that quote an IP header with a wrong
//! one, are dropped (REQ-3).

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::rewrite::{self, End};

use super::end_of;
use super::flow::Flows;
use crate::headers::Headers;
use crate::quoted::{NO_FLOW, Quoted};
use crate::tables::{FlowKey, Side};

/// Translates an ICMP error that came from `side`; returns the address that its own header
/// got. Errors are names of drops.
pub fn translate<C: Cpu>(
    cpu: &mut C,
    flows: &mut Flows,
    packet: &Packet,
    headers: &Headers,
    side: Side,
) -> Result<u32, &'static str> {
    let quoted = Quoted::checked(cpu, packet, headers)?;
    let key = FlowKey::new(quoted.destination, quoted.source, quoted.protocol, side);
    let (_, entry) = flows.find(cpu, &key).ok_or(NO_FLOW)?;
    let frame = cpu.bytes_mut(packet.head.at, headers.window);
    let l3 = usize::from(headers.summary.l3_offset);
    rewrite::replace_address(&mut frame[l3..], end_of(side), entry.address);
    let inner = match end_of(side) {
        End::Source => End::Destination,
        End::Destination => End::Source,
    };
    quoted.replace(cpu, packet, inner, entry.address, Some(entry.port));
    Ok(entry.address)
}
