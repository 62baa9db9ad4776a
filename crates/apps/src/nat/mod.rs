//! `nat`: network address and port translation (NAPT, RFC 3022) of IPv4, both directions.
//!
//! ```text
//!  inside  ── (a, p) → (r, q) ──►  (x, e) → (r, q) ──  outside
//!          ◄─ (r, q) → (a, p) ──  ◄ (r, q) → (x, e) ──
//! ```
//!
//! Each core has its own flows, and ports of every external address x: a range of its own ([`PortPartition`]), or those that
//! it took from all ([`SharedPorts`], with endpoint-independent mapping). What we decided where there is a choice:
//!
//! - A packet to an external address comes from outside, whatever its port; any other packet
//!   comes from inside if its port is an inside one, and is dropped (`no_flow`) if not. So
//!   one-armed benchmark traffic opens flows.
//! - One flow (5-tuple) has one external port, of one number space for all protocols.
//! - RSS is not symmetric: answers reach the core that owns the flow because a steering rule
//!   on the external port sees to it ([`AppKind::steer`]), if they come to a NIC that the
//!   core serves. A packet that comes to another core finds no flow. The NIC brings later
//!   fragments to the core of the first one, if they come after it.
//! - Translated: TCP, UDP, ICMP echo (by identifier), ICMP errors, and fragments:
//!   the first by its ports, later ones after it. Other protocols are dropped
//!   as `protocol`; ARP, IPv6 and everything else as `not_ipv4`; a wrong IPv4 header checksum as `ip_checksum`.
//! - Every packet loses a hop, as behind any router (RFC 3022, section 1), so that a loop ends and
//!   `traceroute` sees us; whose last one it was is dropped (`ttl_expired`) and opens nothing. Ethernet addresses are those of the port that the packet leaves through.
//! - State goes after a silence ([`crate::Timeouts`]); a FIN or RST makes it the closing
//!   one. Dead flows are found when they are looked up, and by a sweep of a few entries
//!   whenever a flow is opened.
//!
//! With [`policy::Mapping::EndpointIndependent`], flows of one inside endpoint share its external endpoint (`mapping.rs`); see
//! docs/nat.md for what RFC 4787, 5382, 5508 and 7857 ask.
//!
//! Left out: application-level gateways.

mod entry;
mod flow;
mod hairpin;
mod icmp;
mod mapping;
mod own;
pub mod policy;
mod waiting;

use nicforge_nic::{ForwardedPort, OwnedPorts, Packet, PortId, PortQueues, PortRule, Steering, Verdict};
use nicforge_options::Owner;
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_wire::headers::{TcpFlags, icmp_type, ip_protocol};
use nicforge_wire::{Fragment, FrameSummary};

use self::flow::{Flows, external_addresses};
use crate::forwardable;
use crate::fragment::Fragments;
use crate::headers::{self, Headers};
use crate::options::ExternalOptions;
use crate::record_route;
use crate::tables::{FlowKey, LookUp, PortPartition, SharedPorts, Side};
use crate::undelivered::Refusals;
use crate::{
    AppConfig, AppError, AppKind, AppShape, Application, Flow, FullTable, NeededAddress, Place, PortMap, SharedTables,
};
use nicforge_wire::rewrite::{self, End};

/// How a NIC, whose queue 0 core `first` of `cores` serves and the others the cores behind it, finds
/// the core that has the flow of a packet from outside.
fn port_rule(config: &AppConfig, shared: &SharedTables, first: usize, cores: usize) -> Result<PortRule, AppError> {
    let first_address = config.read::<ExternalOptions>().external_address.to_bits();
    let Some(ports) = &shared.nat_ports else {
        let ports = PortPartition::new(cores);
        let queues = PortQueues::Ranges { first_port: ports.first_port(first), share: ports.share() };
        return Ok(PortRule { first_address, addresses: external_addresses(config, cores)?, ports: queues });
    };
    let forwards = config.read::<policy::NatOptions>().forwards().into_iter().map(|forward| ForwardedPort {
        protocol: forward.protocol,
        port: forward.external_port,
        inside: (*forward.inside.ip(), forward.inside.port()),
    });
    let owned = OwnedPorts { owners: ports.owners(), first_core: first, forwards: forwards.collect() };
    Ok(PortRule { first_address, addresses: ports.addresses(), ports: PortQueues::Owned(owned) })
}

/// The packet belongs to no flow, and no mapping lets it in.
const NO_FLOW: &str = "no_flow";

/// The NAT on one core.
#[derive(Clone, Debug)]
pub struct Nat {
    ports: PortMap,
    pub(crate) flows: Flows,
    fragments: Fragments,
    refusals: Refusals,
    /// The identification that the NAT assigned last. Each core assigns its own residue class.
    identification: u16,
    cores: u16,
}

/// The address and the identification that the NAT gave a first fragment; later fragments get the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OfFirst {
    address: u32,
    identification: u16,
}

impl OfFirst {
    fn word(self) -> u64 {
        u64::from(self.identification) << 32 | u64::from(self.address)
    }

