//! Endpoint-independent mappings (RFC 4787, section 4.1): an inside endpoint has one external endpoint, whatever its
//! remote ends are.
//!
//! Four kinds of entries lie in one table, a line each:
//!
//! | key | entry |
//! | --- | --- |
//! | inside endpoint, protocol | its external endpoint, how many flows use it |
//! | external endpoint, protocol | the inside endpoint |
//! | external endpoint, protocol, remote address | how many flows go there (address-dependent filtering) |
//! | inside address | how many flows the host has, and which of them may give way |

use bytemuck::{Pod, Zeroable};
use nicforge_nic::PortOwners;
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_wire::headers::ip_protocol;

use super::policy::{Filtering, NatOptions};
use super::waiting::Waiting;
use crate::options::ExternalOptions;
use crate::tables::{CorePorts, Cuckoo, Entry, External, FlowKey, Parity, SharedPorts, Side, Unforeseen, mix};
use crate::{AppConfig, Place};

/// The name of a drop: no external port is free.
pub const NO_PORT: &str = "no_external_port";
/// The name of a drop: the inside host has as many flows as one host may have.
pub const HOST_SHARE: &str = "host_share";

/// An end of flows inside: address and port (or ICMP identifier), and the IP protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address, host byte order.
    pub address: u32,
    /// Port.
    pub port: u16,
    /// IP protocol.
    pub protocol: u8,
}

impl Endpoint {
    /// The inside end of a flow with this key, which comes from inside.
    pub fn of(key: &FlowKey) -> Endpoint {
        let (address, port) = key.source();
        Endpoint { address, port, protocol: key.protocol() }
    }
}

/// An entry, in one line.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Line {
    key: FlowKey,
    /// The other end's address.
    address: u32,
    /// The other end's port.
    port: u16,
    in_use: u8,
    /// Set up by the configuration: it stays without flows, and everybody may open flows to it.
    is_static: u8,
    /// Flows that it counts.
    flows: u32,
    /// Whether it names another end.
    is_mapping: u32,
    /// Those of a host's flows that may give way.
    waiting: Waiting,
    unused: [u64; 2],
}

impl Entry for Line {
    type Key = FlowKey;

    fn key(&self) -> FlowKey {
        self.key
    }

    fn hash(key: &FlowKey) -> u64 {
        key.hash()
    }

    fn in_use(&self) -> bool {
        self.in_use != 0
    }
}

const FLOWS: u64 = std::mem::offset_of!(Line, flows) as u64;
const WAITING: u64 = std::mem::offset_of!(Line, waiting) as u64;

fn by_inside(inside: Endpoint) -> FlowKey {
    FlowKey::new((inside.address, inside.port), (0, 0), inside.protocol, Side::Inside)
}

fn by_external(external: External, protocol: u8) -> FlowKey {
    FlowKey::new((0, 0), (external.address, external.port), protocol, Side::Outside)
}

fn by_remote(external: External, protocol: u8, remote: u32) -> FlowKey {
    FlowKey::new((remote, 0), (external.address, external.port), protocol, Side::Outside)
}

/// The number of an inside host's flows. Protocol 0 is hop-by-hop options of IPv6, which no flow has.
fn by_host(address: u32) -> FlowKey {
    FlowKey::new((address, 0), (0, 0), 0, Side::Inside)
}

/// The mappings of one core.
#[derive(Clone, Debug)]
pub struct Mappings {
    table: Cuckoo<Line>,
    ports: CorePorts,
    random: Unforeseen,
    addresses: u32,
    filtering: Filtering,
    host_share: u32,
    statics: Vec<(Endpoint, External)>,
}

