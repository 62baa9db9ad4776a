use std::net::Ipv4Addr;

use nicforge_platform::live::ports::{Port, pair};
use nicforge_wire::headers::{IcmpView, Ipv4View, icmp_type};
use nicforge_wire::{checksum, parse_frame};

use super::*;

const US: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BEFORE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const AFTER: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);
const EVERY: Time = Time::from_ms(1_000);

fn station() -> Station {
    let next_hop = NextHop::new(0, HOP, BEFORE, EVERY);
    Station::new(US, Some(OURS)).with_next_hop(next_hop)
}

/// What it says at `now`.
fn said(station: &mut Station, now: Time) -> Vec<Vec<u8>> {
    let (mut ours, mut theirs) = pair();
    station.speak(&mut ours, now).unwrap();
    let mut frames = Vec::new();
    theirs
        .receive(64, &mut |frame| frames.push(frame.to_vec()))
        .unwrap();
    frames
}

fn to(frame: &[u8]) -> &[u8] {
    &frame[..6]
}

#[test]
fn a_question_for_its_address_is_answered_and_others_are_not() {
    let mut station = station();
    assert!(station.takes(&request(BEFORE, HOP, OURS)));
    let frames = said(&mut station, Time::ZERO);
    assert_eq!(frames.len(), 1);
    assert_eq!(to(&frames[0]), BEFORE.0);
    let arp = ArpView::new(&frames[0][ETHERNET_HEADER_LEN..]).unwrap();
    assert_eq!(arp.operation(), ArpOperation::Reply);
    assert_eq!((arp.sender_mac(), arp.sender_ip()), (US, OURS));
    assert!(station.takes(&request(BEFORE, HOP, Ipv4Addr::new(10, 0, 0, 9))));
    assert!(said(&mut station, Time::ZERO).is_empty());
    let counts = station.counts();
    assert_eq!((counts.taken, counts.arp), (2, 1));
    // Cut off: the NIC counts it.
    assert!(!station.takes(&request(BEFORE, HOP, OURS)[..40]));
}

#[test]
fn a_next_hop_that_says_so_has_moved() {
    let mut station = station();
    assert_eq!(station.moved(), None);
    // Somebody else says where he is.
    station.takes(&request(AFTER, Ipv4Addr::new(10, 0, 0, 9), OURS));
    assert_eq!(station.moved(), None);
    // Unasked, for everybody (a gratuitous question).
    station.takes(&request(AFTER, HOP, HOP));
    let moved = station.moved().unwrap();
    let mut frame = [BEFORE.0, US.0].concat();
    moved.redirect(&mut frame);
    assert_eq!(to(&frame), AFTER.0);
    let mut other = [US.0, US.0].concat();
    moved.redirect(&mut other);
    assert_eq!(to(&other), US.0);
    assert_eq!(station.counts().moved, 1);
    let events = station.take_events();
    assert!(
        events.len() == 1 && events[0].contains("02:00:00:00:00:03"),
        "{events:?}"
    );
    station.takes(&request(BEFORE, HOP, HOP));
    assert_eq!(station.moved(), None);
}

#[test]
fn a_next_hop_is_asked_for_again_and_its_silence_is_told_once() {
    let mut station = station();
    assert!(said(&mut station, Time::from_ms(999)).is_empty());
    for second in 1..4 {
        let frames = said(&mut station, Time::from_ms(1_000 * second));
        let arp = ArpView::new(&frames[0][ETHERNET_HEADER_LEN..]).unwrap();
        assert_eq!(
            (arp.operation(), arp.target_ip()),
            (ArpOperation::Request, HOP)
        );
    }
    let counts = station.counts();
    assert_eq!((counts.asked, counts.unanswered), (3, 2));
    assert_eq!(station.take_events(), ["port 0: 10.0.0.2 does not answer"]);
    station.takes(&request(BEFORE, HOP, OURS));
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
    assert!(!station.takes(&ping(HOP)), "for somebody else");
    let mut fragment = ping(OURS);
    fragment[20] |= 0x20;
    assert!(!station.takes(&fragment), "not whole");
    assert!(station.takes(&ping(OURS)));
    let frames = said(&mut station, Time::ZERO);
    let [answer] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!(to(answer), BEFORE.0);
    let verdict = checksum::verify(answer, &parse_frame(answer).unwrap());
    assert_eq!(
        verdict,
        checksum::verify(&ping(OURS), &parse_frame(&ping(OURS)).unwrap())
    );
    let ip = Ipv4View::new(&answer[ETHERNET_HEADER_LEN..]).unwrap();
    assert_eq!((ip.source(), ip.destination()), (OURS, HOP));
    let icmp = IcmpView::new(ip.payload()).unwrap();
    assert_eq!(icmp.message_type(), icmp_type::ECHO_REPLY);
    assert_eq!((icmp.identifier(), icmp.sequence()), (7, 8));
    assert_eq!(station.counts().taken, 1);
    let mut silent = Station::new(US, Some(OURS));
    assert!(!silent.takes(&ping(OURS)), "the application's");
}
