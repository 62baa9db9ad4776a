//! The flows of one core: two table entries and one external port each.

mod giving_way;
mod shared;

use bytemuck::Zeroable;
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_units::Time;
use nicforge_wire::headers::{TcpFlags, ip_protocol};

use super::NO_FLOW;
use super::entry::{CLOSING, IN_USE, NatEntry, PEER, SEEN, SHARED, STATE};
use super::mapping::{Endpoint, Mappings, NO_PORT};
use super::policy::{Mapping, NatOptions};
use super::waiting::Waiting;
use crate::options::ExternalOptions;
use crate::tables::{Cuckoo, External, FlowKey, LookUp, PortPartition, PortPool, SharedPorts, Side};
use crate::{AppConfig, AppError, Place, Timeouts};

/// Entries that are looked at for expiry when a flow is opened. A flow takes two, so this
/// many let the sweep overtake whatever rate of new flows there is.
const SWEEP: usize = 4;

/// Flows that may give way to one new flow: one that ends may leave its port to others of its endpoint.
const GIVING_WAY: usize = 8;

/// Where the external ports of flows come from.
#[derive(Clone, Debug)]
enum Ports {
    /// Each flow has its own.
    PerFlow(PortPool),
    /// Flows of one inside endpoint share one; flows that give way when there is no room for others.
    ByEndpoint(Box<Mappings>, Waiting),
}

/// The flow table and the external ports of one core.
#[derive(Clone, Debug)]
pub struct Flows {
    pub(crate) table: Cuckoo<NatEntry>,
    ports: Ports,
    timeouts: Timeouts,
    /// Whether flows to different destinations may have one external port.
    shares_ports: bool,
    /// An entry seen less than this long ago is alive, whatever it is.
    shortest: Time,
    pool: std::ops::Range<u64>,
    pub(super) opened: u64,
    pub(super) expired: u64,
    /// Flows that ended early, to make room for others.
    pub(super) reclaimed: u64,
}

/// How many external addresses a NAT on `cores` cores has.
pub(super) fn external_addresses(config: &AppConfig, cores: usize) -> Result<u32, AppError> {
    let flows = config.entries_per_core(cores, 2)? / 2;
    let enough = flows.div_ceil(PortPartition::new(cores).share());
    let ExternalOptions { external_address, count } = config.read();
    let addresses = count.external_addresses.unwrap_or(enough);
    let base = u64::from(external_address.to_bits());
    if !(1..=1 << 16).contains(&addresses) || base + u64::from(addresses) > 1 << 32 {
        return Err(AppError::OutOfRange {
            setting: "external_addresses",
            value: u64::from(addresses),
            range: "from 1 to 65536, and end within IPv4",
        });
    }
    Ok(addresses)
}

impl Flows {
    /// Takes address space for the share of the core at `place`. Where flows of an endpoint share a port, all cores take it
    /// from `ports`.
    pub fn allocate(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        ports: Option<&SharedPorts>,
    ) -> Result<Flows, AppError> {
        let Place { core, cores } = place;
        let entries = config.entries_per_core(cores, 2)?;
        let own = external_addresses(config, cores)?;
        let base = config.read::<ExternalOptions>().external_address.to_bits();
        let options: NatOptions = config.read();
        let timeouts = options.timeouts(config.timeouts);
        let (tcp, others) = (timeouts.tcp_transitory.min(timeouts.tcp_closing), timeouts.udp.min(timeouts.icmp));
        let table = Cuckoo::allocate(space, entries);
        let (addresses, ports) = match options.nat_mapping {
            Mapping::PerFlow => {
                let pool = PortPool::allocate(space, PortPartition::new(cores), core, base, own);
                (own, Ports::PerFlow(pool))
            }
            Mapping::EndpointIndependent => {
                let ports = ports.ok_or(AppError::MissingTable { app: "nat", table: "external ports" })?;
                let mappings = Mappings::allocate(config, place, ports, entries / 2, space);
                (ports.addresses(), Ports::ByEndpoint(Box::new(mappings), Waiting::default()))
            }
        };
        Ok(Flows {
            table,
            ports,
            timeouts,
            shares_ports: options.nat_ports_shared,
            shortest: tcp.min(timeouts.tcp_established).min(others),
            pool: u64::from(base)..u64::from(base) + u64::from(addresses),
            opened: 0,
            expired: 0,
            reclaimed: 0,
        })
    }

