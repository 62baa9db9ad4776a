//! NVMe/TCP over TLS: both layers offloaded, under faults, each recovering by itself.

use std::collections::VecDeque;

use nicforge_l5p::context::{Context, ContextId, FlowKey, Mode, Start, State};
use nicforge_l5p::driver::Layer5;
use nicforge_l5p::engine::{Create, Engine, Executed, Outcome};
use nicforge_l5p::host::{FlatMemory, HostBuffers, Piece};
use nicforge_l5p::nvme::connection::Connection;
use nicforge_l5p::nvme::pdu::{Digests, PduType, Transfer, flags};
use nicforge_l5p::nvme::{NvmeState, command_state};
use nicforge_l5p::placement::RrState;
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::stack::Stacked;
use nicforge_l5p::stack::driver::{StackedReader, StackedWriter};
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::reader::RecordReader;
use nicforge_l5p::tls::record::{Cipher, HEADER_BYTES, Version};
use nicforge_l5p::tls::writer::RecordWriter;

use crate::common::storage::check_wire;
use crate::common::tcp::Reassembly;
use crate::common::tls_rig::keys;
use crate::common::{Dice, Faults, drawn, oracle, quiet, seeds};

const DIGESTS: Digests = Digests { header: true, data: true };
const OUTER: Seq = Seq(u32::MAX - 20_000);
const INNER: Seq = Seq(u32::MAX - 9_000);

fn context(nic: &mut Engine, id: u32, protocol: &str, direction: Direction, tcpsn: Seq, state: State) -> Context {
    let protocol = registry::find(protocol).unwrap();
    let start = Start { tcpsn, number: 0 };
    nic.create(Create { id: ContextId(id), flow: FlowKey::default(), protocol, direction, start, state }).unwrap()
}

fn stacked(nic: &mut Engine, keys: &TlsKeys, direction: Direction) -> Stacked {
    let outer = context(nic, 1, "tls", direction, OUTER, keys.state());
    let inner = context(nic, 2, "nvme_tcp", direction, INNER, NvmeState::state(DIGESTS));
    Stacked::new(outer, inner)
}

/// A target that answers reads, one after the other, and a host whose buffers are known to the NIC.
struct Run {
    dice: Dice,
    faults: Faults,
    keys: TlsKeys,
    memory: FlatMemory,
    tx: Engine,
    tx_contexts: Stacked,
    writer: StackedWriter,
    sender: Connection,
    plain: Vec<u8>,
    truth: Vec<u8>,
    sent: usize,
    acked: usize,
    records: u64,
    wire: VecDeque<(Seq, Vec<u8>)>,
    rx: Engine,
    rx_contexts: Stacked,
    host_memory: FlatMemory,
    buffers: Vec<(Piece, Vec<u8>)>,
    reader: StackedReader,
    receiver: Connection,
    tcp: Reassembly,
    pdus: usize,
    copied_bytes: usize,
    packets: usize,
    processed: usize,
}

impl Run {
    fn new(seed: u64, faults: Faults, cipher: Cipher) -> Self {
        let keys = keys(Version::Tls13, cipher, 5);
        let (mut tx, mut rx) = (Engine::default(), Engine::default());
        let start = Start { tcpsn: OUTER, number: 0 };
        let mut sender = Connection::new(INNER, Seq(0));
        sender.set_digests(DIGESTS);
        sender.offload_transmit();
        let mut receiver = Connection::new(Seq(0), INNER);
        receiver.set_digests(DIGESTS);
        Self {
            dice: Dice::new(seed),
            faults,
            memory: FlatMemory::default(),
            tx_contexts: stacked(&mut tx, &keys, Direction::Transmit),
            writer: StackedWriter::new(RecordWriter::new(&keys, start), INNER, 1500),
            sender,
            plain: Vec::new(),
            truth: Vec::new(),
            sent: 0,
            acked: 0,
            records: 0,
            wire: VecDeque::new(),
            rx_contexts: stacked(&mut rx, &keys, Direction::Receive),
            host_memory: FlatMemory::default(),
            buffers: Vec::new(),
            reader: StackedReader::new(RecordReader::new(&keys, start, ContextId(1)), INNER),
            receiver,
            tcp: Reassembly::new(OUTER),
            pdus: 0,
            copied_bytes: 0,
            packets: 0,
            processed: 0,
            tx,
            rx,
            keys,
        }
    }

