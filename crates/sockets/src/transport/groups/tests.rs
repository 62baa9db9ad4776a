//! Flow-groups over one cable, whose frames all come in by the first group's port: letters take them to the others.

use std::collections::HashMap;
use std::sync::Mutex;

use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::{PairPort, Port, PortCounters, pair};
use nicforge_tcp::Config;
use nicforge_tcp::stack::{Address, HostConfig};
use nicforge_wire::headers::MacAddress;

use super::*;
use crate::service::now;

/// An end of a cable that several groups send by, and one receives from.
struct Part {
    end: Arc<Mutex<PairPort>>,
    receives: bool,
    counters: PortCounters,
}

impl Port for Part {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        if self.receives { self.end.lock().unwrap().receive(budget, each) } else { Ok(0) }
    }

    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError> {
        let mut end = self.end.lock().unwrap();
        end.send(frame, now)?;
        end.flush()
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }
}

fn network(last: u8, port: impl Port + 'static) -> Network {
    let addresses = vec![Address::new(IpAddr::from([10, 0, 0, last]), 24)];
    let host = HostConfig::ethernet(MacAddress([2, 0, 0, 0, 0, last]), addresses);
    Network::new(host, Config::default(), Box::new(port), [last; 16])
}

/// 10.0.0.1, and 10.0.0.2 with so many groups.
fn hosts(groups: usize) -> (Network, Groups) {
    let (one, two) = pair();
    let end = Arc::new(Mutex::new(two));
    let part = |number| Part { end: Arc::clone(&end), receives: number == 0, counters: PortCounters::default() };
    let networks = (0..groups).map(|number| network(2, part(number))).collect();
    (network(1, one), Groups::new(networks, Arc::new(|_| ())).unwrap())
}

/// One side of a connection.
#[derive(Default)]
struct Side {
    /// Bytes got and not sent back.
    back: Vec<u8>,
    got: Vec<u8>,
}

/// Sends back what comes, or keeps it.
fn serve(host: &mut dyn Transport, id: Id, side: &mut Side, echoes: bool) {
    let mut bytes = [0; 16_384];
    let len = host.receive(id, &mut bytes);
    let into = if echoes { &mut side.back } else { &mut side.got };
    into.extend_from_slice(&bytes[..len]);
    let sent = host.send(id, &side.back, false);
    side.back.drain(..sent);
}

fn content(port: u16) -> Vec<u8> {
    (0..60_000u32).map(|n| ((n * u32::from(port)) >> 9) as u8).collect()
}

fn at(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], port))
}

/// Connections from one side to the other, whose streams come back whole while threads come and go.
fn echo(peer: &mut Network, groups: &mut Groups, peer_asks: bool) -> Vec<Id> {
    let (asks, to) = if peer_asks { (1, 2) } else { (2, 1) };
    let server: &mut dyn Transport = if peer_asks { groups } else { peer };
    let listener = server.listen(at(to, 80), 64, 0).unwrap();
    let client: &mut dyn Transport = if peer_asks { peer } else { groups };
    let mut asked = HashMap::new();
    for port in 4000..4030 {
        let id = client.connect(at(asks, port), at(to, 80), 0).unwrap();
        asked.insert(id, (Side { back: content(port), ..Side::default() }, content(port)));
    }
    let (mut served, mut events) = (HashMap::new(), Vec::new());
    let until = now() + Time::from_seconds(60.0);
    let mut round = 0;
    while asked.values().any(|(side, expected)| side.got.len() < expected.len()) {
        round += 1;
        if round % 100 == 0 && groups.crew.groups.len() > 1 {
            groups.go_on_with(1 + round / 100 % 3);
        }
        for host in [&mut *peer as &mut dyn Transport, groups] {
            let now = now();
            host.set_time(now);
            host.poll(now, &mut events);
            host.flush();
        }
        let (client, server): (&mut dyn Transport, &mut dyn Transport) =
            if peer_asks { (peer, groups) } else { (groups, peer) };
        while let Some(accepted) = server.accept(listener) {
            served.insert(accepted.id, Side::default());
        }
        asked.iter_mut().for_each(|(id, (side, _))| serve(client, *id, side, false));
        served.iter_mut().for_each(|(id, side)| serve(server, *id, side, true));
        client.flush();
        server.flush();
        assert!(now() < until, "{} connections, {events:?}", served.len());
    }
    assert!(asked.values().all(|(side, expected)| side.got == *expected));
    assert!(!events.iter().any(|event| matches!(event, Event::Failed(..))), "{events:?}");
    if peer_asks { served.into_keys().collect() } else { asked.into_keys().collect() }
}

fn groups_of(ids: &[Id]) -> Vec<usize> {
    let mut groups: Vec<usize> = ids.iter().map(|id| (id.0 >> GROUP) as usize).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

#[test]
fn a_peers_connections_are_split_and_go_on_while_threads_come_and_go() {
    let (mut peer, mut groups) = hosts(3);
    let ids = echo(&mut peer, &mut groups, true);
    assert_eq!(groups_of(&ids), [0, 1, 2]);
    let host = groups.host().unwrap();
    assert_eq!((host.counters.no_port, host.counters.resets_out, host.port_errors), (0, 0, 0));
}

#[test]
fn own_connections_are_split_likewise() {
    let (mut peer, mut groups) = hosts(3);
    let ids = echo(&mut peer, &mut groups, false);
    assert_eq!(groups_of(&ids), [0, 1, 2]);
    let peer = peer.host().unwrap();
    assert_eq!((peer.counters.no_port, peer.counters.resets_out), (0, 0));
}

#[test]
fn a_devices_thread_serves_connections_alone() {
    let (one, two) = pair();
    let part = Part { end: Arc::new(Mutex::new(two)), receives: true, counters: PortCounters::default() };
    let (mut peer, mut groups) = (network(1, one), Groups::on_device(network(2, part), Arc::new(|| ())).unwrap());
    for peer_asks in [true, false] {
        echo(&mut peer, &mut groups, peer_asks);
    }
    assert_eq!(groups.crew.groups[0].server(), 1);
}
