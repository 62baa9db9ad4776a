//! A host's software, and the connections that it takes or opens.

use std::net::Ipv4Addr;

use nicforge_nic::Pool;
use nicforge_units::Time;
use nicforge_wire::rss::IndirectionTable;
use nicforge_wire::traffic::FlowTuple;

use super::build::{CLIENT, PORT, SERVER, TARGET};
use super::crew::SharedCrew;
use super::options::RpcOptions;
use super::program::{SharedApp, SharedService};
use super::service::STORAGE_PORT;
use crate::run::{queue_of, rss_of};
use crate::settings::Settings;
use crate::tasnic::{SharedNic, SharedSlow};

/// Of the client's connections; one each.
const FIRST_CLIENT_PORT: u16 = 40_000;

/// The processor that carries a host's TCP.
pub enum Carried {
    /// A service: its flow-groups, and the cores that serve them.
    Service {
        groups: Vec<SharedService>,
        crew: SharedCrew,
        /// Packet buffers of the host.
        pool: Pool,
    },
    /// The NIC, with its slow path on a core.
    Nic { nic: SharedNic, slow: SharedSlow },
}

/// A host's software.
pub struct Software {
    /// Its TCP.
    pub carried: Carried,
    /// Its applications.
    pub apps: Vec<SharedApp>,
}

impl Software {
    /// Connections that are open.
    pub fn open(&self) -> usize {
        match &self.carried {
            Carried::Service { groups, .. } => groups.iter().map(|group| group.borrow().open()).sum(),
            Carried::Nic { slow, .. } => slow.borrow().open(),
        }
    }

    pub(super) fn listen(&self, port: u16, connections: usize) {
        match &self.carried {
            Carried::Service { groups, .. } => groups.iter().for_each(|group| group.borrow_mut().listen(port)),
            Carried::Nic { slow, .. } => slow.borrow_mut().listen(port, connections),
        }
    }

    /// Opens all connections, each from the flow-group to which RSS steers what comes back.
    pub(super) fn connect(&self, settings: &Settings) {
        for number in 0..settings.read::<RpcOptions>().rpc_connections {
            let port = FIRST_CLIENT_PORT + number as u16;
            match &self.carried {
                Carried::Service { groups, .. } => {
                    let group = group_of(settings, groups.len(), (SERVER, PORT), (CLIENT, port));
                    groups[group].borrow_mut().connect(port, (SERVER, PORT), Time::ZERO);
                }
                Carried::Nic { slow, .. } => slow.borrow_mut().connect(port, (SERVER, PORT), Time::ZERO),
            }
        }
    }

    /// Connects each flow-group of a server with its target.
    pub(super) fn connect_target(&self, settings: &Settings) {
        let Carried::Service { groups, .. } = &self.carried else { return };
        for (number, group) in groups.iter().enumerate() {
            let is_steered =
                |port: &u16| group_of(settings, groups.len(), (TARGET, STORAGE_PORT), (SERVER, *port)) == number;
            if let Some(port) = (FIRST_CLIENT_PORT..).find(is_steered) {
                group.borrow_mut().connect(port, (TARGET, STORAGE_PORT), Time::ZERO);
            }
        }
    }
}

/// The flow-group of so many to which RSS steers what comes from `from` to `to`.
fn group_of(settings: &Settings, groups: usize, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> usize {
    let (rss, table) = (rss_of(settings), IndirectionTable::spread_over(groups as u16));
    let ((source, source_port), (destination, destination_port)) = (from, to);
    queue_of(&FlowTuple { source, destination, source_port, destination_port }, &rss, &table).into()
}
