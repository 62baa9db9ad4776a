//! Neighbours of IPv6 on Ethernet: solicitations and advertisements (RFC 4861, sections 4.3, 4.4 and 4.6.1).

use std::net::Ipv6Addr;

use crate::IpAddresses;
use crate::checksum::pseudo_header;
use crate::headers::{
    ETHERNET_HEADER_LEN, EthernetView, IPV6_HEADER_LEN, Ipv6View, MacAddress, ethertype, icmpv6_type, ip_protocol,
};

/// What all hops are of messages that no router passed on (RFC 4861, section 7.1).
const HOPS: u8 = 255;
/// Bytes of a message without options, and of the option that says a hardware address.
const MESSAGE_LEN: usize = 24;
const OPTION_LEN: usize = 8;
/// Where flags and target lie in a message.
const FLAGS: usize = 4;
const TARGET: usize = 8;
/// Flags of what we advertise: a router, asked, newer than what was known.
const ADVERTISED: u8 = 0xe0;
/// The options: hardware address of the sender, and of the target.
const OF_SOURCE: u8 = 1;
const OF_TARGET: u8 = 2;

/// Which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourKind {
    /// Who has the target?
    Solicitation,
    /// The target is here.
    Advertisement,
}

/// A message about a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourMessage {
    /// Question or answer.
    pub kind: NeighbourKind,
    /// From whom; unspecified where somebody looks whether an address is free.
    pub source: Ipv6Addr,
    /// To whom.
    pub destination: Ipv6Addr,
    /// Whose hardware address it is about.
    pub target: Ipv6Addr,
    /// Of a solicitation the sender's hardware address, of an advertisement the target's, if it is said.
    pub hardware: Option<MacAddress>,
}

impl NeighbourMessage {
    /// The message in `frame`, which has no tags; `None` if there is none or it is not valid (RFC 4861, sections
    /// 7.1.1 and 7.1.2).
    pub fn read(frame: &[u8]) -> Option<NeighbourMessage> {
        let ethernet = EthernetView::new(frame).ok()?;
        let ip = Ipv6View::new(frame.get(ETHERNET_HEADER_LEN..)?).ok()?;
        let is_icmp = ip.next_header() == ip_protocol::ICMPV6 && ip.hop_limit() == HOPS;
        if ethernet.ethertype() != ethertype::IPV6 || !is_icmp {
            return None;
        }
        let (source, destination) = (ip.source(), ip.destination());
        let message = ip.payload();
        let whole = message.len() == usize::from(ip.payload_len()) && message.len() >= MESSAGE_LEN;
        if !whole || checksum(source, destination, message) != 0 || message[1] != 0 {
            return None;
        }
        let (kind, option) = match message[0] {
            icmpv6_type::NEIGHBOUR_SOLICITATION => (NeighbourKind::Solicitation, OF_SOURCE),
            icmpv6_type::NEIGHBOUR_ADVERTISEMENT => (NeighbourKind::Advertisement, OF_TARGET),
            _ => return None,
        };
        let target = <[u8; 16]>::try_from(&message[TARGET..MESSAGE_LEN]).ok()?;
        let target = Ipv6Addr::from(target);
        let hardware = hardware(&message[MESSAGE_LEN..], option)?;
        (!target.is_multicast()).then_some(NeighbourMessage { kind, source, destination, target, hardware })
    }

    /// The question of who is at `source`, with hardware address `mac`, for `target`: to all that may have it.
    pub fn solicitation(mac: MacAddress, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
        let [.., a, b, c] = target.octets();
        let group = [[0xff, 2], [0; 2], [0; 2], [0; 2], [0; 2], [0, 1], [0xff, a], [b, c]];
        let destination = Ipv6Addr::from(group.map(u16::from_be_bytes));
        let to = MacAddress([0x33, 0x33, 0xff, a, b, c]);
        let message =
            NeighbourMessage { kind: NeighbourKind::Solicitation, source, destination, target, hardware: Some(mac) };
        message.frame(mac, to)
    }

    /// The answer to this question, which came from the hardware address `asker`, of who has its target at `mac`.
    pub fn answer(&self, mac: MacAddress, asker: MacAddress) -> Vec<u8> {
        // Who looks whether an address is free has none to be told at.
        let (destination, to) = if self.source.is_unspecified() {
            (ALL_NODES, MacAddress([0x33, 0x33, 0, 0, 0, 1]))
        } else {
            (self.source, self.hardware.unwrap_or(asker))
        };
        let message = NeighbourMessage {
            kind: NeighbourKind::Advertisement,
            source: self.target,
            destination,
            target: self.target,
            hardware: Some(mac),
        };
        message.frame(mac, to)
    }

