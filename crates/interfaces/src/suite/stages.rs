//! A stage between the wire and the interface: what it does to frames arrives at the other end, in both directions.

use nicforge_nic::mock::{spec, udp_frame};
use nicforge_nic::stage::{Frame, Processor, Services, Stage, Timers, Verdict};
use nicforge_nic::transmit::{Bridged, Departure, Egress, TransmitDriver, TxRing};
use nicforge_nic::{
    Arriving, DriverCosts, DropCause, Nic, Packet, PortId, Queues, ReceiveHalf, RxFlags, Segment, TxOffload, Waiting,
    data_of, registers,
};
use nicforge_platform::{Addr, Cpu, Dma, Register};
use nicforge_units::{Cycles, Frequency, Time};

use super::ground::DmaOf;
use super::{Bench, Ground, Setup, build, for_all};
use crate::emulated;

for_all! {
    a_stage_changes_what_host_and_wire_receive,
}

/// The transmit doorbell, as one of the registers that every ground of the suite has.
const DOORBELL: u32 = 60;
/// The port of this NIC, and another one.
pub(super) const OWN: PortId = PortId(1);
const OTHER: PortId = PortId(0);
const FLAGS: RxFlags = RxFlags(0xffff_ff00);
const MARK: u64 = 0xfedc_ba98_7654_3210;

/// Does all that a stage can, by a frame's UDP source port.
#[derive(Default)]
struct Toy {
    timers: Timers<u16>,
    threshold: u64,
    /// Marks that the host gave to frames that left.
    marks: Vec<u64>,
    dropped: u64,
}

/// What the stage does to a frame from one of these ports.
mod on {
    pub const NOTHING: u16 = 1;
    pub const LENGTHEN: u16 = 2;
    pub const DROP: u16 = 3;
    pub const ANSWER_TWICE: u16 = 4;
    pub const DELIVER_ANOTHER: u16 = 5;
    pub const TURN_ROUND: u16 = 6;
    pub const OTHER_PORT: u16 = 7;
    pub const SHORTEN: u16 = 8;
}

impl<D: Dma> Stage<D> for Toy {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        nic.work(Cycles(10));
        nic.delay(Time::from_ns(5));
        match frame.summary().source_port {
            on::LENGTHEN => frame.edit(|bytes| bytes.extend([0x77; 100])).expect("padding can be read"),
            on::DROP => {
                self.dropped += 1;
                return Verdict::Drop(DropCause("toy_drop"));
            }
            on::ANSWER_TWICE => {
                for number in 0..2 {
                    nic.injector.send(udp_frame(30 + number, on::NOTHING), frame.arrival, nic.ready());
                }
                return Verdict::Consume;
            }
            on::DELIVER_ANOTHER => nic.injector.deliver(udp_frame(77, on::DELIVER_ANOTHER), frame.arrival, nic.ready()),
            on::TURN_ROUND => return Verdict::Send(frame.port),
            on::OTHER_PORT => return Verdict::Send(OTHER),
            _ => {}
        }
        frame.mark = MARK ^ u64::from(frame.summary().source_port);
        frame.flags = frame.flags.with(FLAGS);
        frame.steer(1);
        Verdict::Pass
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.marks.push(frame.mark);
        match frame.summary().source_port {
            on::LENGTHEN => frame.edit(|bytes| bytes.extend([0x66; 8])).expect("padding can be read"),
            on::SHORTEN => _ = frame.edit(|bytes| bytes.truncate(42)).expect_err("the datagram is cut"),
            on::DROP => return Verdict::Drop(DropCause("toy_drop_out")),
            on::ANSWER_TWICE => {
                nic.injector.send(udp_frame(9, on::NOTHING), frame.arrival, nic.now());
                return Verdict::Pass;
            }
            on::OTHER_PORT => return Verdict::Send(OTHER),
            _ => return Verdict::Pass,
        };
        Verdict::Pass
    }

    fn registers(&self) -> u32 {
        2
    }

    /// Register 0 keeps a number; a write to register 1 sends a frame in a microsecond.
    fn write_register(&mut self, nic: &mut Services<'_, D>, index: u32, value: u64) -> bool {
        match index {
            0 => self.threshold = value,
            1 => _ = self.timers.set(nic.now() + Time::from_us(1), value as u16),
            _ => return false,
        }
        true
    }

    fn read_register(&mut self, _nic: &mut Services<'_, D>, index: u32) -> Option<u64> {
        (index == 0).then_some(self.threshold)
    }

    fn due(&self) -> Time {
        self.timers.due()
    }

    fn advance(&mut self, nic: &mut Services<'_, D>) {
        while let Some(payload) = self.timers.expired(nic.now()) {
            nic.injector.send(udp_frame(payload.into(), on::NOTHING), nic.now(), nic.now());
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("toy_dropped", self.dropped)]
    }
}

