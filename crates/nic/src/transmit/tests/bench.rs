//! A transmit engine with its rings, whose descriptors a test writes itself.

use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::{Bytes, Time};

use crate::mock::{MockHost, spec};
use crate::stage::Chain;
use crate::transmit::{Bridged, Departure, Egress, TransmitEngine, TxDescriptor, TxRing};
use crate::{NicSpec, Segment, TxOffload};

/// Bytes of payload memory.
pub const DATA_BYTES: usize = 64 << 10;

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When its read was issued.
    pub issued: Time,
    pub last_bit: Time,
    pub stamp: Time,
    pub left: TxOffload,
    pub bytes: Vec<u8>,
}

/// The other end of the wire.
#[derive(Default)]
pub struct Wire {
    now: Time,
    pub sent: Vec<Sent>,
}

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.sent.push(Sent {
            issued: self.now,
            last_bit: departure.last_bit,
            stamp: departure.stamp,
            left: departure.left,
            bytes: departure.pieces.concat(),
        });
    }

    fn bridge(&mut self, _frame: Bridged) {}
}

pub struct Bench {
    pub engine: TransmitEngine,
    pub rings: Vec<TxRing>,
    pub host: MockHost,
    pub wire: Wire,
    /// Payload, byte i of which is i modulo 251.
    pub data: Addr,
    pub memory_end: Addr,
    /// Next position of each ring.
    pub tails: Vec<u64>,
}

impl Bench {
    /// An engine of [`spec`] with `rings` rings of `entries`.
    pub fn new(rings: usize, entries: usize) -> Bench {
        Bench::with(&spec(), rings, entries, 0)
    }

    /// The same with another NIC, and rings that count from `first`.
    pub fn with(spec: &NicSpec, rings: usize, entries: usize, first: u64) -> Bench {
        let mut space = AddressSpace::default();
        let data = space.data(DATA_BYTES as u64, 4096);
        let ring = |_| TxRing { first, ..TxRing::new(&mut space, entries).unwrap() };
        let rings: Vec<TxRing> = (0..rings).map(ring).collect();
        let memory_end = Addr(space.end());
        let mut host = MockHost::new(&space);
        for (index, byte) in host.memory.bytes_mut(data, DATA_BYTES).iter_mut().enumerate() {
            *byte = (index % 251) as u8;
        }
        Bench {
            engine: TransmitEngine::new(spec, &rings, memory_end),
            tails: vec![first; rings.len()],
            rings,
            host,
            wire: Wire::default(),
            data,
            memory_end,
        }
    }

    /// A descriptor of the first `len` bytes of payload; the stamp says which it is.
    pub fn frame(&self, len: u32, stamp: u64) -> TxDescriptor {
        TxDescriptor { head: Segment { at: self.data, len }, stamp: Time::from_ps(stamp), ..TxDescriptor::default() }
    }

    /// Writes a descriptor to the tail of ring `ring`, without telling the engine.
    pub fn write(&mut self, ring: usize, descriptor: &TxDescriptor) {
        let at = self.rings[ring].descriptor(self.tails[ring]);
        self.host.memory.store(at, descriptor.encode());
        self.tails[ring] += 1;
    }

    /// Tells the engine of everything that was written.
    pub fn doorbells(&mut self) {
        for (number, &tail) in self.tails.iter().enumerate() {
            assert!(self.engine.doorbell(&mut self.host, number, tail));
        }
    }

    /// Lets the engine work until nothing is due before `until`.
    pub fn run_until(&mut self, until: Time) {
        for _ in 0..1_000_000 {
            self.wire.now = self.host.now;
            let next = self.engine.advance(&mut self.host, &mut self.wire, &mut Chain::new(crate::PortId(0)));
            if next == Time::NEVER || next > until {
                return;
            }
            assert!(next >= self.host.now, "{next} is in the past");
            self.host.now = next;
        }
        panic!("no progress at {}", self.host.now);
    }

    /// Lets the engine do all there is to do.
    pub fn run(&mut self) {
        self.run_until(Time::from_ms(10));
        assert_eq!(self.engine.inside(), 0, "frames left in rings");
    }

    /// The stamps of the frames that left, in order.
    pub fn stamps(&self) -> Vec<u64> {
        self.wire.sent.iter().map(|sent| sent.stamp.as_ps()).collect()
    }

    /// Values and times of the reports of ring `ring`.
    pub fn reports(&self, ring: usize) -> Vec<(Time, u64)> {
        let of_ring = |&&(_, at, _): &&(Time, Addr, u64)| at == self.rings[ring].done;
        let reports = self.host.published.iter().filter(of_ring);
        reports.map(|&(time, _, value)| (time, value)).collect()
    }

    /// The most bytes that were in the internal buffer at once.
    pub fn buffered_most(&self) -> Bytes {
        let at = |now: Time| {
            let sent = self.wire.sent.iter();
            let inside = sent.filter(|frame| frame.issued <= now && frame.last_bit > now);
            inside.map(|frame| Bytes(frame.bytes.len() as u64)).sum::<Bytes>()
        };
        self.wire.sent.iter().map(|frame| at(frame.issued)).max().unwrap_or(Bytes(0))
    }
}