    /// As a frame between these hardware addresses.
    fn frame(&self, from: MacAddress, to: MacAddress) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_HEADER_LEN + IPV6_HEADER_LEN];
        let (kind, flags, option) = match self.kind {
            NeighbourKind::Solicitation => (icmpv6_type::NEIGHBOUR_SOLICITATION, 0, OF_SOURCE),
            NeighbourKind::Advertisement => (icmpv6_type::NEIGHBOUR_ADVERTISEMENT, ADVERTISED, OF_TARGET),
        };
        let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        message[FLAGS] = flags;
        message.extend(self.target.octets());
        if let Some(MacAddress(hardware)) = self.hardware {
            message.extend([option, (OPTION_LEN / 8) as u8]);
            message.extend(hardware);
        }
        let sum = checksum(self.source, self.destination, &message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let (ethernet, ip) = frame.split_at_mut(ETHERNET_HEADER_LEN);
        // Both have the room that their headers need.
        if let (Ok(mut ethernet), Ok(mut ip)) = (EthernetView::new(ethernet), Ipv6View::init(ip)) {
            ethernet.set_destination(to);
            ethernet.set_source(from);
            ethernet.set_ethertype(ethertype::IPV6);
            ip.set_payload_len(message.len() as u16);
            ip.set_next_header(ip_protocol::ICMPV6);
            ip.set_hop_limit(HOPS);
            ip.set_source(self.source);
            ip.set_destination(self.destination);
        }
        frame.extend(message);
        frame
    }
}

/// All hosts on a link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The checksum of `message`: 0 if it has one and that is right.
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let addresses = IpAddresses::V6 { source, destination };
    let mut sum = pseudo_header(&addresses, ip_protocol::ICMPV6, message.len() as u32);
    sum.add(message);
    sum.checksum()
}

/// The hardware address in the first of `options` that is `wanted`; `None` if they are no options.
fn hardware(mut options: &[u8], wanted: u8) -> Option<Option<MacAddress>> {
    let mut found = None;
    while let [kind, len, ..] = *options {
        let len = 8 * usize::from(len);
        if len == 0 || len > options.len() {
            return None;
        }
        let (option, rest) = options.split_at(len);
        if kind == wanted && len == OPTION_LEN && found.is_none() {
            found = option[2..].try_into().ok().map(MacAddress);
        }
        options = rest;
    }
    options.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    #[test]
    fn question_and_answer_are_read_as_they_were_written() {
        let [us, them] = [OURS, THEIRS].map(MacAddress::link_local);
        let question = NeighbourMessage::solicitation(OURS, us, them);
        let sliced = etherparse::SlicedPacket::from_ethernet(&question).unwrap();
        let Some(etherparse::TransportSlice::Icmpv6(icmp)) = &sliced.transport else { panic!("{sliced:?}") };
        assert_eq!(icmp.type_u8(), 135);
        let Some(etherparse::NetSlice::Ipv6(ip)) = &sliced.net else { panic!("{sliced:?}") };
        let header = ip.header();
        let right = icmp.icmp_type().calc_checksum(header.source(), header.destination(), icmp.payload());
        assert_eq!(right.unwrap(), icmp.checksum());
        let heard = NeighbourMessage::read(&question).unwrap();
        assert_eq!((heard.target, heard.hardware), (them, Some(OURS)));
        let answer = NeighbourMessage::read(&heard.answer(THEIRS, OURS)).unwrap();
        assert_eq!(answer.kind, NeighbourKind::Advertisement);
        assert_eq!((answer.source, answer.destination), (them, us));
        assert_eq!((answer.target, answer.hardware), (them, Some(THEIRS)));
    }

    #[test]
    fn what_is_wrong_or_cut_off_is_no_message() {
        let [us, them] = [OURS, THEIRS].map(MacAddress::link_local);
        let question = NeighbourMessage::solicitation(OURS, us, them);
        for len in 0..question.len() {
            assert_eq!(NeighbourMessage::read(&question[..len]), None, "{len}");
        }
        // Ethertype, next header, hops, source, code, checksum, target, option.
        for at in [13, 20, 21, 25, 55, 56, 70, 79] {
            let mut wrong = question.clone();
            wrong[at] ^= 1;
            assert_eq!(NeighbourMessage::read(&wrong), None, "{at}");
        }
    }

    #[test]
    fn who_looks_whether_an_address_is_free_is_told_with_all_others() {
        let target = MacAddress::link_local(OURS);
        let question = NeighbourMessage {
            kind: NeighbourKind::Solicitation,
            source: Ipv6Addr::UNSPECIFIED,
            destination: ALL_NODES,
            target,
            hardware: None,
        };
        let answer = question.answer(OURS, THEIRS);
        assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
        let answer = NeighbourMessage::read(&answer).unwrap();
        assert_eq!(answer.destination, ALL_NODES);
    }
}