    fn from_word(word: u64) -> OfFirst {
        OfFirst { address: word as u32, identification: (word >> 32) as u16 }
    }
}

impl Nat {
    /// The tables of the core at `place`.
    ///
    /// # Errors
    /// A setting is out of range, or `shared` was made for another application.
    pub fn allocate(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<Nat, AppError> {
        Ok(Nat {
            ports: config.ports.clone(),
            flows: Flows::allocate(config, place, space, shared.nat_ports.as_ref())?,
            fragments: Fragments::allocate(space, config.timeouts.fragment),
            refusals: Refusals::default(),
            identification: place.core as u16,
            cores: place.cores as u16,
        })
    }

    /// Which side a packet with these addresses comes from, if it came in by a port that is `inside` or not;
    /// `None`: from inside, by a port that is not.
    #[inline]
    fn side(&self, ends: (u32, u32), inside: bool) -> Option<Side> {
        if self.flows.is_external(ends.1) { Some(Side::Outside) } else { inside.then_some(Side::Inside) }
    }

    fn translate<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet) -> Result<Verdict, &'static str> {
        let headers = headers::read_routed(cpu, packet, &self.ports)?;
        let ends = headers.summary.ipv4_words().ok_or(crate::NOT_IPV4)?;
        let arrival = self.ports.get(packet.port).ok_or(crate::NO_SUCH_PORT)?;
        let (out, port) = self.ports.way_out(packet.port).ok_or(crate::NO_SUCH_PORT)?;
        let (macs, address) = ((port.mac, port.next_hop), port.address);
        if self.flows.is_external(ends.0) {
            return Err(forwardable::BAD_SOURCE);
        }
        if arrival.inside && self.flows.is_external(ends.1) {
            let is_whole = headers.summary.fragment == Fragment::Whole;
            if headers.icmp_type == icmp_type::ECHO_REQUEST && is_whole && headers.hops > 0 {
                return Ok(own::answer_echo(cpu, packet, &headers, arrival));
            }
            if self.flows.has_mappings() && arrival.peer != packet.port {
                return self.turn_round(cpu, packet, &headers, ends);
            }
        }
        let side = self.side(ends, arrival.inside).ok_or(NO_FLOW)?;
        if side == Side::Inside && forwardable::is_own(ends.1, &self.ports) {
            return Err(forwardable::OWN_ADDRESS);
        }
        // What comes from outside and belongs to no flow ends here anyway, with its last hop.
        if headers.hops <= 1 && (side == Side::Inside || headers.summary.is_fragment()) {
            return Err(crate::TTL_EXPIRED);
        }
        let mut of_first = None;
        match headers.fragment_of {
            Some(id) if headers.summary.fragment == Fragment::Later => {
                let first = self.fragments.find(cpu, id).map(OfFirst::from_word);
                let first = first.ok_or(crate::FRAGMENT_UNKNOWN)?;
                let frame = cpu.bytes_mut(packet.head.at, headers.window);
                rewrite::replace_end(frame, &headers.summary, end_of(side), first.address, None);
                rewrite::set_identification(frame, usize::from(headers.summary.l3_offset), first.identification);
            }
            first_or_whole => {
                let address = self.translate_flow(cpu, packet, &headers, ends, side)?;
                of_first = first_or_whole.map(|id| (id, address));
            }
        }
        let l3 = usize::from(headers.summary.l3_offset);
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        if side == Side::Inside && headers.summary.fragment != Fragment::Later {
            self.identify(frame, l3);
        }
        let identification = rewrite::get16(frame, l3 + 4);
        rewrite::decrement_hops(frame, l3);
        record_route::record(frame, l3, address);
        rewrite::set_macs(frame, macs.0, macs.1);
        if let Some((id, address)) = of_first {
            self.fragments.remember(cpu, id, OfFirst { address, identification }.word());
        }
        Ok(Verdict::Transmit(out))
    }

    /// Gives a packet from inside that may be in fragments an identification that no other packet from the same external
    /// address has at the time: those of two inside hosts may agree (RFC 6864, section 5.3.1).
    fn identify(&mut self, frame: &mut [u8], l3: usize) {
        if !rewrite::is_atomic(frame, l3) {
            self.identification = self.identification.wrapping_add(self.cores);
            rewrite::set_identification(frame, l3, self.identification);
        }
    }

    /// Translates a packet that says which flow it belongs to; returns the replacing address.
    #[inline]
    fn translate_flow<C: Cpu>(
        &mut self,
        cpu: &mut C,
        packet: &Packet,
        headers: &Headers,
        ends: (u32, u32),
        side: Side,
    ) -> Result<u32, &'static str> {
        let summary = &headers.summary;
        let (source_port, destination_port) = match (summary.protocol, side) {
            (ip_protocol::TCP | ip_protocol::UDP, _) => (summary.source_port, summary.destination_port),
            // Redirects are for hosts of one link, and source quench is obsolete (RFC 5508, section 7; RFC 6633).
            (ip_protocol::ICMP, _) if matches!(headers.icmp_type, icmp_type::REDIRECT | icmp_type::SOURCE_QUENCH) => {
                return Err("icmp_message");
            }
            (ip_protocol::ICMP, _) if icmp_type::is_error(headers.icmp_type) => {
                if headers.hops <= 1 {
                    return Err(crate::TTL_EXPIRED);
                }
                return icmp::translate(cpu, &mut self.flows, packet, headers, side);
            }
            (ip_protocol::ICMP, Side::Inside) if icmp_type::is_query(headers.icmp_type) => (headers.icmp_identifier, 0),
            (ip_protocol::ICMP, Side::Outside) if icmp_type::is_answer(headers.icmp_type) => {
                (0, headers.icmp_identifier)
            }
            (ip_protocol::ICMP, _) => return Err("icmp_message"),
            _ => return Err("protocol"),
        };
        let source = (ends.0, source_port);
        let destination = (ends.1, destination_port);
        let key = FlowKey::new(source, destination, summary.protocol, side);
        let (number, entry) = match self.flows.find(cpu, &key) {
            Some(found) => found,
            None if side == Side::Inside => self.flows.open(cpu, key)?,
            None => self.flows.open_from_outside(cpu, &key)?,
        };
        if headers.hops <= 1 {
            return Err(crate::TTL_EXPIRED);
        }
        self.flows.touch(cpu, number, &entry, headers.tcp_flags);
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        rewrite::replace_end(frame, summary, end_of(side), entry.address, Some(entry.port));
        Ok(entry.address)
    }
}

