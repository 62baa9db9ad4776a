//! Stages in a NIC: time, steering, the wire, state of flows.

use std::any::Any;

use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::{Bytes, Cycles, Frequency, Time};
use nicforge_wire::parse_frame;
use nicforge_wire::rewrite::{End, replace_end};
use nicforge_wire::rss::Toeplitz;

use super::*;
use crate::mock::{MockHost, READ, spec, udp_frame};
use crate::transmit::{Bridged, Departure, Egress, TxDescriptor, TxRing};
use crate::{Arriving, Nic, Queues, ReceiveHalf, Segment, Waiting, registers};

const QUEUES: u16 = 4;

/// Remembers queue, hash and time of each frame.
#[derive(Default)]
struct Remembers(Vec<(u16, u32, Time)>);

impl Queues for Remembers {
    fn queues(&self) -> u16 {
        QUEUES
    }

    fn waiting(&self, _queue: u16) -> Waiting {
        Waiting::default()
    }
}

impl ReceiveHalf<MockHost> for Remembers {
    fn receive(&mut self, dma: &mut MockHost, frame: &Arriving<'_>) -> Result<(), DropCause> {
        self.0.push((frame.queue, frame.rss_hash, dma.now()));
        Ok(())
    }

    fn write_register(&mut self, _dma: &mut MockHost, _index: u32, _value: u64) -> bool {
        false
    }
}

fn received(nic: &mut Nic<MockHost>) -> &[(u16, u32, Time)] {
    let half: &mut dyn Any = &mut *nic.receive;
    &half.downcast_mut::<Remembers>().unwrap().0
}

/// Frames with the times of their last bits.
#[derive(Default)]
struct Wire(Vec<(Vec<u8>, Time)>);

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.0.push((departure.pieces.concat(), departure.last_bit));
    }

    fn bridge(&mut self, _frame: Bridged) {}
}

/// What a frame costs, and what is done to it.
#[derive(Clone, Copy, Default)]
struct Costs {
    work: Cycles,
    delay: Time,
    /// The destination that it gets.
    to: Option<u32>,
    /// Bytes that it gets behind its end.
    more: usize,
}

impl Costs {
    fn spend(&self, nic: &mut Services<'_, MockHost>, frame: &mut Frame<'_>) -> Verdict {
        nic.work(self.work);
        nic.delay(self.delay);
        let summary = *frame.summary();
        if let Some(to) = self.to {
            frame.edit(|bytes| replace_end(bytes, &summary, End::Destination, to, None)).unwrap();
        }
        if self.more > 0 {
            frame.edit(|bytes| bytes.resize(bytes.len() + self.more, 0)).unwrap();
        }
        Verdict::Pass
    }
}

impl Stage<MockHost> for Costs {
    fn ingress(&mut self, nic: &mut Services<'_, MockHost>, frame: &mut Frame<'_>) -> Verdict {
        self.spend(nic, frame)
    }

    fn egress(&mut self, nic: &mut Services<'_, MockHost>, frame: &mut Frame<'_>) -> Verdict {
        self.spend(nic, frame)
    }
}

/// A NIC with one stage on a processor of 1 GHz.
fn bench(costs: Costs, cores: usize) -> (Nic<MockHost>, MockHost, TxRing, Addr) {
    let mut space = AddressSpace::default();
    let data = space.data(4_096, 64);
    let ring = TxRing::new(&mut space, 8).unwrap();
    let half = Box::new(Remembers::default());
    let mut nic = Nic::new(&spec(), half, &[ring], Addr(space.end())).with_stage(costs);
    nic.stages.set_processor(Processor::new(Frequency::from_ghz(1.0), cores));
    (nic, MockHost::new(&space), ring, data)
}

/// When `frames` short frames that come together reach the host, in ns.
fn reach(costs: Costs, cores: usize, frames: usize) -> Vec<u64> {
    let (mut nic, mut host, ..) = bench(costs, cores);
    let frame = udp_frame(20, 1);
    for _ in 0..frames {
        host.now = Time::ZERO;
        nic.receive(&mut host, &frame, Time::ZERO);
    }
    for step in 1..50 {
        host.now = Time::from_ns(100 * step);
        nic.receive_held(&mut host);
    }
    received(&mut nic).iter().map(|(_, _, at)| at.as_ps() / 1_000).collect()
}

#[test]
fn a_delay_holds_up_no_other_frame_and_work_waits_for_a_core() {
    // The parser takes 100 ns.
    let delay = Costs { delay: Time::from_ns(500), ..Costs::default() };
    assert_eq!(reach(delay, 1, 4), [600, 600, 600, 600]);
    let work = Costs { work: Cycles(500), ..Costs::default() };
    assert_eq!(reach(work, 1, 4), [600, 1_100, 1_600, 2_100]);
    assert_eq!(reach(work, 2, 4), [600, 600, 1_100, 1_100]);
}

