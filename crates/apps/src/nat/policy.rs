//! What a NAT's administrator chooses.

use std::net::SocketAddrV4;

use nicforge_options::{Allowed, Form, choice, options};
use nicforge_units::Time;
use nicforge_wire::headers::ip_protocol;

use crate::Timeouts;
use crate::options::{ExternalCount, FlowTableOptions, FragmentOptions};

choice! {
    /// Which flows share an external port.
    pub enum Mapping {
        /// None: each flow has its own, given out in sequence.
        PerFlow = "per_flow",
        /// All of one inside endpoint, and each endpoint has its own, chosen at random.
        EndpointIndependent = "endpoint_independent",
    }
}

choice! {
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

impl Forward {
    /// Reads `tcp 80 10.0.0.80:8080`.
    fn parse(text: &str) -> Option<Forward> {
        let mut words = text.split_whitespace();
        let protocol = match words.next()? {
            "tcp" => ip_protocol::TCP,
            "udp" => ip_protocol::UDP,
            _ => return None,
        };
        let forward =
            Forward { protocol, external_port: words.next()?.parse().ok()?, inside: words.next()?.parse().ok()? };
        let sensible = forward.external_port > 0 && forward.inside.port() > 0 && words.next().is_none();
        sensible.then_some(forward)
    }

    /// Reads forwards with commas between them.
    pub fn parse_all(text: &str) -> Option<Vec<Forward>> {
        text.split(',').map(Forward::parse).collect()
    }
}

/// How forwards are written.
static FORWARDS: Form = Form {
    says: "protocol, external port and server, such as `tcp 80 10.0.0.80:8080, udp 53 10.0.0.53:53`",
    parse: |text| Forward::parse_all(text).map(|_| text.to_owned()),
};

options! {
    /// The NAT.
    pub struct NatOptions {
        embed table: FlowTableOptions;
        embed fragments: FragmentOptions;
        embed addresses: ExternalCount;
        /// Which flows share an external port: none, in sequence, or all of one inside endpoint, at random (RFC 4787).
        nat_mapping: Mapping = Mapping::PerFlow, "", Mapping::ALLOWED;
        /// Who outside may send to an external endpoint in use, with endpoint-independent mapping.
        nat_filtering: Filtering = Filtering::AddressDependent, "", Filtering::ALLOWED, source "RFC 4787, section 5";
        /// Whether flows to different destinations share external ports when none is free, with endpoint-independent mapping;
        /// such flows have no mapping that others could use (against RFC 4787, REQ-3).
        nat_ports_shared: bool = false, "", Allowed::Flag;
        /// How much of its even part of the external ports each core keeps for itself; the rest goes to the cores that need
        /// it. With endpoint-independent mapping.
        nat_ports_kept_percent: u32 = 50, "%", Allowed::Whole(0, 100);
        /// How many of the table's flows one inside host may have, with endpoint-independent mapping.
        nat_host_share_percent: u32 = 100, "%", Allowed::Whole(1, 100);
        /// Ports of the first external address that belong to servers inside, with endpoint-independent mapping.
        nat_forwards: Option<String> = None, "", Allowed::Form(&FORWARDS), default "none";
        /// Silence that ends a UDP flow.
        nat_udp_s: u32 = 300, "s", Allowed::Whole(1, 86_400), source "RFC 4787, REQ-5";
        /// Silence that ends a TCP flow with packets both ways.
        nat_tcp_established_s: u32 = 7440, "s", Allowed::Whole(1, 604_800), source "RFC 5382, REQ-5";
        /// Silence that ends a TCP flow with packets one way.
        nat_tcp_transitory_s: u32 = 240, "s", Allowed::Whole(1, 86_400), source "RFC 5382, REQ-5";
        /// Silence that ends a TCP flow after a FIN or RST.
        nat_tcp_closing_s: u32 = 240, "s", Allowed::Whole(1, 86_400), source "RFC 5382, REQ-5; RFC 7857, section 2.1";
        /// Silence that ends a flow of ICMP queries.
        nat_icmp_s: u32 = 60, "s", Allowed::Whole(1, 86_400), source "RFC 5508, REQ-2";
    }
}

impl NatOptions {
    /// The forwards, which the key's form has checked.
    pub fn forwards(&self) -> Vec<Forward> {
        self.nat_forwards.as_deref().and_then(Forward::parse_all).unwrap_or_default()
    }

    /// The time-outs of flows; the others are those of `others`.
    pub fn timeouts(&self, others: Timeouts) -> Timeouts {
        let seconds = |seconds: u32| Time::from_ms(1000 * u64::from(seconds));
        Timeouts {
            udp: seconds(self.nat_udp_s),
            tcp_established: seconds(self.nat_tcp_established_s),
            tcp_transitory: seconds(self.nat_tcp_transitory_s),
            tcp_closing: seconds(self.nat_tcp_closing_s),
            icmp: seconds(self.nat_icmp_s),
            ..others
        }
    }
}
