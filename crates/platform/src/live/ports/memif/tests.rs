use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_get_seals, ftruncate, memfd_create};

use super::channel::Incoming;
use super::message::{Direction, MESSAGE_BYTES, MODE_ETHERNET, Message, RingPlace, VERSION};
use super::ring::{COOKIE, FRAME_BYTES_MAX};
use super::*;
use crate::live::ports::foreign::ForeignMemory;

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
fn who_sleeps_is_woken_and_who_polls_is_not() {
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

/// A client by hand, up to where `prepare` left its messages; how it ended for the server.
fn served(messages: Vec<(Message, Option<OwnedFd>)>) -> (Result<(), Ended>, Session) {
    let (ours, theirs) = Channel::pair();
    let mut session = Session::new(Side::Server, terms(2), ours);
    for (message, file) in messages {
        theirs.send(&message, file.as_ref().map(AsFd::as_fd));
        if let Err(ended) = session.listen() {
            return (Err(ended), session);
        }
    }
    (Ok(()), session)
}

fn init() -> Message {
    Message::Init { version: VERSION, id: 7, mode: MODE_ETHERNET, secret: "open sesame".into() }
}

fn memory(bytes: u64) -> OwnedFd {
    let file = memfd_create("peer", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, bytes).unwrap();
    file
}

fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC).unwrap()
}

fn ring(direction: Direction, index: u16, offset: u32, log2_entries: u8) -> Message {
    Message::AddRing(RingPlace { direction, index, region: 0, offset, log2_entries })
}

#[test]
fn layouts_that_lie_are_refused() {
    use Direction::{ToClient, ToServer};
    let region = |bytes, file| (Message::AddRegion { index: 0, bytes }, Some(file));
    let begin = || vec![(init(), None), region(8192, memory(8192))];
    let with = |more: Vec<(Message, Option<OwnedFd>)>| begin().into_iter().chain(more).collect::<Vec<_>>();
    let rings = |offsets: (u32, u32), log2| {
        with(vec![
            (ring(ToServer, 0, offsets.0, log2), Some(event())),
            (ring(ToClient, 0, offsets.1, log2), Some(event())),
            (Message::Connect, None),
        ])
    };
    let cases = vec![
        vec![(Message::Connect, None)],
        vec![(Message::Ack, None)],
        vec![(Message::Init { version: 1, id: 7, mode: 0, secret: String::new() }, None)],
        vec![(Message::Init { version: VERSION, id: 7, mode: 1, secret: String::new() }, None)],
        vec![(init(), None), (init(), None)],
        vec![(init(), None), (Message::AddRegion { index: 0, bytes: 10 }, None)],
        vec![(init(), None), region(8193, memory(8192))],
        vec![(init(), None), region(u64::MAX, memory(8192))],
        vec![(init(), None), region(0, memory(8192))],
        vec![(init(), None), region(1, event())],
        vec![(init(), None), (Message::AddRegion { index: 1, bytes: 10 }, Some(memory(10)))],
        with(vec![(ring(ToServer, 0, 0, 4), None)]),
        with(vec![(ring(ToServer, 2, 0, 4), Some(event()))]),
        with(vec![(ring(ToServer, 0, 0, 4), Some(event())), (ring(ToServer, 0, 0, 4), Some(event()))]),
        with(vec![(Message::Connect, None)]),
        with(vec![(ring(ToServer, 0, 0, 4), Some(event())), (Message::Connect, None)]),
        with(vec![(ring(ToServer, 1, 0, 4), Some(event())), (Message::Connect, None)]),
        // No cookie; beyond the end; overflowing; not aligned; more entries than indexes count.
        rings((0, 1024), 4),
        rings((8192 - 128, 0), 4),
        rings((u32::MAX, 0), 4),
        rings((1, 1025), 4),
        rings((0, 1024), 15),
        rings((0, 1024), 255),
    ];
    for (number, messages) in cases.into_iter().enumerate() {
        let (ended, session) = served(messages);
        assert!(ended.is_err() && !session.is_up(), "case {number}");
    }
}

