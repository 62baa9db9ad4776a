//! What a NAT's administrator chooses.

use std::net::SocketAddrV4;

nicforge_options::choice! {
    /// Which flows share an external port.
    pub enum Mapping {
        /// None: each flow has its own, given out in sequence.
        PerFlow = "per_flow",
        /// All of one inside endpoint, and each endpoint has its own, chosen at random.
        EndpointIndependent = "endpoint_independent",
    }
}

nicforge_options::choice! {
    /// Who outside may send to an external endpoint in use.
    pub enum Filtering {
        /// Everybody.
        EndpointIndependent = "endpoint_independent",
        /// Hosts that the inside endpoint has sent to.
        AddressDependent = "address_dependent",
        /// Endpoints that the inside endpoint has sent to.
        AddressAndPortDependent = "address_and_port_dependent",
    }
}

/// A port of the first external address that belongs to a server inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// IP protocol: TCP or UDP.
    pub protocol: u8,
    /// The external port.
    pub external_port: u16,
    /// The server.
    pub inside: SocketAddrV4,
}

/// How a NAT maps and filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatPolicy {
    /// Which flows share an external port.
    pub mapping: Mapping,
    /// Who outside may send in.
    pub filtering: Filtering,
    /// How many of the flows one inside host may have, in percent.
    pub host_share_percent: u32,
    /// Ports of servers inside.
    pub forwards: Vec<Forward>,
}

impl Default for NatPolicy {
    fn default() -> NatPolicy {
        NatPolicy {
            mapping: Mapping::PerFlow,
            filtering: Filtering::AddressDependent,
            host_share_percent: 100,
            forwards: Vec::new(),
        }
    }
}
