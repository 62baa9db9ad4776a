use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use nicforge_wire::{checksum, parse_frame};
use tempfile::TempDir;
use vhost::VhostBackend;
use vmm_sys_util::eventfd::EventFd;

use super::*;
use driver::*;

mod dpdk;
mod driver;
mod lies;

fn port(pairs: u16) -> (VhostUserPort, PathBuf, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vhost.sock");
    (VhostUserPort::open(&path, pairs, 9000).unwrap(), path, folder)
}

fn received(port: &mut VhostUserPort) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while port.receive(8, &mut |frame| frames.push(frame.to_vec())).unwrap() > 0 {}
    frames
}

fn udp(flow: u16, len: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
    builder.udp(flow, 6).write(&mut frame, &vec![flow as u8; len - 42]).unwrap();
    frame
}

#[test]
fn frames_pass_both_ways_over_every_pair() {
    for (pairs, features) in [(1, ALL), (2, ALL), (1, ALL & !EVENT_INDEX), (2, ALL & !MERGEABLE)] {
        let (mut port, path, _folder) = port(2);
        let mut driver = Driver::connect(&path, pairs, features);
        port.look().unwrap();
        assert!(port.link.is_up);
        for round in 0..5u16 {
            let mut sent = Vec::new();
            for pair in 0..pairs {
                for slot in 0..20 {
                    let frame = udp(round * 20 + slot, 60 + 50 * usize::from(slot));
                    driver.send(pair, slot, &[], &frame);
                    sent.push(frame);
                }
            }
            let mut taken = received(&mut port);
            taken.sort();
            sent.sort();
            assert!(taken == sent, "{pairs} pairs, {features:x}");
            for pair in 0..pairs {
                assert_eq!(driver.used(2 * pair + 1).len(), 20);
                driver.make_room(pair, 0..ENTRIES - 1, 2048);
            }
            let frames: Vec<_> = (0..30).map(|flow| udp(flow, 700)).collect();
            frames.iter().for_each(|frame| port.send(frame, Time::ZERO).unwrap());
            assert_eq!(driver.received(0).len(), 0, "nothing was shown");
            port.flush().unwrap();
            let by_pair: Vec<_> = (0..pairs).map(|pair| driver.received(pair)).collect();
            assert!(by_pair.iter().all(|frames| !frames.is_empty()), "every pair carries flows");
            let mut arrived: Vec<_> = by_pair.into_iter().flatten().map(|(_, frame)| frame).collect();
            arrived.sort_by_key(|frame| frame[35]);
            assert_eq!(arrived, frames);
            // What was not used is still there: begin with empty queues again.
            (0..pairs).for_each(|pair| driver.drain(pair, &mut port));
        }
    }
}

#[test]
fn long_frames_take_several_buffers_that_are_shown_at_once() {
    let (mut port, path, _folder) = port(1);
    let mut driver = Driver::connect(&path, 1, ALL);
    driver.make_room(0, 0..10, 512);
    let frames = [udp(1, 2000), udp(2, 500), udp(3, 501), udp(4, 1525)];
    frames.iter().for_each(|frame| port.send(frame, Time::ZERO).unwrap());
    port.flush().unwrap();
    let arrived = driver.received(0);
    assert!(arrived.iter().map(|(_, frame)| frame).eq(&frames[..3]));
    assert_eq!(arrived.iter().map(|(header, _)| header[10]).collect::<Vec<_>>(), [4, 1, 2]);
    assert_eq!(port.counters.refused, 1, "three buffers are too few");
    // They are still there.
    port.send(&udp(5, 1524), Time::ZERO).unwrap();
    port.flush().unwrap();
    assert_eq!(driver.received(0).len(), 1);
}

#[test]
fn without_merging_a_buffer_holds_a_frame_or_none() {
    let (mut port, path, _folder) = port(1);
    let mut driver = Driver::connect(&path, 1, ALL & !MERGEABLE);
    driver.make_room(0, 0..2, 512);
    for len in [600, 500] {
        port.send(&udp(1, len), Time::ZERO).unwrap();
    }
    port.flush().unwrap();
    let arrived = driver.received(0);
    assert_eq!((arrived.len(), arrived[0].1.len(), port.counters.refused), (1, 500, 1));
}

/// A TCP segment as a stack leaves it, its header in front.
fn segment(payload: usize) -> (Vec<u8>, Vec<u8>) {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    builder.tcp(1000, 2000, 7, 100).ack(9).write(&mut frame, &vec![5; payload]).unwrap();
    let left = TxOffload { l4_checksum: true, segment: 1400, l3_checksum: false };
    let len = frame.len();
    let begun = left.begin(&mut frame, len).unwrap();
    (begun.header.to_vec(), frame)
}

fn is_finished(frame: &[u8]) -> bool {
    checksum::verify(frame, &parse_frame(frame).unwrap()).l4 == Some(true)
}

