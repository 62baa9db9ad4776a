//! All applications behind one type, dispatched statically.

use std::net::{IpAddr, SocketAddrV4};

use nicforge_nic::{Packet, Verdict};
use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_units::Cycles;

use crate::counter::{Counter, CounterEntry, CounterKey};
use crate::expired::LastHop;
use crate::headers;
use crate::kvs::Kvs;
use crate::l2fwd::L2Fwd;
use crate::l3fwd::{L3Fwd, Router};
use crate::lb::Lb;
use crate::nat::Nat;
use crate::synthetic::Synthetic;
use crate::tables::{Cuckoo, FlowKey, Side, mix};
use crate::{AppConfig, AppError, SharedTables};

/// Name and one line about each application.
pub const APPS: [(&str, &str); 7] = [
    ("l2fwd", "forwards by port, and changes hardware addresses only"),
    ("l3fwd", "forwards by the longest matching prefix, IPv4 and IPv6"),
    ("nat", "translates addresses and ports (NAPT), both directions"),
    ("lb", "balances flows over servers, each flow always to the same"),
    ("synthetic", "reads an array at random, then looks up a route"),
    ("counter", "counts packets and bytes of each flow"),
    ("kvs", "serves a key-value store: GET, PUT and DELETE over UDP"),
];

const NAMES: [&str; APPS.len()] = {
    let mut names = [""; APPS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = APPS[at].0;
        at += 1;
    }
    names
};

/// The names of all applications.
pub fn names() -> &'static [&'static str] {
    &NAMES
}

/// Whether the application of this name forwards by IP header, and so drops packets whose header checksum is
/// wrong, as `ip_checksum`.
pub fn is_router(name: &str) -> bool {
    matches!(name, "l3fwd" | "nat" | "lb" | "synthetic")
}

/// An application on one core.
#[derive(Clone, Debug)]
pub struct AnyApp {
    work: Cycles,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    L2Fwd(L2Fwd),
    L3Fwd(L3Fwd),
    Nat(Box<Nat>),
    Lb(Box<Lb>),
    Synthetic(Synthetic),
    Counter(Counter),
    Kvs(Box<Kvs>),
}

