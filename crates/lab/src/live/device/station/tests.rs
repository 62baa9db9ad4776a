use std::net::Ipv4Addr;

use nicforge_platform::live::ports::{Port, pair};
use nicforge_wire::headers::{IcmpView, Ipv4View, icmp_type};
use nicforge_wire::{checksum, parse_frame};

use nicforge_wire::neighbour::NeighbourMessage;

use super::*;
use crate::live::neighbour::request;

const US: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BEFORE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const AFTER: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);
const EVERY: Time = Time::from_ms(1_000);

fn station() -> Station {
    let next_hop = NextHop::new(0, HOP.into(), BEFORE, EVERY);
    Station::new(US, Some(OURS)).with_next_hop(next_hop)
}

/// What it says at `now`.
fn said(station: &mut Station, now: Time) -> Vec<Vec<u8>> {
    let (mut ours, mut theirs) = pair();
    station.speak(&mut ours, now).unwrap();
    let mut frames = Vec::new();
    theirs.receive(64, &mut |frame| frames.push(frame.to_vec())).unwrap();
    frames
}

fn to(frame: &[u8]) -> &[u8] {
    &frame[..6]
}

#[test]
fn a_question_for_its_address_is_answered_and_others_are_not() {
    let mut station = station();
    assert!(station.takes(&request(BEFORE, HOP, OURS), Time::ZERO));
    let frames = said(&mut station, Time::ZERO);
    assert_eq!(frames.len(), 1);
    assert_eq!(to(&frames[0]), BEFORE.0);
    let arp = ArpView::new(&frames[0][ETHERNET_HEADER_LEN..]).unwrap();
    assert_eq!(arp.operation(), ArpOperation::Reply);
    assert_eq!((arp.sender_mac(), arp.sender_ip()), (US, OURS));
    assert!(station.takes(&request(BEFORE, HOP, Ipv4Addr::new(10, 0, 0, 9)), Time::ZERO));
    assert!(said(&mut station, Time::ZERO).is_empty());
    let counts = station.counts();
    assert_eq!((counts.taken, counts.arp), (2, 1));
    // Cut off: the NIC counts it.
    assert!(!station.takes(&request(BEFORE, HOP, OURS)[..40], Time::ZERO));
}

#[test]
fn a_next_hop_that_says_so_has_moved() {
    let mut station = station();
    assert_eq!(station.moved(), None);
    // Somebody else says where he is.
    station.takes(&request(AFTER, Ipv4Addr::new(10, 0, 0, 9), OURS), Time::ZERO);
    assert_eq!(station.moved(), None);
    // Unasked, for everybody (a gratuitous question).
    station.takes(&request(AFTER, HOP, HOP), Time::ZERO);
    let moved = station.moved().unwrap();
    let mut frame = [BEFORE.0, US.0].concat();
    moved.redirect(&mut frame);
    assert_eq!(to(&frame), AFTER.0);
    let mut other = [US.0, US.0].concat();
    moved.redirect(&mut other);
    assert_eq!(to(&other), US.0);
    assert_eq!(station.counts().moved, 1);
    let events = station.take_events();
    assert!(events.len() == 1 && events[0].contains("02:00:00:00:00:03"), "{events:?}");
    // Two that say they are it: neither is followed faster than that.
    station.takes(&request(BEFORE, HOP, HOP), Time::from_ms(999));
    assert!(station.moved().is_some() && station.take_events().is_empty());
    station.takes(&request(BEFORE, HOP, HOP), Time::from_ms(1_000));
    assert_eq!((station.moved(), station.counts().moved), (None, 2));
}

#[test]
fn a_next_hop_is_asked_for_again_and_its_silence_is_told_once() {
    let mut station = station();
    assert!(said(&mut station, Time::from_ms(999)).is_empty());
    for second in 1..4 {
        let frames = said(&mut station, Time::from_ms(1_000 * second));
        let arp = ArpView::new(&frames[0][ETHERNET_HEADER_LEN..]).unwrap();
        assert_eq!((arp.operation(), arp.target_ip()), (ArpOperation::Request, HOP));
    }
    let counts = station.counts();
    assert_eq!((counts.asked, counts.unanswered), (3, 2));
    assert_eq!(station.take_events(), ["port 0: 10.0.0.2 does not answer"]);
    station.takes(&request(BEFORE, HOP, OURS), Time::ZERO);
    assert_eq!(station.take_events(), ["port 0: 10.0.0.2 answers again"]);
}

/// An echo request of `source` to `destination`.
fn ping(destination: Ipv4Addr) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2(BEFORE.0, US.0)
        .ipv4(HOP.octets(), destination.octets(), 9)
        .icmpv4_echo_request(7, 8)
        .write(&mut frame, b"payload")
        .unwrap();
    frame
}

