//! Properties of an application that the assembler reads before it builds it.

use nicforge_wire::traffic::RequestProtocol;

/// Properties of an application that the assembler reads before it builds it. The default is a forwarder without tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppShape {
    /// The protocol of the requests that it serves, if its traffic is that of clients of a key-value store.
    pub requests: Option<RequestProtocol>,
    /// Whether values of hot items lie in memory of the NICs.
    pub values_in_nicmem: bool,
    /// Whether it looks up routes.
    pub routes: bool,
    /// Whether packets of a target cost it more memory accesses than others.
    pub more_accesses: bool,
    /// Whether NICs handle its flows without software.
    pub offloads_flows: bool,
    /// Which headers must lie in a packet's first part.
    pub reads: Reads,
    /// How the application treats packets of flows that its table has no room for; `None` without a table.
    pub full_table: Option<FullTable>,
    /// Whether it is a bridge: it forwards frames of neighbours about each other, too.
    pub bridges: bool,
    /// Whether NICs hold fragments that come before the first one of their packet.
    pub holds_fragments: bool,
    /// The address without which it cannot run on a real network.
    pub needs_address: Option<NeededAddress>,
}

/// Headers that an application reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// All up to those of TCP and UDP.
    #[default]
    Headers,
    /// Ethernet's only.
    Ethernet,
}

/// How an application treats a packet of a flow that its table has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullTable {
    /// It is dropped, as `table_full`.
    Drops,
    /// It is forwarded and not counted.
    ForwardsUncounted,
}

/// An address that other hosts know, and that no default can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededAddress {
    /// The address that a NAT sends from.
    External,
    /// The first server of a load balancer.
    Server,
}