    /// Whether an address is one of the external pool.
    #[inline]
    pub fn is_external(&self, address: u32) -> bool {
        self.pool.contains(&u64::from(address))
    }

    /// Whether inside hosts reach each other by external addresses.
    pub fn has_mappings(&self) -> bool {
        matches!(self.ports, Ports::ByEndpoint(..))
    }

    /// How many flows there are.
    pub fn len(&self) -> u32 {
        self.table.len() / 2
    }

    /// How many external ports are free, or which this core has taken of those that all cores share.
    pub fn port_gauges(&self) -> Vec<(&'static str, u64)> {
        match &self.ports {
            Ports::PerFlow(pool) => vec![("external_ports_free", u64::from(pool.free()))],
            Ports::ByEndpoint(mappings, _) => {
                let names = ["external_ports_tcp", "external_ports_udp", "external_ports_icmp"];
                names.into_iter().zip(mappings.ports_taken().map(u64::from)).collect()
            }
        }
    }

    /// Sets up what the configuration says.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        if let Ports::ByEndpoint(mappings, _) = &mut self.ports {
            mappings.start(cpu);
        }
    }

    /// The lines that a look-up of `key` reads.
    #[inline]
    pub fn look_up(&self, key: &FlowKey) -> LookUp {
        self.table.look_up(key)
    }

    /// The live entry of a packet's direction. An expired flow is taken apart and not found.
    #[inline(always)]
    pub fn find<C: Cpu>(&mut self, cpu: &mut C, key: &FlowKey) -> Option<(u32, NatEntry)> {
        let (number, entry) = self.table.find(cpu, key)?;
        if self.is_expired(cpu, &entry) {
            self.close(cpu, number, &entry);
            return None;
        }
        Some((number, entry))
    }

    /// Notes a packet: its time, and what its TCP flags say. A SYN revives a closing flow,
    /// whose ports a client may use again.
    #[inline]
    pub fn touch<C: Cpu>(&mut self, cpu: &mut C, number: u32, entry: &NatEntry, flags: TcpFlags) {
        let at = self.table.at(number);
        cpu.store(at + SEEN, cpu.now().as_ps().max(1));
        let closing = flags.0 & (TcpFlags::FIN.0 | TcpFlags::RST.0) != 0;
        let shared = entry.state & SHARED;
        let state = match (closing, flags.contains(TcpFlags::SYN)) {
            (true, _) => IN_USE | CLOSING | shared,
            (false, true) => IN_USE | shared,
            (false, false) => entry.state,
        };
        if state != entry.state {
            cpu.store(at + STATE, state);
        }
        if state != entry.state || entry.seen == 0 {
            self.settle(cpu, number);
        }
    }

    /// Opens a flow from the inside: both directions and an external port. Errors are names of
    /// drops: no room in the table, or no port left.
    pub fn open<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey) -> Result<(u32, NatEntry), &'static str> {
        self.sweep(cpu);
        for _ in 0..GIVING_WAY {
            match self.try_open(cpu, key) {
                Err(cause) if self.make_room(cpu, cause, key.source().0) => {}
                opened => return opened,
            }
        }
        self.try_open(cpu, key)
    }

    fn try_open<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey) -> Result<(u32, NatEntry), &'static str> {
        if self.table.room() < 2 {
            return Err(crate::TABLE_FULL);
        }
        let external = match &mut self.ports {
            Ports::PerFlow(pool) => pool.take(cpu).ok_or(NO_PORT)?,
            Ports::ByEndpoint(mappings, _) => match mappings.hold(cpu, Endpoint::of(&key), key.destination().0) {
                Err(NO_PORT) if self.shares_ports => return self.open_shared(cpu, key),
                held => held?,
            },
        };
        if self.shares_ports && self.is_taken(cpu, &key, external) {
            self.give_port(cpu, &key, external, IN_USE);
            return Err(shared::PORT_SHARED);
        }
        self.enter(cpu, key, external, Side::Inside, IN_USE)
    }

    /// Opens a flow that `remote`, the source of `key`, begins from outside, if it may; others give way as to one from inside.
    /// Errors are names of drops.
    pub fn open_from_outside<C: Cpu>(&mut self, cpu: &mut C, key: &FlowKey) -> Result<(u32, NatEntry), &'static str> {
        // A stranger's packet is no reason for work.
        self.admitted(cpu, key)?;
        self.sweep(cpu);
        for _ in 0..GIVING_WAY {
            // The mapping may end with the flow that gave way, or in the sweep.
            let inside = self.admitted(cpu, key)?;
            match self.try_open_from_outside(cpu, key, inside) {
                Err(cause) if self.make_room(cpu, cause, inside.address) => {}
                opened => return opened,
            }
        }
        let inside = self.admitted(cpu, key)?;
        self.try_open_from_outside(cpu, key, inside)
    }

    /// Whom the packet with this key from outside is for, if it may open a flow.
    fn admitted<C: Cpu>(&self, cpu: &mut C, key: &FlowKey) -> Result<Endpoint, &'static str> {
        let Ports::ByEndpoint(mappings, _) = &self.ports else {
            return Err(NO_FLOW);
        };
        let (address, port) = key.destination();
        let external = External { address, port };
        mappings.admitted(cpu, external, key.protocol(), key.source().0).ok_or(NO_FLOW)
    }

    fn try_open_from_outside<C: Cpu>(
        &mut self,
        cpu: &mut C,
        key: &FlowKey,
        inside: Endpoint,
    ) -> Result<(u32, NatEntry), &'static str> {
        let Ports::ByEndpoint(mappings, _) = &mut self.ports else {
            return Err(NO_FLOW);
        };
        if self.table.room() < 2 {
            return Err(crate::TABLE_FULL);
        }
        let (address, port) = key.destination();
        let external = External { address, port };
        let held = mappings.hold(cpu, inside, key.source().0)?;
        let forward = FlowKey::new((inside.address, inside.port), key.source(), key.protocol(), Side::Inside);
        if held != external {
            // A server that several ports are forwarded to answers from one of them.
            self.give_port(cpu, &forward, held, IN_USE);
            return Err(NO_FLOW);
        }
        let (_, entry) = self.enter(cpu, forward, external, Side::Outside, IN_USE)?;
        Ok((entry.peer, self.table.load(cpu, entry.peer)))
    }

    /// Enters both directions of a flow that has a port, and that a packet from `opener` begins.
    fn enter<C: Cpu>(
        &mut self,
        cpu: &mut C,
        key: FlowKey,
        external: External,
        opener: Side,
        state: u8,
    ) -> Result<(u32, NatEntry), &'static str> {
        let Some((number, entry)) = self.insert_both(cpu, key, external, opener, state) else {
            self.give_port(cpu, &key, external, state);
            return Err(crate::TABLE_FULL);
        };
        self.settle(cpu, number);
        self.opened += 1;
        Ok((number, entry))
    }

    /// The flow with this key from inside and this state needs its port no more.
    fn give_port<C: Cpu>(&mut self, cpu: &mut C, key: &FlowKey, external: External, state: u8) {
        match &mut self.ports {
            Ports::ByEndpoint(mappings, _) if state & SHARED != 0 => mappings.release_host(cpu, key.source().0),
            Ports::PerFlow(pool) => pool.give(cpu, external),
            Ports::ByEndpoint(mappings, _) => {
                mappings.release(cpu, Endpoint::of(key), external, key.destination().0);
            }
        }
    }

    fn insert_both<C: Cpu>(
        &mut self,
        cpu: &mut C,
        key: FlowKey,
        external: External,
        opener: Side,
        state: u8,
    ) -> Option<(u32, NatEntry)> {
        let now = cpu.now().as_ps().max(1);
        let seen = |side| if side == opener { now } else { 0 };
        let mut forward = NatEntry {
            key,
            seen: seen(Side::Inside),
            address: external.address,
            port: external.port,
            state,
            ..NatEntry::zeroed()
        };
        let forward_number = self.table.insert(cpu, &forward).ok()?;
        let (inside, remote) = (key.source(), key.destination());
        // An echo reply carries the identifier only, which counts as the inner end's port.
        let outer = (external.address, external.port);
        let reverse = NatEntry {
            key: FlowKey::new(remote, outer, key.protocol(), Side::Outside),
            seen: seen(Side::Outside),
            address: inside.0,
            port: inside.1,
            state,
            peer: forward_number,
            ..NatEntry::zeroed()
        };
        match self.table.insert(cpu, &reverse) {
            Ok(reverse_number) => {
                cpu.store(self.table.at(forward_number) + PEER, reverse_number);
                forward.peer = reverse_number;
                Some((forward_number, forward))
            }
            Err(_) => {
                self.table.remove(cpu, forward_number);
                None
            }
        }
    }

    fn sweep<C: Cpu>(&mut self, cpu: &mut C) {
        for _ in 0..SWEEP {
            if let Some((number, entry)) = self.table.sweep(cpu)
                && self.is_expired(cpu, &entry)
            {
                self.close(cpu, number, &entry);
            }
        }
    }

    #[inline(always)]
    fn is_expired<C: Cpu>(&self, cpu: &mut C, entry: &NatEntry) -> bool {
        let now = cpu.now();
        let idle = |seen: u64| now.saturating_sub(Time::from_ps(seen));
        if idle(entry.seen) < self.shortest {
            return false;
        }
        // Long silence in this direction: the other one decides too.
        let peer = self.table.load(cpu, entry.peer);
        let closing = (entry.state | peer.state) & CLOSING != 0;
        let both_ways = entry.seen != 0 && peer.seen != 0;
        let timeout = match entry.key.protocol() {
            ip_protocol::TCP if closing => self.timeouts.tcp_closing,
            ip_protocol::TCP if both_ways => self.timeouts.tcp_established,
            ip_protocol::TCP => self.timeouts.tcp_transitory,
            ip_protocol::UDP => self.timeouts.udp,
            _ => self.timeouts.icmp,
        };
        idle(entry.seen.max(peer.seen)) >= timeout
    }

    fn close<C: Cpu>(&mut self, cpu: &mut C, number: u32, entry: &NatEntry) {
        // Both ends of the flow as its other direction has them.
        let (key, (address, port)) = match entry.key.side() {
            Side::Inside => (entry.key, (entry.address, entry.port)),
            Side::Outside => {
                let inside = (entry.address, entry.port);
                let key = FlowKey::new(inside, entry.key.source(), entry.key.protocol(), Side::Inside);
                (key, entry.key.destination())
            }
        };
        if key.protocol() == ip_protocol::TCP && self.has_mappings() {
            let flow = if entry.key.side() == Side::Inside { number } else { entry.peer };
            let from_inside = self.table.load(cpu, flow);
            if from_inside.waits().is_some() {
                self.put(cpu, flow, &from_inside, None);
            }
        }
        self.table.remove(cpu, number);
        self.table.remove(cpu, entry.peer);
        self.give_port(cpu, &key, External { address, port }, entry.state);
        self.expired += 1;
    }
}
