//! What a router tells the sender of a packet that it could not send on (RFC 792, RFC 4443), made from
//! the packet itself.
//!
//! ```text
//!  Ethernet, tags │ IP: us → sender │ ICMP header │ the packet, as far as there is room
//! ```
//!
//! None about an error, a later fragment, or what was not sent by one host to one host
//! (RFC 1812, section 4.3.2.7; RFC 4443, section 2.4 e): such answers would multiply.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::{Accumulator, checksum, pseudo_header};
use crate::headers::{
    EthernetView, ICMP_HEADER_LEN, IPV4_MIN_HEADER_LEN, IPV6_HEADER_LEN, Ipv4View, Ipv6View, MacAddress, icmp_type,
    icmpv6_type, ip_protocol,
};
use crate::rewrite::put16;
use crate::{Fragment, FrameSummary, IpAddresses, parse_headers};

/// Why a packet was not sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// It had no hop left: time exceeded in transit.
    NoHopLeft,
    /// No route leads to its destination: network unreachable, or no route to destination.
    NoRoute,
    /// It is longer than the next link takes: fragmentation needed, or packet too big.
    TooBig {
        /// Bytes of IP packet that the link takes.
        mtu: u16,
    },
}

/// Bytes of the whole IP packet at most: RFC 1812, section 4.3.2.3; RFC 4443, section 3.3.
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1280;
/// Hops of what we send (RFC 1700).
const HOPS: u8 = 64;
/// The code of an unreachable destination that says so (RFC 1191, section 4).
const FRAGMENTATION_NEEDED: u8 = 4;
/// The code of an unreachable destination to which no route leads, in both versions.
const NO_ROUTE: u8 = 0;
/// What is quoted at least behind the IP header (RFC 792).
const QUOTED_MIN: usize = 8;

/// The interface that sends an error.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its IP address, of the packet's own version.
    pub ip: IpAddr,
}

/// The frame, of at most `longest` bytes, that tells the sender of the frame that begins with `about`,
/// `frame_len` bytes long, why it was not sent on.
///
/// `None` if RFC 1122 forbids an error about the frame, or if `longest` or `about` is too short to quote what is needed.
pub fn icmp_error(about: &[u8], frame_len: usize, why: Undelivered, from: Sender, longest: usize) -> Option<Vec<u8>> {
    let summary = parse_headers(about, frame_len).ok()?;
    if !may_be_told(about, &summary) {
        return None;
    }
    let l3 = usize::from(summary.l3_offset);
    let (header, longest_packet) = match from.ip {
        IpAddr::V4(_) => (IPV4_MIN_HEADER_LEN, LONGEST_V4),
        IpAddr::V6(_) => (IPV6_HEADER_LEN, LONGEST_V6),
    };
    let quote_at = l3 + header + ICMP_HEADER_LEN;
    let room = longest.min(l3 + longest_packet).checked_sub(quote_at)?;
    let quote = &about[l3..about.len().min(summary.l3_end as usize)];
    let quote = &quote[..quote.len().min(room)];
    if quote.len() < usize::from(summary.l4_offset) - l3 + QUOTED_MIN {
        return None;
    }
    let mut frame = about[..l3].to_vec();
    let mut ethernet = EthernetView::new(&mut frame[..]).ok()?;
    let sender = ethernet.source();
    ethernet.set_destination(sender);
    ethernet.set_source(from.mac);
    frame.resize(quote_at, 0);
    frame.extend_from_slice(quote);
    let packet = &mut frame[l3..];
    match (from.ip, summary.addresses) {
        (IpAddr::V4(from), IpAddresses::V4 { source, .. }) => {
            put_message(&mut packet[header..], Version::V4, why, 0);
            put_ipv4(packet, from, source)?;
        }
        (IpAddr::V6(from), IpAddresses::V6 { source, .. }) => {
            let pseudo = put_ipv6(packet, from, source)?;
            put_message(&mut packet[header..], Version::V6, why, pseudo);
        }
        _ => return None,
    }
    Some(frame)
}

#[derive(Clone, Copy)]
enum Version {
    V4,
    V6,
}

fn put_ipv4(packet: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) -> Option<()> {
    let len = packet.len() as u16;
    let mut ip = Ipv4View::init(packet, IPV4_MIN_HEADER_LEN).ok()?;
    ip.set_total_len(len);
    ip.set_time_to_live(HOPS);
    ip.set_protocol(ip_protocol::ICMP);
    ip.set_source(from);
    ip.set_destination(to);
    let sum = checksum(ip.header());
    ip.set_checksum(sum);
    Some(())
}

