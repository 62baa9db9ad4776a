use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use nicforge_wire::{checksum, parse_frame};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use tempfile::TempDir;
use vhost::vhost_user::message::VhostUserProtocolFeatures;
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::EventFd;

use super::*;
use crate::live::ports::foreign::ForeignMemory;

/// Where the hypervisor has the guest's memory, and where the guest has it.
const USER: u64 = 0x7f00_0000_0000;
const GUEST: u64 = 0x4000_0000;
const BYTES: u64 = 4 << 20;
/// Entries of a queue; queue `q` begins at `q * QUEUE`: descriptors, available ring, used ring.
const ENTRIES: u16 = 64;
const QUEUE: usize = 0x4000;
const AVAILABLE: usize = 0x1000;
const USED: usize = 0x2000;
const BUFFERS: usize = 0x4_0000;
// Flags of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
// Bits of features.
const ALL: u64 = 0x1_7040_9983;
const MERGEABLE: u64 = 1 << 15;
const EVENT_INDEX: u64 = 1 << 29;

/// A guest's driver and its hypervisor, as far as they matter.
struct Driver {
    frontend: Frontend,
    file: OwnedFd,
    memory: ForeignMemory,
    kicks: Vec<EventFd>,
    calls: Vec<EventFd>,
    available: Vec<u16>,
    seen: Vec<u16>,
    header: usize,
}

fn memory() -> (OwnedFd, ForeignMemory) {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, BYTES).unwrap();
    let memory = ForeignMemory::map(file.as_fd(), BYTES).unwrap();
    (file, memory)
}

fn region(file: &OwnedFd, memory_size: u64) -> VhostUserMemoryRegionInfo {
    VhostUserMemoryRegionInfo {
        guest_phys_addr: GUEST,
        memory_size,
        userspace_addr: USER,
        mmap_offset: 0,
        mmap_handle: file.as_raw_fd(),
    }
}

fn place(queue: usize) -> VringConfigData {
    let base = USER + (queue * QUEUE) as u64;
    VringConfigData {
        queue_max_size: ENTRIES,
        queue_size: ENTRIES,
        flags: 0,
        desc_table_addr: base,
        avail_ring_addr: base + AVAILABLE as u64,
        used_ring_addr: base + USED as u64,
        log_addr: None,
    }
}

impl Driver {
    fn connect(path: &PathBuf, pairs: usize, features: u64) -> Driver {
        let mut frontend = Frontend::connect(path, 2 * pairs as u64).unwrap();
        let (file, memory) = memory();
        frontend.set_owner().unwrap();
        let offered = frontend.get_features().unwrap();
        assert_eq!(features & !offered, 0);
        let protocol = frontend.get_protocol_features().unwrap();
        assert!(protocol.contains(VhostUserProtocolFeatures::MQ));
        frontend.set_protocol_features(VhostUserProtocolFeatures::MQ).unwrap();
        frontend.set_features(features).unwrap();
        frontend.set_mem_table(&[region(&file, BYTES)]).unwrap();
        let events = || (0..2 * pairs).map(|_| EventFd::new(libc::EFD_NONBLOCK).unwrap()).collect::<Vec<_>>();
        let (kicks, calls) = (events(), events());
        for queue in 0..2 * pairs {
            frontend.set_vring_num(queue, ENTRIES).unwrap();
            frontend.set_vring_base(queue, 0).unwrap();
            frontend.set_vring_addr(queue, &place(queue)).unwrap();
            frontend.set_vring_call(queue, &calls[queue]).unwrap();
            frontend.set_vring_kick(queue, &kicks[queue]).unwrap();
            frontend.set_vring_enable(queue, true).unwrap();
        }
        let driver = Driver {
            frontend,
            file,
            memory,
            kicks,
            calls,
            available: vec![0; 2 * pairs],
            seen: vec![0; 2 * pairs],
            header: 12,
        };
        driver.settle();
        driver
    }

    /// Until the thread did all that was asked for.
    fn settle(&self) {
        self.frontend.get_features().unwrap();
    }

