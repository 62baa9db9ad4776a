//! The configuration that an application is built from.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use nicforge_nic::{Allocation, PortId, mbuf_room};
use nicforge_options::{Options, Value, Values};
use nicforge_units::{Cycles, Time};
use nicforge_wire::headers::MacAddress;

use crate::Route;
use crate::lb::Servers;
use crate::options::FlowTableOptions;

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
    /// Rules cannot be had.
    #[error("{what}")]
    Rules {
        /// What is wrong.
        what: String,
    },
    /// A file of servers cannot be used.
    #[error("{file}{place}: {what}; write an address of a server and a weight from 0 to 65535, or `down`")]
    Servers {
        /// The file.
        file: String,
        /// `:` and the line; empty where it is the file itself.
        place: String,
        /// What is wrong.
        what: String,
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
    /// The source of ICMP errors to senders of IPv4 packets that go no further; `None`: the router sends none.
    pub address: Option<Ipv4Addr>,
    /// The same for IPv6; without it the link-local address, if the port has an `address`.
    pub address6: Option<Ipv6Addr>,
    /// The broadcast address of its subnet, to which no router forwards.
    pub broadcast: Option<Ipv4Addr>,
    /// Whether it hears all frames of a link, those for others too. Then a router drops frames for other hardware
    /// addresses than `mac`, and a bridge learns who is on its side. A port that plays a capture has all hosts on its side.
    pub hears_all: bool,
    /// Whether its traffic is made up by a generator, which draws link-local addresses, too.
    pub made_up: bool,
}

/// All ports, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortMap(pub Vec<Port>);

impl PortMap {
    /// `count` ports that send back out what they receive, from a generator; all are inside.
    pub fn one_armed(count: u8) -> PortMap {
        PortMap((0..count).map(|id| Port { made_up: true, ..Port::new(id, id, true) }).collect())
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
            address6: None,
            broadcast: None,
            hears_all: false,
            made_up: false,
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

/// After how long without a packet state is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// UDP flows: RFC 4787, REQ-5 recommends 5 minutes.
    pub udp: Time,
    /// TCP flows that saw packets both ways: RFC 5382, REQ-5 asks for 2 h 4 min.
    pub tcp_established: Time,
    /// TCP flows that saw packets one way: RFC 5382, REQ-5, 4 minutes.
    pub tcp_transitory: Time,
    /// TCP flows that saw a FIN or RST: the same; RFC 7857, section 2.1 wants them apart.
    pub tcp_closing: Time,
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
            tcp_closing: seconds(240),
            icmp: seconds(60),
            fragment: seconds(60),
            balanced: seconds(300),
        }
    }
}

/// An application's surroundings, and the values from which it reads its own options.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// Which application, by name ([`crate::Apps::names`]).
    pub name: String,
    /// Instructions per packet that memory accesses do not show, in core cycles.
    pub work: Cycles,
    /// `kvs`: instructions of a copy loop for each line, in core cycles.
    pub copy_line: Cycles,
    /// `kvs`: bytes of frame that packet buffers hold; a reply is built in its request's.
    pub buffer_room: u32,
    /// The machine's ports.
    pub ports: PortMap,
    /// `l3fwd`, `synthetic`: who says where a packet leaves.
    pub egress: Egress,
    /// `l3fwd`, `synthetic`: the routes.
    pub routes: Arc<[Route]>,
    /// `synthetic`: when packets of this core begin to cost `target_accesses` reads more; `None`: never.
    pub target_begins: Option<Time>,
    /// `nat`, `lb`: when flows are given up.
    pub timeouts: Timeouts,
    /// `lb`: what a file says of its servers.
    pub servers: Servers,
    /// `kvs`: memory of the NIC of each port for values of hot items, shared evenly by its cores; none: no item is hot.
    pub hot: Vec<Allocation>,
    /// Seed of pseudo-random choices.
    pub seed: u64,
    /// Values of keys.
    pub values: Values,
}

impl AppConfig {
    /// The application `name` on `ports`, with the defaults of its options, no routes and no work.
    pub fn new(name: &str, ports: PortMap) -> AppConfig {
        AppConfig {
            name: name.to_owned(),
            work: Cycles(0),
            copy_line: Cycles(0),
            buffer_room: mbuf_room(),
            ports,
            egress: Egress::Route,
            routes: Arc::new([]),
            target_begins: None,
            timeouts: Timeouts::default(),
            servers: Servers::default(),
            hot: Vec::new(),
            seed: 1,
            values: Values::default(),
        }
    }

    /// The same configuration with one value more, or another one.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> AppConfig {
        self.values.set(key, value);
        self
    }

    /// The options of one owner.
    pub fn read<O: Options>(&self) -> O {
        self.values.read()
    }

    /// Table entries of one of `cores` cores, `each` for every flow.
    pub(crate) fn entries_per_core(&self, cores: usize, each: u64) -> Result<u32, AppError> {
        let FlowTableOptions { table_entries, .. } = self.read();
        let share = table_entries.div_ceil(cores.max(1) as u64);
        match u32::try_from(share.saturating_mul(each)) {
            Ok(entries) if entries > 0 && entries <= 1 << 30 => Ok(entries),
            _ => Err(AppError::OutOfRange {
                setting: "table_entries",
                value: table_entries,
                range: "at least 1, and at most 2^29 for each core",
            }),
        }
    }
}
