//! The flows of one core: two table entries and one external port each.

use bytemuck::{Pod, Zeroable};
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_units::Time;
use nicforge_wire::headers::{TcpFlags, ip_protocol};

use crate::tables::{Cuckoo, Entry, External, FlowKey, PortPartition, PortPool, Side};
use crate::{AppConfig, AppError, Timeouts};

/// One direction of a flow, in one line.
///
/// | bytes | field | |
/// | --- | --- | --- |
/// | 0–15 | `key` | 5-tuple as it arrives, and the side it arrives from |
/// | 16–23 | `seen` | time of the last packet in this direction, ps; 0: none yet |
/// | 24–29 | `address`, `port` | what replaces the inner end |
/// | 30 | `state` | bit 0: in use, bit 1: saw FIN or RST |
/// | 32–35 | `peer` | number of the other direction's entry |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NatEntry {
    key: FlowKey,
    seen: u64,
    /// The replacing address.
    pub address: u32,
    /// The replacing port or echo identifier.
    pub port: u16,
    state: u8,
    unused: u8,
    peer: u32,
    unused_too: [u32; 7],
}

const SEEN: u64 = 16;
const STATE: u64 = 30;
const PEER: u64 = 32;
const IN_USE: u8 = 1;
const CLOSING: u8 = 2;

impl Entry for NatEntry {
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
        self.state & IN_USE != 0
    }
}

/// Entries that are looked at for expiry when a flow is opened. A flow takes two, so this
/// many let the sweep overtake whatever rate of new flows there is.
const SWEEP: usize = 4;

/// The flow table and the port pool of one core.
#[derive(Clone, Debug)]
pub struct Flows {
    pub(crate) table: Cuckoo<NatEntry>,
    ports: PortPool,
    timeouts: Timeouts,
    /// An entry seen less than this long ago is alive, whatever it is.
    shortest: Time,
    pool: std::ops::Range<u64>,
    pub(super) opened: u64,
    pub(super) expired: u64,
}

/// How many external addresses a NAT on `cores` cores has.
pub(super) fn external_addresses(config: &AppConfig, cores: usize) -> Result<u32, AppError> {
    let flows = config.entries_per_core(cores, 2)? / 2;
    let enough = flows.div_ceil(PortPartition::new(cores).share());
    let addresses = config.external_addresses.unwrap_or(enough);
    let base = u64::from(config.external_base.to_bits());
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
    /// Takes address space for the share of one core.
    pub fn allocate(
        config: &AppConfig,
        core: usize,
        cores: usize,
        space: &mut AddressSpace,
    ) -> Result<Flows, AppError> {
        let entries = config.entries_per_core(cores, 2)?;
        let partition = PortPartition::new(cores);
        let addresses = external_addresses(config, cores)?;
        let base = config.external_base.to_bits();
        let timeouts = config.timeouts;
        let (tcp, others) = (timeouts.tcp_transitory, timeouts.udp.min(timeouts.icmp));
        Ok(Flows {
            table: Cuckoo::allocate(space, entries),
            ports: PortPool::allocate(space, partition, core, base, addresses),
            timeouts,
            shortest: tcp.min(timeouts.tcp_established).min(others),
            pool: u64::from(base)..u64::from(base) + u64::from(addresses),
            opened: 0,
            expired: 0,
        })
    }

    /// Whether an address is one of the external pool.
    #[inline]
    pub fn is_external(&self, address: u32) -> bool {
        self.pool.contains(&u64::from(address))
    }

    /// How many flows there are.
    pub fn len(&self) -> u32 {
        self.table.len() / 2
    }

    /// How many external ports are free.
    pub fn free_ports(&self) -> u32 {
        self.ports.free()
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
    pub fn touch<C: Cpu>(&self, cpu: &mut C, number: u32, entry: &NatEntry, flags: TcpFlags) {
        let at = self.table.at(number);
        cpu.store(at + SEEN, cpu.now().as_ps().max(1));
        let closing = flags.0 & (TcpFlags::FIN.0 | TcpFlags::RST.0) != 0;
        let state = match (closing, flags.contains(TcpFlags::SYN)) {
            (true, _) => IN_USE | CLOSING,
            (false, true) => IN_USE,
            (false, false) => return,
        };
        if state != entry.state {
            cpu.store(at + STATE, state);
        }
    }

    /// Opens a flow from the inside: both directions and an external port. Errors are names of
    /// drops: no room in the table, or no port left.
    pub fn open<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey) -> Result<(u32, NatEntry), &'static str> {
        self.sweep(cpu);
        if self.table.room() < 2 {
            return Err(crate::TABLE_FULL);
        }
        let external = self.ports.take(cpu).ok_or("no_external_port")?;
        match self.insert_both(cpu, key, external) {
            Some(opened) => {
                self.opened += 1;
                Ok(opened)
            }
            None => {
                self.ports.give(cpu, external);
                Err(crate::TABLE_FULL)
            }
        }
    }

    fn insert_both<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey, external: External) -> Option<(u32, NatEntry)> {
        let mut forward = NatEntry {
            key,
            seen: cpu.now().as_ps().max(1),
            address: external.address,
            port: external.port,
            state: IN_USE,
            ..NatEntry::zeroed()
        };
        let forward_number = self.table.insert(cpu, &forward).ok()?;
        let (inside, remote) = (key.source(), key.destination());
        // An echo reply carries the identifier only, which counts as the inner end's port.
        let outer = (external.address, external.port);
        let reverse = NatEntry {
            key: FlowKey::new(remote, outer, key.protocol(), Side::Outside),
            seen: 0,
            address: inside.0,
            port: inside.1,
            state: IN_USE,
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
            ip_protocol::TCP if both_ways && !closing => self.timeouts.tcp_established,
            ip_protocol::TCP => self.timeouts.tcp_transitory,
            ip_protocol::UDP => self.timeouts.udp,
            _ => self.timeouts.icmp,
        };
        idle(entry.seen.max(peer.seen)) >= timeout
    }

    fn close<C: Cpu>(&mut self, cpu: &mut C, number: u32, entry: &NatEntry) {
        let external = match entry.key.side() {
            Side::Inside => (entry.address, entry.port),
            Side::Outside => entry.key.destination(),
        };
        self.table.remove(cpu, number);
        self.table.remove(cpu, entry.peer);
        let (address, port) = external;
        self.ports.give(cpu, External { address, port });
        self.expired += 1;
    }
}
