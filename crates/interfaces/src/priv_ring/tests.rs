//! Tests of what is special to private rings; the shared suite covers the rest.

use nicforge_nic::{Arriving, DropCause, Pool, PortId, Queues, ReceiveHalf, RxFlags, completion_ring, data_of};
use nicforge_platform::{Addr, AddressSpace, Cpu, Owner};
use nicforge_units::{Bytes, Time};

use super::layout::{Ring, RxDescriptor};
use super::nic::{NicHalf, Queue};
use crate::suite::{Bench, Calls, Flat, Ground, Setup, Sim};

/// Descriptors in one read of 512 bytes.
const BATCH: u64 = 512 / size_of::<RxDescriptor>() as u64;

fn setup() -> Setup {
    Setup { queues: 1, rx_entries: 1024, ..Setup::default() }
}

#[test]
fn descriptors_come_in_batches_ahead_of_need() {
    let mut bench: Bench<Flat> = Bench::new("priv_ring", &setup());
    // The doorbell fetches the first batch, the first frame the next, and then one frame in 32.
    assert_eq!(bench.ground.device.calls.reads_ahead, 1);
    let mut reads = Vec::new();
    for number in 1..=10 * BATCH {
        let before = bench.ground.device.calls.reads_ahead;
        bench.send(0, 60).unwrap();
        if bench.ground.device.calls.reads_ahead > before {
            reads.push(number);
        }
    }
    let expected: Vec<u64> = (0..10).map(|batch| 1 + batch * BATCH).collect();
    assert_eq!(reads, expected);
    let frames = 10 * BATCH;
    let calls = Calls { reads: 0, reads_ahead: 11, writes: frames, publishes: frames };
    assert_eq!(bench.ground.device.calls, calls, "one write and one completion for each frame");
}

#[test]
fn a_batch_ends_where_the_ring_does() {
    let setup = Setup { rx_entries: 16, ..setup() };
    let mut bench: Bench<Flat> = Bench::new("priv_ring", &setup);
    assert_eq!(bench.ground.device.calls.reads_ahead, 1);
    for _ in 0..10 {
        bench.send(0, 60).unwrap();
    }
    // Ten new descriptors wrap: entries 0 to 9 of the next pass, all in front of the end.
    bench.poll(0, 32);
    assert_eq!(bench.ground.device.calls.reads_ahead, 2);
    for _ in 0..16 {
        bench.send(0, 60).unwrap();
    }
    // Six up to the end and ten from the beginning: two reads.
    bench.poll(0, 32);
    assert_eq!(bench.ground.device.calls.reads_ahead, 3);
    bench.send(0, 60).unwrap();
    assert_eq!(bench.ground.device.calls.reads_ahead, 4);
}

/// When the completion of a frame of 1500 bytes is visible, from the end of the frame on.
fn completion_latency(bench: &mut Bench<Sim>) -> Time {
    bench.ground.published();
    let began = bench.ground.now();
    bench.send(0, 1_500).unwrap();
    let published = bench.ground.published();
    assert_eq!(published.len(), 1);
    published[0] - began
}

#[test]
fn with_descriptors_at_hand_no_read_is_on_the_critical_path() {
    let mut bench: Bench<Sim> = Bench::new("priv_ring", &setup());
    bench.pass(Time::from_us(100));
    // The read of the second batch sends 24 bytes in front; nothing waits for its data. Then
    // 1500 bytes in six packets and a completion of 64, with 24 bytes of header each, at 64 ps
    // a byte; and 300 ns to memory.
    let link = Time::from_ps((24 + 1_500 + 6 * 24 + 64 + 24) * 64);
    assert_eq!(completion_latency(&mut bench), link + Time::from_ns(300));
    // The next one finds two batches at hand and reads nothing.
    let link = Time::from_ps((1_500 + 6 * 24 + 64 + 24) * 64);
    bench.pass(Time::from_us(1));
    assert_eq!(completion_latency(&mut bench), link + Time::from_ns(300));
}