    fn describe(&self, queue: usize, slot: u16, (at, len, flags, next): (u64, u32, u16, u16)) {
        let mut descriptor = [0; 16];
        descriptor[..8].copy_from_slice(&at.to_le_bytes());
        descriptor[8..12].copy_from_slice(&len.to_le_bytes());
        descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
        descriptor[14..].copy_from_slice(&next.to_le_bytes());
        assert!(self.memory.copy_in(queue * QUEUE + 16 * usize::from(slot), &descriptor));
    }

    /// Makes the chain at `head` available.
    fn offer(&mut self, queue: usize, head: u16) {
        let index = self.available[queue];
        let ring = queue * QUEUE + AVAILABLE;
        self.memory.half(ring + 4 + 2 * usize::from(index % ENTRIES)).unwrap().store(head, Ordering::Relaxed);
        self.available[queue] = index.wrapping_add(1);
        self.memory.half(ring + 2).unwrap().store(self.available[queue], Ordering::Release);
    }

    fn buffer(queue: usize, slot: u16) -> usize {
        BUFFERS + queue * 0x2_0000 + usize::from(slot) * 2048
    }

    /// Sends by `pair`, from slot `slot` on, behind `header`; long frames take several descriptors.
    fn send(&mut self, pair: usize, slot: u16, header: &[u8], frame: &[u8]) {
        let queue = 2 * pair + 1;
        let bytes = [header, &vec![0; self.header - header.len()], frame].concat();
        let parts: Vec<&[u8]> = bytes.chunks(2048).collect();
        for (number, part) in parts.iter().enumerate() {
            let slot = (slot + number as u16) % ENTRIES;
            let at = Driver::buffer(queue, slot);
            assert!(self.memory.copy_in(at, part));
            let flags = if number + 1 < parts.len() { NEXT } else { 0 };
            self.describe(queue, slot, (GUEST + at as u64, part.len() as u32, flags, (slot + 1) % ENTRIES));
        }
        self.offer(queue, slot % ENTRIES);
    }

    /// Offers buffers of `len` bytes for frames.
    fn make_room(&mut self, pair: usize, slots: std::ops::Range<u16>, len: u32) {
        for slot in slots {
            let at = Driver::buffer(2 * pair, slot);
            self.describe(2 * pair, slot, (GUEST + at as u64, len, WRITE, 0));
            self.offer(2 * pair, slot);
        }
    }

    /// What was used of `queue` since the last look: heads and lengths.
    fn used(&mut self, queue: usize) -> Vec<(u16, usize)> {
        let ring = queue * QUEUE + USED;
        let end = self.memory.half(ring + 2).unwrap().load(Ordering::Acquire);
        let mut used = Vec::new();
        while self.seen[queue] != end {
            let at = ring + 4 + 8 * usize::from(self.seen[queue] % ENTRIES);
            let word = |at| self.memory.word(at).unwrap().load(Ordering::Relaxed);
            used.push((word(at) as u16, word(at + 4) as usize));
            self.seen[queue] = self.seen[queue].wrapping_add(1);
        }
        used
    }