impl AnyApp {
    /// The application of `config` on core `core` of `cores`. Hands out addresses only; the
    /// memory must be zero when the application starts.
    ///
    /// Errors: an unknown name, a setting out of range, or shared tables made for another
    /// application.
    pub fn build(
        config: &AppConfig,
        core: usize,
        cores: usize,
        space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<AnyApp, AppError> {
        let ports = config.ports.clone();
        let kind = match config.name.as_str() {
            "l2fwd" => Kind::L2Fwd(L2Fwd { ports }),
            "l3fwd" => Kind::L3Fwd(L3Fwd { router: Router::new(config, core, shared), last_hop: LastHop::default() }),
            "nat" => Kind::Nat(Box::new(Nat::build(config, core, cores, space)?)),
            "lb" => Kind::Lb(Box::new(Lb::build(config, core, cores, space)?)),
            "synthetic" => Kind::Synthetic(synthetic(config, core, shared)?),
            "counter" => Kind::Counter(Counter {
                ports,
                table: Cuckoo::allocate(space, config.entries_per_core(cores, 1)?),
                not_ip: 0,
                untracked: 0,
            }),
            "kvs" => Kind::Kvs(Box::new(Kvs::build(config, core, cores, space)?)),
            name => {
                return Err(AppError::UnknownName { name: name.to_owned() });
            }
        };
        let work = config.work;
        Ok(AnyApp { work, kind })
    }

    /// Fills tables before the run. Core 0 fills the shared ones, so all cores start before
    /// the first packet.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        match &mut self.kind {
            Kind::L2Fwd(_) | Kind::Nat(_) | Kind::Counter(_) | Kind::Kvs(_) => {}
            Kind::L3Fwd(app) => app.start(cpu),
            Kind::Lb(app) => app.start(cpu),
            Kind::Synthetic(app) => app.start(cpu),
        }
    }

    /// As [`start`](Self::start), where shared tables are filled already.
    pub fn start_own<C: Cpu>(&mut self, cpu: &mut C) {
        if let Kind::Lb(app) = &mut self.kind {
            app.start(cpu);
        }
    }

    /// Handles one packet to completion: the frame is rewritten in place.
    #[inline]
    pub fn packet<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        cpu.enter(Part::App);
        cpu.work(self.work);
        match &mut self.kind {
            Kind::L2Fwd(app) => app.packet(cpu, packet),
            Kind::L3Fwd(app) => app.packet(cpu, packet),
            Kind::Nat(app) => app.packet(cpu, packet),
            Kind::Lb(app) => app.packet(cpu, packet),
            Kind::Synthetic(app) => app.packet(cpu, packet),
            Kind::Counter(app) => app.packet(cpu, packet),
            Kind::Kvs(app) => app.packet(cpu, packet),
        }
    }

    /// The hash under which a table of flows will be asked for `packet`'s, as far as a glance tells.
    #[inline]
    pub fn flow_hash<C: Cpu>(&self, cpu: &C, packet: &Packet) -> Option<u64> {
        match &self.kind {
            Kind::Nat(app) => app.flow_hash(&headers::glance(cpu, packet)?),
            Kind::Lb(_) => Lb::flow_hash(&headers::glance(cpu, packet)?),
            Kind::Counter(_) => Counter::flow_hash(&headers::glance(cpu, packet)?),
            _ => None,
        }
    }

    /// Where a look-up under this hash begins.
    #[inline]
    pub fn first_bucket(&self, hash: u64) -> Option<Addr> {
        match &self.kind {
            Kind::Nat(app) => Some(app.flows.table.first_bucket(hash)),
            Kind::Lb(app) => Some(app.table.first_bucket(hash)),
            Kind::Counter(app) => Some(app.table.first_bucket(hash)),
            _ => None,
        }
    }

    /// Where it goes on, if a glance at that place tells.
    #[inline]
    pub fn likely_entry<C: Cpu>(&self, cpu: &C, hash: u64) -> Option<Addr> {
        match &self.kind {
            Kind::Nat(app) => app.flows.table.likely_entry(cpu, hash),
            Kind::Lb(app) => app.table.likely_entry(cpu, hash),
            Kind::Counter(app) => app.table.likely_entry(cpu, hash),
            _ => None,
        }
    }

    /// Puts an IPv4 flow into the tables without a packet, for runs that begin with known
    /// flows; applications without a flow table ignore it. An error is the name of the drop
    /// that the flow's first packet would have met.
    pub fn learn<C: Cpu>(
        &mut self,
        cpu: &mut C,
        source: SocketAddrV4,
        destination: SocketAddrV4,
        protocol: u8,
    ) -> Result<(), &'static str> {
        let end = |address: SocketAddrV4| (address.ip().to_bits(), address.port());
        let key = |side| FlowKey::new(end(source), end(destination), protocol, side);
        match &mut self.kind {
            Kind::Nat(app) => app.learn(cpu, key(Side::Inside)),
            Kind::Lb(app) => app.learn(cpu, key(Side::Outside)),
            Kind::Counter(app) => {
                let end = |address: SocketAddrV4| (IpAddr::V4(*address.ip()), address.port());
                app.learn(cpu, CounterKey::new(end(source), end(destination), protocol))
            }
            _ => Ok(()),
        }
    }

    /// Stores a pair without a request, for runs that begin with a filled store; other
    /// applications than `kvs` ignore it.
    pub fn store_pair<C: Cpu>(&mut self, cpu: &mut C, key: &[u8], value: &[u8]) {
        if let Kind::Kvs(app) = &mut self.kind {
            app.store(cpu, key, value);
        }
    }

    /// Makes a stored pair hot without a request; other applications than `kvs` ignore it.
    pub fn preload_hot<C: Cpu>(&mut self, cpu: &mut C, key: &[u8]) {
        if let Kind::Kvs(app) = &mut self.kind {
            app.preload_hot(cpu, key);
        }
    }

    /// What `counter` counted for a flow; `None` for unknown flows and other applications.
    pub fn flow_counts<C: Cpu>(&self, cpu: &mut C, key: &CounterKey) -> Option<CounterEntry> {
        match &self.kind {
            Kind::Counter(app) => app.read(cpu, key),
            _ => None,
        }
    }

    /// The application's own counters by name; drops are counted by whoever gets the verdicts.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        match &self.kind {
            Kind::L2Fwd(_) | Kind::L3Fwd(_) => Vec::new(),
            Kind::Nat(app) => app.counters(),
            Kind::Lb(app) => app.counters(),
            Kind::Synthetic(app) => vec![("packets", app.packets)],
            Kind::Counter(app) => {
                vec![("flows", u64::from(app.flows())), ("not_ip", app.not_ip), ("untracked", app.untracked)]
            }
            Kind::Kvs(app) => app.counters(),
        }
    }
}

fn synthetic(config: &AppConfig, core: usize, shared: &SharedTables) -> Result<Synthetic, AppError> {
    let (array, size) = shared.array.ok_or(AppError::MissingTable { app: "synthetic", table: "the array" })?;
    let words = Synthetic::words(size);
    if words == 0 {
        return Err(AppError::OutOfRange { setting: "array", value: size.0, range: "at least 8 bytes" });
    }
    Ok(Synthetic {
        router: Router::new(config, core, shared),
        array,
        words,
        reads: config.reads,
        reads_in_flight: config.reads_in_flight,
        more_reads: config.more_reads,
        payload: config.payload,
        seed: mix(config.seed ^ (core as u64) << 32),
        packets: 0,
        digest: 0,
    })
}