/// Returns the sum of the pseudo-header.
fn put_ipv6(packet: &mut [u8], from: Ipv6Addr, to: Ipv6Addr) -> Option<u16> {
    let len = packet.len() - IPV6_HEADER_LEN;
    let mut ip = Ipv6View::init(packet).ok()?;
    ip.set_payload_len(len as u16);
    ip.set_next_header(ip_protocol::ICMPV6);
    ip.set_hop_limit(HOPS);
    ip.set_source(from);
    ip.set_destination(to);
    let addresses = IpAddresses::V6 { source: from, destination: to };
    Some(pseudo_header(&addresses, ip_protocol::ICMPV6, len as u32).sum())
}

/// Type, code and what the packet may be told (RFC 792; RFC 4443, sections 3.2 and 3.3), then the
/// checksum over all of `message` and what `pseudo` sums up before it.
fn put_message(message: &mut [u8], version: Version, why: Undelivered, pseudo: u16) {
    let (of_type, code) = match (why, version) {
        (Undelivered::NoHopLeft, Version::V4) => (icmp_type::TIME_EXCEEDED, 0),
        (Undelivered::NoHopLeft, Version::V6) => (icmpv6_type::TIME_EXCEEDED, 0),
        (Undelivered::NoRoute, Version::V4) => (icmp_type::UNREACHABLE, NO_ROUTE),
        (Undelivered::NoRoute, Version::V6) => (icmpv6_type::UNREACHABLE, NO_ROUTE),
        (Undelivered::TooBig { .. }, Version::V4) => (icmp_type::UNREACHABLE, FRAGMENTATION_NEEDED),
        (Undelivered::TooBig { .. }, Version::V6) => (icmpv6_type::PACKET_TOO_BIG, 0),
    };
    message[..2].copy_from_slice(&[of_type, code]);
    if let Undelivered::TooBig { mtu } = why {
        // The lower half of the second word: RFC 1191, section 4; all of it in RFC 4443.
        put16(message, 6, mtu);
    }
    let mut total = Accumulator::new();
    total.add_word(pseudo);
    total.add(message);
    put16(message, 2, total.checksum());
}

/// Whether one host can have this address (RFC 1122, section 3.2.1.3; RFC 4291, section 2.5).
pub fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => (1..224).contains(&address.octets()[0]) && !address.is_loopback(),
        IpAddr::V6(address) => !(address.is_unspecified() || address.is_multicast() || address.is_loopback()),
    }
}

