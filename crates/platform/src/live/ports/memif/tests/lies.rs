//! Peers that lie.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_get_seals, ftruncate, memfd_create};

use super::super::channel::Incoming;
use super::super::message::{Direction, MESSAGE_BYTES, MODE_ETHERNET, Message, RingPlace, VERSION};
use super::super::ring::{COOKIE, FRAME_BYTES_MAX};
use super::*;
use crate::live::ports::foreign::ForeignMemory;

/// A client that says `messages`; how it ended for the server.
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
