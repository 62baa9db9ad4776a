//! The hairpin in a NIC with an interface that only counts what comes to it.

use std::collections::BTreeMap;

use nicforge_platform::{Addr, AddressSpace};
use nicforge_units::{Bytes, Time};
use nicforge_wire::headers::{MacAddress, ip_protocol};
use nicforge_wire::{checksum, parse_frame};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::{FlowAction, FlowMatch, FlowTable, Hairpin, HairpinSpec, TableFull};
use nicforge_nic::mock::{MockHost, spec, udp_frame};
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_nic::{Arriving, DropCause, Nic, Queues, ReceiveHalf, Waiting};

const ADDRESSES: (MacAddress, MacAddress) = (MacAddress([2; 6]), MacAddress([4; 6]));

#[derive(Default)]
struct Software(Vec<Vec<u8>>);

impl Queues for Software {
    fn queues(&self) -> u16 {
        1
    }

    fn waiting(&self, _queue: u16) -> Waiting {
        Waiting::default()
    }
}

impl<D: nicforge_platform::Dma> ReceiveHalf<D> for Software {
    fn receive(&mut self, _dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        self.0.push(frame.bytes.to_vec());
        Ok(())
    }

    fn write_register(&mut self, _: &mut D, _: u32, _: u64) -> bool {
        false
    }
}

/// The half of a bench's NIC.
fn half(nic: &mut Nic<MockHost>) -> &mut Software {
    let half: &mut dyn std::any::Any = &mut *nic.receive;
    half.downcast_mut().unwrap()
}

#[derive(Default)]
struct Wire(Vec<(Vec<u8>, Time)>);

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.0.push((departure.pieces.concat(), departure.last_bit));
    }

    fn bridge(&mut self, _frame: Bridged) {}
}

struct Bench {
    nic: Nic<MockHost>,
    host: MockHost,
    wire: Wire,
    table: FlowTable,
}

/// The flow of [`udp_frame`] with this source port.
fn flow(source_port: u16) -> FlowMatch {
    let address = |last| u32::from_be_bytes([10, 0, 0, last]);
    let (from, to) = ((address(1), source_port), (address(2), 80));
    FlowMatch::new(from, to, ip_protocol::UDP)
}

/// A NIC that knows the flows of source ports 0 to `flows`, with room for `lines` of them.
fn bench(flows: u16, lines: u64, queue: usize) -> Bench {
    acting(flows, lines, queue, |_| FlowAction::default())
}

/// The same, which does `action` to frames of each port's flow.
fn acting(flows: u16, lines: u64, queue: usize, action: impl Fn(u16) -> FlowAction) -> Bench {
    fetching(4, flows, lines, queue, action)
}

/// The same, with at most `fetches` reads of rules in flight, and as many of counters.
fn fetching(fetches: usize, flows: u16, lines: u64, queue: usize, action: impl Fn(u16) -> FlowAction) -> Bench {
    let mut space = AddressSpace::default();
    let table = FlowTable::allocate(&mut space, flows.into());
    let mut host = MockHost::new(&space);
    for port in 0..flows {
        let action = action(port);
        table.install(&mut host.memory, flow(port), action).unwrap();
    }
    let hairpin = Hairpin::new(HairpinSpec { table, memory: Bytes(lines * 80), fetches, queue, addresses: ADDRESSES });
    let nic = Nic::new(&spec(), Box::new(Software::default()), &[], Addr(space.end()));
    Bench { nic: nic.with_stage(hairpin), host, wire: Wire::default(), table }
}

impl Bench {
    fn receive(&mut self, frame: &[u8]) {
        let now = self.host.now;
        self.nic.receive(&mut self.host, frame, now);
        self.host.now = now;
    }

    /// The NIC does all that it has to do.
    fn run(&mut self) {
        loop {
            let next = self.nic.advance(&mut self.host, &mut self.wire);
            let next = next.min(self.nic.held_due());
            if next == Time::NEVER {
                return;
            }
            self.host.now = self.host.now.max(next);
            let now = self.host.now;
            self.nic.receive_held(&mut self.host);
            self.host.now = now;
        }
    }
}

