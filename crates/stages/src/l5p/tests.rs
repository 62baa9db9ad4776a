//! TLS from one NIC's send ring through its stage, over a wire that loses, to another NIC's completions.

use nicforge_l5p::context::{Context, ContextId, FlowKey, Start};
use nicforge_l5p::driver::{Layer5, TxDriver};
use nicforge_l5p::engine::{Descriptor, EngineConfig, Outcome};
use nicforge_l5p::host::{HostBuffers, Piece};
use nicforge_l5p::port::{Reports, Segment};
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::reader::RecordReader;
use nicforge_l5p::tls::record::{Cipher, ContentType, Version};
use nicforge_l5p::tls::writer::RecordWriter;
use nicforge_nic::mock::{MockHost, spec};
use nicforge_nic::transmit::{Bridged, Departure, Egress, TransmitDriver, TxRing};
use nicforge_nic::{
    Arriving, DriverCosts, DropCause, Nic, Packet, PortId, Queues, ReceiveHalf, RxFlags, Segment as Run, TxOffload,
    Waiting, registers,
};
use nicforge_platform::{Addr, AddressSpace, Cpu, Register};
use nicforge_units::{Bytes, Time};
use nicforge_wire::headers::{EthernetView, Ipv4View, TcpFlags, TcpView, ethertype, ip_protocol};
use nicforge_wire::{checksum, parse_frame};

use super::{Command, L5p, L5pSpec, mark, report};

const FLOWS: u16 = 12;
const SEGMENT: usize = 1000;
/// Host memory for messages.
const ARENA: u64 = 1 << 20;
const BUFFER: u64 = 2048;

#[derive(Default)]
struct Completions(Vec<(Vec<u8>, RxFlags, u64)>);

impl Queues for Completions {
    fn queues(&self) -> u16 {
        1
    }

    fn waiting(&self, _queue: u16) -> Waiting {
        Waiting::default()
    }
}

impl ReceiveHalf<MockHost> for Completions {
    fn receive(&mut self, _dma: &mut MockHost, frame: &Arriving<'_>) -> Result<(), DropCause> {
        self.0.push((frame.bytes.to_vec(), frame.flags, frame.mark));
        Ok(())
    }

    fn write_register(&mut self, _: &mut MockHost, _: u32, _: u64) -> bool {
        false
    }
}

#[derive(Default)]
struct Wire(Vec<Vec<u8>>);

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.0.push(departure.pieces.concat());
    }

    fn bridge(&mut self, _frame: Bridged) {}
}

/// A host with a NIC whose stage has room for eight contexts.
struct Side {
    nic: Nic<MockHost>,
    host: MockHost,
    transmit: TransmitDriver,
    buffers: Addr,
    arena: u64,
    wire: Wire,
}

impl HostBuffers for Side {
    fn place(&mut self, bytes: &[u8]) -> Piece {
        let piece = Piece { address: self.arena, bytes: bytes.len() as u32 };
        self.host.memory.bytes_mut(Addr(self.arena), bytes.len()).copy_from_slice(bytes);
        self.arena += bytes.len() as u64;
        piece
    }
}

impl Side {
    fn new() -> Side {
        let mut space = AddressSpace::default();
        let ring = TxRing::new(&mut space, 4096).unwrap();
        let doorbell = Register { device: 0, index: registers::TRANSMIT };
        let transmit = TransmitDriver::new(&mut space, ring, doorbell, DriverCosts::default());
        let table = space.data(64 * 208, 64);
        let (buffers, arena) = (space.data(4096 * BUFFER, 64), space.data(ARENA, 64));
        let stage = L5p::new(L5pSpec {
            table,
            contexts: 64,
            memory: Bytes(8 * 208),
            fetches: 2,
            delay: Time::from_ns(50),
            engine: EngineConfig::default(),
        });
        let nic = Nic::new(&spec(), Box::new(Completions::default()), &[ring], Addr(space.end())).with_stage(stage);
        let host = MockHost::new(&space);
        let mut side = Side { nic, host, transmit, buffers, arena: arena.0, wire: Wire::default() };
        side.register(4, arena.0);
        side.register(5, ARENA);
        side
    }

