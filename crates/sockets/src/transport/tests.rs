//! The loopback against a model of two byte streams, and two networks over a cable in memory.

use std::collections::VecDeque;

use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::{PairPort, Port, PortCounters};
use nicforge_units::Time;
use nicforge_wire::unfinished::TxOffload;
use proptest::prelude::*;
use rustix::io::Errno;

use super::loopback::Loopback;
use super::network::Network;
use super::{Event, Id, Transport};

fn events(loopback: &mut Loopback) -> Vec<Event> {
    let mut events = Vec::new();
    loopback.poll(Time::ZERO, &mut events);
    events
}

fn pair(loopback: &mut Loopback) -> (Id, Id) {
    let listener = loopback.listen("127.0.0.1:80".parse().unwrap(), 8, 0).unwrap();
    let client = loopback.connect("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:80".parse().unwrap(), 0).unwrap();
    let server = loopback.accept(listener).unwrap().id;
    loopback.unlisten(listener);
    events(loopback);
    (client, server)
}

#[test]
fn nobody_listening_refuses() {
    let mut loopback = Loopback::default();
    let id = loopback.connect("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:80".parse().unwrap(), 0).unwrap();
    assert_eq!(events(&mut loopback), [Event::Failed(id, Errno::CONNREFUSED)]);
}

#[test]
fn both_fins_close_and_a_name_is_not_used_again() {
    let mut loopback = Loopback::default();
    let (client, server) = pair(&mut loopback);
    loopback.send(client, b"last", false);
    loopback.finish(client);
    loopback.finish(server);
    let mut bytes = [0; 8];
    assert_eq!(loopback.receive(server, &mut bytes), 4);
    assert!(loopback.finished(server) && loopback.finished(client));
    let seen = events(&mut loopback);
    assert!(seen.contains(&Event::Closed(client)) && seen.contains(&Event::Closed(server)), "{seen:?}");
    loopback.release(client);
    loopback.release(server);
    let (again, _) = pair(&mut loopback);
    assert!(again != client && again != server);
}

#[test]
fn an_unspecified_listener_takes_its_family_and_an_exact_one_goes_first() {
    let mut loopback = Loopback::default();
    let any = loopback.listen("0.0.0.0:80".parse().unwrap(), 8, 0).unwrap();
    let exact = loopback.listen("127.0.0.2:80".parse().unwrap(), 8, 0).unwrap();
    let mut connect = |to: &str| {
        let from = if to.starts_with('[') { "[::1]:5000" } else { "127.0.0.1:5000" };
        loopback.connect(from.parse().unwrap(), to.parse().unwrap(), 0).unwrap();
        (loopback.accept(any).is_some(), loopback.accept(exact).is_some())
    };
    assert_eq!(connect("127.0.0.1:80"), (true, false));
    assert_eq!(connect("127.0.0.2:80"), (false, true));
    assert_eq!(connect("[::1]:80"), (false, false));
}

#[derive(Clone, Debug)]
enum Step {
    Send(bool, usize),
    Receive(bool, usize),
    Finish(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<bool>(), 1usize..90_000).prop_map(|(side, len)| Step::Send(side, len)),
        8 => (any::<bool>(), 1usize..90_000).prop_map(|(side, len)| Step::Receive(side, len)),
        1 => any::<bool>().prop_map(Step::Finish),
    ];
    proptest::collection::vec(step, 1..80)
}

proptest! {
    #[test]
    fn streams_arrive_whole_and_in_order(steps in steps()) {
        let mut loopback = Loopback::default();
        let (client, server) = pair(&mut loopback);
        let id = |side: bool| if side { client } else { server };
        let mut inside = [VecDeque::new(), VecDeque::new()];
        let mut finished = [false, false];
        let mut next = 0u8;
        for step in steps {
            match step {
                Step::Send(side, len) => {
                    let bytes: Vec<u8> = (0..len).map(|n| next.wrapping_add(n as u8)).collect();
                    let sent = loopback.send(id(side), &bytes, false);
                    prop_assert!(!finished[usize::from(side)] || sent == 0, "nothing is sent after a FIN");
                    next = next.wrapping_add(sent as u8);
                    inside[usize::from(side)].extend(&bytes[..sent]);
                }
                Step::Receive(side, len) => {
                    let mut bytes = vec![0; len];
                    let got = loopback.receive(id(side), &mut bytes);
                    let expected: Vec<u8> = inside[usize::from(!side)].drain(..got).collect();
                    prop_assert_eq!(&bytes[..got], &expected[..]);
                    prop_assert!(got == len || inside[usize::from(!side)].is_empty());
                }
                Step::Finish(side) => {
                    loopback.finish(id(side));
                    finished[usize::from(side)] = true;
                }
            }
            for side in [false, true] {
                let ended = finished[usize::from(!side)] && inside[usize::from(!side)].is_empty();
                prop_assert_eq!(loopback.finished(id(side)), ended);
            }
            events(&mut loopback);
        }
    }
}

