//! `l3fwd`: an IPv4 and IPv6 router. Longest-prefix match, one hop less, new Ethernet
//! addresses.
//!
//! Packets whose hops are used up are dropped; the ICMP time-exceeded message that a full
//! router answers with is left out, and so are the options that address routers.

use nicforge_nic::{Packet, PortId, Verdict};
use nicforge_platform::Cpu;
use nicforge_wire::IpAddresses;

use crate::headers::{self, Headers};
use crate::rewrite;
use crate::shared::Routing;
use crate::{Egress, PortMap};

/// The router; its tables are shared by all cores.
#[derive(Clone, Debug)]
pub struct L3Fwd {
    pub(crate) ports: PortMap,
    pub(crate) egress: Egress,
    pub(crate) routing: Routing,
    pub(crate) fills: bool,
}

impl L3Fwd {
    /// Core 0 writes the routes.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        if self.fills {
            self.routing.fill(cpu);
        }
    }

    /// Routes one packet.
    pub fn packet<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let headers = match headers::read(cpu, packet) {
            Ok(headers) => headers,
            Err(error) => return Verdict::Drop(error.name()),
        };
        if headers.summary.is_ip() && headers.hops <= 1 {
            return Verdict::Drop("ttl_expired");
        }
        let out = match route(&self.routing, cpu, &headers) {
            Ok(hop) => out_port(&self.ports, self.egress, packet, hop),
            Err(cause) => return Verdict::Drop(cause),
        };
        let Some(port) = self.ports.get(out) else {
            return Verdict::Drop(crate::NO_SUCH_PORT);
        };
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        rewrite::decrement_hops(frame, usize::from(headers.summary.l3_offset));
        rewrite::set_macs(frame, port.mac, port.next_hop);
        Verdict::Transmit(out)
    }
}

/// Looks the destination up; an error is the name of a drop.
#[inline]
pub(crate) fn route<C: Cpu>(
    routing: &Routing,
    cpu: &mut C,
    headers: &Headers,
) -> Result<u8, &'static str> {
    let hop = match headers.summary.addresses {
        IpAddresses::V4 { destination, .. } => routing.find4(cpu, destination.to_bits()),
        IpAddresses::V6 { destination, .. } => routing.find6(cpu, destination.to_bits()),
        IpAddresses::None => return Err("not_ip"),
    };
    hop.ok_or("no_route")
}

/// Where a routed packet leaves.
#[inline]
pub(crate) fn out_port(ports: &PortMap, egress: Egress, packet: &Packet, hop: u8) -> PortId {
    match egress {
        Egress::Route => PortId(hop),
        Egress::Peer => ports.get(packet.port).map_or(packet.port, |port| port.peer),
    }
}