#[test]
fn segments_of_a_guest_are_cut_here_or_later() {
    let (mut port, path, _folder) = port(1);
    let mut driver = Driver::connect(&path, 1, ALL);
    let (header, frame) = segment(5000);
    driver.send(0, 0, &header, &frame);
    let frames = received(&mut port);
    assert_eq!(frames.len(), 4);
    assert!(frames.iter().all(|frame| is_finished(frame)));
    driver.send(0, 10, &header, &frame);
    let mut whole = Vec::new();
    port.receive_unfinished(8, 65_535, &mut |frame, left| whole.push((frame.to_vec(), left))).unwrap();
    let left = TxOffload { l4_checksum: true, segment: 1400, l3_checksum: false };
    assert_eq!(whole, [(frame, left)]);
}

#[test]
fn segments_for_a_guest_stay_whole_if_it_takes_them() {
    const GUEST_TSO4: u64 = 1 << 7;
    let left = TxOffload { l4_checksum: true, segment: 1400, l3_checksum: false };
    for (features, frames) in [(ALL, 1), (ALL & !GUEST_TSO4, 4)] {
        let (mut port, path, _folder) = port(1);
        let mut driver = Driver::connect(&path, 1, features);
        driver.make_room(0, 0..ENTRIES, 2048);
        let (header, frame) = segment(5000);
        port.send_unfinished(&frame, left, Time::ZERO).unwrap();
        port.flush().unwrap();
        let arrived = driver.received(0);
        assert_eq!(arrived.len(), frames);
        if frames == 1 {
            assert_eq!(arrived[0].0[..10], header);
            assert_eq!(arrived[0].1, frame);
        } else {
            assert!(arrived.iter().all(|(header, frame)| header[..10] == [0; 10] && is_finished(frame)));
        }
    }
}

fn rings(event: &EventFd) -> bool {
    event.read().is_ok()
}

#[test]
fn a_sleeping_peer_is_kicked_and_a_polling_one_is_not() {
    let (mut port, path, _folder) = port(1);
    let mut driver = Driver::connect(&path, 1, ALL & !EVENT_INDEX);
    port.look().unwrap();
    received(&mut port);
    let no_kick = |driver: &Driver| driver.memory.half(QUEUE + USED).unwrap().load(Ordering::Relaxed) == 1;
    assert!(no_kick(&driver));
    assert!(port.readable().is_some());
    assert!(!no_kick(&driver));
    let wakes = |port: &VhostUserPort| {
        let file = port.readable()?;
        let mut polled = [rustix::event::PollFd::new(&file, rustix::event::PollFlags::IN)];
        Some(rustix::event::poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1)
    };
    while driver.kicks[1].read().is_ok() {}
    assert_eq!(wakes(&port), Some(false));
    driver.kicks[1].write(1).unwrap();
    assert_eq!(wakes(&port), Some(true));
    driver.send(0, 0, &[], &udp(1, 60));
    assert_eq!(wakes(&port), None, "there is something to take at once");
    assert_eq!(received(&mut port).len(), 1);
    assert!(rings(&driver.calls[1]), "the guest is told that its buffer is free");
    // A guest that polls.
    driver.memory.half(QUEUE + AVAILABLE).unwrap().store(1, Ordering::Relaxed);
    driver.send(0, 0, &[], &udp(1, 60));
    assert_eq!(received(&mut port).len(), 1);
    assert!(!rings(&driver.calls[1]));
}

#[test]
fn guests_go_and_come_again() {
    let (mut port, path, _folder) = port(1);
    for round in 1..=3 {
        let mut driver = Driver::connect(&path, 1, ALL);
        driver.send(0, 0, &[], &udp(1, 60));
        assert_eq!(received(&mut port).len(), 1, "round {round}");
        port.look().unwrap();
        assert!(port.link.is_up);
        // A driver that is loaded again: the ring goes on where it was.
        assert_eq!(driver.frontend.get_vring_base(1).unwrap(), 1);
        driver.send(0, 1, &[], &udp(1, 60));
        assert_eq!(received(&mut port).len(), 0);
        driver.frontend.set_vring_base(1, 1).unwrap();
        driver.frontend.set_vring_kick(1, &driver.kicks[1]).unwrap();
        driver.settle();
        assert_eq!(received(&mut port).len(), 1);
        drop(driver);
        until(|| {
            port.look().unwrap();
            !port.link.is_up
        });
        assert_eq!((port.link.downs, port.take_note()), (round, None));
        port.send(&udp(1, 60), Time::ZERO).unwrap();
        assert_eq!(port.counters.refused, round);
    }
}

fn until(mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Driver {
    /// Uses up all buffers of `pair`.
    fn drain(&mut self, pair: usize, port: &mut VhostUserPort) {
        let queue = 2 * pair;
        let mut guest = locked(&port.guest);
        while guest.put(pair, &[0; 10], [&[0; 60], &[]]) == Ok(true) {}
        guest.publish(true);
        drop(guest);
        self.used(queue);
    }
}
