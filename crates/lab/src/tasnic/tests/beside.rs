//! The pipeline beside the stack that packetdrill's scripts drive: the same segments and calls for both, and both send
//! the same.

use std::net::Ipv4Addr;

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::TxOffload;
use nicforge_platform::sim::{DmaPort, Host as SimHost, Lent};
use nicforge_platform::{AddressSpace, Owner};
use nicforge_tcp::Config;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::fast::{Flow, FlowFlags};
use nicforge_tcp::options::Options;
use nicforge_tcp::queue::{ENTRY_LEN, Entry, FromApplication, ToApplication};
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::segment::{Ecn, Flags, Header};
use nicforge_tcp::seq::Seq;
use nicforge_tcp::stack::{Address, ConnectionId, FourTuple, HostConfig, Stack};
use nicforge_units::Time;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::machine;
use crate::settings::{Catalogue, Settings};
use crate::tas::frame::{parse_bytes, write_headers};
use crate::tas::queue::Place;
use crate::tas::rings::{Ring, SharedFlow};
use crate::tasnic::contexts::{Context, Contexts, freed_register, written_register};
use crate::tasnic::flow::NicFlow;
use crate::tasnic::nic::{Event, Nic, NicPlan};
use crate::tasnic::slow_queues::{Command, SlowQueues};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 5000;
const PEER_PORT: u16 = 40_000;
const RING: u32 = 16 << 10;
const MSS: u16 = 1448;
/// The peer's initial sequence number: its stream wraps.
const PEER_FIRST: Seq = Seq(u32::MAX - 20_000);
/// Of the peer's segments, so that none overlaps another in part.
const PIECE: u32 = 500;
const WINDOW: u16 = 60_000;
const SETTLED: Time = Time::from_us(60);

fn byte(at: u32) -> u8 {
    (at.wrapping_mul(0x9E37_79B1) >> 24) as u8
}

fn frame(header: &Header, payload: &[u8]) -> Frame {
    let (local, remote) = (PEER.into(), OURS.into());
    let tuple = FourTuple { local, remote, local_port: header.source_port, remote_port: header.destination_port };
    let mut bytes = vec![0; ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + header.emitted_len()];
    write_headers(&mut bytes, &tuple, header, Ecn::NotCapable, 1);
    bytes.extend_from_slice(payload);
    let mut frame = Frame::from(bytes);
    frame.complete(TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() });
    frame
}

/// A segment that was sent. PSH, and what a pure acknowledgment has as its own number, are free.
struct Sent {
    seq: u32,
    ack: u32,
    payload: Vec<u8>,
    fin: bool,
}

impl Sent {
    fn of(frame: &[u8]) -> Sent {
        let parsed = parse_bytes(frame).unwrap();
        let payload = &frame[parsed.payload_at as usize..][..parsed.header.payload_len as usize];
        let header = parsed.header;
        Sent { seq: header.seq.0, ack: header.ack.0, payload: payload.to_vec(), fin: header.flags.has(Flags::FIN) }
    }
}

/// Number, payload, whether it has a FIN.
type Numbered = (u32, Vec<u8>, bool);

/// The segments with data or a FIN, and the last acknowledgment.
fn essence(sent: Vec<Sent>) -> (Vec<Numbered>, Option<u32>) {
    let ack = sent.last().map(|sent| sent.ack);
    let numbered = sent.into_iter().filter(|sent| sent.fin || !sent.payload.is_empty());
    (numbered.map(|sent| (sent.seq, sent.payload, sent.fin)).collect(), ack)
}

/// A connection of the stack.
struct OfStack {
    stack: Stack<HeapBuffers>,
    id: Option<ConnectionId>,
}

impl OfStack {
    /// Opened by the peer.
    fn open(seed: u8, now: Time) -> OfStack {
        let config = Config {
            timestamps: false,
            algorithm: nicforge_tcp::congestion::Algorithm::None,
            initial_window: 1000,
            segmentation_offload: false,
            ..Config::paper()
        };
        let host = HostConfig::ip(vec![Address::new(OURS, 8)]);
        let mut stack = Stack::new(host, config, HeapBuffers, [seed; 16]);
        let tuning =
            Tuning { no_delay: true, receive_buffer: 2 * RING, send_buffer: RING, ..Tuning::new(stack.config()) };
        let listener = stack.listen(None, PORT, 4, tuning, false).unwrap();
        let mut of = OfStack { stack, id: None };
        let options = Options { mss: Some(MSS), ..Options::default() };
        of.hears(&frame(&Header { flags: Flags::SYN, options, ..said(PEER_FIRST, Seq(0)) }, &[]), now);
        let syn_ack = of.sends(now).remove(0);
        of.hears(&frame(&said(PEER_FIRST + 1, Seq(syn_ack.seq) + 1), &[]), now);
        of.id = of.stack.accept(listener);
        of
    }