    /// A data PDU, whose buffer the host's NIC knows.
    fn produce(&mut self) {
        let command = self.buffers.len() as u16;
        let bytes = self.dice.range(1, 6000);
        let data = self.dice.bytes(bytes);
        let buffer = self.host_memory.place(&vec![0xee; bytes]);
        let state = RrState { pieces: vec![buffer] };
        self.rx.add_rr_state(&self.rx_contexts.inner, command_state(command), state).unwrap();
        let piece = self.memory.place(&data);
        let header = Transfer { command, tag: 0, offset: 0, length: bytes as u32 }.to_bytes();
        self.sender.send(&mut self.memory, PduType::C2hData, flags::LAST, &header, Some(piece)).unwrap();
        self.buffers.push((buffer, data));
        while let Some(piece) = self.sender.next_output() {
            let mut done = 0;
            while done < piece.bytes {
                let bytes = (piece.bytes - done).min(self.dice.range(1, 3000) as u32);
                let part = Piece { address: piece.address + u64::from(done), bytes };
                done += bytes;
                for piece in self.writer.write(&mut self.memory, part).unwrap() {
                    self.plain.extend_from_slice(self.memory.view(piece).unwrap());
                }
            }
        }
    }

    fn transmit(&mut self, from: usize, bytes: usize) {
        let (seq, payload) = (OUTER.plus(from), self.plain[from..from + bytes].to_vec());
        for descriptor in self.writer.send(&self.sender, seq, &payload) {
            let executed = self.tx_contexts.execute(&mut self.tx, &mut self.memory, descriptor).unwrap();
            let Executed::Sent { seq, payload } = executed else {
                continue;
            };
            let at = seq.since(OUTER) as u32 as usize;
            if at == self.truth.len() {
                self.truth.extend_from_slice(&payload);
            }
            assert!(self.truth[at..at + payload.len()] == payload, "sent again as it was sent first");
            self.sent = self.sent.max(at + payload.len());
            if !self.dice.percent(self.faults.loss) {
                if self.dice.percent(self.faults.duplicate) {
                    self.wire.push_back((seq, payload.clone()));
                }
                self.wire.push_back((seq, payload));
            }
        }
    }

    fn receive(&mut self) {
        let last = self.wire.len() as u64;
        let place = if self.dice.percent(self.faults.reorder) { self.dice.below(last) as usize } else { 0 };
        let Some((seq, mut payload)) = self.wire.remove(place) else {
            return;
        };
        let received = self.rx_contexts.receive(&mut self.rx, &mut self.host_memory, seq, &mut payload);
        self.packets += 1;
        self.processed += usize::from(received.outcome == Outcome::Offloaded && received.inner.is_processed);
        if let Some(tcpsn) = received.resync {
            self.reader.tls.l5o_resync_rx_req(tcpsn);
        }
        if let Some(tcpsn) = received.inner.resync {
            self.reader.inner_resync_request(tcpsn);
        }
        for (payload, received) in self.tcp.push(seq, payload, received) {
            self.reader.push(&payload, &received);
        }
        self.reader.work(&mut self.receiver).unwrap();
        while let Some(pdu) = self.receiver.read().unwrap() {
            assert!(pdu.is_data_good);
            let transfer = Transfer::parse(&pdu.bytes).unwrap();
            let (buffer, want) = &self.buffers[self.pdus];
            assert_eq!((usize::from(transfer.command), pdu.data()), (self.pdus, &want[..]));
            let memory = &mut self.host_memory;
            let copied = pdu.unplaced(|offset, bytes| {
                nicforge_l5p::host::HostMemory::write(memory, buffer.address + u64::from(offset), bytes)
            });
            self.copied_bytes += copied.unwrap() as usize;
            assert!(self.host_memory.view(*buffer).unwrap() == want, "PDU {}", self.pdus);
            self.pdus += 1;
        }
        for answer in self.reader.tls.take_answers() {
            self.rx.resync_response(&mut self.rx_contexts.outer, answer.tcpsn, answer.number);
        }
        for answer in self.reader.take_inner_answers(&mut self.receiver) {
            self.rx_contexts.inner_resync_response(&mut self.rx, answer.tcpsn, answer.number);
        }
    }