impl Mappings {
    /// Takes address space for the mappings of `flows` flows of the core at `place`, with external `ports`.
    pub fn allocate(
        config: &AppConfig,
        place: Place,
        ports: &SharedPorts,
        flows: u32,
        space: &mut AddressSpace,
    ) -> Mappings {
        let options: NatOptions = config.read();
        let base = config.read::<ExternalOptions>().external_address.to_bits();
        let kept = options.nat_ports_kept_percent;
        let statics = options.forwards().into_iter().map(|forward| {
            let inside = Endpoint {
                address: forward.inside.ip().to_bits(),
                port: forward.inside.port(),
                protocol: forward.protocol,
            };
            (inside, External { address: base, port: forward.external_port })
        });
        Mappings {
            // Of each flow at most one of each kind.
            table: Cuckoo::allocate(space, flows.saturating_mul(4)),
            ports: CorePorts::new(ports.clone(), place.core, place.cores, kept),
            random: Unforeseen::new(config.seed, place.core as u64),
            addresses: ports.addresses(),
            filtering: options.nat_filtering,
            host_share: (u64::from(flows) * u64::from(options.nat_host_share_percent) / 100).max(1) as u32,
            // On every core: which one has the flows of a server, steering says.
            statics: statics.collect(),
        }
    }

