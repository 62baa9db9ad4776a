//! Tables that all cores of a machine share: made once, filled by core 0.

use std::sync::Arc;

use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::Bytes;

use crate::AppConfig;
use crate::tables::{Lpm, Prefix, SharedPorts};

/// A routing table with what it is filled from.
#[derive(Clone, Debug)]
pub struct RouteTable {
    lpm: Lpm,
    routes: Arc<Vec<(Prefix, u8)>>,
}

impl RouteTable {
    fn allocate(space: &mut AddressSpace, routes: Vec<(Prefix, u8)>) -> Option<RouteTable> {
        (!routes.is_empty()).then(|| RouteTable { lpm: Lpm::allocate(space, &routes), routes: Arc::new(routes) })
    }
}

/// The routing tables of both IP versions; an empty one takes no memory, nor does one of IPv6 that has but a
/// default route.
#[derive(Clone, Debug, Default)]
pub struct Routing {
    v4: Option<RouteTable>,
    v6: Option<RouteTable>,
    /// Where there is no table of IPv6.
    default6: Option<u8>,
}

impl Routing {
    /// The port for an IPv4 address.
    #[inline]
    pub fn find4<C: Cpu>(&self, cpu: &mut C, address: u32) -> Option<u8> {
        self.v4.as_ref()?.lpm.find4(cpu, address)
    }

    /// The port for an IPv6 address.
    #[inline]
    pub fn find6<C: Cpu>(&self, cpu: &mut C, address: u128) -> Option<u8> {
        match &self.v6 {
            Some(table) => table.lpm.find(cpu, address),
            None => self.default6,
        }
    }

    /// Writes the tables.
    pub fn fill<C: Cpu>(&self, cpu: &mut C) {
        for table in [&self.v4, &self.v6].into_iter().flatten() {
            table.lpm.fill(cpu, &table.routes);
        }
    }
}

/// The tables that all cores share.
#[derive(Clone, Debug, Default)]
pub struct SharedTables {
    pub(crate) routing: Routing,
    pub(crate) array: Option<(Addr, Bytes)>,
    pub(crate) flexkvs: Option<crate::flexkvs::Store>,
    pub(crate) nat_ports: Option<SharedPorts>,
}

impl SharedTables {
    /// The routing tables of `config`.
    pub(crate) fn with_routes(config: &AppConfig, space: &mut AddressSpace) -> SharedTables {
        let of = |v4: bool| -> Vec<(Prefix, u8)> {
            let routes = config.routes.iter();
            let routes = routes.filter(move |route| route.address.is_ipv4() == v4);
            routes.map(|route| (route.prefix(), route.port)).collect()
        };
        let mut routing = Routing { v4: RouteTable::allocate(space, of(true)), ..Routing::default() };
        let v6 = of(false);
        if v6.iter().all(|(prefix, _)| prefix.len == 0) {
            routing.default6 = v6.last().map(|(_, port)| *port);
        } else {
            routing.v6 = RouteTable::allocate(space, v6);
        }
        SharedTables { routing, ..SharedTables::default() }
    }
}