#[test]
fn without_them_one_read_is() {
    let mut bench: Bench<Sim> = Bench::new("priv_ring", &setup());
    // The frame comes at the instant of the doorbell. It waits for one read: the request's 24
    // bytes and the data's 512 in two packets at 64 ps a byte, 900 ns there and back, and 20 ns
    // in the caches, where the driver has just written the descriptors.
    let read = Time::from_ps((24 + 512 + 2 * 24) * 64) + Time::from_ns(900 + 20);
    let written = Time::from_ps((1_500 + 6 * 24 + 64 + 24) * 64) + Time::from_ns(300);
    assert_eq!(completion_latency(&mut bench), read + written);
}

/// A NIC half with one ring of four entries, whose descriptors a test writes itself.
struct Raw {
    ground: Flat,
    half: NicHalf,
    ring: Ring,
    pool: Pool,
}

impl Raw {
    fn new(descriptors: impl Fn(&Pool) -> Vec<RxDescriptor>) -> Raw {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 4);
        let ring = Ring::new(&mut space, 4, 0);
        let (writer, _) = completion_ring(&mut space, 4, Owner(0)).unwrap();
        let mut raw = Raw {
            ground: Flat::new(&space, 1),
            half: NicHalf::new(vec![Queue::new(ring, Bytes(512), writer)], pool),
            ring,
            pool,
        };
        let descriptors = descriptors(&pool);
        for (index, &descriptor) in descriptors.iter().enumerate() {
            raw.ground.core(0).store(ring.descriptor(index as u64), descriptor);
        }
        let tail = descriptors.len() as u64;
        assert!(raw.half.write_register(&mut *raw.ground.device(), 0, tail));
        raw
    }

    fn receive(&mut self, len: usize) -> Result<(), DropCause> {
        let arriving = Arriving {
            mark: 0,
            bytes: &vec![0xff; len],
            head: len,
            headers: len.min(54),
            stamp: Time::ZERO,
            rss_hash: 0,
            flags: RxFlags::default(),
            segment: 0,
            port: PortId(0),
            queue: 0,
        };
        self.half.receive(&mut *self.ground.device(), &arriving)
    }
}

fn descriptor(mbuf: Addr, room: u32) -> RxDescriptor {
    RxDescriptor { mbuf, room, reserved: 0 }
}

#[test]
fn a_descriptor_cannot_claim_more_room_than_a_buffer_has() {
    let mut raw = Raw::new(|pool| vec![descriptor(pool.buffer(0), u32::MAX)]);
    assert_eq!(raw.receive(2_049), Err(DropCause::OVERSIZED));
    let end = data_of(raw.pool.buffer(0)) + 2_048;
    let behind = raw.ground.peek(end, 2_048);
    assert!(behind.iter().all(|&byte| byte == 0), "written into the next buffer");
    assert_eq!(raw.receive(2_048), Ok(()));
    assert_eq!(raw.ground.peek(end, 64), [0; 64]);
}

#[test]
fn a_descriptor_that_offers_less_room_than_buffers_have_is_not_in_the_way() {
    let mut raw = Raw::new(|pool| (0..3).map(|n| descriptor(pool.buffer(n), 100)).collect());
    assert_eq!(raw.receive(100), Ok(()));
    assert_eq!(raw.receive(101), Err(DropCause::BAD_DESCRIPTOR));
    assert_eq!(raw.receive(100), Ok(()));
}

#[test]
fn a_doorbell_ahead_of_its_descriptors_finds_zeroes_that_name_no_buffer() {
    let mut raw = Raw::new(|pool| vec![descriptor(pool.buffer(0), 2_048)]);
    assert!(raw.half.write_register(&mut *raw.ground.device(), 0, 3));
    assert_eq!(raw.receive(60), Ok(()));
    // Both entries come back to software, each with a completion of no length.
    for _ in 0..2 {
        assert_eq!(raw.receive(60), Err(DropCause::BAD_DESCRIPTOR));
    }
    assert_eq!(raw.ground.device.calls.publishes, 3);
    assert_eq!(raw.receive(60), Err(DropCause::NO_DESCRIPTOR));
    assert_eq!(raw.half.waiting(0).entries, raw.ring.entries);
}
