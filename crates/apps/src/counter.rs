//! `counter`: counts packets and bytes of each flow, and forwards everything.
//!
//! IPv4 and IPv6 share one table; IPv4 addresses stand in it as IPv4-mapped ones (RFC 4291,
//! section 2.5.5.2). Later fragments have no ports and count for the address pair. A flow
//! that finds the table full is forwarded and counted as `untracked`.

use std::net::{IpAddr, SocketAddrV4};

use bytemuck::{Pod, Zeroable};
use nicforge_nic::{Packet, PortId, Verdict};
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_wire::{FrameSummary, IpAddresses};

use crate::headers;
use crate::options::Offload;
use crate::tables::{Cuckoo, Entry, LookUp, hash2};
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Flow, FullTable, Place, PortMap, SharedTables};

/// The key of a counted flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CounterKey {
    source: [u64; 2],
    destination: [u64; 2],
    /// Source port, destination port, in use (1), protocol.
    rest: u64,
}

impl CounterKey {
    /// From addresses, ports (0 when there are none) and IP protocol.
    pub fn new(source: (IpAddr, u16), destination: (IpAddr, u16), protocol: u8) -> CounterKey {
        CounterKey {
            source: words(source.0),
            destination: words(destination.0),
            rest: u64::from(source.1) << 48 | u64::from(destination.1) << 32 | 1 << 8 | u64::from(protocol),
        }
    }

    #[inline]
    fn of(summary: &FrameSummary) -> Option<CounterKey> {
        let (source, destination) = match summary.addresses {
            IpAddresses::None => return None,
            IpAddresses::V4 { source, destination } => (IpAddr::V4(source), IpAddr::V4(destination)),
            IpAddresses::V6 { source, destination } => (IpAddr::V6(source), IpAddr::V6(destination)),
        };
        let source = (source, summary.source_port);
        let destination = (destination, summary.destination_port);
        Some(CounterKey::new(source, destination, summary.protocol))
    }
}

#[inline]
fn words(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => 0xffff_0000_0000 | u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    [(bits >> 64) as u64, bits as u64]
}

/// One flow's counts.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CounterEntry {
    key: CounterKey,
    /// Packets.
    pub packets: u64,
    /// Bytes of whole frames.
    pub bytes: u64,
    unused: u64,
}

/// Where `packets` and `bytes` begin in the entry.
const COUNTS: u64 = 40;

impl Entry for CounterEntry {
    type Key = CounterKey;

    #[inline]
    fn key(&self) -> CounterKey {
        self.key
    }

    #[inline]
    fn hash(key: &CounterKey) -> u64 {
        let source = hash2(key.source[0], key.source[1]);
        let destination = hash2(key.destination[0], key.destination[1]);
        hash2(source ^ key.rest, destination)
    }

    #[inline]
    fn in_use(&self) -> bool {
        self.key.rest != 0
    }
}

/// The flow counter on one core.
#[derive(Clone, Debug)]
pub struct Counter {
    pub(crate) ports: PortMap,
    pub(crate) table: Cuckoo<CounterEntry>,
    pub(crate) not_ip: u64,
    pub(crate) untracked: u64,
}

impl Counter {
    #[inline]
    fn count<C: Cpu>(&mut self, cpu: &mut C, key: CounterKey, bytes: u64) {
        if let Some((number, entry)) = self.table.find(cpu, &key) {
            let counts = [entry.packets + 1, entry.bytes + bytes];
            cpu.store(self.table.at(number) + COUNTS, counts);
            return;
        }
        if !self.insert(cpu, key, [1, bytes]) {
            self.untracked += 1;
        }
    }

    fn insert<C: Cpu>(&mut self, cpu: &mut C, key: CounterKey, counts: [u64; 2]) -> bool {
        let [packets, bytes] = counts;
        let entry = CounterEntry { key, packets, bytes, unused: 0 };
        self.table.insert(cpu, &entry).is_ok()
    }

    /// What was counted for a flow.
    pub fn read<C: Cpu>(&self, cpu: &mut C, key: &CounterKey) -> Option<CounterEntry> {
        self.table.find(cpu, key).map(|(_, entry)| entry)
    }

    /// How many flows are in the table.
    pub fn flows(&self) -> u32 {
        self.table.len()
    }
}

impl<C: Cpu> Application<C> for Counter {
    fn first_look_up(&self, summary: &FrameSummary, _port: PortId) -> Option<LookUp> {
        Some(self.table.look_up(&CounterKey::of(summary)?))
    }

    /// Counts and forwards one packet; malformed ones are dropped. It changes nothing in them, so that wrong
    /// the receiver checks checksums, as behind any bridge.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let Some(port) = self.ports.get(packet.port) else {
            return Verdict::Drop(crate::NO_SUCH_PORT);
        };
        let peer = port.peer;
        match headers::read(cpu, packet) {
            Ok(headers) => match CounterKey::of(&headers.summary) {
                Some(key) => self.count(cpu, key, u64::from(packet.len())),
                None => self.not_ip += 1,
            },
            Err(cause) => return Verdict::Drop(cause),
        }
        Verdict::Transmit(peer)
    }

    fn learn(&mut self, cpu: &mut C, flow: &Flow) -> Result<(), &'static str> {
        let end = |address: SocketAddrV4| (IpAddr::V4(*address.ip()), address.port());
        let key = CounterKey::new(end(flow.source), end(flow.destination), flow.protocol);
        let known = self.table.find(cpu, &key).is_some();
        if known || self.insert(cpu, key, [0, 0]) { Ok(()) } else { Err("untracked") }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("not_ip", self.not_ip), ("untracked", self.untracked)]
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        vec![("flows", u64::from(self.flows()))]
    }
}

impl AppKind for Counter {
    const NAME: &'static str = "counter";
    const ABOUT: &'static str = "counts packets and bytes of each flow";
    type Options = crate::options::CounterOptions;

    fn shape(options: &Self::Options) -> AppShape {
        AppShape {
            offloads_flows: options.offload == Offload::AccelNfv,
            full_table: Some(FullTable::ForwardsUncounted),
            ..AppShape::default()
        }
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let table = Cuckoo::allocate(space, config.entries_per_core(place.cores, 1)?);
        Ok(Box::new(Counter { ports: config.ports.clone(), table, not_ip: 0, untracked: 0 }))
    }
}
