use nicforge_nic::mock::MockHost;
use nicforge_wire::headers::{IcmpView, Ipv4View, icmp_type};
use nicforge_wire::neighbour::NeighbourMessage;
use nicforge_wire::{checksum, parse_frame};

use super::*;

const US: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BEFORE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const AFTER: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);
const EVERY: Time = Time::from_ms(1_000);

fn responder() -> Responder {
    let next_hop = NextHop::new(0, HOP.into(), BEFORE, EVERY);
    Responder::new(US, Some(OURS)).with_next_hop(next_hop)
}

/// What it answers to `frame`.
fn answer(responder: &mut Responder, frame: &[u8]) -> Vec<u8> {
    match responder.hear(frame, Time::ZERO) {
        Heard::Answer(answer) => answer,
        other => panic!("{other:?}"),
    }
}

fn events(responder: &mut Responder) -> Vec<String> {
    Stage::<MockHost>::take_events(responder)
}

fn to(frame: &[u8]) -> &[u8] {
    &frame[..6]
}

#[test]
fn a_question_for_its_address_is_answered_and_others_are_not() {
    let mut responder = responder();
    let answer = answer(&mut responder, &request(BEFORE, HOP, OURS));
    assert_eq!(to(&answer), BEFORE.0);
    let arp = ArpView::new(&answer[ETHERNET_HEADER_LEN..]).unwrap();
    assert_eq!(arp.operation(), ArpOperation::Reply);
    assert_eq!((arp.sender_mac(), arp.sender_ip()), (US, OURS));
    let other = request(BEFORE, HOP, Ipv4Addr::new(10, 0, 0, 9));
    assert_eq!(responder.hear(&other, Time::ZERO), Heard::Done(ARP));
    assert_eq!(responder.counts().taken, 2);
    // Cut off: for software to refuse.
    assert_eq!(responder.hear(&request(BEFORE, HOP, OURS)[..40], Time::ZERO), Heard::NotOurs);
}

#[test]
fn a_next_hop_that_says_so_has_moved() {
    let mut responder = responder();
    assert_eq!(responder.moved(), None);
    // Somebody else says where he is.
    responder.hear(&request(AFTER, Ipv4Addr::new(10, 0, 0, 9), OURS), Time::ZERO);
    assert_eq!(responder.moved(), None);
    // Unasked, for everybody (a gratuitous question): the next hop is asked whether that is so.
    responder.hear(&request(AFTER, HOP, HOP), Time::ZERO);
    assert_eq!(responder.moved(), None);
    assert!(responder.ask(Time::ZERO).is_some());
    responder.settle(Time::from_ms(499));
    assert_eq!(responder.moved(), None);
    responder.settle(Time::from_ms(500));
    let moved = responder.moved().unwrap();
    let mut frame = [BEFORE.0, US.0].concat();
    moved.redirect(&mut frame);
    assert_eq!(to(&frame), AFTER.0);
    let mut other = [US.0, US.0].concat();
    moved.redirect(&mut other);
    assert_eq!(to(&other), US.0);
    assert_eq!(responder.counts().moved, 1);
    let said = events(&mut responder);
    assert!(said.len() == 1 && said[0].contains("02:00:00:00:00:03"), "{said:?}");
}

/// Somebody claims the address of a next hop that is there: the port follows nobody.
#[test]
fn a_next_hop_that_is_impersonated_contradicts() {
    let mut responder = responder();
    for second in 0..3 {
        let now = Time::from_ms(1_000 * second);
        responder.hear(&request(AFTER, HOP, HOP), now);
        assert!(responder.ask(now).is_some(), "at once");
        responder.hear(&request(BEFORE, HOP, OURS), now + Time::from_ms(1));
        responder.settle(now + Time::from_ms(999));
        assert_eq!(responder.moved(), None);
    }
    assert_eq!(responder.counts().moved, 0);
    let said = events(&mut responder);
    assert!(said.len() == 3 && said[0].contains("02:00:00:00:00:03 claims to be 10.0.0.2"), "{said:?}");
}

/// A run begins while its next hop is silent.
#[test]
fn frames_to_a_next_hop_that_nobody_knows_go_nowhere_until_it_answers() {
    let mut responder = Responder::new(US, Some(OURS)).with_next_hop(NextHop::unknown(0, HOP.into(), BEFORE, EVERY));
    let missed = |responder: &Responder, frame: &[u8]| responder.next_hop.as_ref().unwrap().is_missed_by(frame);
    let (frame, other) = ([BEFORE.0, US.0].concat(), [AFTER.0, US.0].concat());
    assert!(Stage::<MockHost>::sees_egress(&responder) && missed(&responder, &frame) && !missed(&responder, &other));
    for second in 0..3 {
        assert!(responder.ask(Time::from_ms(1_000 * second)).is_some());
    }
    assert_eq!(events(&mut responder), ["port 0: 10.0.0.2 does not answer"]);
    responder.hear(&request(AFTER, HOP, OURS), Time::from_ms(3_000));
    assert!(!missed(&responder, &frame) && responder.moved().is_some());
    assert_eq!(
        (events(&mut responder), responder.counts().moved),
        (vec!["port 0: 10.0.0.2 is at 02:00:00:00:00:03".into()], 0)
    );
}

