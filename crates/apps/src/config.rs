//! What an application is told before a run.

use std::net::Ipv4Addr;
use std::sync::Arc;

use nicforge_nic::{PortId, mbuf_room};
use nicforge_options::Values;
use nicforge_units::{Bytes, Cycles, Time};
use nicforge_wire::headers::MacAddress;

use crate::Route;
use crate::kvs::KvsConfig;

/// Why an application cannot be built.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AppError {
    /// There is no application of this name.
    #[error("no application is called `{name}`: use one of {}", known.join(", "))]
    UnknownName {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// A setting is outside of its range.
    #[error("`{setting}` is {value}: it must be {range}")]
    OutOfRange {
        /// The setting's key.
        setting: &'static str,
        /// What it was set to.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
    /// The shared tables were made for another application.
    #[error("`{app}` needs {table}, which the shared tables do not have: build them from the same configuration")]
    MissingTable {
        /// The application.
        app: &'static str,
        /// What it needs.
        table: &'static str,
    },
}

/// One port of the machine, as applications see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Where packets go that arrive here, unless a route says otherwise.
    pub peer: PortId,
    /// Its own address: the source of what it sends.
    pub mac: MacAddress,
    /// The address of whatever is at the other end of its cable.
    pub next_hop: MacAddress,
    /// Whether the private network of a NAT is behind it.
    pub inside: bool,
    /// The source of ICMP errors to senders whose packets had no hop left; `None`: the router sends none.
    pub address: Option<Ipv4Addr>,
    /// The broadcast address of its subnet, to which no router forwards.
    pub broadcast: Option<Ipv4Addr>,
    /// Whether it hears all frames of a link, those for others too. Then a router drops frames for other hardware
    /// addresses than `mac`, and a bridge learns who is on its side. A port that plays a capture has all hosts on its side.
    pub hears_all: bool,
}

/// All ports, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortMap(pub Vec<Port>);

impl PortMap {
    /// `count` ports that send back out what they receive; all are inside.
    pub fn one_armed(count: u8) -> PortMap {
        PortMap((0..count).map(|id| Port::new(id, id, true)).collect())
    }

    /// Ports 0 and 1, 2 and 3 … send to each other; the even ones are inside. The last of an
    /// odd number is one-armed.
    pub fn paired(count: u8) -> PortMap {
        let peer = |id: u8| if id ^ 1 < count { id ^ 1 } else { id };
        let port = |id: u8| Port::new(id, peer(id), id.is_multiple_of(2));
        PortMap((0..count).map(port).collect())
    }

    /// The port of this number.
    #[inline]
    pub fn get(&self, id: PortId) -> Option<&Port> {
        self.0.get(usize::from(id.0))
    }

    /// The peer of `id`, with the addresses that a frame leaving through it gets.
    #[inline]
    pub fn way_out(&self, id: PortId) -> Option<(PortId, &Port)> {
        let peer = self.get(id)?.peer;
        Some((peer, self.get(peer)?))
    }
}

impl Port {
    fn new(id: u8, peer: u8, inside: bool) -> Port {
        Port {
            peer: PortId(peer),
            // Locally administered addresses (IEEE 802, clause 8.4).
            mac: MacAddress([2, 0, 0, 0, 0, id]),
            next_hop: MacAddress([2, 0, 0, 0, 1, id]),
            inside,
            address: None,
            broadcast: None,
            hears_all: false,
        }
    }
}

/// Who says where a routed packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// The route's port.
    #[default]
    Route,
    /// The peer of the port of arrival, whatever the route says: where routes are made up.
    Peer,
}

nicforge_options::choice! {
    /// What `synthetic` does with the payload.
    pub enum Payload {
        /// Nothing.
        Untouched = "untouched",
        /// Reads every byte.
        Read = "read",
        /// Overwrites every byte; the NIC is asked to compute the checksum.
        Overwrite = "overwrite",
    }
}

