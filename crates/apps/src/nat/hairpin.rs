//! Packets between two inside hosts, which know each other by their external endpoints.

use nicforge_nic::{Packet, Verdict};
use nicforge_platform::Cpu;
use nicforge_wire::Fragment;
use nicforge_wire::headers::icmp_type;
use nicforge_wire::rewrite::{self, End};

use super::{NO_FLOW, Nat};
use crate::headers::Headers;
use crate::quoted::{self, Quoted};
use crate::tables::{FlowKey, Side};

impl Nat {
    /// Translates a packet between two inside hosts, which know each other by their external endpoints (hairpinning,
    /// RFC 4787, REQ-9): both ends are replaced, as if it had gone out and come back in.
    pub(super) fn turn_round<C: Cpu>(
        &mut self,
        cpu: &mut C,
        packet: &Packet,
        headers: &Headers,
        ends: (u32, u32),
    ) -> Result<Verdict, &'static str> {
        let summary = &headers.summary;
        if icmp_type::is_error(headers.icmp_type) && summary.fragment == Fragment::Whole {
            return self.turn_error_round(cpu, packet, headers);
        }
        if !summary.has_ports() || headers.fragment_of.is_some() {
            return Err(NO_FLOW);
        }
        if headers.hops <= 1 {
            return Err(crate::TTL_EXPIRED);
        }
        let (source, destination) = ((ends.0, summary.source_port), (ends.1, summary.destination_port));
        let port = *self.ports.get(packet.port).ok_or(crate::NO_SUCH_PORT)?;
        let out = FlowKey::new(source, destination, summary.protocol, Side::Inside);
        let (number, outward) = match self.flows.find(cpu, &out) {
            Some(found) => found,
            None => self.flows.open(cpu, out)?,
        };
        self.flows.touch(cpu, number, &outward, headers.tcp_flags);
        let back = FlowKey::new((outward.address, outward.port), destination, summary.protocol, Side::Outside);
        let (number, inward) = match self.flows.find(cpu, &back) {
            Some(found) => found,
            None => self.flows.open_from_outside(cpu, &back)?,
        };
        self.flows.touch(cpu, number, &inward, headers.tcp_flags);
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        rewrite::replace_end(frame, summary, End::Source, outward.address, Some(outward.port));
        rewrite::replace_end(frame, summary, End::Destination, inward.address, Some(inward.port));
        rewrite::decrement_hops(frame, usize::from(summary.l3_offset));
        rewrite::set_macs(frame, port.mac, port.next_hop);
        Ok(Verdict::Transmit(packet.port))
    }

    /// The same of an error about such a packet (RFC 5508, section 4.2): both ends of what is quoted are put back, as its
    /// sender knows them.
    fn turn_error_round<C: Cpu>(
        &mut self,
        cpu: &mut C,
        packet: &Packet,
        headers: &Headers,
    ) -> Result<Verdict, &'static str> {
        if headers.hops <= 1 {
            return Err(crate::TTL_EXPIRED);
        }
        let port = *self.ports.get(packet.port).ok_or(crate::NO_SUCH_PORT)?;
        let quoted = Quoted::checked(cpu, packet, headers)?;
        // The packet went to the host that the error comes from, from the other's external endpoint.
        let (host, other) = (quoted.destination, quoted.source);
        let own = FlowKey::new(host, other, quoted.protocol, Side::Inside);
        let (_, outward) = self.flows.find(cpu, &own).ok_or(quoted::NO_FLOW)?;
        let external = (outward.address, outward.port);
        let back = FlowKey::new(external, other, quoted.protocol, Side::Outside);
        let (_, inward) = self.flows.find(cpu, &back).ok_or(quoted::NO_FLOW)?;
        quoted.replace(cpu, packet, End::Source, inward.address, Some(inward.port));
        let quoted = Quoted::read(cpu, packet, headers).ok_or(quoted::MALFORMED)?;
        quoted.replace(cpu, packet, End::Destination, outward.address, Some(outward.port));
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        let l3 = usize::from(headers.summary.l3_offset);
        rewrite::replace_address(&mut frame[l3..], End::Source, outward.address);
        rewrite::replace_address(&mut frame[l3..], End::Destination, inward.address);
        rewrite::decrement_hops(frame, l3);
        rewrite::set_macs(frame, port.mac, port.next_hop);
        Ok(Verdict::Transmit(packet.port))
    }
}