#[test]
fn it_passes_the_shared_suite() {
    crate::suite::check::<super::HairpinKind>();
}

#[test]
fn every_packet_counts_once_and_leaves_in_order_whatever_fits() {
    let mut random = Pcg64::seed_from_u64(5);
    // From one set of lines for 200 flows to room for all.
    for lines in [8, 64, 1024] {
        let mut bench = bench(200, lines, 64);
        let mut counts: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        let mut sent = Vec::new();
        for _ in 0..2_000 {
            let port = (random.next_u32() % 200) as u16;
            let frame = udp_frame(20 + (random.next_u32() % 500) as usize, port);
            bench.receive(&frame);
            bench.run();
            let count = counts.entry(port).or_default();
            *count = (count.0 + 1, count.1 + frame.len() as u64);
            sent.push(frame);
        }
        assert_eq!(bench.nic.drops().total(), 0);
        assert!(half(&mut bench.nic).0.is_empty());
        for (frame, (left, _)) in sent.iter().zip(&bench.wire.0) {
            assert_eq!((&left[..6], &left[6..12]), (&[4; 6][..], &[2; 6][..]));
            assert_eq!(left[12..], frame[12..]);
        }
        assert_eq!(bench.wire.0.len(), sent.len());
        let hairpin = bench.nic.stages.get_mut::<Hairpin>().unwrap();
        hairpin.write_back(&mut bench.host);
        let counters = hairpin.contexts();
        for (port, count) in counts {
            let seen = bench.table.counted(&mut bench.host.memory, flow(port)).unwrap();
            assert_eq!((seen.packets, seen.bytes), count, "{port} of {lines} lines");
        }
        // All fit: each line is fetched once, and stays.
        match lines {
            1024 => assert_eq!(counters.evictions, 0),
            _ => assert!(counters.evictions > 100 && counters.misses >= counters.evictions),
        }
    }
}

#[test]
fn unknown_flows_reach_software_unmodified() {
    let mut bench = bench(3, 64, 64);
    let unknown = udp_frame(100, 9);
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    for frame in [&unknown, &arp] {
        bench.receive(frame);
    }
    bench.run();
    assert_eq!(half(&mut bench.nic).0, [unknown, arp]);
    assert!(bench.wire.0.is_empty());
}

#[test]
fn frames_behind_one_that_waits_for_its_context_keep_their_order() {
    let mut bench = bench(2, 64, 64);
    bench.receive(&udp_frame(20, 0));
    bench.run();
    // The rule and counter of flow 0 are here, those of flow 1 take a read of 1 us each, one after the other.
    let began = bench.host.now;
    bench.receive(&udp_frame(20, 1));
    bench.receive(&udp_frame(20, 0));
    bench.run();
    let ports: Vec<u8> = bench.wire.0.iter().map(|(frame, _)| frame[35]).collect();
    assert_eq!(ports, [0, 1, 0]);
    assert!(bench.wire.0[1].1 > began + nicforge_nic::mock::READ + nicforge_nic::mock::READ);
}

#[test]
fn so_many_look_ups_are_in_flight_and_no_more() {
    const FLOWS: u16 = 8;
    let last_leaves = |fetches: usize| {
        // So many are known that these are found at the first look.
        let mut bench = fetching(fetches, 1000, 64, 64, |_| FlowAction::default());
        (0..FLOWS).for_each(|port| bench.receive(&udp_frame(20, port)));
        bench.run();
        assert_eq!(bench.wire.0.len(), usize::from(FLOWS));
        bench.wire.0.last().unwrap().1.as_ps() / nicforge_nic::mock::READ.as_ps()
    };
    // Of each flow the rule is read, and then the counter.
    assert_eq!([8, 4, 2, 1].map(last_leaves), [2, 3, 5, 9]);
}

#[test]
fn a_full_queue_drops_and_does_not_count() {
    let mut bench = bench(1, 8, 3);
    for _ in 0..5 {
        bench.receive(&udp_frame(20, 0));
    }
    assert_eq!(bench.nic.drops().causes(), [("hairpin_queue_full", 2)]);
    assert_eq!(bench.nic.transmit.internal_inside(), 3);
    bench.run();
    assert_eq!(bench.wire.0.len(), 3);
    bench.nic.stages.get_mut::<Hairpin>().unwrap().write_back(&mut bench.host);
    let seen = bench.table.counted(&mut bench.host.memory, flow(0)).unwrap();
    assert_eq!(seen.packets, 3);
}

