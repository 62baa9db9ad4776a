//! Tests that every stage passes, also those of other crates: [`check`].

use std::rc::Rc;

use nicforge_nic::mock::{CountingHalf, spec, udp_frame};
use nicforge_nic::stage::Stage;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_nic::{Nic, PortId};
use nicforge_options::{Options, Values};
use nicforge_platform::{Addr, AddressSpace, Flat, FlatCpu, FlatDma};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

use crate::{BuiltStage, StageKind, StagePlan};

/// Steps of a NIC in 5 µs, at most.
const ROUNDS_MAX: usize = 10_000;

/// Runs stage `K` with its default options in a NIC, on frames whole, cut short and damaged. Every frame is delivered,
/// sent, kept by the stage or dropped with a cause.
///
/// # Panics
/// A property does not hold.
pub fn check<K: StageKind>() {
    check_with::<K>(&K::Options::of(&Values::default()));
}

/// The same with these options.
///
/// # Panics
/// A property does not hold.
pub fn check_with<K: StageKind>(options: &K::Options) {
    let frame = udp_frame(60, 7);
    let mut bench = Bench::new::<K>(options);
    bench.receive(&frame);
    for len in 0..frame.len() {
        bench.receive(&frame[..len]);
    }
    for at in 0..frame.len() {
        for value in [0, 0xff, frame[at] ^ 1, frame[at] ^ 0x80] {
            let mut damaged = frame.clone();
            damaged[at] = value;
            bench.receive(&damaged);
        }
    }
    for index in 0..bench.registers + 2 {
        for value in [0, 1, u64::MAX] {
            let known = bench.nic.write_register(&mut bench.dma, nicforge_nic::registers::STAGES + index, value);
            assert!(!known || index < bench.registers, "{}: register {index} does not exist", K::NAME);
        }
    }
    bench.receive(&frame);
}

/// Counts what leaves.
#[derive(Default)]
struct Wire {
    frames: u64,
}

impl Egress for Wire {
    fn depart(&mut self, _departure: Departure<'_>) {
        self.frames += 1;
    }

    fn bridge(&mut self, _frame: Bridged) {
        self.frames += 1;
    }
}

struct Bench {
    nic: Nic<FlatDma>,
    dma: FlatDma,
    wire: Wire,
    now: Time,
    arrived: u64,
    registers: u32,
}

impl Bench {
    fn new<K: StageKind>(options: &K::Options) -> Bench {
        let mut space = AddressSpace::default();
        let plan = StagePlan {
            port: PortId(0),
            first_register: nicforge_nic::registers::STAGES,
            mac: MacAddress([2, 0, 0, 0, 0, 1]),
            next_hop: MacAddress([2, 0, 0, 0, 0, 2]),
            queues: 1,
            rx_entries: 64,
            flows: Rc::new(()),
            values: Values::default(),
        };
        let BuiltStage::<Flat> { stage, start } =
            K::build(options, &plan, &mut space).unwrap_or_else(|error| panic!("{}: {error}", K::NAME));
        let registers = Stage::<FlatDma>::registers(&*stage);
        let mut dma = FlatDma::new(FlatCpu::new(space.end()));
        if let Some(start) = start {
            start(&mut dma.cpu).unwrap_or_else(|error| panic!("{}: {error}", K::NAME));
        }
        let mut nic = Nic::new(&spec(), Box::new(CountingHalf::default()), &[], Addr(space.end()));
        nic.stages.push(stage);
        Bench { nic, dma, wire: Wire::default(), now: Time::ZERO, arrived: 0, registers }
    }

    /// A frame arrives, and the NIC does all that it has to do.
    fn receive(&mut self, frame: &[u8]) {
        self.arrived += 1;
        self.now += Time::from_us(10);
        self.dma.set_now(self.now);
        self.nic.receive(&mut self.dma, frame, self.now);
        let ends = self.now + Time::from_us(5);
        for _ in 0..ROUNDS_MAX {
            let next = self.nic.advance(&mut self.dma, &mut self.wire).min(self.nic.held_due());
            // Stages may do something now and then, for ever.
            if next > ends {
                return self.judge();
            }
            self.now = self.now.max(next);
            self.dma.set_now(self.now);
            self.nic.receive_held(&mut self.dma);
        }
        panic!("{ROUNDS_MAX} steps in 5 µs, and the stage wants more");
    }

    /// Every frame is in one place.
    fn judge(&mut self) {
        let half: &mut dyn std::any::Any = &mut *self.nic.receive;
        let delivered = half.downcast_mut::<CountingHalf>().expect("the bench's own").frames;
        let stages = &self.nic.stages;
        let out = delivered
            + self.wire.frames
            + self.nic.drops().total()
            + stages.consumed()
            + self.nic.held()
            + stages.inward();
        assert_eq!(self.arrived + stages.injected(), out, "frames that came in and that left the stage");
    }
}
