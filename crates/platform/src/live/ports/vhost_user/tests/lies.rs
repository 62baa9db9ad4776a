//! Guests and hypervisors that lie.

use std::sync::atomic::Ordering;

use rustix::fs::ftruncate;
use vhost::vhost_user::Frontend;
use vhost::{VhostBackend, VhostUserMemoryRegionInfo};

use super::driver::*;
use super::*;

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
