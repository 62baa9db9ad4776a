//! The device around an interface that takes every frame and remembers it.

use std::any::Any;

use nicforge_platform::{Addr, AddressSpace, Cpu, Dma};
use nicforge_units::Time;
use nicforge_wire::parse_frame;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};

use super::{Nic, registers};
use crate::mock::{MockHost, spec, udp_frame};
use crate::transmit::{Bridged, Departure, Egress, TxDescriptor, TxRing};
use crate::{Arriving, DropCause, PortId, Queues, ReceiveHalf, RxFlags, Segment, TxOffload, Waiting};

/// Takes a microsecond for each frame.
const DRAIN: Time = Time::from_us(1);
const QUEUES: u16 = 4;

#[derive(Default)]
struct Remembers {
    frames: Vec<(u16, u32, RxFlags, Time)>,
    segments: Vec<u16>,
    registers: Vec<(u32, u64)>,
    refuses: Option<DropCause>,
}

impl ReceiveHalf<MockHost> for Remembers {
    fn receive(&mut self, dma: &mut MockHost, frame: &Arriving<'_>) -> Result<(), DropCause> {
        assert_eq!(frame.port, PortId(1));
        if let Some(cause) = self.refuses {
            return Err(cause);
        }
        let began = dma.now();
        self.frames.push((frame.queue, frame.rss_hash, frame.flags, began));
        self.segments.push(frame.segment);
        dma.wait_until(began + DRAIN);
        Ok(())
    }

    fn write_register(&mut self, _dma: &mut MockHost, index: u32, value: u64) -> bool {
        self.registers.push((index, value));
        index < 8
    }
}

impl Queues for Remembers {
    fn queues(&self) -> u16 {
        QUEUES
    }

    fn waiting(&self, queue: u16) -> Waiting {
        Waiting { entries: u64::from(queue), of: 10 }
    }
}

/// The half of a bench's NIC.
fn half(nic: &mut Nic<MockHost>) -> &mut Remembers {
    let half: &mut dyn Any = &mut *nic.receive;
    half.downcast_mut().unwrap()
}

struct Nobody;

impl Egress for Nobody {
    fn depart(&mut self, _departure: Departure<'_>) {}

    fn bridge(&mut self, _frame: Bridged) {}
}

fn bench() -> (Nic<MockHost>, MockHost, TxRing, Addr) {
    let mut space = AddressSpace::default();
    let data = space.data(4_096, 64);
    let ring = TxRing::new(&mut space, 8).unwrap();
    let end = Addr(space.end());
    let nic = Nic::new(&spec(), Box::new(Remembers::default()), &[ring], end);
    (nic, MockHost::new(&space), ring, data)
}

#[test]
fn unfinished_checksums_are_flagged_and_not_verified() {
    let (mut nic, mut host, ..) = bench();
    let mut frame = udp_frame(100, 1_000);
    frame[40] ^= 0x55;
    let left = TxOffload { l4_checksum: true, segment: 500, ..TxOffload::default() };
    nic.receive_unfinished(&mut host, &frame, left, Time::ZERO);
    nic.receive_unfinished(&mut host, &frame, TxOffload::default(), Time::ZERO);
    nic.receive_unfinished(&mut host, &frame[..13], left, Time::ZERO);
    host.now = Time::from_us(5);
    nic.receive_held(&mut host);
    let flags: Vec<RxFlags> = half(&mut nic).frames.iter().map(|frame| frame.2).collect();
    let good = RxFlags::L3_GOOD.with(RxFlags::L4_GOOD);
    let begun = good.with(RxFlags::L4_BEGUN);
    let bad = RxFlags::L3_GOOD.with(RxFlags::L4_BAD);
    assert_eq!(flags, [begun, bad]);
    assert_eq!(half(&mut nic).segments, [500, 0]);
    assert_eq!(nic.drops().total(), 1, "what is no frame is none, whatever is left");
}

#[test]
fn the_fifo_drops_what_the_interface_cannot_drain() {
    let (mut nic, mut host, ..) = bench();
    // Three frames of 1000 bytes fill the FIFO of 3000. They reach the interface after 100 ns
    // of pipeline, and one after the other: at 0.1, 1.1 and 2.1 us; the first is gone at 1.1.
    let frame = udp_frame(958, 1);
    assert_eq!(frame.len(), 1_000);
    for _ in 0..5 {
        host.now = Time::ZERO;
        nic.receive(&mut host, &frame, Time::ZERO);
    }
    host.now = Time::from_ps(1_099_999);
    nic.receive(&mut host, &frame, Time::ZERO);
    // It would not fit an empty FIFO either.
    nic.receive(&mut host, &udp_frame(2_959, 1), Time::ZERO);
    host.now = Time::from_ns(1_100);
    nic.receive(&mut host, &frame, Time::ZERO);
    // The last two wait in the FIFO, because their turn is more than a microsecond away.
    for waiting in [2, 1] {
        assert_eq!(nic.held(), waiting);
        host.now = nic.held_due() - Time::from_ps(1);
        nic.receive_held(&mut host);
        assert_eq!(nic.held(), waiting);
        host.now = nic.held_due();
        nic.receive_held(&mut host);
    }
    assert_eq!((nic.held(), nic.held_due()), (0, Time::NEVER));
    let began: Vec<f64> = half(&mut nic).frames.iter().map(|frame| frame.3.as_us()).collect();
    assert_eq!(began, [0.1, 1.1, 2.1, 3.1]);
    assert_eq!(nic.drops().causes(), [("fifo_full", 3), ("longer_than_fifo", 1)]);
    assert_eq!((nic.counters.frames, nic.counters.bytes, nic.counters.delivered), (8, 10_001, 4));
}

/// A good frame with one change for the worse, and the cause that it is counted under.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let good = udp_frame(40, 1);
    let changed = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        frame
    };
    vec![
        ("ethernet_truncated", Vec::new()),
        ("ethernet_truncated", good[..13].to_vec()),
        ("vlan_truncated", [&good[..12], &[0x81, 0, 0]].concat()),
        ("ip_truncated", good[..33].to_vec()),
        ("ip_bad_version", changed(14, 0x65)),
        ("ip_bad_header_length", changed(14, 0x44)),
        ("ip_bad_total_length", changed(17, 19)),
        ("ip_length_beyond_frame", changed(16, 1)),
        ("l4_truncated", changed(17, 27)),
        ("udp_bad_length", changed(39, 7)),
    ]
}