/// A cable's end that loses some of the frames that it is to send.
struct Lossy {
    end: PairPort,
    sent: usize,
    loses: fn(usize, &[u8]) -> bool,
}

impl Port for Lossy {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        self.end.receive(budget, each)
    }

    // As a virtual interface does: long frames come with a checksum that is still to be made, where that may be.
    fn receive_unfinished(
        &mut self,
        budget: usize,
        longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<usize, LiveError> {
        const CHECKSUM: usize = 14 + 20 + 16;
        self.end.receive(budget, &mut |frame| {
            let (mut frame, is_begun) = (frame.to_vec(), longest > 0 && frame.len() > 1000);
            if is_begun {
                frame[CHECKSUM] ^= 0x55;
            }
            each(&frame, TxOffload { l4_checksum: is_begun, ..TxOffload::default() });
        })
    }

    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError> {
        self.sent += usize::from(frame.len() > 1000);
        if (self.loses)(self.sent, frame) { Ok(()) } else { self.end.send(frame, now) }
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        self.end.flush()
    }

    fn readable(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> &PortCounters {
        self.end.counters()
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        self.end.counters_mut()
    }
}

/// Two hosts, 10.0.0.1 and 10.0.0.2, with a cable between them.
fn hosts() -> [Network; 2] {
    hosts_that_lose(|_, _| false)
}

/// The same; `loses` says what the first one's frames meet, by the number of long ones so far.
fn hosts_that_lose(loses: fn(usize, &[u8]) -> bool) -> [Network; 2] {
    let (a, b) = nicforge_platform::live::ports::pair();
    let (a, b) = (Lossy { end: a, sent: 0, loses }, Lossy { end: b, sent: 0, loses: |_, _| false });
    let host = |last: u8, port| {
        let addresses = vec![nicforge_tcp::stack::Address::new(std::net::IpAddr::from([10, 0, 0, last]), 24)];
        let mac = nicforge_wire::headers::MacAddress([2, 0, 0, 0, 0, last]);
        let config = nicforge_tcp::stack::HostConfig::ethernet(mac, addresses);
        Network::new(config, nicforge_tcp::Config::default(), Box::new(port), [last; 16])
    };
    [host(1, a), host(2, b)]
}

/// Lets both hosts work until nothing moves; returns what happened at each.
fn settle(hosts: &mut [Network; 2], now: Time) -> [Vec<Event>; 2] {
    let mut seen = [Vec::new(), Vec::new()];
    loop {
        let mut busy = false;
        for (host, seen) in hosts.iter_mut().zip(&mut seen) {
            busy |= host.poll(now, seen);
            host.flush();
        }
        if !busy {
            return seen;
        }
    }
}

#[test]
fn orphans_beyond_their_limit_are_reset_oldest_first() {
    let [client, server] = hosts();
    let mut hosts = [client.with_orphans(32), server];
    let at = "10.0.0.2:80".parse().unwrap();
    let listener = hosts[1].listen(at, 64, 0).unwrap();
    let mut served = Vec::new();
    for port in 0..40 {
        let from = std::net::SocketAddr::from(([10, 0, 0, 1], 4000 + port));
        let id = hosts[0].connect(from, at, 0).unwrap();
        settle(&mut hosts, Time::from_ms(1));
        served.extend(hosts[1].accept(listener).map(|accepted| accepted.id));
        // The peer does not close: the connection stays in FIN-WAIT-2.
        hosts[0].release(id);
        settle(&mut hosts, Time::from_ms(1));
    }
    assert_eq!(served.len(), 40);
    // At the 33rd and, from 30 on again, at the 36th and 39th, three went at a time.
    assert_eq!(hosts[0].orphans.reset, 9);
    let states: Vec<_> = served.iter().map(|id| hosts[1].info(*id).state).collect();
    assert!(states[..9].iter().all(|state| *state == "CLOSED"), "{states:?}");
    assert!(states[9..].iter().all(|state| *state == "CLOSE-WAIT"), "{states:?}");
}

#[test]
fn checksums_that_a_neighbour_on_this_machine_left_to_its_nic_are_not_judged() {
    use crate::watch::filter::Filter;
    let mut hosts = hosts();
    let at = "10.0.0.2:80".parse().unwrap();
    let listener = hosts[1].listen(at, 4, 0).unwrap();
    let client = hosts[0].connect("10.0.0.1:4000".parse().unwrap(), at, 0).unwrap();
    settle(&mut hosts, Time::from_ms(1));
    let server = hosts[1].accept(listener).unwrap().id;
    let kinds = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET);
    let (_ours, theirs) = rustix::net::socketpair(kinds.0, kinds.1, rustix::net::SocketFlags::NONBLOCK, None).unwrap();
    let mut theirs = Some(theirs);
    // An observer sees frames as on a wire.
    for watched in [false, true] {
        if watched {
            hosts[1].watch(&mut |watch| watch.capture(theirs.take().unwrap(), Filter::parse("tcp").unwrap(), 64));
        }
        assert_eq!(hosts[0].send(client, &[7; 14_000], false), 14_000);
        settle(&mut hosts, Time::from_ms(2));
        assert_eq!(hosts[1].receive(server, &mut [0; 20_000]), 14_000);
    }
    assert_eq!(hosts[1].host().unwrap().counters.malformed, 0);
}

