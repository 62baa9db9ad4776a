//! Neighbours on Ethernet (ARP, RFC 826; RFC 4861 for IPv6): ports ask for their next hop when a run begins.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_platform::live::ports::Port;
use nicforge_platform::live::{Clock, LiveError};
use nicforge_units::Time;
use nicforge_wire::headers::{
    ARP_LEN, ArpOperation, ArpView, ETHERNET_HEADER_LEN, EthernetView, MacAddress, ethertype,
};
use nicforge_wire::neighbour::{NeighbourKind, NeighbourMessage};

/// Bytes of a frame with a question or an answer.
pub const FRAME_LEN: usize = ETHERNET_HEADER_LEN + ARP_LEN;
/// How long is waited for an answer, and after how long is asked again.
const PATIENCE: Time = Time::from_ms(5_000);
const AGAIN: Time = Time::from_ms(500);

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The neighbour's hardware address.
    Is(MacAddress),
    /// Nobody answered in time.
    Nobody,
    /// The run shall end, before anybody answered.
    Stopped,
}

/// A port's own addresses: of its hardware, of IPv4, and of IPv6 beside the link-local one.
pub type Addresses = (MacAddress, Option<Ipv4Addr>, Option<Ipv6Addr>);

/// Asks for the hardware address of `wanted` over `port`, before any NIC has it, until `stop`. Other
/// frames that come in meanwhile are lost.
pub fn ask(port: &mut dyn Port, own: Addresses, wanted: IpAddr, stop: &AtomicBool) -> Result<Asked, LiveError> {
    let clock = Clock::start();
    let mut ask_at = Time::ZERO;
    while clock.now() < PATIENCE {
        if stop.load(Ordering::Acquire) {
            return Ok(Asked::Stopped);
        }
        if clock.now() >= ask_at {
            if let Some(question) = question(own, wanted) {
                port.send(&question, clock.now())?;
                port.flush()?;
            }
            ask_at = clock.now() + AGAIN;
        }
        let mut found = None;
        port.receive(32, &mut |frame| {
            found = found.or_else(|| reply_from(frame, wanted));
        })?;
        if let Some(mac) = found {
            return Ok(Asked::Is(mac));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(Asked::Nobody)
}

/// The question for `wanted` from a port with these addresses; `None` where it has none of that kind.
pub fn question((mac, address, address6): Addresses, wanted: IpAddr) -> Option<Vec<u8>> {
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
pub fn request(mac: MacAddress, address: Ipv4Addr, wanted: Ipv4Addr) -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
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

fn reply_from(frame: &[u8], wanted: IpAddr) -> Option<MacAddress> {
    if let IpAddr::V6(wanted) = wanted {
        let message = NeighbourMessage::read(frame)?;
        let is_answer = message.kind == NeighbourKind::Advertisement && message.target == wanted;
        return message.hardware.filter(|_| is_answer);
    }
    let ethernet = EthernetView::new(frame).ok()?;
    let arp = ArpView::new(frame.get(ETHERNET_HEADER_LEN..)?).ok()?;
    (ethernet.ethertype() == ethertype::ARP && arp.sender_ip() == wanted).then(|| arp.sender_mac())
}
