//! Frames in the NIC's own memory: what they cost, when they are done, and who may name them.

use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::{Bytes, Time};

use super::bench::Wire;
use crate::mock::{MockHost, READ, spec};
use crate::transmit::{TransmitEngine, TxDescriptor, TxRing};
use crate::{Allocation, Application, Key, NicSpec, Nicmem, Segment};

const US: Application = Application(1);
const THEM: Application = Application(2);

struct Bench {
    engine: TransmitEngine,
    host: MockHost,
    wire: Wire,
    ring: TxRing,
    nicmem: Nicmem,
    ours: Allocation,
    theirs: Allocation,
    data: Addr,
    tail: u64,
}

fn bench(spec: &NicSpec, inlines: bool) -> Bench {
    let mut space = AddressSpace::default();
    let mut nicmem = Nicmem::new(&mut space, 0, 64 << 10);
    let ours = nicmem.alloc_nicmem(US, 4096).unwrap();
    let theirs = nicmem.alloc_nicmem(THEM, 4096).unwrap();
    let data = space.data(4096, 64);
    let mut ring = TxRing::with(&mut space, 256, inlines).unwrap();
    ring.application = US;
    let mut engine = TransmitEngine::new(spec, &[ring], Addr(space.end()));
    engine.set_keys(nicmem.keys());
    let mut host = MockHost::new(&space);
    for (at, fill) in [(ours.at, 0x11), (theirs.at, 0x22), (data, 0x33)] {
        host.memory.bytes_mut(at, 4096).fill(fill);
    }
    Bench { engine, host, wire: Wire::default(), ring, nicmem, ours, theirs, data, tail: 0 }
}

impl Bench {
    fn write(&mut self, descriptor: &TxDescriptor, line: [u64; 8]) {
        let at = self.ring.descriptor(self.tail);
        self.host.memory.store(at, descriptor.encode());
        if self.ring.inlines {
            self.host.memory.store(at + 64, line);
        }
        self.tail += 1;
    }

    fn run(&mut self) {
        assert!(self.engine.doorbell(&mut self.host, 0, self.tail));
        loop {
            let next =
                self.engine.advance(&mut self.host, &mut self.wire, &mut crate::stage::Chain::new(crate::PortId(0)));
            if next == Time::NEVER {
                return;
            }
            self.host.now = next;
        }
    }

    /// A header in host memory and a payload in ours.
    fn split(&self) -> TxDescriptor {
        let segment = |at, len| Segment { at, len };
        TxDescriptor {
            head: segment(self.data, 64),
            rest: segment(self.ours.at, 1_000),
            rest_key: self.ours.key,
            report: true,
            ..TxDescriptor::default()
        }
    }
}

#[test]
fn forbidden_memory_is_refused_with_a_cause_and_not_read() {
    let mut b = bench(&spec(), false);
    let good = b.split();
    let freed = b.nicmem.alloc_nicmem(US, 2048).unwrap();
    b.nicmem.dealloc_nicmem(US, freed.at).unwrap();
    let rest = |at, rest_key| TxDescriptor { rest: Segment { at, len: 1_000 }, rest_key, ..good };
    let beyond = b.ours.at + 4000;
    for (descriptor, cause) in [
        (rest(b.theirs.at, b.theirs.key), "nicmem_foreign_key"),
        (rest(b.theirs.at, b.ours.key), "nicmem_out_of_bounds"),
        (rest(beyond, b.ours.key), "nicmem_out_of_bounds"),
        (rest(freed.at, freed.key), "nicmem_use_after_free"),
        (rest(b.ours.at, Key::HOST), "nicmem_no_key"),
        (rest(b.data, Key(77)), "nicmem_foreign_key"),
        (rest(Addr(u64::MAX), b.ours.key), "nicmem_out_of_bounds"),
    ] {
        b.write(&descriptor, [0; 8]);
        let (sent, reads) = (b.wire.sent.len(), b.host.reads.len());
        let before = b.engine.counters().refused.clone();
        b.run();
        let refused = b.engine.counters().refused.since(&before);
        assert_eq!(refused.causes(), [(cause, 1)]);
        assert_eq!(b.wire.sent.len(), sent, "{cause}: something was sent");
        // The descriptor was read, and nothing else.
        assert_eq!(b.host.reads.len(), reads + 1, "{cause}");
    }
    b.write(&good, [0; 8]);
    b.run();
    assert_eq!(b.wire.sent[0].bytes, [[0x33; 64].as_slice(), &[0x11; 1_000]].concat());
}

#[test]
fn a_header_in_the_descriptor_needs_no_read_of_its_own() {
    let mut b = bench(&spec(), true);
    let line = [0x0807_0605_0403_0201u64; 8];
    let mut inlined = TxDescriptor { inline: true, ..b.split() };
    // Whatever stands there: it is not an address.
    inlined.head.at = Addr(u64::MAX);
    inlined.head.len = 60;
    b.write(&inlined, line);
    b.run();
    let expected = [&bytemuck::bytes_of(&line)[..60], &[0x11; 1_000]].concat();
    assert_eq!(b.wire.sent[0].bytes, expected);
    assert_eq!(b.host.reads, [128, 1_000]);
    inlined.head.len = 65;
    b.write(&inlined, line);
    b.run();
    assert_eq!(b.engine.counters().refused.causes(), [("bad_tx_descriptor", 1)]);
}

#[test]
fn a_ring_without_room_for_headers_takes_none_for_inlined() {
    let mut b = bench(&spec(), false);
    let mut lies = TxDescriptor { inline: true, ..b.split() };
    lies.head.at = Addr(u64::MAX);
    b.write(&lies, [0; 8]);
    b.run();
    assert_eq!(b.engine.counters().refused.total(), 1);
    assert!(b.wire.sent.is_empty());
}

#[test]
fn payload_in_the_nic_is_done_when_it_is_sent_and_fills_no_buffer() {
    let small = NicSpec { tx_buffer: Bytes(2_000), ..spec() };
    let mut b = bench(&small, false);
    for _ in 0..30 {
        b.write(&b.split(), [0; 8]);
    }
    b.run();
    // 30 headers are less than 2000 bytes; with their payload two frames were more.
    assert_eq!(b.engine.counters().deschedules, 0);
    let last = b.wire.sent.last().unwrap().last_bit;
    assert!(last > READ + READ);
    assert_eq!(b.host.published.last().map(|&(at, _, value)| (at, value)), Some((last, 30)));
}
