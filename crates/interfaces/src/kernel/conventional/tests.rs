//! The driver against the device, and the device by itself.

use nicforge_nic::{DropCause, TxOffload};
use nicforge_platform::{Addr, bytemuck};
use nicforge_units::Time;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::layout::{Descriptor, STATUS_OFFSET, Status, command, events, registers};
use super::{Driver, Nic, build};
use crate::kernel::{KernelDevice, KernelNic};
use crate::priv_ring::layout::Ring;
use crate::sinic::tests::system::{LIST, System, packet, plan};
use crate::sinic::tests::traffic::{Step, run, starve, step};
use crate::sinic::tests::{Memory, sinic};

const DELAY: Time = Time::from_us(10);
/// What it takes at most from a frame's arrival to the event that tells of it.
const HANDLING: Time = Time::from_us(1);

#[test]
fn packets_come_in_order_over_several_rounds_of_the_list() {
    let mut system: System<Driver, Nic> = System::new(&sinic(), build);
    let mut next = 0;
    for number in 0..5 * LIST as u32 {
        assert!(system.arrive(&packet(number, 1000)));
        system.pass(Time::from_us(3));
        while !system.hands.is_empty() {
            assert_eq!(system.take(0, 1), packet(next, 1000));
            next += 1;
        }
    }
    system.pass(Time::from_us(50));
    while !system.hands.is_empty() {
        assert_eq!(system.take(0, 1), packet(next, 1000));
        next += 1;
    }
    assert_eq!(next, 5 * LIST as u32);
    system.check_quiet();
}

#[test]
fn a_full_list_sends_frames_back_until_there_is_room() {
    let mut system: System<Driver, Nic> = System::new(&sinic(), build);
    let mut number = 0;
    while system.send(number, [54, 1000, 446]) {
        number += 1;
    }
    assert_eq!(number as usize, LIST / 3, "a frame takes three entries");
    system.pass(Time::from_us(100));
    assert!(system.send(number, [54, 1446, 0]));
    system.check_quiet();
    let sent: Vec<_> = (0..=number).map(|number| packet(number, 1500)).collect();
    assert_eq!(system.sent(), sent);
}

#[test]
fn without_buffers_frames_wait_in_the_fifo() {
    starve::<Driver, Nic>(&sinic(), build);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        // A failure is the same on every machine.
        rng_seed: RngSeed::Fixed(53),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_packet_is_lost_between_wire_and_stack(
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let steps: Vec<Step> = steps;
        run::<Driver, Nic>(&sinic(), build, &steps);
    }
}

/// The device alone.
struct Bench {
    nic: Nic,
    memory: Memory,
    now: Time,
    tx: Ring<Descriptor>,
}

/// Where the lists, receive buffers and frames lie.
const RX: Addr = Addr(4096);
const TX: Addr = Addr(8192);
const BUFFERS: u64 = 64 << 10;
const FRAMES: u64 = 256 << 10;
const ROOM: u64 = 2048;

impl Bench {
    /// A device with buffers in all its receive list, which interrupts.
    fn new() -> Bench {
        let ring = |base| Ring::<Descriptor>::at(base, LIST as u64, 0);
        let (rx, tx) = (ring(RX), ring(TX));
        let mut bench = Bench { nic: Nic::new(&plan(&sinic()), rx, tx), memory: Memory::new(), now: Time::ZERO, tx };
        for entry in 0..LIST as u64 {
            let status = Status::given(ROOM as u32, false, TxOffload::default()).telling();
            bench.put(rx.descriptor(entry), Descriptor::new(BUFFERS + entry * ROOM, status));
        }
        bench.write(registers::COMMAND, command::RECEIVE);
        bench.write(registers::MASK, events::ALL);
        bench
    }