    /// Sets up the mappings of the configuration, and frees the ports of a core that was in this one's place.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        self.ports.start(cpu);
        for (inside, external) in std::mem::take(&mut self.statics) {
            self.ports.reserve(cpu, inside.protocol, external);
            // There is room in an empty table.
            let _ = self.insert(cpu, inside, external, true);
        }
    }

    /// External ports that this core has, of TCP, UDP and ICMP.
    pub fn ports_taken(&self) -> [u32; PortOwners::PROTOCOLS] {
        self.ports.taken()
    }

    /// The external endpoint of `inside`, which it keeps or gets, for one more flow to `remote`. Errors are names of drops.
    pub fn hold<C: Cpu>(&mut self, cpu: &mut C, inside: Endpoint, remote: u32) -> Result<External, &'static str> {
        if self.host_flows(cpu, inside.address) >= self.host_share {
            return Err(HOST_SHARE);
        }
        let external = match self.table.find(cpu, &by_inside(inside)) {
            Some((_, line)) => External { address: line.address, port: line.port },
            None => self.open(cpu, inside)?,
        };
        if self.count_up(cpu, by_host(inside.address)).is_none() {
            self.close_unused(cpu, inside, external);
            return Err(crate::TABLE_FULL);
        }
        self.count_up(cpu, by_inside(inside));
        if self.filters_addresses() && self.count_up(cpu, by_remote(external, inside.protocol, remote)).is_none() {
            self.release_flow(cpu, inside, external);
            return Err(crate::TABLE_FULL);
        }
        Ok(external)
    }

    /// One flow between `inside` and `remote` fewer. Without flows the mapping goes, and its port is free.
    pub fn release<C: Cpu>(&mut self, cpu: &mut C, inside: Endpoint, external: External, remote: u32) {
        if self.filters_addresses() {
            self.count_down(cpu, by_remote(external, inside.protocol, remote));
        }
        self.release_flow(cpu, inside, external);
    }

    /// One flow more of an inside host, whose external port is one that others have. Errors are names of drops.
    pub fn hold_host<C: Cpu>(&mut self, cpu: &mut C, address: u32) -> Result<(), &'static str> {
        if self.host_flows(cpu, address) >= self.host_share {
            return Err(HOST_SHARE);
        }
        self.count_up(cpu, by_host(address)).ok_or(crate::TABLE_FULL)
    }

    /// One such flow fewer.
    pub fn release_host<C: Cpu>(&mut self, cpu: &mut C, address: u32) {
        self.count_down(cpu, by_host(address));
    }

    /// Where the flows of an inside host that may give way stand, if it has any flow.
    pub fn waiting_of<C: Cpu>(&self, cpu: &mut C, host: u32) -> Option<Addr> {
        self.table.find(cpu, &by_host(host)).map(|(number, _)| self.table.at(number) + WAITING)
    }

    /// An external endpoint for a flow of `inside` that others may have, too.
    pub fn any_port<C: Cpu>(&mut self, cpu: &mut C, inside: Endpoint) -> Option<External> {
        let wanted = self.address_of(inside.address);
        self.ports.any(cpu, &mut self.random, inside.protocol, wanted)
    }

    /// The number of the external address of an inside host (RFC 4787, REQ-2).
    fn address_of(&self, host: u32) -> u32 {
        (mix(u64::from(host)) % u64::from(self.addresses)) as u32
    }

    fn release_flow<C: Cpu>(&mut self, cpu: &mut C, inside: Endpoint, external: External) {
        self.count_down(cpu, by_host(inside.address));
        self.count_down(cpu, by_inside(inside));
        self.close_unused(cpu, inside, external);
    }

    fn close_unused<C: Cpu>(&mut self, cpu: &mut C, inside: Endpoint, external: External) {
        let Some((number, line)) = self.table.find(cpu, &by_inside(inside)) else {
            return;
        };
        if line.flows > 0 || line.is_static != 0 {
            return;
        }
        self.table.remove(cpu, number);
        if let Some((number, _)) = self.table.find(cpu, &by_external(external, inside.protocol)) {
            self.table.remove(cpu, number);
        }
        self.ports.give(cpu, inside.protocol, external);
    }

    fn filters_addresses(&self) -> bool {
        self.filtering == Filtering::AddressDependent
    }

    /// The inside endpoint that `remote` may open a flow to by sending to `external`.
    pub fn admitted<C: Cpu>(&self, cpu: &mut C, external: External, protocol: u8, remote: u32) -> Option<Endpoint> {
        let (_, line) = self.table.find(cpu, &by_external(external, protocol))?;
        let may = line.is_static != 0
            || match self.filtering {
                Filtering::EndpointIndependent => true,
                Filtering::AddressDependent => self.table.find(cpu, &by_remote(external, protocol, remote)).is_some(),
                Filtering::AddressAndPortDependent => false,
            };
        may.then_some(Endpoint { address: line.address, port: line.port, protocol })
    }

    fn host_flows<C: Cpu>(&self, cpu: &mut C, address: u32) -> u32 {
        self.table.find(cpu, &by_host(address)).map_or(0, |(_, line)| line.flows)
    }

    /// A new mapping of `inside`. All of one host have the same external address (RFC 4787, REQ-2) while that has ports.
    fn open<C: Cpu>(&mut self, cpu: &mut C, inside: Endpoint) -> Result<External, &'static str> {
        let wanted = self.address_of(inside.address);
        let parities: &[Parity] = match inside.protocol {
            ip_protocol::UDP => &[Parity::Like(inside.port), Parity::Any],
            _ => &[Parity::Any],
        };
        let external = self.ports.take(cpu, &mut self.random, inside.protocol, wanted, parities).ok_or(NO_PORT)?;
        if self.insert(cpu, inside, external, false).is_none() {
            self.ports.give(cpu, inside.protocol, external);
            return Err(crate::TABLE_FULL);
        }
        Ok(external)
    }

    /// Enters a mapping under both its endpoints; `None` when there is no room.
    fn insert<C: Cpu>(&mut self, cpu: &mut C, inside: Endpoint, external: External, is_static: bool) -> Option<()> {
        let line = |key, address, port| Line {
            key,
            address,
            port,
            in_use: 1,
            is_static: u8::from(is_static),
            is_mapping: 1,
            ..Line::zeroed()
        };
        let forward = line(by_inside(inside), external.address, external.port);
        let number = self.table.insert(cpu, &forward).ok()?;
        let reverse = line(by_external(external, inside.protocol), inside.address, inside.port);
        if self.table.insert(cpu, &reverse).is_err() {
            self.table.remove(cpu, number);
            return None;
        }
        Some(())
    }

    /// One flow more of entry `key`, which begins with it; `None` when there is no room for it.
    fn count_up<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey) -> Option<()> {
        match self.table.find(cpu, &key) {
            Some((number, line)) => cpu.store(self.table.at(number) + FLOWS, line.flows + 1),
            None => {
                self.table.insert(cpu, &Line { key, in_use: 1, flows: 1, ..Line::zeroed() }).ok()?;
            }
        }
        Some(())
    }

    /// One flow fewer of entry `key`. A mapping stays; other entries end with their last flow.
    fn count_down<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey) {
        let Some((number, line)) = self.table.find(cpu, &key) else {
            return;
        };
        let flows = line.flows.saturating_sub(1);
        if flows == 0 && line.is_mapping == 0 {
            self.table.remove(cpu, number);
        } else {
            cpu.store(self.table.at(number) + FLOWS, flows);
        }
    }
}