#[test]
fn a_next_hop_is_asked_for_again_and_its_silence_is_told_once() {
    let mut responder = responder();
    assert_eq!(responder.ask(Time::from_ms(999)), None);
    for second in 1..4 {
        let question = responder.ask(Time::from_ms(1_000 * second)).unwrap();
        let arp = ArpView::new(&question[ETHERNET_HEADER_LEN..]).unwrap();
        assert_eq!((arp.operation(), arp.target_ip()), (ArpOperation::Request, HOP));
    }
    let counts = responder.counts();
    assert_eq!((counts.asked, counts.unanswered), (3, 2));
    assert_eq!(events(&mut responder), ["port 0: 10.0.0.2 does not answer"]);
    responder.hear(&request(BEFORE, HOP, OURS), Time::ZERO);
    assert_eq!(events(&mut responder), ["port 0: 10.0.0.2 answers again"]);
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
    let mut responder = Responder::new(US, Some(OURS)).that_echoes();
    assert_eq!(responder.hear(&ping(HOP), Time::ZERO), Heard::NotOurs, "for somebody else");
    let mut fragment = ping(OURS);
    fragment[20] |= 0x20;
    assert_eq!(responder.hear(&fragment, Time::ZERO), Heard::NotOurs, "not whole");
    let mut to_all = ping(OURS);
    to_all[..6].fill(0xff);
    assert_eq!(responder.hear(&to_all, Time::ZERO), Heard::NotOurs, "for everybody");
    let mut broken = ping(OURS);
    broken[22] ^= 1;
    assert_eq!(responder.hear(&broken, Time::ZERO), Heard::NotOurs, "its header is not what was sent");
    let answer = answer(&mut responder, &ping(OURS));
    assert_eq!(to(&answer), BEFORE.0);
    let verdict = checksum::verify(&answer, &parse_frame(&answer).unwrap());
    assert_eq!(verdict, checksum::verify(&ping(OURS), &parse_frame(&ping(OURS)).unwrap()));
    let ip = Ipv4View::new(&answer[ETHERNET_HEADER_LEN..]).unwrap();
    assert_eq!((ip.source(), ip.destination()), (OURS, HOP));
    let icmp = IcmpView::new(ip.payload()).unwrap();
    assert_eq!(icmp.message_type(), icmp_type::ECHO_REPLY);
    assert_eq!((icmp.identifier(), icmp.sequence()), (7, 8));
    assert_eq!(responder.counts().taken, 1);
    let mut silent = Responder::new(US, Some(OURS));
    assert_eq!(silent.hear(&ping(OURS), Time::ZERO), Heard::NotOurs, "the application's");
}

const OURS6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const HOP6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

#[test]
fn neighbours_of_ipv6_are_answered_and_heard() {
    let next_hop = NextHop::new(0, HOP6.into(), BEFORE, EVERY);
    let responder = Responder::new(US, None).with_address6(Some(OURS6));
    let mut responder = responder.with_next_hop(next_hop);
    for target in [OURS6, US.link_local()] {
        let question = NeighbourMessage::solicitation(BEFORE, HOP6, target);
        let said = answer(&mut responder, &question);
        let answer = NeighbourMessage::read(&said).unwrap();
        assert_eq!((answer.target, answer.destination), (target, HOP6));
        assert_eq!((to(&said), answer.hardware), (&BEFORE.0[..], Some(US)));
    }
    // Others' questions go on, but say where the next hop is now.
    let other = NeighbourMessage::solicitation(AFTER, HOP6, AFTER.link_local());
    assert_eq!(responder.hear(&other, Time::ZERO), Heard::NotOurs);
    assert_eq!(responder.moved(), None, "the next hop is asked whether that is so");
    // It asks, and the answer is its own.
    let said = responder.ask(Time::ZERO).unwrap();
    let question = NeighbourMessage::read(&said).unwrap();
    assert_eq!((question.source, question.target), (OURS6, HOP6));
    assert_eq!(responder.hear(&question.answer(BEFORE, US), EVERY), Heard::Done(NDP));
    responder.settle(EVERY);
    assert_eq!(responder.moved(), None);
    let counts = responder.counts();
    assert_eq!((counts.taken, counts.asked), (3, 1));
}