#[test]
fn a_full_table_says_so() {
    let mut space = AddressSpace::default();
    let table = FlowTable::allocate(&mut space, 2);
    let mut cpu = nicforge_platform::FlatCpu::new(space.end());
    let action = FlowAction::default();
    let outcomes: Vec<_> = (0..9).map(|port| table.install(&mut cpu, flow(port), action)).collect();
    let fitted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!((2..9).contains(&fitted));
    assert_eq!(outcomes[8], Err(TableFull));
}

/// As a translator of addresses and ports does it, with a hop taken or not. What software would
/// make of the frame, its checksums calculated as a whole, is what comes out.
#[test]
fn addresses_ports_and_hops_are_rewritten_and_checksums_follow() {
    let mut random = Pcg64::seed_from_u64(7);
    let flows = 64;
    let mut end = || (random.next_u32(), random.next_u32() as u16);
    let ends: Vec<_> = (0..flows).map(|_| (end(), end())).collect();
    let action = |port: u16| {
        let (source, destination) = ends[usize::from(port)];
        FlowAction {
            source: (port & 1 != 0).then_some(source),
            destination: (port & 2 != 0).then_some(destination),
            takes_hop: port & 4 != 0,
        }
    };
    // Few lines, so that actions come and go with their contexts.
    let mut bench = acting(flows, 8, 64, action);
    for port in 0..flows {
        bench.receive(&udp_frame(20 + usize::from(port), port));
        bench.run();
    }
    assert_eq!(bench.wire.0.len(), usize::from(flows));
    for (port, (left, _)) in (0..).zip(&bench.wire.0) {
        let mut expected = udp_frame(20 + usize::from(port), port);
        expected[..12].copy_from_slice(&[4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2]);
        let action = action(port);
        for (new, at, port_at) in [(action.source, 26, 34), (action.destination, 30, 36)] {
            if let Some((address, port)) = new {
                expected[at..at + 4].copy_from_slice(&address.to_be_bytes());
                expected[port_at..port_at + 2].copy_from_slice(&port.to_be_bytes());
            }
        }
        expected[22] -= u8::from(action.takes_hop);
        let summary = parse_frame(&expected).unwrap();
        checksum::fill(&mut expected, &summary, true, true);
        assert_eq!(left, &expected, "{port}: {action:?}");
    }
}

#[test]
fn a_frame_with_a_wrong_ip_checksum_goes_to_software() {
    let mut bench = bench(1, 8, 64);
    let mut spoilt = udp_frame(20, 0);
    spoilt[24] ^= 1;
    let mut only_above = udp_frame(20, 0);
    only_above[40] ^= 1;
    for frame in [&spoilt, &only_above] {
        bench.receive(frame);
    }
    bench.run();
    assert_eq!(half(&mut bench.nic).0, [spoilt]);
    assert_eq!(bench.wire.0.len(), 1);
}

#[test]
fn a_frame_on_its_last_hop_goes_to_software() {
    let takes_hop = FlowAction { takes_hop: true, ..FlowAction::default() };
    let mut bench = acting(1, 8, 64, |_| takes_hop);
    let mut last = udp_frame(20, 0);
    last[22] = 1;
    let summary = parse_frame(&last).unwrap();
    checksum::fill(&mut last, &summary, true, true);
    for frame in [&last, &udp_frame(20, 0)] {
        bench.receive(frame);
    }
    bench.run();
    assert_eq!(half(&mut bench.nic).0, [last]);
    assert_eq!(bench.wire.0.len(), 1);
    let hairpin = bench.nic.stages.get_mut::<Hairpin>().unwrap();
    hairpin.write_back(&mut bench.host);
    let seen = bench.table.counted(&mut bench.host.memory, flow(0)).unwrap();
    assert_eq!(seen.packets, 1);
}