    fn register(&mut self, index: u32, value: u64) {
        assert!(self.nic.write_register(&mut self.host, registers::STAGES + index, value));
    }

    fn run(&mut self) {
        loop {
            let next = self.nic.advance(&mut self.host, &mut self.wire).min(self.nic.held_due());
            if next == Time::NEVER {
                return;
            }
            self.host.now = self.host.now.max(next);
            let now = self.host.now;
            self.nic.receive_held(&mut self.host);
            self.host.now = now;
        }
    }

    /// Posts a frame to the send ring.
    fn post(&mut self, frame: &[u8], mark: u64) {
        let at = self.buffers + self.transmit.pushed() % 4096 * BUFFER;
        self.host.memory.bytes_mut(at, frame.len()).copy_from_slice(frame);
        let packet = Packet {
            mbuf: at,
            tail: Addr(0),
            references: Addr(0),
            head: Run { at, len: frame.len() as u32 },
            rest: Run::default(),
            port: PortId(1),
            rss_hash: 0,
            flags: RxFlags::default(),
            mark,
            offload: TxOffload::default(),
            stamp: Time::ZERO,
        };
        self.transmit.push(&mut self.host.memory, &packet, true).unwrap();
        let pushed = self.transmit.pushed();
        self.nic.write_register(&mut self.host, registers::TRANSMIT, pushed);
        self.run();
    }

    fn command(&mut self, command: &Command) {
        self.post(&command.to_frame().unwrap(), 0);
    }

    fn arrives(&mut self, frame: &[u8]) -> Vec<(Vec<u8>, RxFlags, u64)> {
        // Long after the frame before: its context has come, and it has left the FIFO.
        self.host.now += Time::from_us(20);
        let now = self.host.now;
        self.nic.receive(&mut self.host, frame, now);
        self.host.now = now;
        self.run();
        let half: &mut dyn std::any::Any = &mut *self.nic.receive;
        std::mem::take(&mut half.downcast_mut::<Completions>().unwrap().0)
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.nic.stages.counters();
        counters.iter().find(|(known, _)| *known == name).unwrap().1
    }
}

fn frame(port: u16, seq: Seq, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + 20];
    frame.extend_from_slice(payload);
    EthernetView::new(&mut frame[..]).unwrap().set_ethertype(ethertype::IPV4);
    let mut ip = Ipv4View::init(&mut frame[14..], 20).unwrap();
    ip.set_total_len((40 + payload.len()) as u16);
    ip.set_time_to_live(64);
    ip.set_protocol(ip_protocol::TCP);
    ip.set_source([10, 0, 0, 1].into());
    ip.set_destination([10, 0, 0, 2].into());
    let mut tcp = TcpView::init(&mut frame[34..], 20).unwrap();
    tcp.set_source_port(port);
    tcp.set_destination_port(443);
    tcp.set_sequence(seq.0);
    tcp.set_flags(TcpFlags::ACK);
    tcp.set_window(1000);
    let summary = parse_frame(&frame).unwrap();
    checksum::fill(&mut frame, &summary, true, true);
    frame
}

/// One connection: its sender's record layer and driver, its receiver's reader.
struct Connection {
    port: u16,
    id: ContextId,
    writer: RecordWriter,
    driver: TxDriver,
    reader: RecordReader,
    reports: Reports,
    plain: Vec<u8>,
    start: Seq,
    read: u8,
}

