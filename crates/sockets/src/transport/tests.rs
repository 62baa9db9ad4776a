//! The loopback against a model of two byte streams.

use std::collections::VecDeque;

use nicforge_units::Time;
use proptest::prelude::*;
use rustix::io::Errno;

use super::loopback::Loopback;
use super::{Event, Id, Transport};

fn events(loopback: &mut Loopback) -> Vec<Event> {
    let mut events = Vec::new();
    loopback.poll(Time::ZERO, &mut events);
    events
}

fn pair(loopback: &mut Loopback) -> (Id, Id) {
    let listener = loopback.listen("127.0.0.1:80".parse().unwrap(), 8).unwrap();
    let client = loopback.connect("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:80".parse().unwrap()).unwrap();
    let server = loopback.accept(listener).unwrap().id;
    loopback.unlisten(listener);
    events(loopback);
    (client, server)
}

#[test]
fn nobody_listening_refuses() {
    let mut loopback = Loopback::default();
    let id = loopback.connect("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:80".parse().unwrap()).unwrap();
    assert_eq!(events(&mut loopback), [Event::Failed(id, Errno::CONNREFUSED)]);
}

#[test]
fn both_fins_close_and_a_name_is_not_used_again() {
    let mut loopback = Loopback::default();
    let (client, server) = pair(&mut loopback);
    loopback.send(client, b"last");
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
    let any = loopback.listen("0.0.0.0:80".parse().unwrap(), 8).unwrap();
    let exact = loopback.listen("127.0.0.2:80".parse().unwrap(), 8).unwrap();
    let mut connect = |to: &str| {
        let from = if to.starts_with('[') { "[::1]:5000" } else { "127.0.0.1:5000" };
        loopback.connect(from.parse().unwrap(), to.parse().unwrap()).unwrap();
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
                    let sent = loopback.send(id(side), &bytes);
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