    /// Headers and frames that came in by `pair`, put together again.
    fn received(&mut self, pair: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut frames = Vec::new();
        let mut used = self.used(2 * pair).into_iter();
        while let Some((slot, len)) = used.next() {
            let mut bytes = Vec::new();
            assert!(self.memory.copy_out(Driver::buffer(2 * pair, slot), len, &mut bytes));
            for _ in 1..u16::from_le_bytes([bytes[10], bytes[11]]) {
                let (slot, len) = used.next().expect("all buffers are shown at once");
                assert!(self.memory.copy_out(Driver::buffer(2 * pair, slot), len, &mut bytes));
            }
            let frame = bytes.split_off(self.header);
            frames.push((bytes, frame));
        }
        frames
    }
}

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
fn who_sleeps_is_woken_and_who_polls_is_not() {
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

#[test]
fn descriptors_that_lie_cost_their_frame_only() {
    let (mut port, path, _folder) = port(1);
    let mut driver = Driver::connect(&path, 1, ALL);
    let at = GUEST + Driver::buffer(1, 0) as u64;
    let lies = [
        ((GUEST + BYTES - 60, 61, 0, 0), "virtio_descriptor_outside"),
        ((0, 100, 0, 0), "virtio_descriptor_outside"),
        ((u64::MAX - 10, 100, 0, 0), "virtio_descriptor_outside"),
        ((at, 100, WRITE, 0), "virtio_descriptor_outside"),
        ((at, u32::MAX, 0, 0), "longer_than_any_frame"),
        // For ever round and round.
        ((at, 2048, NEXT, 5), "longer_than_any_frame"),
        ((at, 0, NEXT, 5), "virtio_frame_short"),
        ((at, 12, 0, 0), "virtio_frame_short"),
        ((at, 0, 0, 0), "virtio_frame_short"),
        ((at, 24, INDIRECT, 0), "virtio_frame_short"),
        ((0, 32, INDIRECT, 0), "virtio_frame_short"),
    ];
    for (number, (lie, cause)) in lies.into_iter().enumerate() {
        port.counters = PortCounters::default();
        driver.describe(1, 5, lie);
        driver.offer(1, 5);
        driver.send(0, 20, &[], &udp(1, 60));
        assert_eq!(received(&mut port), [udp(1, 60)], "lie {number}");
        assert_eq!(port.counters.unreadable, [(cause, 1)], "lie {number}");
        assert_eq!(driver.used(1).len(), 2);
    }
}

#[test]
fn buffers_that_lie_are_not_written_to() {
    let (mut port, path, _folder) = port(1);
    let mut driver = Driver::connect(&path, 1, ALL);
    let at = GUEST + Driver::buffer(0, 0) as u64;
    for lie in [(at, 2048, 0, 0), (GUEST + BYTES - 10, 2048, WRITE, 0), (u64::MAX, 2048, WRITE, 0), (at, 0, WRITE, 0)] {
        driver.describe(0, 5, lie);
        driver.offer(0, 5);
        driver.make_room(0, 6..7, 2048);
        let refused = port.counters.refused;
        port.send(&udp(1, 60), Time::ZERO).unwrap();
        assert_eq!(port.counters.refused, refused + 1);
        port.send(&udp(2, 60), Time::ZERO).unwrap();
        port.flush().unwrap();
        let used = driver.used(0);
        assert_eq!(used.iter().map(|&(head, _)| head).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(used[1].1, 72);
    }
}

#[test]
fn a_ring_that_lies_is_stopped_until_the_driver_restarts() {
    for lie in 0..3 {
        let (mut port, path, _folder) = port(1);
        let mut driver = Driver::connect(&path, 1, ALL);
        match lie {
            // More is available than there are entries.
            0 => driver.memory.half(QUEUE + AVAILABLE + 2).unwrap().store(ENTRIES + 1, Ordering::Release),
            1 => driver.memory.half(QUEUE + AVAILABLE + 2).unwrap().store(u16::MAX, Ordering::Release),
            // A head that is none.
            _ => driver.offer(1, ENTRIES),
        }
        assert_eq!(received(&mut port).len(), 0);
        assert_eq!(port.counters.unreadable, [("virtio_ring_broken", 1)], "lie {lie}");
        assert!(port.take_note().unwrap().contains("broken"));
        assert!(port.readable().is_some(), "nothing of it is looked at");
        assert_eq!(received(&mut port).len(), 0);
        port.look().unwrap();
        assert!(!port.link.is_up);
        driver.memory.half(QUEUE + AVAILABLE + 2).unwrap().store(0, Ordering::Release);
        (driver.available[1], driver.seen[1]) =
            (0, driver.memory.half(QUEUE + USED + 2).unwrap().load(Ordering::Relaxed));
        driver.frontend.set_vring_base(1, 0).unwrap();
        driver.frontend.set_vring_kick(1, &driver.kicks[1]).unwrap();
        driver.send(0, 0, &[], &udp(1, 60));
        driver.settle();
        assert_eq!(received(&mut port).len(), 1, "lie {lie}");
    }
}

#[test]
fn nonsense_on_the_channel_disturbs_nobody() {
    use std::io::Write;
    let (mut port, path, _folder) = port(1);
    let mut random = 1u32;
    for round in 0..200 {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let mut bytes: Vec<u8> = (0..round)
            .map(|_| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 24) as u8
            })
            .collect();
        // Most begin as a message does, and say how long they are.
        if round % 4 != 0 && bytes.len() >= 12 {
            bytes[..12].copy_from_slice(&[(round % 45) as u8, 0, 0, 0, 1, 0, 0, 0, (round - 12) as u8, 0, 0, 0]);
        }
        let _ = stream.write_all(&bytes);
        drop(stream);
    }
    let mut driver = Driver::connect(&path, 1, ALL);
    driver.send(0, 0, &[], &udp(1, 60));
    assert_eq!(received(&mut port).len(), 1);
}

