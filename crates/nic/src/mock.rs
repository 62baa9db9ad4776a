//! A host for tests of single parts: plain memory, and reads that take a stated time.

use nicforge_platform::{Addr, AddressSpace, Cpu, Dma, FlatCpu, Vector};
use nicforge_units::{BitRate, Bytes, Time};
use nicforge_wire::headers::{EthernetView, Ipv4View, UdpView, ethertype, ip_protocol};
use nicforge_wire::{checksum, parse_frame};

use crate::{Arriving, DropCause, NicSpec, PortId, Queues, ReceiveHalf, Waiting};

/// How long the mock's reads take.
pub const READ: Time = Time::from_us(1);

/// A receive half that counts frames and keeps none.
#[derive(Default)]
pub struct CountingHalf {
    /// Frames that came to it.
    pub frames: u64,
}

impl Queues for CountingHalf {
    fn queues(&self) -> u16 {
        1
    }

    fn waiting(&self, _queue: u16) -> Waiting {
        Waiting::default()
    }
}

impl<D: Dma> ReceiveHalf<D> for CountingHalf {
    fn receive(&mut self, _dma: &mut D, _frame: &Arriving<'_>) -> Result<(), DropCause> {
        self.frames += 1;
        Ok(())
    }

    fn write_register(&mut self, _dma: &mut D, _index: u32, _value: u64) -> bool {
        false
    }
}

/// Memory, and what the device did to it.
pub struct MockHost {
    /// Its memory.
    pub memory: FlatCpu,
    /// The cursor's time.
    pub now: Time,
    /// How long the next reads take.
    pub read: Time,
    /// Reads by their number of bytes.
    pub reads: Vec<usize>,
    /// When which word was published.
    pub published: Vec<(Time, Addr, u64)>,
}

impl MockHost {
    /// Memory for `space`, at the beginning of time.
    pub fn new(space: &AddressSpace) -> MockHost {
        MockHost {
            memory: FlatCpu::new(space.end()),
            now: Time::ZERO,
            read: READ,
            reads: Vec::new(),
            published: Vec::new(),
        }
    }
}

impl Dma for MockHost {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.now = self.read_ahead(from, into);
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        into.copy_from_slice(self.memory.bytes(from, into.len()));
        self.reads.push(into.len());
        self.now + self.read
    }

    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.memory.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
    }

    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        self.write(to, bytes);
        let word = self.memory.load(to + (bytes.len() as u64 - 8));
        self.published.push((self.now, to, word));
    }

    fn interrupt(&mut self, _vector: Vector) {}

    fn wait_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    fn now(&self) -> Time {
        self.now
    }
}

/// A NIC of round numbers: a byte takes 100 ps on the wire, each pipeline 100 ns.
pub fn spec() -> NicSpec {
    NicSpec {
        port: PortId(1),
        rate: BitRate::from_gbps(80.0),
        wire_overhead: Bytes(20),
        rx_fifo: Bytes(3_000),
        rx_pipeline: Time::from_ns(100),
        tx_pipeline: Time::from_ns(100),
        tx_buffer: Bytes(16_000),
        tx_resume_room: Bytes(4_000),
        tx_deschedule_reads: 1.0,
        descriptor_read: Bytes(512),
    }
}

/// A UDP frame with `payload` bytes of payload and right checksums.
pub fn udp_frame(payload: usize, source_port: u16) -> Vec<u8> {
    let mut frame = vec![0x5a; 14 + 20 + 8 + payload];
    let mut ethernet = EthernetView::new(&mut frame[..]).unwrap();
    ethernet.set_ethertype(ethertype::IPV4);
    let mut ip = Ipv4View::init(&mut frame[14..], 20).unwrap();
    ip.set_total_len((28 + payload) as u16);
    ip.set_fragment(true, false, 0);
    ip.set_time_to_live(64);
    ip.set_protocol(ip_protocol::UDP);
    ip.set_source([10, 0, 0, 1].into());
    ip.set_destination([10, 0, 0, 2].into());
    let mut udp = UdpView::new(&mut frame[34..]).unwrap();
    udp.set_source_port(source_port);
    udp.set_destination_port(80);
    udp.set_length((8 + payload) as u16);
    let summary = parse_frame(&frame).unwrap();
    checksum::fill(&mut frame, &summary, true, true);
    frame
}