#[test]
fn an_echo_request_to_its_address_is_answered() {
    let mut station = Station::new(US, Some(OURS)).that_echoes();
    assert!(!station.takes(&ping(HOP), Time::ZERO), "for somebody else");
    let mut fragment = ping(OURS);
    fragment[20] |= 0x20;
    assert!(!station.takes(&fragment, Time::ZERO), "not whole");
    let mut to_all = ping(OURS);
    to_all[..6].fill(0xff);
    assert!(!station.takes(&to_all, Time::ZERO), "for everybody");
    let mut broken = ping(OURS);
    broken[22] ^= 1;
    assert!(!station.takes(&broken, Time::ZERO), "its header is not what was sent");
    assert!(station.takes(&ping(OURS), Time::ZERO));
    let frames = said(&mut station, Time::ZERO);
    let [answer] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!(to(answer), BEFORE.0);
    let verdict = checksum::verify(answer, &parse_frame(answer).unwrap());
    assert_eq!(verdict, checksum::verify(&ping(OURS), &parse_frame(&ping(OURS)).unwrap()));
    let ip = Ipv4View::new(&answer[ETHERNET_HEADER_LEN..]).unwrap();
    assert_eq!((ip.source(), ip.destination()), (OURS, HOP));
    let icmp = IcmpView::new(ip.payload()).unwrap();
    assert_eq!(icmp.message_type(), icmp_type::ECHO_REPLY);
    assert_eq!((icmp.identifier(), icmp.sequence()), (7, 8));
    assert_eq!(station.counts().taken, 1);
    let mut silent = Station::new(US, Some(OURS));
    assert!(!silent.takes(&ping(OURS), Time::ZERO), "the application's");
}
/// A datagram of so many bytes for somebody behind the port.
fn datagram(payload: usize, may_be_cut: bool) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2(US.0, BEFORE.0)
        .ipv4(OURS.octets(), [192, 0, 2, 1], 9)
        .udp(1, 2)
        .write(&mut frame, &vec![7; payload])
        .unwrap();
    frame[20] = if may_be_cut { 0 } else { 0x40 };
    frame
}

#[test]
fn senders_of_what_is_too_long_are_told_within_bounds() {
    let mut station = station();
    station.is_too_long(&datagram(1400, true), 1200, Time::ZERO);
    assert!(station.take_errors().is_empty(), "it may be cut");
    for _ in 0..100 {
        station.is_too_long(&datagram(1400, false), 1200, Time::ZERO);
    }
    let errors = station.take_errors();
    assert_eq!(errors.len(), 50);
    let ip = Ipv4View::new(&errors[0][ETHERNET_HEADER_LEN..]).unwrap();
    // As from whom it was for, to its sender.
    assert_eq!(ip.source(), Ipv4Addr::new(192, 0, 2, 1));
    assert_eq!(ip.destination(), OURS);
    let icmp = ip.payload();
    assert_eq!((icmp[0], icmp[1]), (3, 4), "fragmentation needed");
    assert_eq!(u16::from_be_bytes([icmp[6], icmp[7]]), 1200);
    station.is_too_long(&datagram(1400, false), 1200, Time::from_ms(2));
    assert_eq!(station.take_errors().len(), 1);
}

#[test]
fn ports_of_one_mtu_need_no_note() {
    assert_eq!(note_of_mtus(&[]), None);
    assert_eq!(note_of_mtus(&[(0, 1500), (1, 1500)]), None);
    let note = note_of_mtus(&[(0, 1500), (1, 1200)]).unwrap();
    assert!(note.starts_with("MTUs differ (port 0 1500, port 1 1200)"), "{note}");
}

const OURS6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const HOP6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

#[test]
fn neighbours_of_ipv6_are_answered_and_heard() {
    let next_hop = NextHop::new(0, HOP6.into(), BEFORE, EVERY);
    let station = Station::new(US, None).with_address6(Some(OURS6));
    let mut station = station.with_next_hop(next_hop);
    for target in [OURS6, US.link_local()] {
        let question = NeighbourMessage::solicitation(BEFORE, HOP6, target);
        assert!(station.takes(&question, Time::ZERO));
        let said = said(&mut station, Time::ZERO);
        let answer = NeighbourMessage::read(&said[0]).unwrap();
        assert_eq!((answer.target, answer.destination), (target, HOP6));
        assert_eq!((to(&said[0]), answer.hardware), (&BEFORE.0[..], Some(US)));
    }
    // Others' questions go on, but say where the next hop is now.
    let other = NeighbourMessage::solicitation(AFTER, HOP6, AFTER.link_local());
    assert!(!station.takes(&other, Time::ZERO));
    assert_eq!(station.counts().moved, 1);
    // It asks, and the answer is its own.
    let said = said(&mut station, EVERY);
    let question = NeighbourMessage::read(&said[0]).unwrap();
    assert_eq!((question.source, question.target), (OURS6, HOP6));
    assert!(station.takes(&question.answer(BEFORE, US), EVERY));
    assert_eq!(station.moved(), None);
    let counts = station.counts();
    assert_eq!((counts.taken, counts.ndp, counts.asked), (3, 1, 1));
}