    fn put(&mut self, at: Addr, descriptor: Descriptor) {
        let bytes = bytemuck::bytes_of(&descriptor);
        self.memory.bytes[at.0 as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn get(&self, at: Addr) -> Descriptor {
        let len = size_of::<Descriptor>();
        bytemuck::pod_read_unaligned(&self.memory.bytes[at.0 as usize..][..len])
    }

    fn write(&mut self, index: u32, value: u64) {
        self.memory.now = self.now;
        self.nic.write_register(&mut self.memory, index, value);
    }

    fn status(&mut self) -> u64 {
        self.memory.now = self.now;
        self.nic.read_register(&mut self.memory, registers::STATUS).0
    }

    fn arrive(&mut self, number: u32) {
        self.memory.now = self.now;
        let mut frame = packet(number, 100).into();
        self.nic.receive(&mut self.memory, &mut frame).unwrap();
    }

    /// Time passes, and the device does what it does by itself.
    fn pass(&mut self, time: Time) {
        let until = self.now + time;
        while self.nic.due() <= until {
            self.memory.now = self.now.max(self.nic.due());
            self.now = self.memory.now;
            self.nic.advance(&mut self.memory);
        }
        self.now = until;
    }

    /// Whether the only interrupt since the last call was raised a delay behind `event`.
    fn interrupted(&mut self, event: Time) {
        let raised = std::mem::take(&mut self.memory.interrupts);
        let [raised] = raised[..] else {
            panic!("not one interrupt: {raised:?}");
        };
        let after = event + DELAY;
        assert!((after..after + HANDLING).contains(&raised), "{raised}");
    }
}

#[test]
fn the_timer_runs_from_the_first_event_and_later_ones_do_not_put_it_off() {
    let mut bench = Bench::new();
    let first = bench.now;
    for number in 0..4 {
        bench.arrive(number);
        bench.pass(Time::from_us(3));
    }
    bench.interrupted(first);
    // Nobody asks for the status: that it is set is no event.
    bench.pass(Time::from_us(50));
    assert_eq!(bench.memory.interrupts, []);
    assert_eq!(bench.status(), events::RECEIVED);
    assert_eq!(bench.status(), 0, "reading clears");
    let next = bench.now;
    bench.arrive(4);
    bench.pass(Time::from_us(50));
    bench.interrupted(next);
}

#[test]
fn masked_events_interrupt_when_unmasked() {
    let mut bench = Bench::new();
    bench.write(registers::MASK, 0);
    bench.arrive(0);
    bench.pass(Time::from_us(50));
    assert_eq!(bench.memory.interrupts, []);
    bench.write(registers::MASK, events::ALL);
    let unmasked = bench.now;
    bench.pass(Time::from_us(50));
    assert_eq!(bench.memory.interrupts, [unmasked]);
    // What was read before the timer ran out does not interrupt.
    bench.arrive(1);
    bench.pass(Time::from_us(5));
    assert_eq!(bench.status(), events::RECEIVED);
    bench.pass(Time::from_us(50));
    assert_eq!(bench.memory.interrupts, [unmasked]);
}

#[test]
fn a_frame_is_in_memory_before_its_descriptor_says_so() {
    let mut bench = Bench::new();
    for number in 0..3 {
        bench.arrive(number);
    }
    bench.pass(Time::from_us(5));
    let buffer = |entry: u64| Addr(BUFFERS + entry * ROOM);
    let ring = Ring::<Descriptor>::at(RX, LIST as u64, 0);
    let order: Vec<Addr> = (0..3).flat_map(|entry| [buffer(entry), ring.descriptor(entry) + STATUS_OFFSET]).collect();
    assert_eq!(bench.memory.written, order);
    let back = bench.get(ring.descriptor(1));
    assert!(back.status.is_done() && back.status.bytes() == 100);
    assert!(!bench.get(ring.descriptor(3)).status.is_done());
}

#[test]
fn pieces_are_gathered_and_each_is_written_back_in_order() {
    let mut bench = Bench::new();
    let (tx, mut tail) = (bench.tx, 0);
    let mut statuses = Vec::new();
    let lens: [&[usize]; 3] = [&[40, 1000, 300], &[60], &[14, 700]];
    for (number, lens) in (0..).zip(lens) {
        let frame = packet(number, lens.iter().sum());
        // The pieces lie apart, and in no order.
        let mut begins = 0;
        for (piece, len) in lens.iter().enumerate() {
            let at = FRAMES + (u64::from(number) * 8 + 7 - piece as u64) * ROOM;
            let bytes = &frame[begins..begins + len];
            bench.memory.bytes[at as usize..][..*len].copy_from_slice(bytes);
            begins += len;
            let more = piece + 1 < lens.len();
            let given = Status::given(*len as u32, more, TxOffload::default());
            let status = if number == 1 { given.telling() } else { given };
            bench.put(tx.descriptor(tail), Descriptor::new(at, status));
            statuses.push(tx.descriptor(tail) + STATUS_OFFSET);
            tail += 1;
        }
    }
    bench.write(registers::COMMAND, command::TRANSMIT);
    bench.pass(Time::from_us(20));
    let sent: Vec<_> = std::iter::from_fn(|| bench.nic.port().take_sent()).collect();
    let sent: Vec<_> = sent.into_iter().map(|(_, frame)| frame.into_bytes()).collect();
    assert_eq!(sent, [packet(0, 1340), packet(1, 60), packet(2, 714)]);
    assert_eq!(bench.memory.written, statuses);
    assert!(bench.get(tx.descriptor(tail - 1)).status.is_done());
    assert_eq!(bench.status(), events::TRANSMITTED | events::TRANSMIT_IDLE);
}

#[test]
fn frames_that_have_no_place_are_dropped_by_their_cause() {
    let mut bench = Bench::new();
    let mut arrive = |len| bench.nic.receive(&mut bench.memory, &mut packet(0, len).into());
    assert_eq!(arrive(1536), Ok(()));
    // Longer than a buffer may be: it would come without its end.
    assert_eq!(arrive(1537), Err(DropCause::OVERSIZED));
    let fitting = plan(&sinic()).rx_fifo.0 as usize / 1536;
    for _ in 1..fitting {
        assert_eq!(arrive(1536), Ok(()));
    }
    assert_eq!(arrive(1536), Err(DropCause("fifo_full")));
    assert_eq!(bench.nic.frames_inside(), fitting as u64);
}

#[test]
fn driver_errors_are_counted() {
    let mut bench = Bench::new();
    let errors = |bench: &Bench| {
        let [(_, errors)] = bench.nic.counters()[..] else {
            panic!("one counter");
        };
        errors
    };
    // No register; a chain of 16 pieces that goes on.
    bench.write(9, 0);
    assert_eq!(errors(&bench), 1);
    for entry in 0..LIST as u64 {
        let status = Status::given(64, true, TxOffload::default());
        bench.put(bench.tx.descriptor(entry), Descriptor::new(FRAMES + entry * ROOM, status));
    }
    bench.write(registers::COMMAND, command::TRANSMIT);
    bench.pass(Time::from_us(20));
    assert_eq!(errors(&bench), 2);
    // Checksums of bytes that are not even a frame.
    let offload = TxOffload { l3_checksum: true, ..TxOffload::default() };
    let status = Status::given(5, false, offload);
    bench.put(bench.tx.descriptor(0), Descriptor::new(FRAMES, status));
    bench.write(registers::COMMAND, command::TRANSMIT);
    bench.pass(Time::from_us(20));
    assert_eq!(errors(&bench), 3);
    // A piece that no frame has room for.
    let status = Status::given(4000, false, TxOffload::default());
    bench.put(bench.tx.descriptor(1), Descriptor::new(FRAMES, status));
    bench.write(registers::COMMAND, command::TRANSMIT);
    bench.pass(Time::from_us(20));
    assert_eq!(errors(&bench), 4);
}

/// A descriptor takes 21.6 ns to read, a frame of 100 bytes 10 ns to write, its status 0.8 ns: one frame is done
/// every 32.4 ns, and nothing of the next one begins before.
#[test]
fn one_frame_is_handled_after_the_other() {
    let mut bench = Bench::new();
    // The first descriptor is read before there is a frame.
    bench.pass(Time::from_ns(100));
    let begin = bench.now;
    for number in 0..3 {
        bench.arrive(number);
    }
    let ring = Ring::<Descriptor>::at(RX, LIST as u64, 0);
    for entry in 0..3 {
        let written = begin + Time::from_ps(10_000 + 32_400 * entry);
        bench.pass(written - bench.now - Time::from_ps(1));
        assert!(!bench.get(ring.descriptor(entry)).status.is_done(), "{entry}");
        bench.pass(Time::from_ps(1));
        assert!(bench.get(ring.descriptor(entry)).status.is_done(), "{entry}");
    }
}

/// Both directions have transfers from the same moment on: they take turns, and each transfer waits for the one before.
#[test]
fn both_directions_share_one_way_to_memory() {
    let mut bench = Bench::new();
    bench.pass(Time::from_ns(100));
    let given = Status::given(100, false, TxOffload::default());
    for entry in 0..2 {
        bench.put(bench.tx.descriptor(entry), Descriptor::new(FRAMES, given));
    }
    bench.write(registers::COMMAND, command::TRANSMIT);
    for number in 0..2 {
        bench.arrive(number);
    }
    bench.pass(Time::from_us(1));
    let rx = Ring::<Descriptor>::at(RX, LIST as u64, 0);
    let status = |at: Addr| at + STATUS_OFFSET;
    let order = [
        Addr(BUFFERS),
        status(rx.descriptor(0)),
        status(bench.tx.descriptor(0)),
        Addr(BUFFERS + ROOM),
        status(rx.descriptor(1)),
        status(bench.tx.descriptor(1)),
    ];
    assert_eq!(bench.memory.written, order);
}