impl<C: Cpu> Application<C> for Nat {
    /// Sets up port forwards.
    fn start(&mut self, cpu: &mut C) {
        self.flows.start(cpu);
    }

    fn first_look_up(&self, summary: &FrameSummary, port: PortId) -> Option<LookUp> {
        let ends = summary.ipv4_words().filter(|_| summary.has_ports())?;
        let side = self.side(ends, self.ports.get(port)?.inside)?;
        let (source, destination) = ((ends.0, summary.source_port), (ends.1, summary.destination_port));
        Some(self.flows.look_up(&FlowKey::new(source, destination, summary.protocol, side)))
    }

    /// Translates one packet.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        match self.translate(cpu, packet) {
            Ok(verdict) => verdict,
            Err(crate::TTL_EXPIRED) => self.refusals.expired(cpu, packet, &self.ports),
            Err(cause) => Verdict::Drop(cause),
        }
    }

    /// Opens a flow from the inside without a packet, as if one had just arrived; an error is
    /// the name of the drop that the packet would have met.
    fn learn(&mut self, cpu: &mut C, flow: &Flow) -> Result<(), &'static str> {
        let key = FlowKey::of(flow, Side::Inside);
        let found = self.flows.find(cpu, &key);
        let (number, entry) = match found {
            Some(found) => found,
            None => self.flows.open(cpu, key)?,
        };
        self.flows.touch(cpu, number, &entry, TcpFlags(0));
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("flows_opened", self.flows.opened),
            ("flows_expired", self.flows.expired),
            ("flows_reclaimed", self.flows.reclaimed),
        ]
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        let mut gauges = vec![("flows", u64::from(self.flows.len()))];
        gauges.extend(self.flows.port_gauges());
        gauges
    }
}

impl AppKind for Nat {
    const NAME: &'static str = "nat";
    const ABOUT: &'static str = "translates addresses and ports (NAPT), both directions";
    const ROUTER: bool = true;
    type Options = policy::NatOptions;

    fn shape(options: &Self::Options) -> AppShape {
        AppShape {
            holds_fragments: options.fragments.hold_fragments,
            full_table: Some(FullTable::Drops),
            needs_address: Some(NeededAddress::External),
            ..AppShape::default()
        }
    }

    fn addresses() -> Owner {
        Owner::of::<ExternalOptions>("application", Self::NAME, Self::ABOUT)
    }

    fn share(config: &AppConfig, space: &mut AddressSpace) -> SharedTables {
        let by_endpoint = config.read::<policy::NatOptions>().nat_mapping == policy::Mapping::EndpointIndependent;
        // Each core's part refuses wrong addresses, so this one does not.
        let addresses = external_addresses(config, 1).ok().filter(|_| by_endpoint);
        let base = config.read::<ExternalOptions>().external_address.to_bits();
        SharedTables {
            nat_ports: addresses.map(|addresses| SharedPorts::allocate(space, base, addresses)),
            ..SharedTables::default()
        }
    }

    fn steer(
        config: &AppConfig,
        shared: &SharedTables,
        steering: &mut Steering,
        first: usize,
        cores: usize,
    ) -> Result<(), AppError> {
        steering.set_rule(port_rule(config, shared, first, cores)?);
        steering.follow_flows();
        if config.read::<policy::NatOptions>().nat_mapping == policy::Mapping::EndpointIndependent {
            steering.by_source();
        }
        Ok(())
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        Ok(Box::new(Nat::allocate(config, place, space, shared)?))
    }
}

/// Which end of a packet from `side` is the inner one, the one that is replaced.
#[inline]
fn end_of(side: Side) -> End {
    match side {
        Side::Inside => End::Source,
        Side::Outside => End::Destination,
    }
}
