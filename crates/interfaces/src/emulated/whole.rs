//! A NIC that cores play whole: one takes frames off the physical ring and runs the NIC on them, another reads what workers
//! send. Both copy: what leaves the NIC is new bytes in another place.

use nicforge_nic::transmit::{Bridged, Departure, Egress, TransmitEngine, TxRing};
use nicforge_nic::{Arriving, Nic, NicSpec, PortId, ReceiveHalf, data_of};
use nicforge_platform::{Addr, AddressSpace, Cpu, Dma, Part};
use nicforge_units::{BitRate, Bytes, CACHE_LINE_BYTES, Cycles, Time};

use super::core_dma::CoreDma;
use crate::Plan;

/// Frames that wait for the physical NIC, at most: entries of its transmit ring (FlexNIC supplement).
pub const TRANSMIT_ENTRIES: u64 = 512;
/// Bytes of the buffer of such an entry. A longer frame costs no more than this.
const ENTRY_BYTES: u64 = 2048;

/// The NIC, and what its cores have of frames that leave.
pub struct Whole<C: Cpu + 'static> {
    /// The NIC, which has no wire.
    pub nic: Nic<CoreDma<C>>,
    spec: NicSpec,
    /// Doorbells of transmit rings that the sending core has not read yet, each once, with the value.
    bells: Vec<(u32, u64)>,
    /// A core's cycles for a packet in the NIC's program, and for an entry of the physical NIC.
    program: Cycles,
    entry: Cycles,
    /// Where frames lie that leave, and how many there were.
    buffers: Addr,
    left: u64,
    frame: Vec<u8>,
}

/// Nothing that cores play takes time of a wire or a pipeline: their own is what counts.
fn spec(plan: &Plan) -> NicSpec {
    NicSpec {
        port: PortId(plan.device),
        rate: BitRate::from_gbps(1e6),
        wire_overhead: Bytes(0),
        rx_fifo: Bytes(1 << 40),
        rx_pipeline: Time::ZERO,
        tx_pipeline: Time::ZERO,
        tx_buffer: Bytes(1 << 40),
        tx_resume_room: Bytes(0),
        tx_deschedule_reads: 0.0,
        descriptor_read: plan.descriptor_read,
    }
}

/// Frames on their way to the physical NIC.
struct Out(Vec<Bridged>);

impl Egress for Out {
    fn depart(&mut self, departure: Departure<'_>) {
        let Departure { port, pieces, stamp, .. } = departure;
        self.0.push(Bridged { port, bytes: pieces.concat(), stamp, ready: Time::ZERO });
    }

    fn bridge(&mut self, frame: Bridged) {
        self.0.push(frame);
    }
}

impl<C: Cpu + 'static> Whole<C> {
    /// The NIC with receive half `half`; its program costs cores `program` for a packet.
    pub fn new(
        half: Box<dyn ReceiveHalf<CoreDma<C>>>,
        plan: &Plan,
        program: Cycles,
        space: &mut AddressSpace,
    ) -> Whole<C> {
        let spec = spec(plan);
        Whole {
            nic: Nic::new(&spec, half, &[], Addr(0)),
            spec,
            bells: Vec::new(),
            program,
            entry: plan.costs.tx_packet,
            buffers: space.data(TRANSMIT_ENTRIES * ENTRY_BYTES, CACHE_LINE_BYTES),
            left: 0,
            frame: Vec::new(),
        }
    }

    /// It serves `rings`, whose descriptors name memory below `memory_end`.
    pub fn serve(&mut self, rings: &[TxRing], memory_end: Addr) {
        self.nic.transmit = TransmitEngine::new(&self.spec, rings, memory_end);
    }

    /// Doorbell `index` of a transmit ring was rung.
    pub(super) fn ring(&mut self, index: u32, value: u64) {
        match self.bells.iter_mut().find(|(rung, _)| *rung == index) {
            Some((_, before)) => *before = value,
            None => self.bells.push((index, value)),
        }
    }

    /// Doorbells rang since the sending core looked.
    pub fn rang(&self) -> bool {
        !self.bells.is_empty()
    }

    /// Runs the NIC on `frame`, which lies in `mbuf`. Whatever becomes of it the NIC counts.
    pub(super) fn receive(&mut self, way: &mut CoreDma<C>, mbuf: Addr, frame: &Arriving<'_>) {
        self.frame.clear();
        self.frame.extend_from_slice(way.cpu.bytes(data_of(mbuf), frame.bytes.len()));
        way.cpu.work(self.program);
        self.nic.receive(way, &self.frame, frame.stamp);
    }

    /// The sending core reads doorbells, and what workers send.
    pub fn send(&mut self, way: &mut CoreDma<C>, most: u64, into: &mut Vec<Bridged>) -> Time {
        for (index, value) in std::mem::take(&mut self.bells) {
            self.nic.write_register(way, index, value);
        }
        self.flush(way, most, into)
    }

    /// Up to `most` frames that the NIC has to send go `into` the physical one. Returns when there may be more to do.
    pub fn flush(&mut self, way: &mut CoreDma<C>, most: u64, into: &mut Vec<Bridged>) -> Time {
        let part = way.cpu.enter(Part::Driver);
        let first = into.len();
        let mut out = Out(std::mem::take(into));
        let due = loop {
            let (before, served) = (out.0.len(), self.nic.transmit.served());
            if (before - first) as u64 >= most {
                break way.now();
            }
            let next = self.nic.advance(way, &mut out);
            way.cpu.work(Cycles(self.program.0 * (self.nic.transmit.served() - served)));
            for frame in &mut out.0[before..] {
                let at = self.buffers + self.left % TRANSMIT_ENTRIES * ENTRY_BYTES;
                let len = frame.bytes.len().min(ENTRY_BYTES as usize);
                way.cpu.bytes_mut(at, len).copy_from_slice(&frame.bytes[..len]);
                way.cpu.work(self.entry);
                self.left += 1;
                frame.ready = way.now();
            }
            if next > way.now() {
                break next;
            }
        };
        *into = out.0;
        way.cpu.enter(part);
        due
    }
}