#[test]
fn a_frame_with_a_new_destination_is_steered_by_it() {
    let to = 0x0a01_0203;
    let (mut nic, mut host, ..) = bench(Costs { to: Some(to), ..Costs::default() }, 1);
    let mut frame = udp_frame(20, 7);
    nic.receive(&mut host, &frame, Time::ZERO);
    let summary = parse_frame(&frame).unwrap();
    replace_end(&mut frame, &summary, End::Destination, to, None);
    let hash = Toeplitz::default().hash(&parse_frame(&frame).unwrap());
    let queue = nic.steering.queue(hash);
    assert_eq!(received(&mut nic)[0].0, queue);
    assert_eq!(received(&mut nic)[0].1, hash);
}

#[test]
fn frames_that_a_stage_adds_take_time_on_the_wire() {
    let last_bits = |costs| {
        let (mut nic, mut host, ring, data) = bench(costs, 1);
        let frame = udp_frame(58, 1);
        host.memory.bytes_mut(data, frame.len()).copy_from_slice(&frame);
        for position in 0..2 {
            let descriptor = TxDescriptor {
                head: Segment { at: data, len: frame.len() as u32 },
                report: true,
                ..TxDescriptor::default()
            };
            host.memory.store(ring.descriptor(position), descriptor.encode());
        }
        nic.write_register(&mut host, registers::TRANSMIT, 2);
        let mut wire = Wire::default();
        for us in 0..20 {
            let now = Time::from_us(us);
            host.now = now;
            while nic.advance(&mut host, &mut wire) <= now {
                host.now = now;
            }
        }
        wire.0.iter().map(|(_, last_bit)| last_bit.as_ps() / 1_000).collect::<Vec<_>>()
    };
    // A byte takes 100 ps: 10 ns for the frame, 2 for the gap.
    let plain = last_bits(Costs::default());
    assert_eq!(plain[1] - plain[0], 12);
    let longer = last_bits(Costs { more: 900, ..Costs::default() });
    assert_eq!((longer[0] - plain[0], longer[1] - longer[0]), (90, 102));
    let worked = last_bits(Costs { work: Cycles(300), ..Costs::default() });
    assert_eq!((worked[0] - plain[0], worked[1] - worked[0]), (300, 300));
    let delayed = last_bits(Costs { delay: Time::from_ns(300), ..Costs::default() });
    assert_eq!((delayed[0] - plain[0], delayed[1] - delayed[0]), (300, 12));
}

#[test]
fn timers_expire_in_order_and_once() {
    let mut timers = Timers::default();
    let at = |us| Time::from_us(us);
    assert!(timers.is_empty() && timers.due() == Time::NEVER);
    timers.set(at(3), "third");
    let second = timers.set(at(2), "second");
    timers.set(at(1), "first");
    timers.set(at(3), "fourth");
    assert_eq!((timers.len(), timers.due()), (4, at(1)));
    assert_eq!(timers.expired(Time::ZERO), None);
    assert_eq!(timers.cancel(second), Some("second"));
    assert_eq!(timers.cancel(second), None);
    let expired: Vec<_> = std::iter::from_fn(|| timers.expired(at(3))).collect();
    assert_eq!(expired, ["first", "third", "fourth"]);
}

/// A state of two lines and a bit.
#[derive(Clone, Debug, Default, PartialEq)]
struct Long([u64; 20]);

impl FlowState for Long {
    const BYTES: usize = 160;

    fn encode(&self, into: &mut [u8]) {
        into.copy_from_slice(bytemuck::cast_slice(&self.0));
    }

    fn decode(bytes: &[u8]) -> Long {
        let mut long = Long::default();
        bytemuck::cast_slice_mut(&mut long.0).copy_from_slice(bytes);
        long
    }
}

#[test]
fn states_of_any_size_come_from_host_memory_and_go_back() {
    let mut space = AddressSpace::default();
    let table = space.data(64 * 192, 64);
    let mut host = MockHost::new(&space);
    // Room for 8 of 64 states.
    let mut contexts: Contexts<Long> = Contexts::new(Bytes(8 * 160), 2);
    let at = |number: u64| table + number * 192;
    for round in 1..4u64 {
        for number in 0..64 {
            let (place, here) = contexts.get(&mut host, number, at(number));
            assert!(here >= host.now && here <= host.now + READ);
            assert_eq!(contexts.state(place).0, [(round - 1) * (number + 1); 20]);
            contexts.state_mut(place).0 = [round * (number + 1); 20];
        }
    }
    contexts.write_back(&mut host);
    for number in 0..64 {
        assert_eq!(Long::decode(host.memory.bytes(at(number), 160)).0, [3 * (number + 1); 20]);
    }
    let ContextCounters { lookups, misses, evictions } = contexts.counters;
    assert_eq!((lookups, misses, evictions), (192, 192, 184));
}
