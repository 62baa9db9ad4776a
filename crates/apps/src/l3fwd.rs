//! `l3fwd`: an IPv4 and IPv6 router. Longest-prefix match, one hop less, new Ethernet
//! addresses.
//!
//! Packets whose IPv4 header checksum is wrong, whose hops are used up, or to which no route leads, are dropped. Where ports have
//! addresses, the router reports the last two to their senders by ICMP. It does not process options that address routers.

use nicforge_nic::{Packet, PortId, Verdict};
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_wire::IpAddresses;
use nicforge_wire::headers::MacAddress;

use crate::forwardable;
use crate::headers::{self, Headers};
use crate::record_route;
use crate::shared::Routing;
use crate::undelivered::{NO_ROUTE, Refusals};
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Egress, Place, PortMap, SharedTables};
use nicforge_wire::rewrite;

/// The router.
#[derive(Clone, Debug)]
pub struct L3Fwd {
    pub(crate) router: Router,
    pub(crate) refusals: Refusals,
}

impl<C: Cpu> Application<C> for L3Fwd {
    /// Core 0 writes the routes.
    fn fill_shared(&mut self, cpu: &mut C) {
        self.router.start(cpu);
    }

    /// Routes one packet.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let headers = match headers::read_routed(cpu, packet, &self.router.ports) {
            Ok(headers) => headers,
            Err(cause) => return Verdict::Drop(cause),
        };
        if headers.summary.is_ip() && headers.hops <= 1 {
            return self.refusals.expired(cpu, packet, &self.router.ports);
        }
        let (out, macs) = match self.router.way(cpu, packet, &headers) {
            Ok(way) => way,
            Err(NO_ROUTE) => return self.refusals.no_route(cpu, packet, &self.router.ports),
            Err(cause) => return Verdict::Drop(cause),
        };
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        let l3 = usize::from(headers.summary.l3_offset);
        rewrite::decrement_hops(frame, l3);
        record_route::record(frame, l3, self.router.ports.get(out).and_then(|port| port.address));
        rewrite::set_macs(frame, macs[0], macs[1]);
        Verdict::Transmit(out)
    }
}

impl AppKind for L3Fwd {
    const NAME: &'static str = "l3fwd";
    const ABOUT: &'static str = "forwards by the longest matching prefix, IPv4 and IPv6";
    const ROUTER: bool = true;
    type Options = crate::options::RouteOptions;

    fn shape(_options: &Self::Options) -> AppShape {
        AppShape { routes: true, ..AppShape::default() }
    }

    fn share(config: &AppConfig, space: &mut AddressSpace) -> SharedTables {
        SharedTables::with_routes(config, space)
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        _space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let router = Router::new(config, place.core, shared);
        Ok(Box::new(L3Fwd { router, refusals: Refusals::default() }))
    }
}

/// Finds a packet's way out; the tables are shared by all cores.
#[derive(Clone, Debug)]
pub struct Router {
    ports: PortMap,
    egress: Egress,
    routing: Routing,
    fills: bool,
}

impl Router {
    /// That of core `core`, over the routes of `shared`.
    pub(crate) fn new(config: &AppConfig, core: usize, shared: &SharedTables) -> Router {
        Router { ports: config.ports.clone(), egress: config.egress, routing: shared.routing.clone(), fills: core == 0 }
    }

    /// Core 0 writes the routes.
    pub(crate) fn start<C: Cpu>(&self, cpu: &mut C) {
        if self.fills {
            self.routing.fill(cpu);
        }
    }

    /// Looks the destination up: where the packet leaves, and the Ethernet addresses of source and
    /// destination that it then gets. An error is the name of a drop.
    #[inline]
    pub(crate) fn way<C: Cpu>(
        &self,
        cpu: &mut C,
        packet: &Packet,
        headers: &Headers,
    ) -> Result<(PortId, [MacAddress; 2]), &'static str> {
        let hop = match headers.summary.addresses {
            IpAddresses::V4 { destination, .. } if forwardable::is_own(destination.to_bits(), &self.ports) => {
                return Err(forwardable::OWN_ADDRESS);
            }
            IpAddresses::V4 { destination, .. } => self.routing.find4(cpu, destination.to_bits()),
            IpAddresses::V6 { destination, .. } if forwardable::is_own_v6(destination, &self.ports) => {
                return Err(forwardable::OWN_ADDRESS);
            }
            IpAddresses::V6 { destination, .. } => self.routing.find6(cpu, destination.to_bits()),
            IpAddresses::None => return Err("not_ip"),
        };
        let hop = hop.ok_or(NO_ROUTE)?;
        let out = match self.egress {
            Egress::Route => PortId(hop),
            Egress::Peer => self.ports.get(packet.port).map_or(packet.port, |port| port.peer),
        };
        self.by(out)
    }

    /// The way by the peer of the port that `packet` came in on, without a look-up.
    pub(crate) fn peer(&self, packet: &Packet) -> Result<(PortId, [MacAddress; 2]), &'static str> {
        self.by(self.ports.get(packet.port).map_or(packet.port, |port| port.peer))
    }

    fn by(&self, out: PortId) -> Result<(PortId, [MacAddress; 2]), &'static str> {
        let port = self.ports.get(out).ok_or(crate::NO_SUCH_PORT)?;
        Ok((out, [port.mac, port.next_hop]))
    }
}