#[derive(Default)]
pub(super) struct Wire {
    pub left: Vec<Vec<u8>>,
    pub bridged: Vec<Vec<u8>>,
}

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        assert_eq!(departure.port, OWN);
        self.left.push(departure.pieces.concat());
    }

    fn bridge(&mut self, frame: Bridged) {
        assert_eq!(frame.port, OTHER);
        self.bridged.push(frame.bytes);
    }
}

/// A placeholder for the half of a bench that has moved into a NIC.
struct Moved;

impl Queues for Moved {
    fn queues(&self) -> u16 {
        0
    }

    fn waiting(&self, _queue: u16) -> Waiting {
        Waiting::default()
    }
}

impl<D: Dma> ReceiveHalf<D> for Moved {
    fn receive(&mut self, _dma: &mut D, _frame: &Arriving<'_>) -> Result<(), DropCause> {
        Err(DropCause("moved"))
    }

    fn write_register(&mut self, _dma: &mut D, _index: u32, _value: u64) -> bool {
        false
    }
}

/// A whole NIC with the stage, around the half of a bench.
pub(super) struct Staged<G: Ground> {
    bench: Bench<G>,
    pub nic: Nic<DmaOf<G>>,
    transmit: TransmitDriver,
    pub wire: Wire,
}

impl<G: Ground> Staged<G> {
    fn new(interface: &'static str) -> Staged<G> {
        let mut bench = Staged::with(interface, Box::new(Toy::default()));
        bench.nic.stages.set_processor(Processor::new(Frequency::from_ghz(1.0), 2));
        bench
    }

    /// With this stage in front of the interface.
    pub fn with(interface: &'static str, stage: Box<dyn Stage<DmaOf<G>>>) -> Staged<G> {
        let (name, setup) = Setup::default().around(interface);
        let mut sends = None;
        let mut bench: Bench<G> = Bench::built(name, &setup, |plan, space| {
            let ring = TxRing::new(space, 64).unwrap();
            let doorbell = Register { device: 0, index: DOORBELL };
            let driver = TransmitDriver::new(space, ring, doorbell, DriverCosts::default());
            sends = Some((ring, driver));
            build(name, plan, space).unwrap()
        });
        bench.start();
        let (ring, transmit) = sends.unwrap();
        let half = std::mem::replace(&mut bench.nic, Box::new(Moved));
        let end = bench.pool.buffer(bench.pool.count() as u64 - 1) + bench.pool.stride();
        let mut nic = Nic::new(&spec(), half, &[ring], end);
        nic.stages.push(stage);
        Staged { bench, nic, transmit, wire: Wire::default() }
    }

    fn device<R>(&mut self, act: impl FnOnce(&mut Nic<DmaOf<G>>, &mut DmaOf<G>, &mut Wire) -> R) -> R {
        act(&mut self.nic, &mut *self.bench.ground.device(), &mut self.wire)
    }