/// After how long without a packet state is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// UDP flows: RFC 4787, REQ-5 recommends 5 minutes.
    pub udp: Time,
    /// TCP flows that saw packets both ways: RFC 5382, REQ-5 asks for 2 h 4 min.
    pub tcp_established: Time,
    /// TCP flows that saw packets one way, or a FIN or RST: RFC 5382, REQ-5, 4 minutes.
    pub tcp_transitory: Time,
    /// ICMP echo: RFC 5508, REQ-2 asks for 60 s.
    pub icmp: Time,
    /// What the first fragment of a packet said, for the later ones (RFC 1122, section 3.3.2:
    /// 60 to 120 s).
    pub fragment: Time,
    /// A load balancer's flows.
    pub balanced: Time,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        let seconds = |s: u64| Time::from_ms(1000 * s);
        Timeouts {
            udp: seconds(300),
            tcp_established: seconds(7440),
            tcp_transitory: seconds(240),
            icmp: seconds(60),
            fragment: seconds(60),
            balanced: seconds(300),
        }
    }
}

/// Everything that an application may be told. Each uses what concerns it.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// Which application, by name ([`crate::Apps::names`]).
    pub name: String,
    /// Instructions per packet that memory accesses do not show, in core cycles.
    pub work: Cycles,
    /// `kvs`: bytes of frame that packet buffers hold; a reply is built in its request's.
    pub buffer_room: u32,
    /// The machine's ports.
    pub ports: PortMap,
    /// `l3fwd`, `synthetic`: who says where a packet leaves.
    pub egress: Egress,
    /// `nat`, `lb`, `counter`: flows over all cores. A NAT keeps two entries for each.
    pub table_entries: u64,
    /// `nat`: the first external address; the others follow it.
    pub external_base: Ipv4Addr,
    /// `nat`: how many external addresses; `None`: as many as `table_entries` need.
    pub external_addresses: Option<u32>,
    /// `lb`: how many servers.
    pub servers: u32,
    /// `lb`: the first server's address; the others follow it.
    pub server_base: Ipv4Addr,
    /// `lb`: the address that is balanced; `None`: whatever arrives is.
    pub service: Option<Ipv4Addr>,
    /// `l3fwd`, `synthetic`: the routes.
    pub routes: Arc<[Route]>,
    /// `synthetic`: random reads per packet.
    pub reads: u32,
    /// `synthetic`: how many of them are in flight at a time.
    pub reads_in_flight: u32,
    /// `synthetic`: how many more from which time on.
    pub more_reads: (u32, Time),
    /// `synthetic`: size of the array that all cores share.
    pub array: Bytes,
    /// `synthetic`: what it does with the payload.
    pub payload: Payload,
    /// `nat`, `lb`: when flows are given up.
    pub timeouts: Timeouts,
    /// `kvs`: its sizes.
    pub kvs: KvsConfig,
    /// Of pseudo-random choices.
    pub seed: u64,
    /// The scenario's settings. An application reads its own options from them.
    pub values: Values,
}

impl AppConfig {
    /// The application `name` on `ports`, with room for a million flows, 32 servers, no
    /// routes, and no work.
    pub fn new(name: &str, ports: PortMap) -> AppConfig {
        AppConfig {
            name: name.to_owned(),
            work: Cycles(0),
            buffer_room: mbuf_room(),
            ports,
            egress: Egress::Route,
            table_entries: 1_000_000,
            // The upper half of what RFC 2544, appendix C.2.2 sets aside for benchmarks.
            external_base: Ipv4Addr::new(198, 19, 0, 0),
            external_addresses: None,
            servers: 32,
            server_base: Ipv4Addr::new(10, 200, 0, 1),
            service: None,
            routes: Arc::new([]),
            reads: 2,
            reads_in_flight: 1,
            more_reads: (0, Time::ZERO),
            array: Bytes(40 << 20),
            payload: Payload::Untouched,
            timeouts: Timeouts::default(),
            kvs: KvsConfig::default(),
            seed: 1,
            values: Values::default(),
        }
    }

    /// Table entries of one of `cores` cores.
    pub(crate) fn entries_per_core(&self, cores: usize, each: u64) -> Result<u32, AppError> {
        let share = self.table_entries.div_ceil(cores.max(1) as u64);
        match u32::try_from(share.saturating_mul(each)) {
            Ok(entries) if entries > 0 && entries <= 1 << 30 => Ok(entries),
            _ => Err(AppError::OutOfRange {
                setting: "table_entries",
                value: self.table_entries,
                range: "at least 1, and at most 2^29 for each core",
            }),
        }
    }
}