#[test]
fn malformed_frames_are_counted_under_their_cause_and_go_nowhere() {
    for (cause, frame) in malformed() {
        let (mut nic, mut host, ..) = bench();
        nic.receive(&mut host, &frame, Time::ZERO);
        assert_eq!(nic.drops().causes(), [(cause, 1)]);
        assert_eq!((nic.counters.frames, nic.counters.delivered), (1, 0));
        assert!(half(&mut nic).frames.is_empty() && host.reads.is_empty());
        // They leave nothing in the FIFO.
        nic.receive(&mut host, &udp_frame(2_900, 1), Time::ZERO);
        assert_eq!(nic.counters.delivered, 1, "{cause}");
    }
}

#[test]
fn frames_that_the_interface_refuses_are_counted_by_cause() {
    let (mut nic, mut host, ..) = bench();
    for cause in [DropCause::NO_DESCRIPTOR, DropCause::OVERSIZED, DropCause::NO_DESCRIPTOR] {
        half(&mut nic).refuses = Some(cause);
        nic.receive(&mut host, &udp_frame(40, 1), Time::ZERO);
    }
    assert_eq!(nic.drops().causes(), [("no_descriptor", 2), ("oversized_frame", 1)]);
}

#[test]
fn flags_say_which_checksums_are_right() {
    let good = udp_frame(40, 1);
    let changed = |at: usize| {
        let mut frame = good.clone();
        frame[at] ^= 0x10;
        frame
    };
    let mut without = good.clone();
    without[40..42].fill(0);
    let mut not_ip = good.clone();
    not_ip[12..14].copy_from_slice(&[0x88, 0xb5]);
    let (l3, l4) = (RxFlags::L3_GOOD, RxFlags::L4_GOOD);
    let cases = [
        (good.clone(), l3.with(l4)),
        // The time to live counts for the header's checksum only.
        (changed(22), l4.with(RxFlags::L3_BAD)),
        (changed(50), l3.with(RxFlags::L4_BAD)),
        (without, l3),
        (not_ip, RxFlags::default()),
    ];
    for (number, (frame, flags)) in cases.into_iter().enumerate() {
        let (mut nic, mut host, ..) = bench();
        nic.receive(&mut host, &frame, Time::ZERO);
        assert_eq!(half(&mut nic).frames[0].2, flags, "case {number}");
    }
}

