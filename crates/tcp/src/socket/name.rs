//! Addresses of sockets, IPv4 in IPv6 included.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Errno, Family, Fd, Kind, Sockets};
use crate::ring::Buffers;

/// Address and port as an application sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketName {
    /// Address; of an IPv6 socket always IPv6, mapped where it stands for IPv4.
    pub ip: IpAddr,
    /// Port.
    pub port: u16,
}

impl SocketName {
    /// As the stack uses it: mapped addresses are IPv4. An unspecified address is none.
    pub(super) fn plain(self) -> (Option<IpAddr>, u16) {
        let ip = match self.ip {
            IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
            ip => ip,
        };
        ((!ip.is_unspecified()).then_some(ip), self.port)
    }

    pub(super) fn shown(family: Family, ip: Option<IpAddr>, port: u16) -> SocketName {
        let ip = match (family, ip) {
            (Family::V4, None) => Ipv4Addr::UNSPECIFIED.into(),
            (Family::V6, None) => Ipv6Addr::UNSPECIFIED.into(),
            (Family::V6, Some(IpAddr::V4(ip))) => ip.to_ipv6_mapped().into(),
            (_, Some(ip)) => ip,
        };
        SocketName { ip, port }
    }
}

impl<B: Buffers> Sockets<B> {
    /// Our address (`getsockname`).
    pub fn local_name(&self, fd: Fd) -> Result<SocketName, Errno> {
        let socket = self.socket_ref(fd)?;
        if let Kind::Connection(id) = socket.kind
            && let Some(tuple) = self.stack.tuple(id)
        {
            return Ok(SocketName::shown(socket.family, Some(tuple.local), tuple.local_port));
        }
        Ok(SocketName::shown(socket.family, socket.bound.0, socket.bound.1))
    }

    /// The peer's address (`getpeername`).
    pub fn peer_name(&self, fd: Fd) -> Result<SocketName, Errno> {
        let socket = self.socket_ref(fd)?;
        let Kind::Connection(id) = socket.kind else { return Err(Errno::NOT_CONNECTED) };
        let tuple = self.stack.tuple(id).ok_or(Errno::NOT_CONNECTED)?;
        let open = self.stack.connection(id).is_some_and(|connection| connection.state().is_synchronized());
        if open {
            Ok(SocketName::shown(socket.family, Some(tuple.remote), tuple.remote_port))
        } else {
            Err(Errno::NOT_CONNECTED)
        }
    }
}