    /// Time passes, and the NIC does all that is due.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.bench.ground.pass(Time::from_us(2));
            self.device(|nic, dma, wire| {
                let now = dma.now();
                for _ in 0..1_000 {
                    if nic.advance(dma, wire).min(nic.due()) > now {
                        return;
                    }
                    nic.receive_held(dma);
                }
                panic!("the NIC is never done");
            });
            self.ring();
        }
    }

    /// Register writes reach the NIC, and the core that plays it works, if there is one.
    fn ring(&mut self) {
        let writes = self.bench.ground.register_writes();
        self.device(|nic, dma, _| {
            for (index, value) in writes {
                let index = if index == DOORBELL { registers::TRANSMIT } else { index };
                assert!(nic.write_register(dma, index, value), "register {index}");
            }
        });
        let Some(half) = emulated::played::<G::On>(&mut *self.nic.receive) else {
            return;
        };
        self.bench.ground.play(|way| half.emulate(way, usize::MAX));
        for (index, value) in self.bench.ground.register_writes() {
            half.rung_by_core(&mut *self.bench.ground.device(), index, value);
        }
    }

    /// A frame from UDP port `kind` comes in.
    fn arrives(&mut self, kind: u16) {
        self.comes_in(&udp_frame(100, kind));
    }

    /// A frame comes in.
    pub fn comes_in(&mut self, frame: &[u8]) {
        self.device(|nic, dma, _| nic.receive(dma, frame, dma.now()));
        self.settle();
    }

    /// What queue `queue` received.
    pub fn polls(&mut self, queue: usize) -> Vec<(Packet, Vec<u8>)> {
        let Bench { ground, drivers, caches, .. } = &mut self.bench;
        let mut packets = Vec::new();
        drivers[queue].rx_burst(&mut *ground.core(queue), &mut caches[queue], &mut packets, 32);
        self.ring();
        let ground = &mut self.bench.ground;
        let mut bytes = |packet: &Packet| {
            let mut bytes = ground.peek(packet.head.at, packet.head.len as usize);
            bytes.extend(ground.peek(packet.rest.at, packet.rest.len as usize));
            bytes
        };
        packets.iter().map(|packet| (*packet, bytes(packet))).collect()
    }

    /// Core 0 sends a frame from UDP port `kind`, with `mark`; returns what went out.
    fn sends(&mut self, kind: u16, mark: u64) -> Vec<Vec<u8>> {
        self.sends_frame(&udp_frame(60, kind), mark)
    }

    /// Core 0 sends `bytes` with `mark`; returns what went out.
    pub fn sends_frame(&mut self, bytes: &[u8], mark: u64) -> Vec<Vec<u8>> {
        let Bench { ground, caches, .. } = &mut self.bench;
        let mut core = ground.core(0);
        let mbuf = caches[0].take(&mut *core).expect("a buffer to send");
        core.bytes_mut(data_of(mbuf), bytes.len()).copy_from_slice(bytes);
        let packet = Packet {
            mbuf,
            tail: Addr(0),
            references: Addr(0),
            head: Segment { at: data_of(mbuf), len: bytes.len() as u32 },
            rest: Segment::default(),
            port: OWN,
            rss_hash: 0,
            flags: RxFlags::default(),
            mark,
            offload: TxOffload::default(),
            stamp: Time::ZERO,
        };
        self.transmit.push(&mut *core, &packet, true).unwrap();
        self.transmit.ring_doorbell(&mut *core);
        drop(core);
        self.ring();
        self.settle();
        let Bench { ground, caches, .. } = &mut self.bench;
        self.transmit.reclaim(&mut *ground.core(0), &mut caches[0]);
        assert_eq!(self.transmit.in_use(), 0, "its buffer came back");
        std::mem::take(&mut self.wire.left)
    }
}