    fn hears(&mut self, frame: &Frame, now: Time) {
        self.stack.receive(&frame.bytes()[ETHERNET_HEADER_LEN..], now);
    }

    fn sends(&mut self, now: Time) -> Vec<Sent> {
        let mut out = [0; 2048];
        let mut sent = Vec::new();
        while let Some(len) = self.stack.transmit(now, &mut out[ETHERNET_HEADER_LEN..]) {
            sent.push(Sent::of(&out[..ETHERNET_HEADER_LEN + len]));
        }
        sent
    }

    fn id(&self) -> ConnectionId {
        self.id.unwrap()
    }

    fn flow(&self) -> &Flow {
        &self.stack.connection(self.id()).unwrap().flow
    }
}

fn said(seq: Seq, ack: Seq) -> Header {
    let (source_port, destination_port) = (PEER_PORT, PORT);
    Header { source_port, destination_port, seq, ack, flags: Flags::ACK, window: WINDOW, ..Header::default() }
}

/// The same connection on a NIC, with an application that does as it is told.
struct OfNic {
    nic: Nic,
    machine: Lent<SimHost>,
    port: Lent<DmaPort>,
    rings: SharedFlow,
    inbound: Place,
    outbound: Place,
    /// Entries written and freed, and places in the rings.
    entries: (u32, u32),
    read_at: u32,
    write_at: u32,
    /// Received bytes that the application was told of.
    told: u32,
    now: Time,
}

impl OfNic {
    fn new(seed: u64, state: &Flow, jitter_us: f64) -> OfNic {
        let machine = machine();
        let (npu, hardware) = (machine.npu.as_ref().unwrap(), &machine.hardware);
        let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
            .with("tasnic_jitter_us", jitter_us)
            .with("tasnic_evict_every", 7);
        let mut space = AddressSpace::default();
        let mut ring = || Ring { at: space.data(RING.into(), 4096), len: RING };
        let rings = SharedFlow { receive: ring(), transmit: ring() };
        let inbound = Place::new(&mut space, 64, Owner(1)).unwrap();
        let outbound = Place::new(&mut space, 64, Owner::NOBODY).unwrap();
        let slow = SlowQueues::new(space.control(SlowQueues::BYTES, Owner(0)).unwrap(), Time::from_ns(200));
        let contexts = Contexts::new(vec![Context::new(inbound, outbound)], Time::from_ms(1));
        let plan = NicPlan { npu, nic: &hardware.nic, options: settings.read(), stages: None, pages: None, seed };
        let mut nic = Nic::new(plan, contexts, slow);
        let mut state = *state;
        state.set(FlowFlags::GO_BACK_N | FlowFlags::FAST, true);
        (state.post.window, state.post.context, state.post.opaque) = (0, 0, 0);
        let (local, remote) = (OURS.into(), PEER.into());
        let tuple = FourTuple { local, remote, local_port: PORT, remote_port: PEER_PORT };
        let flow = NicFlow { mss: MSS.into(), ..NicFlow::new(state, tuple, rings, (0, Time::ZERO)) };
        nic.slow.commands.push_back(Command::Install(0, Box::new(flow)));
        nic.take_commands();
        let (machine, port) = (Lent::new(SimHost::new(hardware, &space)), Lent::new(DmaPort::new(&hardware.pcie, 0)));
        let (read_at, write_at, entries, told, now) = (0, 0, (0, 0), 0, Time::ZERO);
        OfNic { nic, machine, port, rings, inbound, outbound, entries, read_at, write_at, told, now }
    }

