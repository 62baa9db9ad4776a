//! The hairpin in a NIC with an interface that only counts what comes to it.

use std::collections::BTreeMap;

use nicforge_platform::{Addr, AddressSpace};
use nicforge_units::{Bytes, Time};
use nicforge_wire::headers::{MacAddress, ip_protocol};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::{FlowMatch, FlowTable, Hairpin, HairpinSpec, TableFull};
use crate::mock::{MockHost, spec, udp_frame};
use crate::transmit::{Departure, Egress};
use crate::{Arriving, DropCause, Nic, ReceiveHalf, Waiting};

const ADDRESSES: (MacAddress, MacAddress) = (MacAddress([2; 6]), MacAddress([4; 6]));

#[derive(Default)]
struct Software(Vec<Vec<u8>>);

impl ReceiveHalf for Software {
    fn receive<D: nicforge_platform::Dma>(
        &mut self,
        _dma: &mut D,
        frame: &Arriving<'_>,
    ) -> Result<(), DropCause> {
        self.0.push(frame.bytes.to_vec());
        Ok(())
    }
    fn write_register<D: nicforge_platform::Dma>(&mut self, _: &mut D, _: u32, _: u64) -> bool {
        false
    }
    fn queues(&self) -> u16 {
        1
    }
    fn waiting(&self, _queue: u16) -> Waiting {
        Waiting::default()
    }
}

#[derive(Default)]
struct Wire(Vec<(Vec<u8>, Time)>);

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.0.push((departure.bytes.to_vec(), departure.last_bit));
    }
}

struct Bench {
    nic: Nic<Software>,
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
    let mut space = AddressSpace::default();
    let table = FlowTable::allocate(&mut space, flows.into());
    let mut host = MockHost::new(&space);
    for port in 0..flows {
        table.install(&mut host.memory, flow(port)).unwrap();
    }
    let hairpin = Hairpin::new(HairpinSpec {
        table,
        memory: Bytes(lines * 64),
        fetches: 4,
        queue,
        addresses: ADDRESSES,
    });
    let nic = Nic::new(&spec(), Software::default(), &[], Addr(space.end()));
    Bench {
        nic: nic.with_hairpin(Some(hairpin)),
        host,
        wire: Wire::default(),
        table,
    }
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
        assert_eq!(bench.nic.drops.total(), 0);
        assert!(bench.nic.receive.0.is_empty());
        for (frame, (left, _)) in sent.iter().zip(&bench.wire.0) {
            assert_eq!((&left[..6], &left[6..12]), (&[4; 6][..], &[2; 6][..]));
            assert_eq!(left[12..], frame[12..]);
        }
        assert_eq!(bench.wire.0.len(), sent.len());
        let hairpin = bench.nic.hairpin.as_mut().unwrap();
        hairpin.write_back(&mut bench.host);
        let counters = hairpin.counters();
        for (port, count) in counts {
            let seen = bench
                .table
                .read(&mut bench.host.memory, flow(port))
                .unwrap();
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
fn what_is_not_known_goes_to_software_untouched() {
    let mut bench = bench(3, 64, 64);
    let unknown = udp_frame(100, 9);
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    for frame in [&unknown, &arp] {
        bench.receive(frame);
    }
    bench.run();
    assert_eq!(bench.nic.receive.0, [unknown, arp]);
    assert!(bench.wire.0.is_empty());
}

#[test]
fn frames_behind_one_that_waits_for_its_context_keep_their_order() {
    let mut bench = bench(2, 64, 64);
    bench.receive(&udp_frame(20, 0));
    bench.run();
    // Context 0 is here, context 1 takes a read of 1 us.
    let began = bench.host.now;
    bench.receive(&udp_frame(20, 1));
    bench.receive(&udp_frame(20, 0));
    bench.run();
    let ports: Vec<u8> = bench.wire.0.iter().map(|(frame, _)| frame[35]).collect();
    assert_eq!(ports, [0, 1, 0]);
    assert!(bench.wire.0[1].1 > began + crate::mock::READ);
}

#[test]
fn a_full_queue_drops_and_does_not_count() {
    let mut bench = bench(1, 8, 3);
    for _ in 0..5 {
        bench.receive(&udp_frame(20, 0));
    }
    assert_eq!(bench.nic.drops.causes(), [("hairpin_queue_full", 2)]);
    assert_eq!(bench.nic.transmit.internal_inside(), 3);
    bench.run();
    assert_eq!(bench.wire.0.len(), 3);
    bench
        .nic
        .hairpin
        .as_mut()
        .unwrap()
        .write_back(&mut bench.host);
    let seen = bench.table.read(&mut bench.host.memory, flow(0)).unwrap();
    assert_eq!(seen.packets, 3);
}

#[test]
fn a_full_table_says_so() {
    let mut space = AddressSpace::default();
    let table = FlowTable::allocate(&mut space, 2);
    let mut cpu = nicforge_platform::FlatCpu::new(space.end());
    let outcomes: Vec<_> = (0..9)
        .map(|port| table.install(&mut cpu, flow(port)))
        .collect();
    let fitted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!((2..9).contains(&fitted));
    assert_eq!(outcomes[8], Err(TableFull));
}
