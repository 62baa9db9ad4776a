//! The router as stage `p4` of a NIC: frames come in by port 0 and leave by port 1.

use std::path::Path;
use std::rc::Rc;

use nicforge_nic::mock::{CountingHalf, spec};
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_nic::{Nic, PortId};
use nicforge_options::{Options, Values};
use nicforge_p4stage::{P4Kind, P4Options};
use nicforge_platform::{Addr, AddressSpace, Flat, FlatCpu, FlatDma};
use nicforge_stages::{BuiltStage, StageKind, StagePlan};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

use crate::{examples, frame, measure};

#[derive(Default)]
struct Wire {
    frames: u64,
}

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.frames += 1;
        std::hint::black_box(departure);
    }

    fn bridge(&mut self, frame: Bridged) {
        self.frames += 1;
        drop(std::hint::black_box(frame));
    }
}

fn stage() -> BuiltStage<Flat> {
    let mut options = P4Options::of(&Values::default());
    let file = |name: &str| Some(Path::new(&examples()).join(name).display().to_string());
    options.p4_program = file("router.p4");
    options.p4_entries = file("nic-routes.toml");
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
    P4Kind::build(&options, &plan, &mut AddressSpace::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns frames a second.
pub fn forward(scale: u64) -> f64 {
    let mut dma = FlatDma::new(FlatCpu::new(AddressSpace::default().end()));
    let mut nic = Nic::new(&spec(), Box::new(CountingHalf::default()), &[], Addr(0));
    nic.stages.push(stage().stage);
    let mut wire = Wire::default();
    let packet = frame([10, 1, 2, 3]);
    let (count, mut now) = (4_000_000 / scale, Time::ZERO);
    let rate = measure("compiled: router as a NIC's stage, 64 B", count, |_| {
        // Slower than any limit of the modelled NIC.
        now += Time::from_us(1);
        dma.set_now(now);
        nic.receive(&mut dma, &packet, now);
        nic.advance(&mut dma, &mut wire);
    });
    assert!(wire.frames + 16 >= count, "{} of {count} frames left; drops {:?}", wire.frames, nic.drops());
    rate
}