    /// Time passes until the pipeline is empty; returns what left, in order.
    fn sends(&mut self) -> Vec<Sent> {
        // It may be looking at an idle queue.
        let until = self.now + SETTLED;
        while self.now < until || self.nic.inside() > 0 {
            self.now += SETTLED;
            self.nic.run(&mut self.machine, &mut self.port, self.now);
        }
        self.nic.check().unwrap();
        self.take_news();
        self.nic.sent.drain(..).map(|(_, frame)| Sent::of(frame.bytes())).collect()
    }

    fn take_news(&mut self) {
        loop {
            let slot = self.machine.memory.slice_mut(self.inbound.slot(self.entries.1.into()), ENTRY_LEN);
            let Some(news) = ToApplication::decode((&*slot).try_into().unwrap()).unwrap() else { break };
            slot.fill(0);
            self.entries.1 += 1;
            self.told += news.rx_bump;
        }
        self.nic.npu.at(self.now, Event::Register(freed_register(0), self.entries.1.into()));
    }

    fn tell(&mut self, rx_bump: u32, tx_bump: u32, no_more_data: bool) {
        let entry = FromApplication {
            rx_bump,
            tx_bump,
            bump_seq: self.entries.0 as u16,
            no_more_data,
            ..FromApplication::default()
        };
        let slot = self.outbound.slot(self.entries.0.into());
        self.machine.memory.slice_mut(slot, ENTRY_LEN).copy_from_slice(&entry.encode());
        self.entries.0 += 1;
        self.nic.npu.at(self.now, Event::Register(written_register(0), self.entries.0.into()));
    }

    fn writes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        for piece in self.rings.transmit.pieces(self.write_at, bytes.len() as u32) {
            let (here, behind) = rest.split_at(piece.len as usize);
            self.machine.memory.slice_mut(piece.at, here.len()).copy_from_slice(here);
            rest = behind;
        }
        self.write_at = (self.write_at + bytes.len() as u32) % RING;
        self.tell(0, bytes.len() as u32, false);
    }

    fn reads(&mut self, len: u32) -> Vec<u8> {
        let pieces = self.rings.receive.pieces(self.read_at, len);
        let read = pieces.map(|piece| self.machine.memory.slice(piece.at, piece.len as usize).to_vec()).concat();
        self.read_at = (self.read_at + len) % RING;
        self.tell(len, 0, false);
        read
    }
}