#[test]
fn the_indirection_table_says_which_queue_a_flow_goes_to() {
    let (mut nic, mut host, ..) = bench();
    let toeplitz = Toeplitz::default();
    let mut seen = [false; QUEUES as usize];
    for port in 0..64 {
        let frame = udp_frame(40, port);
        let hash = toeplitz.hash(&parse_frame(&frame).unwrap());
        let spread = IndirectionTable::entry(hash) as u16 % QUEUES;
        seen[usize::from(spread)] = true;
        nic.receive(&mut host, &frame, Time::ZERO);
        // Another queue for this entry, and for no other.
        let other = (spread + 1) % QUEUES;
        let entry = registers::STEERING + 1 + IndirectionTable::entry(hash) as u32;
        nic.write_register(&mut host, entry, other.into());
        host.now += Time::from_us(5);
        nic.receive(&mut host, &frame, Time::ZERO);
        host.now += Time::from_us(5);
        nic.write_register(&mut host, entry, spread.into());
        let went: Vec<_> = half(&mut nic).frames.drain(..).map(|frame| (frame.0, frame.1)).collect();
        assert_eq!(went, [(spread, hash), (other, hash)], "port {port}");
    }
    assert_eq!(seen, [true; QUEUES as usize]);
}

#[test]
fn occupancy_is_sampled_by_every_frame_that_is_steered() {
    let (mut nic, mut host, ..) = bench();
    let mut waiting = 0;
    for port in 0..10 {
        nic.receive(&mut host, &udp_frame(40, port), Time::ZERO);
        host.now += Time::from_us(5);
        waiting += u64::from(half(&mut nic).frames[usize::from(port)].0);
    }
    let of = 100;
    let entries = waiting;
    assert_eq!(nic.waiting_sum(), Waiting { entries, of });
}

/// Nobody empties a closed queue, so how full it is says nothing of software.
#[test]
fn a_closed_queue_gives_no_sample_of_occupancy() {
    let (mut nic, mut host, ..) = bench();
    for (closed, sampled) in [(true, 0), (false, 10), (true, 10)] {
        for queue in 0..QUEUES {
            nic.set_closed(queue, closed);
        }
        nic.receive(&mut host, &udp_frame(40, 1), Time::ZERO);
        host.now += Time::from_us(5);
        assert_eq!(nic.waiting_sum().of, sampled);
    }
}

#[test]
fn registers_go_to_the_half_that_they_belong_to() {
    let (mut nic, mut host, ring, data) = bench();
    for queue in 0..3 {
        nic.write_register(&mut host, registers::RECEIVE + queue, 5);
    }
    assert_eq!(half(&mut nic).registers, [(0, 5), (1, 5), (2, 5)]);
    let descriptor = TxDescriptor { head: Segment { at: data, len: 64 }, ..TxDescriptor::default() };
    host.memory.store(ring.descriptor(0), descriptor.encode());
    nic.write_register(&mut host, registers::TRANSMIT, 1);
    assert_eq!((nic.counters.bad_register_writes, nic.transmit.inside()), (0, 1));
    assert_eq!(nic.advance(&mut host, &mut Nobody), Time::from_us(1));
}

#[test]
fn registers_that_mean_nothing_are_counted_and_ignored() {
    let (mut nic, mut host, ..) = bench();
    let unknown = [8, 0x6fff, registers::STEERING + 129, registers::TRANSMIT + 1, 1 << 20, u32::MAX];
    for index in unknown {
        for value in [0, 1, u64::MAX] {
            nic.write_register(&mut host, index, value);
        }
    }
    for value in [9, 1 << 40, u64::MAX] {
        nic.write_register(&mut host, registers::TRANSMIT, value);
    }
    // There is one set, and no queue beyond the last.
    nic.write_register(&mut host, registers::STEERING, 1);
    nic.write_register(&mut host, registers::STEERING + 1, QUEUES.into());
    assert_eq!(nic.counters.bad_register_writes, 3 * unknown.len() as u64 + 3 + 2);
    assert_eq!(nic.transmit.inside(), 0);
    assert_eq!(nic.advance(&mut host, &mut Nobody), Time::NEVER);
}
