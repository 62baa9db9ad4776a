//! What a host is told about itself.

use std::net::{IpAddr, Ipv6Addr};

use nicforge_wire::headers::MacAddress;

/// What frames look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Ethernet frames; neighbours are resolved.
    Ethernet,
    /// IP packets, as a TUN device has them.
    Ip,
}

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Bits of the network.
    pub prefix: u8,
}

impl Address {
    /// `ip` in a network of `prefix` bits.
    pub fn new(ip: impl Into<IpAddr>, prefix: u8) -> Address {
        Address { ip: ip.into(), prefix }
    }

    /// Whether `other` lies in the same network.
    pub fn reaches(&self, other: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()) << 96, 32),
            IpAddr::V6(ip) => (ip.to_bits(), 128),
        };
        let ((ours, length), (theirs, other_length)) = (bits(self.ip), bits(other));
        let prefix = u32::from(self.prefix).min(length);
        length == other_length && (prefix == 0 || (ours ^ theirs) >> (128 - prefix) == 0)
    }
}

/// Addresses, link and routes of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Frames or packets.
    pub medium: Medium,
    /// Our hardware address.
    pub mac: MacAddress,
    /// Longest packet that the link takes, IP header included, in bytes.
    pub mtu: u16,
    /// Our addresses.
    pub addresses: Vec<Address>,
    /// Routers by address family.
    pub gateways: Vec<IpAddr>,
    /// Every address that a packet is sent to is ours: for tests that name them as they go.
    pub any_address: bool,
    /// Payload that a connection sends before others get their turn, in bytes; 0 is a segment. What follows one another
    /// can be cut by a NIC and merged by a receiver.
    pub turn_bytes: u32,
}

impl HostConfig {
    /// A host on Ethernet with the usual MTU.
    pub fn ethernet(mac: MacAddress, addresses: Vec<Address>) -> HostConfig {
        HostConfig {
            medium: Medium::Ethernet,
            mac,
            mtu: 1500,
            addresses,
            gateways: Vec::new(),
            any_address: false,
            turn_bytes: 0,
        }
    }

    /// A host that exchanges IP packets.
    pub fn ip(addresses: Vec<Address>) -> HostConfig {
        let mac = MacAddress([0; 6]);
        HostConfig {
            medium: Medium::Ip,
            mac,
            mtu: 1500,
            addresses,
            gateways: Vec::new(),
            any_address: false,
            turn_bytes: 0,
        }
    }

    /// Whether `ip` is one of ours.
    pub fn owns(&self, ip: IpAddr) -> bool {
        self.any_address || self.addresses.iter().any(|address| address.ip == ip) || self.is_link_local(ip)
    }

    fn is_link_local(&self, ip: IpAddr) -> bool {
        self.medium == Medium::Ethernet && ip == IpAddr::V6(MacAddress::link_local(self.mac))
    }

    /// The address to use towards `remote`.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let family = |address: &&Address| address.ip.is_ipv4() == remote.is_ipv4();
        if let IpAddr::V6(ip) = remote
            && is_link_scope(ip)
        {
            return Some(MacAddress::link_local(self.mac).into());
        }
        let near = self.addresses.iter().filter(family).find(|address| address.reaches(remote));
        near.or_else(|| self.addresses.iter().find(family)).map(|address| address.ip)
    }

    /// Who gets packets for `remote` next.
    pub fn next_hop(&self, remote: IpAddr) -> Option<IpAddr> {
        let link = matches!(remote, IpAddr::V6(ip) if is_link_scope(ip));
        if self.medium == Medium::Ip || link || self.addresses.iter().any(|address| address.reaches(remote)) {
            return Some(remote);
        }
        self.gateways.iter().copied().find(|gateway| gateway.is_ipv4() == remote.is_ipv4())
    }

    /// Payload of a segment without TCP options that fills the MTU towards `remote`.
    pub fn path_mss(&self, remote: IpAddr) -> u16 {
        path_mss(self.mtu, remote.is_ipv4())
    }
}

/// Payload of a segment without TCP options in a packet of `mtu` bytes.
pub(crate) fn path_mss(mtu: u16, is_v4: bool) -> u16 {
    mtu.saturating_sub(if is_v4 { 40 } else { 60 })
}

fn is_link_scope(ip: Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}
