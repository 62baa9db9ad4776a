//! Which packets a router may forward (RFC 1812, sections 5.3.4 to 5.3.7; RFC 3927, section 7; RFC 4291, section 2).

use std::net::{Ipv4Addr, Ipv6Addr};

use nicforge_nic::Packet;
use nicforge_wire::IpAddresses;

use crate::PortMap;
use crate::headers::Headers;

/// The frame is for the hardware address of another host.
pub const OTHER_HOST: &str = "other_host";
/// The frame is for a group of hosts: broadcast or multicast on its link.
pub const GROUP_FRAME: &str = "group_frame";
/// No host sends from this address, or it is the router's own.
pub const BAD_SOURCE: &str = "bad_source";
/// No router forwards to this address.
pub const BAD_DESTINATION: &str = "bad_destination";

/// The packet is for the router itself, which has no use for it.
pub const OWN_ADDRESS: &str = "own_address";

/// Whether `address` is one of the router's own.
#[inline]
pub fn is_own(address: u32, ports: &PortMap) -> bool {
    ports.0.iter().any(|port| port.address.is_some_and(|own| own.to_bits() == address))
}

/// The same for IPv6.
pub fn is_own_v6(address: Ipv6Addr, ports: &PortMap) -> bool {
    ports.0.iter().any(|port| port.address6 == Some(address))
}

/// Whether the router with `ports` may forward the packet. An error is the name of a drop.
#[inline(always)]
pub fn check(packet: &Packet, headers: &Headers, ports: &PortMap) -> Result<(), &'static str> {
    if !headers.summary.is_ip() {
        return Ok(());
    }
    if headers.to.is_multicast() {
        return Err(GROUP_FRAME);
    }
    let Some(port) = ports.get(packet.port) else {
        return Ok(());
    };
    if port.hears_all && headers.to != port.mac {
        return Err(OTHER_HOST);
    }
    match headers.summary.addresses {
        IpAddresses::V4 { source, destination } => check_v4(source, destination, port.made_up, ports),
        IpAddresses::V6 { source, destination } => check_v6(source, destination, ports),
        IpAddresses::None => Ok(()),
    }
}

#[inline(always)]
fn check_v4(source: Ipv4Addr, destination: Ipv4Addr, made_up: bool, ports: &PortMap) -> Result<(), &'static str> {
    let crosses = |address: Ipv4Addr| is_forwardable_v4(address.to_bits()) && (made_up || !address.is_link_local());
    let is_broadcast = |address: Ipv4Addr| ports.0.iter().any(|port| port.broadcast == Some(address));
    if !crosses(source) || is_broadcast(source) || is_own(source.to_bits(), ports) {
        return Err(BAD_SOURCE);
    }
    if !crosses(destination) || is_broadcast(destination) {
        return Err(BAD_DESTINATION);
    }
    Ok(())
}

/// Whether packets of one host with this IPv4 address may cross routers: not 0/8, 127/8, nor 224/3.
#[inline(always)]
fn is_forwardable_v4(address: u32) -> bool {
    let network = address >> 24;
    network != 0 && network != 127 && network < 224
}

fn check_v6(source: Ipv6Addr, destination: Ipv6Addr, ports: &PortMap) -> Result<(), &'static str> {
    if !is_forwardable_v6(source) || is_own_v6(source, ports) {
        return Err(BAD_SOURCE);
    }
    if !is_forwardable_v6(destination) {
        return Err(BAD_DESTINATION);
    }
    Ok(())
}

fn is_forwardable_v6(address: Ipv6Addr) -> bool {
    let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !special && !address.is_unicast_link_local()
}