    fn run(&mut self, pdus: usize) {
        let goal = self.buffers.len() + pdus;
        let mut steps = 0;
        while self.pdus < goal || self.acked < self.plain.len() {
            steps += 1;
            assert!(steps < 300_000, "nothing moves: {:?}", self.rx_contexts);
            let mss = self.faults.mss;
            while self.buffers.len() < goal && self.plain.len() < self.sent + 10 * mss {
                self.produce();
            }
            let bytes = if self.dice.percent(70) { mss } else { self.dice.range(1, mss) };
            let is_new = self.sent < self.plain.len() && self.sent < self.acked + 40 * mss;
            if self.acked < self.sent && self.dice.percent(self.faults.spurious) {
                let from = self.dice.range(self.acked, self.sent - 1);
                self.transmit(from, bytes.min(self.sent - from));
            } else if is_new {
                self.transmit(self.sent, bytes.min(self.plain.len() - self.sent));
            } else if self.wire.is_empty() && self.tcp.delivered() < self.sent {
                self.transmit(self.tcp.delivered(), bytes.min(self.sent - self.tcp.delivered()));
            }
            self.receive();
            if self.dice.percent(30) {
                self.acked = self.tcp.delivered();
                self.writer.acknowledge(&mut self.sender, OUTER.plus(self.acked));
            }
        }
        self.check_wire();
    }

    /// Another library opens the records, and other code checks the digests inside.
    fn check_wire(&mut self) {
        let (mut at, mut inner) = (0, Vec::new());
        self.records = 0;
        while at < self.truth.len() {
            let length = usize::from(u16::from_be_bytes([self.truth[at + 3], self.truth[at + 4]]));
            let end = at + HEADER_BYTES + length;
            let mut data = oracle::open(&self.keys, self.records, &self.truth[at..end]).expect("an authentic record");
            assert_eq!(data.pop(), Some(23));
            inner.extend_from_slice(&data);
            self.records += 1;
            at = end;
        }
        // The first PDU here is data already, with digests.
        assert_eq!(check_wire_from_data(&inner), self.buffers.len());
    }
}

fn check_wire_from_data(inner: &[u8]) -> usize {
    // An initialisation request in front, as the check expects it.
    let mut stream = vec![0, 0, 128, 0, 128, 0, 0, 0];
    stream.resize(128, 0);
    stream.extend_from_slice(inner);
    check_wire(&stream, DIGESTS) - 1
}

#[test]
fn a_clean_stream_is_processed_and_placed_entirely() {
    let mut run = Run::new(1, quiet(1448), Cipher::Aes128Gcm);
    run.run(60);
    assert_eq!((run.packets, run.copied_bytes), (run.processed, 0));
}

#[test]
fn faults_cost_speed_never_correctness() {
    let ciphers = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
    for seed in seeds(60) {
        let mut dice = Dice::new(seed);
        let faults = drawn(&mut dice);
        let faults = Faults { mss: faults.mss.max(100), ..faults };
        let cipher = ciphers[dice.below(3) as usize];
        let outcome = std::panic::catch_unwind(move || {
            let mut run = Run::new(seed, faults, cipher);
            run.run(40);
            run.faults = quiet(faults.mss);
            // A PDU of at most 6000 bytes may span four records and one packet of 9000.
            run.run(30);
            assert_eq!(run.rx_contexts.outer.mode(), Mode::Offloading);
            assert_eq!(run.rx_contexts.inner.mode(), Mode::Offloading);
            let (packets, processed) = (run.packets, run.processed);
            run.run(5);
            assert_eq!(run.packets - packets, run.processed - processed, "both layers are back");
        });
        assert!(outcome.is_ok(), "NICFORGE_SEED={seed} {faults:?} {cipher:?}");
    }
}