/// Both, and what the peer knows.
struct Pair {
    stack: OfStack,
    nic: OfNic,
    random: Pcg64,
    repeats: u32,
    written: u32,
    read: u32,
    highest: Seq,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let stack = OfStack::open(seed as u8, Time::ZERO);
        let nic = OfNic::new(seed, stack.flow(), if seed.is_multiple_of(2) { 0.0 } else { 0.5 });
        let highest = Seq(stack.flow().protocol.seq);
        let random = Pcg64::seed_from_u64(seed);
        Pair { stack, nic, random, repeats: 0, written: 0, read: 0, highest }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.next_u32() % bound.max(1)
    }

    /// A segment of the peer's for both.
    fn says(&mut self, header: &Header, payload: &[u8]) {
        let frame = frame(&Header { payload_len: payload.len() as u32, ..*header }, payload);
        self.stack.hears(&frame, self.nic.now);
        self.nic.nic.arrive(&frame, self.nic.now);
    }

    /// An acknowledgment number: of all that was ever sent, copies from before a way back included.
    fn some_ack(&mut self) -> Seq {
        let una = self.stack.flow().unacknowledged();
        let ack = una + self.below(self.highest - una + 1);
        if ack != una {
            self.repeats = 0;
        }
        ack
    }

    /// A segment of data: the next, one again, one ahead.
    fn data(&mut self) -> bool {
        let flow = *self.stack.flow();
        if flow.has(FlowFlags::PEER_CLOSED) {
            return false;
        }
        let next = Seq(flow.protocol.ack) - (PEER_FIRST + 1);
        let (first, pieces) = match self.below(4) {
            0 => (next + PIECE * self.below(6), 1),
            1 => (next.saturating_sub(PIECE * (1 + self.below(3))), 1 + self.below(2)),
            _ => (next, 1 + self.below(2)),
        };
        let len = PIECE * pieces;
        if (first + len).saturating_sub(next) > flow.protocol.rx_avail {
            return false;
        }
        let payload: Vec<u8> = (first..first + len).map(byte).collect();
        // The stack drops a segment that lies before its window; the pipeline takes its acknowledgment.
        let ack = if first + len <= next { flow.unacknowledged() } else { self.some_ack() };
        self.says(&said(PEER_FIRST + 1 + first, ack), &payload);
        true
    }

    /// One event. Returns whether an acknowledgment has to follow.
    fn event(&mut self) -> bool {
        let flow = *self.stack.flow();
        let now = self.nic.now;
        match self.below(10) {
            0..=3 => return self.data(),
            kind @ 4..=5 => {
                let ack = if kind == 4 { self.some_ack() } else { flow.unacknowledged() };
                let is_repeat = ack == flow.unacknowledged() && flow.protocol.tx_sent > 0;
                // Of more than three the stack makes another way back, and the pipeline does not.
                if !is_repeat || self.repeats < 3 {
                    self.repeats += u32::from(is_repeat);
                    self.says(&said(Seq(flow.protocol.ack), ack), &[]);
                }
            }
            6 | 7 if !flow.has(FlowFlags::CLOSING) => {
                let len = self.below(4000).min(flow.tx_free());
                let bytes: Vec<u8> = (self.written..self.written + len).map(byte).collect();
                self.written += len;
                assert_eq!(self.stack.stack.send(self.stack.id(), &bytes, false, now), Ok(len as usize));
                self.nic.writes(&bytes);
            }
            8 => self.reads(flow.rx_waiting()),
            _ => return self.ends(&flow),
        }
        false
    }

    fn reads(&mut self, waiting: u32) {
        let len = self.below(waiting + 1);
        let mut of_stack = vec![0; len as usize];
        let now = self.nic.now;
        assert_eq!(self.stack.stack.recv(self.stack.id(), &mut of_stack, now), Ok(len as usize));
        let expected: Vec<u8> = (self.read..self.read + len).map(byte).collect();
        self.read += len;
        assert!(of_stack == expected && self.nic.reads(len) == expected);
    }

    /// Seldom: one of the two ends its stream.
    fn ends(&mut self, flow: &Flow) -> bool {
        match self.below(12) {
            0 if !flow.has(FlowFlags::CLOSING) => {
                self.stack.stack.shut_write(self.stack.id(), self.nic.now);
                self.nic.tell(0, 0, true);
                false
            }
            1 if !flow.has(FlowFlags::PEER_CLOSED) && self.nic.nic.flows[0].state.protocol.ooo_len == 0 => {
                let header = said(Seq(flow.protocol.ack), flow.unacknowledged());
                self.says(&Header { flags: header.flags.with(Flags::FIN), ..header }, &[]);
                true
            }
            _ => false,
        }
    }
}

/// Random segments, losses (what the peer never acknowledges, and acknowledges twice), reads, writes and ends, in the
/// paper's configuration, with a pipeline whose state is evicted and whose stages take random times.
#[test]
fn the_pipeline_sends_what_the_stack_sends() {
    let (mut numbered, mut backs) = (0, 0);
    for seed in 0..60 {
        let mut pair = Pair::new(seed);
        pair.nic.sends();
        for step in 0..150 {
            let acknowledges = pair.event();
            let now = pair.nic.now;
            let (of_stack, of_nic) = (essence(pair.stack.sends(now)), essence(pair.nic.sends()));
            assert_eq!(of_nic.0, of_stack.0, "seed {seed}, step {step}");
            assert!(!acknowledges || of_nic.1 == of_stack.1, "seed {seed}, step {step}: {of_nic:?} {of_stack:?}");
            let (stack, nic) = (*pair.stack.flow(), pair.nic.nic.flows[0].state);
            let known = |flow: &Flow| {
                let protocol = &flow.protocol;
                (protocol.seq, protocol.ack, protocol.tx_sent, protocol.tx_avail, protocol.rx_avail)
            };
            assert_eq!(known(&nic), known(&stack), "seed {seed}, step {step}");
            pair.highest = pair.highest.max(Seq(stack.protocol.seq));
            assert_eq!(pair.nic.told, pair.read + nic.rx_waiting(), "seed {seed}: told of what is there");
            numbered += of_nic.0.len();
            if nic.is_closed() {
                break;
            }
        }
        backs += pair.nic.nic.counters.went_back;
    }
    assert!(numbered > 1500 && backs > 20, "{numbered} segments, {backs} ways back");
}
