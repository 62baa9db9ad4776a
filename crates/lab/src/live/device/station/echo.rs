//! Echo requests to the port's own address (RFC 792), answered where they came in.

use std::net::Ipv4Addr;

use nicforge_wire::checksum::{checksum, update16};
use nicforge_wire::headers::{
    ETHERNET_HEADER_LEN, EthernetView, ICMP_HEADER_LEN, IPV4_MIN_HEADER_LEN, IcmpView, Ipv4View,
    MacAddress, ethertype, icmp_type, ip_protocol,
};

use super::Station;

/// Hops of an answer.
const HOPS: u8 = 64;
/// Headers of an echo without options.
const HEADERS: usize = ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + ICMP_HEADER_LEN;

impl Station {
    /// Answers `frame` if it is an echo request to its own address; whether it was.
    #[inline]
    pub(super) fn echo(&mut self, frame: &[u8]) -> bool {
        const DESTINATION: std::ops::Range<usize> = 30..34;
        // Few frames are for the port itself, so that comes first.
        let own = self.address.map(|address| address.octets());
        let for_us = frame.get(DESTINATION) == own.as_ref().map(|own| &own[..]);
        for_us && self.answer_echo(frame)
    }

    #[cold]
    fn answer_echo(&mut self, frame: &[u8]) -> bool {
        let answer = answer(frame, self.mac);
        let answered = answer.is_some();
        self.counts.taken += u64::from(answered);
        self.outgoing.extend(answer);
        answered
    }
}

/// Whether somebody can have this address (RFC 1122, section 3.2.1.3).
fn is_host(address: Ipv4Addr) -> bool {
    let [network, ..] = address.octets();
    (1..224).contains(&network) && !address.is_loopback()
}

/// The answer of `own` to an echo request of a host to it, in one piece, sound and without options; other
/// requests are left to the application.
fn answer(frame: &[u8], own: MacAddress) -> Option<Vec<u8>> {
    let mut frame = (frame.len() >= HEADERS).then(|| frame.to_vec())?;
    let mut ethernet = EthernetView::new(&mut frame[..]).ok()?;
    if ethernet.ethertype() != ethertype::IPV4 || ethernet.destination() != own {
        return None;
    }
    ethernet.swap_addresses();
    let mut ip = Ipv4View::new(&mut frame[ETHERNET_HEADER_LEN..]).ok()?;
    let plain = ip.header_len() == IPV4_MIN_HEADER_LEN && !ip.is_fragment();
    let is_sound = plain && checksum(ip.header()) == 0;
    if !is_sound || ip.protocol() != ip_protocol::ICMP || !is_host(ip.source()) {
        return None;
    }
    let mut icmp = IcmpView::new(ip.payload_mut()).ok()?;
    if icmp.message_type() != icmp_type::ECHO_REQUEST {
        return None;
    }
    let kinds = [icmp_type::ECHO_REQUEST, icmp_type::ECHO_REPLY];
    let [old, new] = kinds.map(|kind| u16::from_be_bytes([kind, icmp.code()]));
    icmp.set_type_and_code(icmp_type::ECHO_REPLY, icmp.code());
    icmp.set_checksum(update16(icmp.checksum(), old, new));
    let (asker, own) = (ip.source(), ip.destination());
    ip.set_source(own);
    ip.set_destination(asker);
    ip.set_time_to_live(HOPS);
    ip.set_checksum(0);
    let sum = checksum(ip.header());
    ip.set_checksum(sum);
    Some(frame)
}