impl Connection {
    fn open(port: u16, sender: &mut Side, receiver: &mut Side) -> Connection {
        let cipher = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305][usize::from(port % 3)];
        let keys = TlsKeys { version: Version::Tls13, cipher, key: [port as u8; 32], iv: [7; 12] };
        let start = Start { tcpsn: Seq(u32::MAX - u32::from(port) * 300), number: 0 };
        let id = ContextId(u32::from(port));
        let flow = FlowKey::between(([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 443).into());
        for (side, direction) in [(&mut *sender, Direction::Transmit), (&mut *receiver, Direction::Receive)] {
            let tls = registry::find("tls").unwrap();
            let context = Context::new(id, flow, tls, direction, start, keys.state());
            side.command(&Command::Create(Box::new(context)));
        }
        Connection {
            port,
            id,
            writer: RecordWriter::new(&keys, start),
            driver: TxDriver::new(start, keys.state(), 1500),
            reader: RecordReader::new(&keys, start, id),
            reports: Reports::new(start.tcpsn),
            plain: Vec::new(),
            start: start.tcpsn,
            read: 0,
        }
    }

    fn write(&mut self, sender: &mut Side, fill: u8) {
        let data = sender.place(&vec![fill; 2900]);
        let pieces = self.writer.write(sender, ContentType::DATA, data, 0).unwrap();
        for piece in pieces {
            let bytes = sender.host.memory.bytes(Addr(piece.address), piece.bytes as usize);
            self.plain.extend_from_slice(bytes);
        }
    }

    /// Sends a segment; returns what leaves.
    fn send(&mut self, sender: &mut Side, number: usize) -> Vec<Vec<u8>> {
        let from = number * SEGMENT;
        let to = (from + SEGMENT).min(self.plain.len());
        for descriptor in self.driver.send(&self.writer, self.start.plus(from), &self.plain[from..to]) {
            match descriptor {
                Descriptor::Packet { seq, payload } => sender.post(&frame(self.port, seq, &payload), mark(self.id)),
                special => sender.command(&Command::Execute(self.id, special)),
            }
        }
        std::mem::take(&mut sender.wire.0)
    }

    /// A frame reaches the receiver, whose TCP keeps what is in order only.
    fn receive(&mut self, receiver: &mut Side, bytes: &[u8]) -> Outcome {
        let came = receiver.arrives(bytes);
        let Some((bytes, flags, mark)) = came.into_iter().next() else {
            panic!("the frame comes through: {:?}", receiver.nic.drops().causes());
        };
        let segment = Segment::find(&bytes).unwrap();
        assert!(segment.is_intact(&bytes), "checksums are right after processing");
        let received = report(flags, mark);
        if let Some(tcpsn) = received.resync {
            self.reader.l5o_resync_rx_req(tcpsn);
        }
        if segment.seq == self.reports.next() {
            self.reports.note(segment.seq, segment.payload.len(), &received);
            for stretch in self.reports.take(segment.payload.len()) {
                self.reader.push(&bytes[segment.payload.clone()], &stretch.received);
            }
        }
        while let Some(record) = self.reader.read().unwrap() {
            assert_eq!(record.data, vec![self.read; 2900], "record {} of {}", self.read, self.port);
            self.read += 1;
        }
        for answer in self.reader.take_answers() {
            receiver.register(0, self.id.0.into());
            receiver.register(1, answer.tcpsn.0.into());
            match answer.number {
                Some(number) => receiver.register(2, number),
                None => receiver.register(3, 0),
            }
        }
        received.outcome
    }
}