#[test]
fn nonsense_on_the_channel_ends_a_session_and_nothing_else() {
    let (ours, theirs) = Channel::pair();
    let mut session = Session::new(Side::Server, terms(1), ours);
    rustix::io::write(&theirs, &[0xff; MESSAGE_BYTES]).unwrap();
    assert_eq!(session.listen(), Err(Ended("it sent what is no message".into())));
    for len in [1, MESSAGE_BYTES - 1, MESSAGE_BYTES + 1] {
        let (ours, theirs) = Channel::pair();
        let mut session = Session::new(Side::Client, terms(1), ours);
        rustix::io::write(&theirs, &vec![2; len]).unwrap();
        assert!(session.listen().is_err(), "{len} bytes");
    }
    for number in 0..=u16::MAX {
        let mut bytes = [number as u8; MESSAGE_BYTES];
        bytes[..2].copy_from_slice(&number.to_ne_bytes());
        assert_eq!(Message::decode(&bytes).is_some(), (1..=8).contains(&number));
    }
}

/// A server's session with a client whose memory the test writes to: 16 entries each way.
fn lying_client() -> (Session, ForeignMemory) {
    let file = memory(1 << 20);
    let shared = ForeignMemory::map(file.as_fd(), 1 << 20).unwrap();
    for at in [0, 4096] {
        shared.word(at).unwrap().store(COOKIE, Ordering::Relaxed);
    }
    let messages = vec![
        (init(), None),
        (Message::AddRegion { index: 0, bytes: 1 << 20 }, Some(file)),
        (ring(Direction::ToServer, 0, 0, 4), Some(event())),
        (ring(Direction::ToClient, 0, 4096, 4), Some(event())),
        (Message::Connect, None),
    ];
    let (result, session) = served(messages);
    assert_eq!(result, Ok(()));
    (session, shared)
}

/// Writes descriptor `slot` of the ring at `at`.
fn describe(shared: &ForeignMemory, at: usize, slot: usize, (goes_on, region, length, offset): (bool, u16, u32, u32)) {
    let descriptor = at + 128 + 16 * slot;
    shared.word(descriptor).unwrap().store(u32::from(goes_on) | u32::from(region) << 16, Ordering::Relaxed);
    shared.word(descriptor + 4).unwrap().store(length, Ordering::Relaxed);
    shared.word(descriptor + 8).unwrap().store(offset, Ordering::Relaxed);
}

#[test]
fn descriptors_that_lie_cost_their_frame_only() {
    let (mut session, shared) = lying_client();
    shared.copy_in(65_536, &[7; 64]);
    let good = (false, 0, 64, 65_536);
    let bad = [
        ((false, 1, 64, 65_536), Fault::Outside),
        ((false, 0, 64, (1 << 20) - 63), Fault::Outside),
        ((false, 0, 64, u32::MAX), Fault::Outside),
        ((false, 0, FRAME_BYTES_MAX as u32 + 1, 0), Fault::Length),
        ((false, 0, u32::MAX, 0), Fault::Length),
        ((false, 0, 0, 0), Fault::Empty),
    ];
    let mut head = 0u16;
    for (descriptor, fault) in bad {
        describe(&shared, 0, usize::from(head % 16), descriptor);
        describe(&shared, 0, usize::from((head + 1) % 16), good);
        head += 2;
        shared.half(6).unwrap().store(head, Ordering::Release);
        let mut frame = Vec::new();
        assert_eq!(session.receive[0].take(&session.regions, &mut frame), Some(Err(fault)));
        frame.clear();
        assert_eq!(session.receive[0].take(&session.regions, &mut frame), Some(Ok(())));
        assert_eq!(frame, [7; 64]);
        assert_eq!(session.receive[0].take(&session.regions, &mut frame), None);
    }
    // A chain without an end, all round the ring: as long as what was published, and no longer.
    (0..16).for_each(|slot| describe(&shared, 0, slot, (true, 0, 64, 65_536)));
    shared.half(6).unwrap().store(head + 16, Ordering::Release);
    let mut frame = Vec::new();
    assert_eq!(session.receive[0].take(&session.regions, &mut frame), Some(Err(Fault::Unfinished)));
    assert_eq!(session.receive[0].take(&session.regions, &mut frame), None);
}

