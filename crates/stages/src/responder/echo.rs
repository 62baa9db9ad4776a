//! Echo requests to the port's own addresses (RFC 792, RFC 4443), answered where they came in.

use nicforge_wire::checksum::{checksum, update16};
use nicforge_wire::headers::{
    ETHERNET_HEADER_LEN, EthernetView, ICMP_HEADER_LEN, IPV4_MIN_HEADER_LEN, IPV6_HEADER_LEN, IcmpView, Ipv4View,
    Ipv6View, MacAddress, ethertype, icmp_type, icmpv6_type, ip_protocol,
};
use nicforge_wire::icmp_error::is_host;

use super::{Heard, Responder};

/// Hops of an answer.
const HOPS: u8 = 64;
/// Headers of an echo without options.
const HEADERS: usize = ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + ICMP_HEADER_LEN;

impl Responder {
    /// Answers `frame` if it is an echo request to its own address.
    #[inline]
    pub(super) fn echo(&self, frame: &[u8]) -> Heard {
        const DESTINATION: std::ops::Range<usize> = 30..34;
        // Few frames are for the port itself, so that comes first.
        let own = self.address.map(|address| address.octets());
        let for_us = frame.get(DESTINATION) == own.as_ref().map(|own| &own[..]);
        if for_us { self.answer_echo(frame) } else { Heard::NotOurs }
    }

    /// The same of `frame`, of ICMPv6.
    pub(super) fn echo_v6(&self, frame: &[u8]) -> Heard {
        self.answer_v6(frame).map_or(Heard::NotOurs, Heard::Answer)
    }

    /// The answer to an echo request right behind the fixed header.
    fn answer_v6(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let mut frame = frame.to_vec();
        let mut ethernet = EthernetView::new(&mut frame[..]).ok()?;
        if ethernet.destination() != self.mac {
            return None;
        }
        ethernet.swap_addresses();
        let (_, packet) = frame.split_at_mut_checked(ETHERNET_HEADER_LEN)?;
        let (header, message) = packet.split_at_mut_checked(IPV6_HEADER_LEN)?;
        let mut ip = Ipv6View::new(header).ok()?;
        let (asker, own) = (ip.source(), ip.destination());
        let mut icmp = IcmpView::new(message).ok()?;
        if !is_host(asker.into()) || !self.has(own) || icmp.message_type() != icmpv6_type::ECHO_REQUEST {
            return None;
        }
        let kinds = [icmpv6_type::ECHO_REQUEST, icmpv6_type::ECHO_REPLY];
        put_reply(&mut icmp, kinds);
        ip.set_source(own);
        ip.set_destination(asker);
        ip.set_hop_limit(HOPS);
        Some(frame)
    }

    #[cold]
    fn answer_echo(&self, frame: &[u8]) -> Heard {
        answer(frame, self.mac).map_or(Heard::NotOurs, Heard::Answer)
    }
}

/// Makes an echo request a reply, where these are the two types.
fn put_reply(icmp: &mut IcmpView<&mut [u8]>, [request, reply]: [u8; 2]) {
    let [old, new] = [request, reply].map(|kind| u16::from_be_bytes([kind, icmp.code()]));
    icmp.set_type_and_code(reply, icmp.code());
    icmp.set_checksum(update16(icmp.checksum(), old, new));
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
    if !is_sound || ip.protocol() != ip_protocol::ICMP || !is_host(ip.source().into()) {
        return None;
    }
    let mut icmp = IcmpView::new(ip.payload_mut()).ok()?;
    if icmp.message_type() != icmp_type::ECHO_REQUEST {
        return None;
    }
    put_reply(&mut icmp, [icmp_type::ECHO_REQUEST, icmp_type::ECHO_REPLY]);
    let (asker, own) = (ip.source(), ip.destination());
    ip.set_source(own);
    ip.set_destination(asker);
    ip.set_time_to_live(HOPS);
    ip.set_checksum(0);
    let sum = checksum(ip.header());
    ip.set_checksum(sum);
    Some(frame)
}
