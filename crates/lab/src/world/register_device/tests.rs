use nicforge_interfaces::sinic::build;
use nicforge_interfaces::sinic::registers::{Tag, config, rx_data, rx_done};
use nicforge_platform::sim::Devices;
use nicforge_platform::{Addr, AddressSpace};
use nicforge_wire::link::LinkPlan;

use super::*;
use crate::systems::attachment::Attachment;
use crate::systems::system::kernel_plan;
use crate::world::device::{Elsewhere, Nobody, Reach};

/// A SINIC that receives, whose link delays frames by `DELAY`.
struct Bench {
    host: Lent<Host>,
    devices: [Box<dyn Device>; 1],
    timeout: Time,
    /// A receive copy of 1000 bytes, and where it goes.
    data: u64,
    to: Addr,
}

const DELAY: Time = Time::from_us(2);

impl Bench {
    fn new() -> Bench {
        let text = include_str!("../../../../../machines/m5-10gbe.toml");
        let path = std::path::Path::new("machines/m5-10gbe.toml");
        let machine = crate::machine::parse_machine(text, path).unwrap();
        let machine = machine.integrated.as_ref().unwrap();
        let placement = machine.placement("OCC").unwrap();
        let attachment = Attachment::new(machine, placement, machine.frequency, machine.l2.size);
        let hardware = attachment.hardware;
        let mut space = AddressSpace::default();
        let to = space.data(4096, 64);
        let plan = kernel_plan(0, 1, &machine.nic, &machine.sinic, machine.driver);
        let (nic, _) = build(&plan, &mut space).unwrap();
        let mut nic: Box<dyn KernelNic<SimDma>> = Box::new(nic);
        nic.set_memory_end(Addr(space.end()));
        let wire = Link::new(&LinkPlan { delay: DELAY, ..LinkPlan::default() }, 1);
        let mut bench = Bench {
            host: Lent::new(Host::new(&hardware, &space)),
            devices: [Box::new(RegisterDevice::new(nic, &hardware.pcie, 0, wire))],
            timeout: machine.sinic.wait_timeout,
            data: rx_data::ADDR.of(to.0) | rx_data::LEN.of(1000),
            to,
        };
        bench.post(Tag::Config, config::RX_EN.mask(), Time::ZERO);
        bench.post(Tag::RxData, bench.data, Time::ZERO);
        bench
    }

    fn post(&mut self, tag: Tag, value: u64, arrives: Time) {
        self.devices[0].post(&MmioWrite { arrives, register: tag.of(0, 0), value });
    }

    /// Reads RxWait at `at`; returns whether it is complete, and when.
    fn wait(&mut self, elsewhere: &mut dyn Elsewhere, at: Time) -> (bool, Time) {
        let mut nics = Reach { devices: &mut self.devices, elsewhere };
        let (value, given) = nics.read(&mut self.host, Tag::RxWait.of(0, 0), at);
        (rx_done::COMPLETE.is_set(value), given)
    }
}

#[test]
fn a_blocked_register_answers_when_what_is_on_the_wire_comes_in() {
    let mut bench = Bench::new();
    bench.devices[0].send_here(Time::ZERO, vec![7; 200].into());
    let (complete, given) = bench.wait(&mut Nobody, Time::from_us(1));
    assert!(complete && given > DELAY, "{given}");
    assert!(given < DELAY + Time::from_us(1), "{given}");
    assert_eq!(bench.host.memory.slice(bench.to, 200), [7; 200]);
    // Nothing more comes.
    bench.post(Tag::RxData, bench.data, given);
    let late = bench.wait(&mut Nobody, given);
    assert_eq!(late, (false, given + bench.timeout));
}

#[test]
fn a_blocked_register_answers_when_what_was_not_sent_before_comes_in() {
    let mut bench = Bench::new();
    // It is sent within the first time-out, and arrives in the second.
    let sends = Time::from_us(1) + bench.timeout - Time::from_us(1);
    let mut peer = Peer { sends: Some(sends) };
    let (complete, at) = bench.wait(&mut peer, Time::from_us(1));
    assert!(!complete && peer.sends.is_none());
    assert_eq!(at, Time::from_us(1) + bench.timeout);
    let (complete, given) = bench.wait(&mut Nobody, at);
    assert!(complete && given > sends + DELAY, "{given}");
    assert!(given < sends + DELAY + Time::from_ns(500), "{given}");
    assert_eq!(bench.host.memory.slice(bench.to, 100), [9; 100]);
    // The next is sent and arrives within one.
    bench.post(Tag::RxData, bench.data, given);
    let sends = given + Time::from_us(1);
    let mut peer = Peer { sends: Some(sends) };
    let (complete, given) = bench.wait(&mut peer, given);
    assert!(complete && given > sends + DELAY, "{given}");
    assert!(given < sends + DELAY + Time::from_ns(500), "{given}");
}

/// A host that sends one frame, when its time has come.
struct Peer {
    sends: Option<Time>,
}

impl Elsewhere for Peer {
    fn step(&mut self, devices: &mut [Box<dyn Device>], before: Time) -> bool {
        let sends = self.sends.take_if(|sends| *sends < before);
        if let Some(time) = sends {
            devices[0].send_here(time, vec![9; 100].into());
        }
        sends.is_some()
    }
}