#[test]
fn records_of_many_flows_pass_two_nics_with_few_contexts() {
    let (mut sender, mut receiver) = (Side::new(), Side::new());
    let mut flows: Vec<Connection> =
        (0..FLOWS).map(|port| Connection::open(port, &mut sender, &mut receiver)).collect();
    for flow in &mut flows {
        (0..8).for_each(|fill| flow.write(&mut sender, fill));
    }
    let segments = flows[0].plain.len().div_ceil(SEGMENT);
    for number in 0..segments {
        for flow in &mut flows {
            let frames = flow.send(&mut sender, number);
            assert_eq!(frames.len(), 1);
            // It holds a header, so that lengths alone do not lead on.
            let is_lost = number == 5 && flow.port % 2 == 0;
            if !is_lost {
                assert_eq!(flow.receive(&mut receiver, &frames[0]), Outcome::Offloaded);
                continue;
            }
            // The segments behind it come first, then it is sent again.
            for later in 6..10 {
                let frames = flow.send(&mut sender, later);
                flow.receive(&mut receiver, &frames[0]);
            }
            for again in 5..10 {
                let frames = flow.send(&mut sender, again);
                assert_ne!(flow.receive(&mut receiver, &frames[0]), Outcome::Failed);
            }
        }
        if number == 5 {
            break;
        }
    }
    // From here on, the flows that lost a segment are resynchronised and offload again.
    let mut last = vec![Outcome::NotOffloaded; flows.len()];
    for number in 6..segments {
        for (flow, last) in flows.iter_mut().zip(&mut last) {
            if flow.reports.next() != flow.start.plus(number * SEGMENT) {
                continue;
            }
            let frames = flow.send(&mut sender, number);
            *last = flow.receive(&mut receiver, &frames[0]);
        }
    }
    assert!(flows.iter().all(|flow| flow.read == 8), "{:?}", flows.iter().map(|flow| flow.read).collect::<Vec<_>>());
    assert!(last.iter().all(|outcome| *outcome == Outcome::Offloaded), "{last:?}");
    assert!(sender.counter("l5p_context_evictions") > 20 && receiver.counter("l5p_context_evictions") > 20);
    assert_eq!((sender.counter("l5p_tx_refused"), sender.counter("l5p_commands_refused")), (0, 0));
    assert!(receiver.counter("l5p_rx_resync_res_ok") > 0);
    for flow in &flows {
        sender.command(&Command::Destroy(flow.id));
        receiver.command(&Command::Destroy(flow.id));
    }
    assert_eq!(receiver.counter("l5p_commands_refused"), 0);
    // Without a context the frame comes through as it is.
    let came = receiver.arrives(&frame(3, Seq(5), b"anything"));
    assert_eq!((came[0].2, report(came[0].1, 0).outcome), (0, Outcome::NotOffloaded));
}

#[test]
fn commands_that_lie_are_counted_and_packets_without_keys_do_not_leave() {
    let (mut sender, mut receiver) = (Side::new(), Side::new());
    let mut flow = Connection::open(3, &mut sender, &mut receiver);
    flow.write(&mut sender, 0);
    // A dump outside of the memory that is registered, a context that is none, noise.
    let dump = |address| Command::Execute(flow.id, Descriptor::Dump(Piece { address, bytes: 100 }));
    sender.command(&dump(0));
    sender.command(&dump(u64::MAX));
    sender.command(&Command::Destroy(ContextId(64)));
    // Nothing is within a context that sends, or within itself.
    sender.command(&Command::Stack(flow.id, ContextId(64)));
    sender.command(&Command::Stack(flow.id, flow.id));
    for kind in 0..=255 {
        let mut noise = Command::Destroy(ContextId(u32::MAX)).to_frame().unwrap();
        noise[14] = kind;
        sender.post(&noise, 0);
    }
    assert_eq!(sender.counter("l5p_commands_refused"), 5 + 256);
    // The context has no place any more: what software prepared must not reach the wire.
    sender.post(&frame(3, flow.start, &flow.plain[..500]), mark(flow.id));
    assert!(sender.wire.0.is_empty());
    assert_eq!(sender.nic.drops().causes(), [("l5p_refused", 1)]);
    // The driver brings it back.
    flow.driver.lose_context();
    let frames = flow.send(&mut sender, 0);
    assert_eq!(flow.receive(&mut receiver, &frames[0]), Outcome::Offloaded);
}

#[test]
fn it_passes_what_every_stage_passes() {
    crate::suite::check::<super::L5pKind>();
}