#[test]
fn indexes_that_lie_are_noticed_on_both_rings() {
    for lie in [17, 0x8000, u16::MAX] {
        let (mut session, shared) = lying_client();
        shared.half(6).unwrap().store(lie, Ordering::Release);
        shared.half(4096 + 6).unwrap().store(lie, Ordering::Release);
        let mut frame = Vec::new();
        assert_eq!(session.receive[0].take(&session.regions, &mut frame), Some(Err(Fault::Index)));
        assert_eq!(session.transmit[0].put(&session.regions, &[1; 60], BUFFER_BYTES), Err(Fault::Index));
    }
}

#[test]
fn buffers_that_lie_are_not_written_to() {
    let (mut session, shared) = lying_client();
    let bad = [(false, 9, 2048, 0), (false, 0, 2048, u32::MAX), (false, 0, 0, 65_536)];
    for (slot, descriptor) in bad.into_iter().enumerate() {
        describe(&shared, 4096, slot, descriptor);
    }
    describe(&shared, 4096, 3, (false, 0, 100, 65_536));
    describe(&shared, 4096, 4, (false, 0, 100, 65_636));
    shared.half(4096 + 6).unwrap().store(5, Ordering::Release);
    for _ in bad {
        assert_eq!(session.transmit[0].put(&session.regions, &[1; 60], BUFFER_BYTES), Err(Fault::Outside));
    }
    assert_eq!(session.transmit[0].put(&session.regions, &[9; 300], BUFFER_BYTES), Ok(false), "two slots are too few");
    assert_eq!(session.transmit[0].put(&session.regions, &[9; 150], BUFFER_BYTES), Ok(true));
    let mut bytes = Vec::new();
    shared.copy_out(65_536, 150, &mut bytes);
    assert_eq!(bytes, [9; 150]);
    assert_eq!(session.transmit[0].put(&session.regions, &[9; 60], BUFFER_BYTES), Ok(false));
}

#[test]
fn a_server_that_lies_is_left() {
    let (mut server, mut client, _folder) = pair((1, 1));
    // Its tail is where we put it: the client never offered so many.
    let (session, _) = server.session.as_ref().unwrap();
    let places = [session.transmit[0].place(), session.receive[0].place()];
    let at = places.map(|place| place.offset as usize + 64);
    session.regions[0].half(at[0]).unwrap().store(5000, Ordering::Release);
    assert_eq!(received(&mut client).len(), 0);
    assert_eq!(client.counters.unreadable, [("memif_ring_index", 1)]);
    assert!(client.take_note().unwrap().contains("index of a ring"));
    assert!(!client.link.is_up);
    server.look().unwrap();
    assert!(server.take_note().unwrap().contains("index of a ring"));
}

#[test]
fn memory_that_shrinks_ends_the_session() {
    let (ours, theirs) = Channel::pair();
    let folder = tempfile::tempdir().unwrap();
    let mut server = MemifPort::open(&folder.path().join("s"), MemifRole::Server, terms(1), MTU).unwrap();
    let mut session = Session::new(Side::Server, terms(1), ours);
    let file = memory(1 << 16);
    theirs.send(&init(), None);
    theirs.send(&Message::AddRegion { index: 0, bytes: 1 << 16 }, Some(file.as_fd()));
    session.listen().unwrap();
    ftruncate(&file, 0).unwrap();
    assert!(session.regions[0].copy_in(0, &[1]), "zeros are in its place");
    server.session = Some((session, Instant::now()));
    server.look().unwrap();
    assert!(server.session.is_none());
    assert!(server.take_note().unwrap().contains("shorter"));
}

#[test]
fn memory_of_ours_keeps_its_length() {
    let (ours, theirs) = Channel::pair();
    let mut client = Session::new(Side::Client, terms(1), ours);
    let hello = Message::Hello {
        versions: (0, u16::MAX),
        last_region: 0,
        last_to_client: 0,
        last_to_server: u16::MAX,
        log2_entries: 255,
    };
    for message in [hello, Message::Ack] {
        theirs.send(&message, None);
        client.listen().unwrap();
    }
    let Incoming::Message(Message::Init { .. }, None) = theirs.receive() else { panic!("the client's greeting") };
    let Incoming::Message(Message::AddRegion { index: 0, .. }, Some(file)) = theirs.receive() else {
        panic!("its memory")
    };
    let seals = fcntl_get_seals(&file).unwrap();
    assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW));
}
