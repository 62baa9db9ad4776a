use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

mod dpdk;
mod lies;

const MTU: usize = 9000;

fn terms(queues: u16) -> Terms {
    Terms { id: 7, queues, secret: "open sesame".into() }
}

/// Frames of flows: one after another of ports that differ, so long.
fn frame(port: u16, len: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
    builder.udp(port, 6).write(&mut frame, &vec![port as u8; len - 42]).unwrap();
    frame
}

fn received(port: &mut MemifPort) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while port.receive(8, &mut |frame| frames.push(frame.to_vec())).unwrap() > 0 {}
    frames
}

/// A server and a client at one socket, talking until frames can pass.
fn pair(queues: (u16, u16)) -> (MemifPort, MemifPort, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memif.sock");
    let mut server = MemifPort::open(&path, MemifRole::Server, terms(queues.0), MTU).unwrap();
    let mut client = MemifPort::open(&path, MemifRole::Client, terms(queues.1), MTU).unwrap();
    for _ in 0..20 {
        server.look().unwrap();
        client.look().unwrap();
    }
    assert_eq!((server.take_note(), client.take_note()), (None, None));
    assert!(server.link.is_up && client.link.is_up);
    (server, client, folder)
}

#[test]
fn frames_pass_both_ways_over_every_ring() {
    for (queues, rings) in [((1, 1), 1), ((4, 4), 4), ((2, 16), 2), ((3, 1), 1)] {
        let (mut server, mut client, _folder) = pair(queues);
        assert_eq!(client.session.as_ref().unwrap().0.transmit.len(), rings);
        for round in 0..5 {
            let sent: Vec<_> = (0..700).map(|number| frame(number + round, 60 + usize::from(number) % 1400)).collect();
            for (from, to) in [(0, 1), (1, 0)] {
                let mut ports = [&mut server, &mut client];
                sent.iter().for_each(|frame| ports[from].send(frame, Time::ZERO).unwrap());
                assert_eq!(received(ports[to]).len(), 0, "nothing was published");
                ports[from].flush().unwrap();
                let mut arrived = received(ports[to]);
                let mut sent = sent.clone();
                if rings > 1 {
                    // Those of one flow stay in order; here each is its own.
                    arrived.sort();
                    sent.sort();
                }
                assert!(arrived == sent, "{rings} rings, round {round}, from {from}");
            }
        }
        let used = client.session.as_ref().unwrap().0.receive.iter().filter(|ring| ring.moved() > 1024).count();
        assert_eq!(used, rings, "every ring carried frames");
    }
}

#[test]
fn long_frames_take_several_buffers_and_longer_ones_do_not_go() {
    let (mut server, mut client, _folder) = pair((1, 1));
    let sent = [frame(1, 2048), frame(2, 2049), frame(3, MTU + 14)];
    for (from, to) in [(0, 1), (1, 0)] {
        let ports = [&mut server, &mut client];
        sent.iter().for_each(|frame| ports[from].send(frame, Time::ZERO).unwrap());
        ports[from].send(&frame(4, MTU + 15), Time::ZERO).unwrap();
        ports[from].flush().unwrap();
        assert_eq!(received(ports[to]), sent);
        assert_eq!(ports[from].counters.above_mtu, 1);
    }
}

#[test]
fn a_full_ring_refuses_and_goes_on() {
    let (mut server, mut client, _folder) = pair((1, 1));
    for (from, to) in [(0, 1), (1, 0)] {
        let ports = [&mut server, &mut client];
        for number in 0..1500u16 {
            ports[from].send(&frame(number, 100), Time::ZERO).unwrap();
        }
        ports[from].flush().unwrap();
        assert_eq!((ports[from].counters.sent, ports[from].counters.refused), (1024, 476));
        assert_eq!(received(ports[to]).len(), 1024);
        ports[from].send(&frame(9, 100), Time::ZERO).unwrap();
        ports[from].flush().unwrap();
        assert_eq!(received(ports[to]), [frame(9, 100)]);
    }
}

fn wakes(port: &MemifPort) -> bool {
    let file = port.readable().expect("it can be waited for");
    let mut polled = [PollFd::new(&file, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
}

#[test]
fn a_sleeping_peer_is_kicked_and_a_polling_one_is_not() {
    let (mut server, mut client, _folder) = pair((2, 2));
    for (from, to) in [(0, 1), (1, 0)] {
        let ports = [&mut server, &mut client];
        received(ports[to]);
        assert!(!wakes(ports[to]));
        ports[from].send(&frame(1, 60), Time::ZERO).unwrap();
        assert!(!wakes(ports[to]), "it is not published");
        ports[from].flush().unwrap();
        assert!(ports[to].readable().is_none(), "there is something to take at once");
        assert_eq!(received(ports[to]).len(), 1);
        ports[from].send(&frame(1, 60), Time::ZERO).unwrap();
        ports[from].flush().unwrap();
        assert_eq!(received(ports[to]).len(), 1, "a poll finds it");
        assert!(!wakes(ports[to]), "nobody rang for who polls");
        ports[from].send(&frame(1, 60), Time::ZERO).unwrap();
        ports[from].flush().unwrap();
        let file = ports[to].wakes.as_fd();
        let mut polled = [PollFd::new(&file, PollFlags::IN)];
        assert_eq!(poll(&mut polled, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap(), 1, "the interrupt");
        assert_eq!(received(ports[to]).len(), 1);
    }
}

#[test]
fn peers_go_and_come_again() {
    let (mut server, client, folder) = pair((1, 1));
    let path = folder.path().join("memif.sock");
    drop(client);
    server.look().unwrap();
    assert!(!server.link.is_up && server.take_note().is_some());
    assert_eq!(server.link.downs, 1);
    server.send(&frame(1, 60), Time::ZERO).unwrap();
    assert_eq!(server.counters.refused, 1);
    let mut client = MemifPort::open(&path, MemifRole::Client, terms(1), MTU).unwrap();
    let talk = |server: &mut MemifPort, client: &mut MemifPort| {
        for _ in 0..20 {
            server.look().unwrap();
            client.look().unwrap();
        }
    };
    talk(&mut server, &mut client);
    assert!(server.link.is_up && client.link.is_up);
    // A third one is sent away, and disturbs nobody.
    let mut third = MemifPort::open(&path, MemifRole::Client, terms(1), MTU).unwrap();
    server.look().unwrap();
    third.look().unwrap();
    assert!(third.take_note().unwrap().contains("already connected"));
    drop(third);
    talk(&mut server, &mut client);
    client.send(&frame(1, 60), Time::ZERO).unwrap();
    client.flush().unwrap();
    assert_eq!(received(&mut server).len(), 1);
    // A server that was killed leaves its socket, and the next one takes the place.
    std::mem::forget(server);
    assert!(MemifPort::open(&path, MemifRole::Server, terms(1), MTU).is_err(), "it is still listened at");
}

#[test]
fn strangers_are_told_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memif.sock");
    let mut server = MemifPort::open(&path, MemifRole::Server, terms(1), MTU).unwrap();
    let refused = [
        (Terms { id: 8, ..terms(1) }, "it wants interface 8, and this is 7"),
        (Terms { secret: String::new(), ..terms(1) }, "incorrect secret"),
    ];
    for (wrong, why) in refused {
        let mut client = MemifPort::open(&path, MemifRole::Client, wrong, MTU).unwrap();
        for _ in 0..3 {
            server.look().unwrap();
            client.look().unwrap();
        }
        assert!(server.take_note().unwrap().contains(why));
        assert!(client.take_note().unwrap().contains(why));
    }
}