/// QEMU enables queues before it has agreed on any feature, and not later.
#[test]
fn a_queue_that_is_enabled_too_early_is_enabled() {
    use std::io::{Read, Write};
    let (port, path, _folder) = port(1);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let message = |request: u32, body: &[u32]| {
        let head = [request, 1, 4 * body.len() as u32];
        head.iter().chain(body).flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    for queue in [0, 1, 7] {
        stream.write_all(&message(18, &[queue, 1])).unwrap();
    }
    stream.write_all(&message(1, &[])).unwrap();
    let mut features = [0; 20];
    stream.read_exact(&mut features).unwrap();
    assert_eq!(features[12..], ALL.to_le_bytes());
    assert!(locked(&port.guest).are_enabled());
}

#[test]
fn memory_that_lies_is_refused() {
    let (mut port, path, _folder) = port(1);
    for lie in 0..4 {
        let frontend = Frontend::connect(&path, 2).unwrap();
        let (file, _memory) = memory();
        frontend.set_owner().unwrap();
        let region = match lie {
            0 => region(&file, BYTES + 1),
            1 => VhostUserMemoryRegionInfo { mmap_offset: 1, ..region(&file, BYTES - 4096) },
            2 => VhostUserMemoryRegionInfo { guest_phys_addr: u64::MAX - 4096, ..region(&file, BYTES) },
            _ => VhostUserMemoryRegionInfo { mmap_offset: u64::MAX - 4095, ..region(&file, 4096) },
        };
        // It is refused here, or shows when a queue is to lie in it.
        let refused = frontend.set_mem_table(&[region]).is_err()
            || frontend.get_features().is_err()
            || frontend.set_vring_addr(0, &place(0)).is_err()
            || frontend.get_features().is_err();
        drop(frontend);
        until(|| {
            port.look().unwrap();
            let guest = locked(&port.guest);
            !guest.is_up()
        });
        assert!(refused || locked(&port.guest).pairs_on() == 0, "lie {lie}");
    }
    let mut driver = Driver::connect(&path, 1, ALL);
    driver.send(0, 0, &[], &udp(1, 60));
    assert_eq!(received(&mut port).len(), 1);
}

#[test]
fn memory_that_shrinks_ends_the_session() {
    let (mut port, path, _folder) = port(1);
    let mut driver = Driver::connect(&path, 1, ALL);
    driver.send(0, 0, &[], &udp(1, 60));
    ftruncate(&driver.file, 0).unwrap();
    received(&mut port);
    until(|| {
        port.look().unwrap();
        port.take_note().is_some_and(|note| note.contains("shorter"))
    });
    until(|| !locked(&port.guest).is_up());
}

#[test]
fn a_path_has_one_port() {
    let (port, path, _folder) = port(1);
    assert!(VhostUserPort::open(&path, 1, 1500).is_err());
    drop(port);
    assert!(!path.exists());
    VhostUserPort::open(&path, 1, 1500).unwrap();
}