/// Whether the sender of the packet may be told anything about it.
fn may_be_told(frame: &[u8], summary: &FrameSummary) -> bool {
    let to_many = frame[0] & 1 != 0;
    let message = frame.get(usize::from(summary.l4_offset)).copied();
    let is_error = match summary.protocol {
        ip_protocol::ICMP => message.is_none_or(icmp_type::is_error),
        // A redirect is no error, and nothing is told about it either (RFC 4443, section 2.4 e.2).
        ip_protocol::ICMPV6 => message.is_none_or(|kind| icmpv6_type::is_error(kind) || kind == icmpv6_type::REDIRECT),
        _ => false,
    };
    let between_hosts = match summary.addresses {
        IpAddresses::None => false,
        IpAddresses::V4 { source, destination } => {
            is_host(source.into()) && !destination.is_multicast() && !destination.is_broadcast()
        }
        IpAddresses::V6 { source, destination } => is_host(source.into()) && !destination.is_multicast(),
    };
    !to_many && !is_error && between_hosts && summary.fragment != Fragment::Later
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
    use etherparse::{icmpv4, icmpv6};

    const US: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
    const ROUTER: [u8; 4] = [10, 0, 0, 254];
    const ROUTER_6: [u8; 16] = [9; 16];

    fn question(payload: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [192, 0, 2, 1], 1)
            .udp(1234, 33434)
            .write(&mut frame, &vec![7; payload])
            .unwrap();
        frame
    }

    fn question_6(payload: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([1; 16], [2; 16], 1)
            .udp(1234, 33434)
            .write(&mut frame, &vec![7; payload])
            .unwrap();
        frame
    }

    fn told(about: &[u8], why: Undelivered, longest: usize) -> Option<Vec<u8>> {
        icmp_error(about, about.len(), why, Sender { mac: US, ip: ROUTER.into() }, longest)
    }

    #[test]
    fn the_sender_is_told_in_ipv4() {
        for (why, expected) in [
            (Undelivered::NoRoute, Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Network)),
            (Undelivered::NoHopLeft, Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit)),
            (
                Undelivered::TooBig { mtu: 1200 },
                Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::FragmentationNeeded {
                    next_hop_mtu: 1200,
                }),
            ),
        ] {
            for payload in [0, 1, 20, 1400] {
                let about = question(payload);
                let frame = told(&about, why, 1514).unwrap();
                let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
                let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("{frame:02x?}") };
                let header = ip.header().to_header();
                assert_eq!((header.source, header.destination), (ROUTER, [10, 0, 0, 1]));
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                let Some(TransportSlice::Icmpv4(icmp)) = &sliced.transport else { panic!("{frame:02x?}") };
                assert_eq!(icmp.icmp_type(), expected);
                let sum = icmp.icmp_type().calc_checksum(icmp.payload());
                assert_eq!(sum, icmp.checksum());
                let quoted = about[14..].len().min(LONGEST_V4 - 28);
                assert_eq!(icmp.payload(), &about[14..14 + quoted]);
                assert_eq!(frame[..12], [2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 9]);
            }
        }
    }

    #[test]
    fn the_sender_is_told_in_ipv6() {
        for (why, expected) in [
            (Undelivered::NoRoute, Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute)),
            (Undelivered::NoHopLeft, Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded)),
            (Undelivered::TooBig { mtu: 1300 }, Icmpv6Type::PacketTooBig { mtu: 1300 }),
        ] {
            for payload in [0, 1, 1400] {
                let about = question_6(payload);
                let from = Sender { mac: US, ip: ROUTER_6.into() };
                let frame = icmp_error(&about, about.len(), why, from, 1514).unwrap();
                let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
                let Some(TransportSlice::Icmpv6(icmp)) = &sliced.transport else { panic!("{frame:02x?}") };
                assert_eq!(icmp.icmp_type(), expected);
                assert!(icmp.is_checksum_valid(ROUTER_6, [1; 16]));
                let quoted = about[14..].len().min(LONGEST_V6 - 48);
                assert_eq!(icmp.payload(), &about[14..14 + quoted]);
                // Nobody of the other version can say it.
                assert_eq!(told(&about, why, 1514), None);
            }
        }
    }

    #[test]
    fn tags_stay_and_a_short_buffer_quotes_less_or_nothing() {
        let plain = question(100);
        let mut tagged = plain[..12].to_vec();
        tagged.extend_from_slice(&[0x81, 0, 0, 5]);
        tagged.extend_from_slice(&plain[12..]);
        let frame = told(&tagged, Undelivered::NoHopLeft, 1514).unwrap();
        assert_eq!(frame[12..18], tagged[12..18]);
        let frame = told(&plain, Undelivered::NoHopLeft, 100).unwrap();
        assert_eq!(frame.len(), 100);
        assert_eq!(frame[42..], plain[14..72]);
        assert_eq!(told(&plain, Undelivered::NoHopLeft, 69), None);
        assert_eq!(told(&plain, Undelivered::NoHopLeft, 10), None);
    }

    #[test]
    fn nobody_is_told_what_would_multiply() {
        let good = question(20);
        let with = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            told(&frame, Undelivered::NoHopLeft, 1514)
        };
        assert!(with(22, 0).is_some());
        // To a group of hosts, by hardware or IP address; from none or many.
        for (at, value) in [(0, 3), (30, 224), (26, 0), (26, 127), (26, 224), (26, 255)] {
            assert_eq!(with(at, value), None, "byte {at}");
        }
        assert_eq!(with(21, 1), None, "a later fragment");
        // An error about an error, and a question that may be answered.
        let error = told(&good, Undelivered::NoHopLeft, 1514).unwrap();
        assert_eq!(told(&error, Undelivered::NoHopLeft, 1514), None);
        let mut echo = error.clone();
        echo[34] = icmp_type::ECHO_REQUEST;
        assert!(told(&echo, Undelivered::NoHopLeft, 1514).is_some());
        let from = Sender { mac: US, ip: ROUTER_6.into() };
        let about = |frame: &[u8]| icmp_error(frame, frame.len(), Undelivered::NoHopLeft, from, 1514);
        let mut message = about(&question_6(20)).unwrap();
        for (kind, told) in [(icmpv6_type::ECHO_REQUEST, true), (icmpv6_type::REDIRECT, false)] {
            message[54] = kind;
            assert_eq!(about(&message).is_some(), told, "ICMPv6 {kind}");
        }
        assert_eq!(told(&good[..20], Undelivered::NoHopLeft, 1514), None);
        assert_eq!(told(&[0; 60], Undelivered::NoHopLeft, 1514), None);
    }
}
