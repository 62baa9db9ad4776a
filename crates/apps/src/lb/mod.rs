//! `lb`: a layer-4 load balancer. Each flow keeps its server; new flows go round robin, or by consistent hashing
//! ([`ServerChoice`]).
//!
//! Flows are found by 5-tuple in a cuckoo table per core. Packets get the server's address
//! and MAC as destination, and lose a hop; ports and source stay. What has no hop left is dropped
//! (`ttl_expired`) and opens no flow, as does a wrong IPv4 header checksum (`ip_checksum`). Where a service address is balanced, answers may come back
//! through us: a packet from a server gets the service address as its source, whatever its flow; else
//! the way back is the network's business. IPv4 packets that are neither TCP nor UDP stick to a server
//! by their address pair. Where a service address is balanced, the first fragment of a packet goes by
//! its ports and later ones go after it; what comes before its first one is counted as
//! `fragment_unknown`. Elsewhere all fragments are dropped, counted as `fragment`.
//!
//! An ICMP error goes to the server of the flow that it quotes, which finds its own packet in it, and
//! opens none: a flow that this core does not have is counted as `icmp_error_no_flow`. A server's error
//! quotes to its client what the client sent. RSS would bring errors to any core; the NIC is told to bring
//! them to that of their flow ([`AppKind::steer`]).

mod choice;
mod servers;

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use nicforge_nic::{Packet, PortId, Steering, Verdict};
use nicforge_options::Owner;
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::Time;
use nicforge_wire::headers::{MacAddress, icmp_type, ip_protocol};
use nicforge_wire::{Fragment, FrameSummary};

use crate::fragment::Fragments;
use crate::headers::{self, Headers};
use crate::options::{LbOptions, ServerChoice, ServiceOptions};
use crate::quoted::{self, Quoted};
use crate::record_route;
use crate::tables::{Cuckoo, Entry, FlowKey, LookUp, Maglev, Side};
use crate::undelivered::Refusals;
use crate::{
    AppConfig, AppError, AppKind, AppShape, Application, Flow, FullTable, NeededAddress, Place, PortMap, SharedTables,
};
use nicforge_wire::rewrite::{self, End};

use choice::Choice;
pub use servers::{Servers, State, read_servers};

/// A flow and its server, in one line.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct LbEntry {
    key: FlowKey,
    seen: u64,
    server: u32,
    in_use: u32,
    unused: [u64; 4],
}

/// Where `seen` is in the entry.
const SEEN: u64 = 16;

impl Entry for LbEntry {
    type Key = FlowKey;

    #[inline]
    fn key(&self) -> FlowKey {
        self.key
    }

    #[inline]
    fn hash(key: &FlowKey) -> u64 {
        key.hash()
    }

    #[inline]
    fn in_use(&self) -> bool {
        self.in_use != 0
    }
}

/// A server, 16 bytes, four to a line.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Server {
    address: u32,
    mac: [u8; 6],
    unused: [u8; 6],
}

/// The load balancer on one core.
#[derive(Clone, Debug)]
pub struct Lb {
    ports: PortMap,
    service: Option<u32>,
    pub(crate) table: Cuckoo<LbEntry>,
    servers: Addr,
    fragments: Option<Fragments>,
    server_base: u32,
    server_count: u32,
    choice: Choice,
    timeout: Time,
    /// The file's states, which all cores share, and this core's copy of them with its version.
    watched: Servers,
    version: u64,
    states: Arc<[State]>,
    expired: u64,
    opened: u64,
    moved: u64,
    refusals: Refusals,
}

/// Entries that are looked at for expiry when a flow is opened: more than one, so that the
/// sweep overtakes whatever rate of new flows there is.
const SWEEP: usize = 2;

impl Lb {
    fn allocate(config: &AppConfig, core: usize, cores: usize, space: &mut AddressSpace) -> Result<Lb, AppError> {
        let LbOptions { servers: server_count, lb_choice, .. } = config.read();
        let ServiceOptions { service, server_address } = config.read();
        let table = Cuckoo::allocate(space, config.entries_per_core(cores, 1)?);
        let servers = space.data(u64::from(server_count) * 16, 64);
        let timeout = config.timeouts.fragment;
        Ok(Lb {
            ports: config.ports.clone(),
            service: service.map(Ipv4Addr::to_bits),
            table,
            servers,
            fragments: service.is_some().then(|| Fragments::allocate(space, timeout)),
            server_base: server_address.to_bits(),
            server_count,
            choice: match lb_choice {
                // Cores begin at different servers, or the first ones would get all short runs.
                ServerChoice::RoundRobin => Choice::RoundRobin(core as u32 % server_count, 0),
                ServerChoice::Consistent => Choice::Consistent(Maglev::allocate(space)),
            },
            timeout: config.timeouts.balanced,
            watched: config.servers.clone(),
            version: 0,
            states: Arc::new([]),
            expired: 0,
            opened: 0,
            moved: 0,
            refusals: Refusals::default(),
        })
    }

