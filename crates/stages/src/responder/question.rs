//! Questions for a neighbour's hardware address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nicforge_wire::headers::{
    ARP_LEN, ArpOperation, ArpView, ETHERNET_HEADER_LEN, EthernetView, MacAddress, ethertype,
};
use nicforge_wire::neighbour::NeighbourMessage;

/// Bytes of a frame with an ARP question or answer.
pub const QUESTION_LEN: usize = ETHERNET_HEADER_LEN + ARP_LEN;

/// A port's own addresses.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Of its hardware.
    pub mac: MacAddress,
    /// Of IPv4.
    pub address: Option<Ipv4Addr>,
    /// Of IPv6, beside the link-local one.
    pub address6: Option<Ipv6Addr>,
}

/// The question for `wanted` from a port with these addresses; `None` where it has none of that kind.
pub fn question(own: &Addresses, wanted: IpAddr) -> Option<Vec<u8>> {
    let &Addresses { mac, address, address6 } = own;
    match wanted {
        IpAddr::V4(wanted) => Some(request(mac, address?, wanted).to_vec()),
        IpAddr::V6(wanted) => {
            // As is usual, from an address of the same kind.
            let from = address6.filter(|_| !wanted.is_unicast_link_local());
            let from = from.unwrap_or(mac.link_local());
            Some(NeighbourMessage::solicitation(mac, from, wanted))
        }
    }
}

/// The question for `wanted` by ARP.
pub fn request(mac: MacAddress, address: Ipv4Addr, wanted: Ipv4Addr) -> [u8; QUESTION_LEN] {
    let mut frame = [0; QUESTION_LEN];
    let (ethernet, arp) = frame.split_at_mut(ETHERNET_HEADER_LEN);
    if let Ok(mut ethernet) = EthernetView::new(ethernet) {
        ethernet.set_destination(MacAddress::BROADCAST);
        ethernet.set_source(mac);
        ethernet.set_ethertype(ethertype::ARP);
    }
    if let Ok(mut arp) = ArpView::init(arp, ArpOperation::Request) {
        arp.set_sender(mac, address);
        arp.set_target(MacAddress([0; 6]), wanted);
    }
    frame
}