fn a_stage_changes_what_host_and_wire_receive<G: Ground>(interface: &'static str) {
    let mut bench: Staged<G> = Staged::new(interface);
    let mut received = Vec::new();
    for kind in [on::NOTHING, on::LENGTHEN, on::DROP, on::ANSWER_TWICE, on::DELIVER_ANOTHER, on::TURN_ROUND] {
        bench.arrives(kind);
        received.extend(bench.polls(1));
    }
    bench.arrives(on::OTHER_PORT);
    let lengthened = [udp_frame(100, on::LENGTHEN), vec![0x77; 100]].concat();
    let expected = [
        (udp_frame(100, on::NOTHING), MARK ^ 1),
        (lengthened, MARK ^ 2),
        (udp_frame(100, on::DELIVER_ANOTHER), MARK ^ 5),
    ];
    for (number, (bytes, mark)) in expected.iter().enumerate() {
        let (packet, came) = &received[number];
        assert_eq!((came, packet.mark), (bytes, *mark), "{interface}: {number}");
        assert!(packet.flags.contains(FLAGS.with(RxFlags::L4_GOOD)), "{interface}: {:?}", packet.flags);
    }
    // What the stage itself delivered is behind it, so that it steered and marked nothing.
    let injected: Vec<_> = received.split_off(3).into_iter().chain(bench.polls(0)).collect();
    assert_eq!(injected.len(), 1, "{interface}");
    assert_eq!((&injected[0].1, injected[0].0.mark), (&udp_frame(77, on::DELIVER_ANOTHER), 0), "{interface}");
    // What it answered and turned round has left; its own frames pass no stage.
    let left = std::mem::take(&mut bench.wire.left);
    let answers = [udp_frame(30, on::NOTHING), udp_frame(31, on::NOTHING), udp_frame(100, on::TURN_ROUND)];
    assert_eq!(left, answers, "{interface}");
    assert_eq!(bench.wire.bridged, [udp_frame(100, on::OTHER_PORT)], "{interface}");
    assert_eq!(bench.nic.drops().causes(), [("toy_drop", 1)], "{interface}");
    // The interface may have a stage of its own.
    assert_eq!(bench.nic.stages.counters().first(), Some(&("toy_dropped", 1)), "{interface}");
    assert_eq!((bench.nic.stages.injected(), bench.nic.stages.consumed()), (3, 1), "{interface}");

    assert_eq!(bench.sends(on::NOTHING, 5), [udp_frame(60, on::NOTHING)], "{interface}");
    let longer = [udp_frame(60, on::LENGTHEN), vec![0x66; 8]].concat();
    assert_eq!(bench.sends(on::LENGTHEN, u64::MAX), [longer], "{interface}");
    assert_eq!(bench.sends(on::SHORTEN, 0), [&udp_frame(60, on::SHORTEN)[..42]], "{interface}");
    assert!(bench.sends(on::DROP, 6).is_empty(), "{interface}");
    let both = bench.sends(on::ANSWER_TWICE, 7);
    assert_eq!(both, [udp_frame(60, on::ANSWER_TWICE), udp_frame(9, on::NOTHING)], "{interface}");
    assert!(bench.sends(on::OTHER_PORT, 8).is_empty() && bench.wire.bridged.len() == 2, "{interface}");
    let toy: &Toy = bench.nic.stages.get().unwrap();
    assert_eq!(toy.marks, [5, u64::MAX, 0, 6, 7, 8], "{interface}: the host's marks");
    assert_eq!(bench.nic.drops().total(), 2, "{interface}: toy_drop, toy_drop_out");

    // Registers and timers.
    let first = registers::STAGES;
    bench.device(|nic, dma, _| {
        assert!(nic.write_register(dma, first, 99) && !nic.write_register(dma, first + 2, 0));
        assert_eq!(nic.read_register(dma, first).map(|(value, _)| value), Some(99));
        assert!(nic.write_register(dma, first + 1, 33));
        assert!(nic.due() <= dma.now() + Time::from_us(1));
    });
    bench.settle();
    assert_eq!(bench.wire.left, [udp_frame(33, on::NOTHING)], "{interface}");
}