    fn server<C: Cpu>(&self, cpu: &mut C, number: u32) -> Server {
        cpu.load(self.servers + u64::from(number) * 16)
    }

    #[inline]
    fn send_to<C: Cpu>(&self, cpu: &mut C, packet: &Packet, headers: &Headers, server: Server) -> Verdict {
        let Some((out, port)) = self.ports.way_out(packet.port) else {
            return Verdict::Drop(crate::NO_SUCH_PORT);
        };
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        let end = End::Destination;
        rewrite::replace_end(frame, &headers.summary, end, server.address, None);
        self.leave(frame, headers, out);
        rewrite::set_macs(frame, port.mac, MacAddress(server.mac));
        Verdict::Transmit(out)
    }

    /// The packet leaves by port `out`, as behind any router.
    #[inline]
    fn leave(&self, frame: &mut [u8], headers: &Headers, out: PortId) {
        let l3 = usize::from(headers.summary.l3_offset);
        rewrite::decrement_hops(frame, l3);
        record_route::record(frame, l3, self.ports.get(out).and_then(|port| port.address));
    }

    /// An error about something that a server sent, which the sender of the error took for the
    /// service's.
    fn error<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet, headers: &Headers) -> Result<Verdict, &'static str> {
        let quoted = Quoted::checked(cpu, packet, headers)?;
        // What has no ports is known by its addresses.
        let end = |(address, port)| match quoted.protocol {
            ip_protocol::ICMP => (address, 0),
            _ => (address, port),
        };
        let (from, to) = (end(quoted.destination), end(quoted.source));
        let key = FlowKey::new(from, to, quoted.protocol, Side::Outside);
        let now = cpu.now();
        let known = self.table.find(cpu, &key);
        let known = known.filter(|(_, entry)| !self.is_expired(entry, now));
        let (_, entry) = known.ok_or(quoted::NO_FLOW)?;
        let server = self.server(cpu, entry.server);
        quoted.replace(cpu, packet, End::Source, server.address, None);
        Ok(self.send_to(cpu, packet, headers, server))
    }

    fn is_server(&self, address: u32) -> bool {
        address.wrapping_sub(self.server_base) < self.server_count
    }

    /// What a server sends comes from the service, as far as clients see.
    fn answer<C: Cpu>(&self, cpu: &mut C, packet: &Packet, headers: &Headers, service: u32) -> Verdict {
        let Some((out, port)) = self.ports.way_out(packet.port) else {
            return Verdict::Drop(crate::NO_SUCH_PORT);
        };
        if icmp_type::is_error(headers.icmp_type)
            && let Some(quoted) = Quoted::read(cpu, packet, headers)
            && self.is_server(quoted.destination.0)
        {
            quoted.replace(cpu, packet, End::Destination, service, None);
        }
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        rewrite::replace_end(frame, &headers.summary, End::Source, service, None);
        self.leave(frame, headers, out);
        rewrite::set_macs(frame, port.mac, port.next_hop);
        Verdict::Transmit(out)
    }

    fn server_of<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey) -> Result<u32, &'static str> {
        let now = cpu.now();
        if let Some((number, entry)) = self.table.find(cpu, &key) {
            let (expired, down) = (self.is_expired(&entry, now), self.is_down(entry.server));
            if !expired && !down {
                cpu.store(self.table.at(number) + SEEN, now.as_ps());
                return Ok(entry.server);
            }
            self.table.remove(cpu, number);
            self.expired += u64::from(expired);
            self.moved += u64::from(!expired);
        }
        for _ in 0..SWEEP {
            if let Some((number, entry)) = self.table.sweep(cpu)
                && self.is_expired(&entry, now)
            {
                self.table.remove(cpu, number);
                self.expired += 1;
            }
        }
        let server = self.choose(cpu, &key)?;
        let entry = LbEntry { key, seen: now.as_ps(), server, in_use: 1, unused: [0; 4] };
        self.table.insert(cpu, &entry).map_err(|_| crate::TABLE_FULL)?;
        self.count(server);
        self.opened += 1;
        Ok(server)
    }

    fn server_of_fragment<C: Cpu>(
        &mut self,
        cpu: &mut C,
        headers: &Headers,
        key: FlowKey,
    ) -> Result<u32, &'static str> {
        let fragments = self.fragments.ok_or(crate::FRAGMENT)?;
        let of_packet = headers.fragment_of.ok_or(crate::FRAGMENT)?;
        if headers.summary.fragment == Fragment::Later {
            let known = fragments.find(cpu, of_packet);
            return known.map(|server| server as u32).ok_or(crate::FRAGMENT_UNKNOWN);
        }
        let server = self.server_of(cpu, key)?;
        fragments.remember(cpu, of_packet, u64::from(server));
        Ok(server)
    }

    fn is_expired(&self, entry: &LbEntry, now: Time) -> bool {
        now.saturating_sub(Time::from_ps(entry.seen)) >= self.timeout
    }
}