#[test]
fn a_trace_of_connections_that_lose_nothing_is_empty() {
    use crate::watch::filter::Filter;
    let mut hosts = hosts();
    let kinds = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET);
    let (ours, theirs) = rustix::net::socketpair(kinds.0, kinds.1, rustix::net::SocketFlags::NONBLOCK, None).unwrap();
    let mut theirs = Some(theirs);
    hosts[1].watch(&mut |watch| watch.trace(theirs.take().unwrap(), Filter::parse("tcp").unwrap()));
    let at = "10.0.0.2:80".parse().unwrap();
    let listener = hosts[1].listen(at, 64, 0).unwrap();
    // Initial numbers from all over.
    for port in 4000..4016 {
        let client = hosts[0].connect(std::net::SocketAddr::from(([10, 0, 0, 1], port)), at, 0).unwrap();
        settle(&mut hosts, Time::from_ms(1));
        let server = hosts[1].accept(listener).unwrap().id;
        assert_eq!(hosts[1].send(server, &[7; 14_000], false), 14_000);
        hosts[1].flush();
        settle(&mut hosts, Time::from_ms(2));
        assert_eq!(hosts[0].receive(client, &mut [0; 20_000]), 14_000);
    }
    let mut message = [0; 4096];
    let traced = rustix::net::recv(&ours, &mut message[..], rustix::net::RecvFlags::empty());
    assert!(traced.is_err(), "{}", String::from_utf8_lossy(&message));
}

#[test]
fn a_trace_follows_one_loss_from_duplicates_to_repair() {
    use crate::watch::event::{Because, Event as Traced, What};
    use crate::watch::filter::Filter;
    // The fifth long frame is lost, once.
    let mut hosts = hosts_that_lose(|number, frame| number == 5 && frame.len() > 1000);
    let kinds = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET);
    let (ours, theirs) = rustix::net::socketpair(kinds.0, kinds.1, rustix::net::SocketFlags::NONBLOCK, None).unwrap();
    let mut theirs = Some(theirs);
    let filter = Filter::parse("port 80").unwrap();
    assert!(hosts[0].watch(&mut |watch| watch.trace(theirs.take().unwrap(), filter.clone())));
    let at = "10.0.0.2:80".parse().unwrap();
    let listener = hosts[1].listen(at, 4, 0).unwrap();
    let client = hosts[0].connect("10.0.0.1:4000".parse().unwrap(), at, 0).unwrap();
    settle(&mut hosts, Time::from_ms(1));
    let server = hosts[1].accept(listener).unwrap().id;
    let bytes: Vec<u8> = (0..14_000u32).map(|n| n as u8).collect();
    hosts[0].set_time(Time::from_ms(2));
    assert_eq!(hosts[0].send(client, &bytes, false), bytes.len());
    let mut got = vec![0; 20_000];
    let mut len = 0;
    for ms in 2..200 {
        settle(&mut hosts, Time::from_ms(ms));
        len += hosts[1].receive(server, &mut got[len..]);
    }
    assert!(got[..len] == bytes);
    let mut events = Vec::new();
    let mut message = [0; 4096];
    while let Ok((len, _)) = rustix::net::recv(&ours, &mut message[..], rustix::net::RecvFlags::empty()) {
        events.push(serde_json::from_slice::<Traced>(&message[..len]).unwrap());
    }
    let lines: Vec<String> = events.iter().map(Traced::line).collect();
    let again = events.iter().filter_map(|event| match event.what {
        What::Retransmitted { from, to, because, copy, .. } => Some((from, to, because, copy)),
        _ => None,
    });
    let lost = 4 * 1448 + 1;
    assert_eq!(again.collect::<Vec<_>>(), [(lost, lost + 1448, Because::Loss, 2)], "{lines:#?}");
    let duplicates = events.iter().filter(|event| {
        matches!(&event.what, What::DuplicateAck { waits_for, has, .. }
        if *waits_for == lost && has.iter().all(|(from, _)| *from == lost + 1448))
    });
    assert!(duplicates.count() >= 1, "{lines:#?}");
    let repaired = matches!(events.last().unwrap().what, What::Repaired { copies: 2, .. });
    assert!(repaired, "{lines:#?}");
    println!("{}", lines.join("\n"));
}