impl<C: Cpu> Application<C> for Lb {
    fn first_look_up(&self, summary: &FrameSummary, _port: PortId) -> Option<LookUp> {
        Some(self.table.look_up(&flow_key(summary)?))
    }

    /// Writes the servers.
    fn start(&mut self, cpu: &mut C) {
        for number in 0..self.server_count {
            let [.., high, low] = number.to_be_bytes();
            let server =
                Server { address: self.server_base.wrapping_add(number), mac: [2, 0, 0, 1, high, low], unused: [0; 6] };
            cpu.store(self.servers + u64::from(number) * 16, server);
        }
        if let Choice::Consistent(table) = &self.choice {
            table.fill(cpu, &vec![1; self.server_count as usize]);
        }
        if self.watched.version() != self.version {
            self.look_at_servers(cpu);
        }
    }

    /// Balances one packet.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let headers = match headers::read_routed(cpu, packet, &self.ports) {
            Ok(headers) => headers,
            Err(cause) => return Verdict::Drop(cause),
        };
        let Some(key) = flow_key(&headers.summary) else {
            return Verdict::Drop(crate::NOT_IPV4);
        };
        if headers.hops <= 1 {
            return self.refusals.expired(cpu, packet, &self.ports);
        }
        if let Some(service) = self.service.filter(|_| self.is_server(key.source().0)) {
            return self.answer(cpu, packet, &headers, service);
        }
        if matches!(headers.icmp_type, icmp_type::REDIRECT | icmp_type::SOURCE_QUENCH) {
            return Verdict::Drop("icmp_message");
        }
        if icmp_type::is_error(headers.icmp_type) {
            let sent = self.error(cpu, packet, &headers);
            return sent.unwrap_or_else(Verdict::Drop);
        }
        if self.service.is_some_and(|service| service != key.destination().0) {
            return Verdict::Drop(crate::NOT_THE_SERVICE);
        }
        if self.watched.version() != self.version {
            self.look_at_servers(cpu);
        }
        let server = match headers.summary.fragment {
            Fragment::Whole => self.server_of(cpu, key),
            _ => self.server_of_fragment(cpu, &headers, key),
        };
        let server = match server {
            Ok(server) => server,
            Err(cause) => return Verdict::Drop(cause),
        };
        let server = self.server(cpu, server);
        self.send_to(cpu, packet, &headers, server)
    }

    /// Puts a flow into the table without a packet, as if one had just arrived; an error is
    /// the name of the drop that the packet would have met.
    fn learn(&mut self, cpu: &mut C, flow: &Flow) -> Result<(), &'static str> {
        self.server_of(cpu, FlowKey::of(flow, Side::Outside)).map(|_| ())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("flows_opened", self.opened), ("flows_expired", self.expired), ("flows_moved", self.moved)]
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        let up = self.states.iter().filter(|state| !state.down).count();
        let wrong = u64::from(self.watched.is_wrong());
        let up = if self.states.is_empty() { self.server_count as usize } else { up };
        vec![("flows", u64::from(self.table.len())), ("servers_up", up as u64), ("servers_file_wrong", wrong)]
    }
}

impl AppKind for Lb {
    const NAME: &'static str = "lb";
    const ABOUT: &'static str = "balances flows over servers, each flow always to the same";
    const ROUTER: bool = true;
    type Options = crate::options::LbOptions;

    fn shape(options: &Self::Options) -> AppShape {
        AppShape {
            holds_fragments: options.fragments.hold_fragments,
            full_table: Some(FullTable::Drops),
            needs_address: Some(NeededAddress::Server),
            ..AppShape::default()
        }
    }

    fn addresses() -> Owner {
        Owner::of::<ServiceOptions>("application", Self::NAME, Self::ABOUT)
    }

    fn steer(
        _config: &AppConfig,
        _shared: &SharedTables,
        steering: &mut Steering,
        _first: usize,
        _cores: usize,
    ) -> Result<(), AppError> {
        steering.follow_flows();
        Ok(())
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        Ok(Box::new(Lb::allocate(config, place.core, place.cores, space)?))
    }
}

#[inline]
fn flow_key(summary: &FrameSummary) -> Option<FlowKey> {
    let (source, destination) = summary.ipv4_words()?;
    Some(FlowKey::new(
        (source, summary.source_port),
        (destination, summary.destination_port),
        summary.protocol,
        Side::Outside,
    ))
}
