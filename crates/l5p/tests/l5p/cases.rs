//! Cases that hit real systems, one test each.

use nicforge_l5p::context::{CONTEXT_BYTES, Context, ContextId, FlowKey, Mode, Start, State};
use nicforge_l5p::driver::{Layer5, TxDriver};
use nicforge_l5p::engine::{Create, Descriptor, Engine, Executed, Outcome, Received};
use nicforge_l5p::host::{FlatMemory, HostBuffers, Piece};
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::nvme::connection::Connection;
use nicforge_l5p::nvme::pdu::{Digests, PduType, Transfer, flags};
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::reader::RecordReader;
use nicforge_l5p::tls::record::{Cipher, ContentType, Version};
use nicforge_l5p::tls::writer::RecordWriter;

use crate::common::oracle;
use crate::common::tls_rig::keys;

const START: Start = Start { tcpsn: Seq(1000), number: 0 };

fn session_keys(generation: u8) -> TlsKeys {
    keys(Version::Tls13, Cipher::Aes128Gcm, generation)
}

fn create(protocol: &str, direction: Direction, start: Start, state: State) -> Create {
    let protocol = registry::find(protocol).unwrap();
    Create { id: ContextId(1), flow: FlowKey::default(), protocol, direction, start, state }
}

/// A sender with its NIC.
struct Sender {
    memory: FlatMemory,
    nic: Engine,
    context: Context,
    driver: TxDriver,
    writer: RecordWriter,
    plain: Vec<u8>,
}

impl Sender {
    fn new() -> Self {
        let keys = session_keys(0);
        let mut nic = Engine::default();
        Self {
            memory: FlatMemory::default(),
            context: nic.create(create("tls", Direction::Transmit, START, keys.state())).unwrap(),
            nic,
            driver: TxDriver::new(START, keys.state(), 1500),
            writer: RecordWriter::new(&keys, START),
            plain: Vec::new(),
        }
    }

    fn record(&mut self, content: ContentType, data: Piece) {
        for piece in self.writer.write(&mut self.memory, content, data, 0).unwrap() {
            self.plain.extend_from_slice(self.memory.view(piece).unwrap());
        }
    }

    fn data(&mut self, data: &[u8]) {
        let piece = self.memory.place(data);
        self.record(ContentType::DATA, piece);
    }

    /// Sends a range of the stream and returns what leaves.
    fn send(&mut self, range: std::ops::Range<usize>) -> Vec<u8> {
        let seq = START.tcpsn.plus(range.start);
        let descriptors = self.driver.send(&self.writer, seq, &self.plain[range]);
        let mut wire = Vec::new();
        for descriptor in descriptors {
            if let Executed::Sent { payload, .. } =
                self.nic.execute(&mut self.context, &mut self.memory, descriptor).unwrap()
            {
                wire.extend(payload);
            }
        }
        wire
    }

    fn acknowledge(&mut self, bytes: usize) {
        self.writer.acknowledge(START.tcpsn.plus(bytes));
        self.driver.acknowledge(START.tcpsn.plus(bytes));
    }
}

/// Reports as if a NIC had a context and had not touched the packet.
fn untouched() -> Received {
    Received::without_context()
}

#[test]
fn zero_copy_transmit_leaves_the_page_cache_as_it_is() {
    let mut sender = Sender::new();
    let page: Vec<u8> = (0..4096_u32).map(|byte| byte as u8).collect();
    let piece = sender.memory.place(&page);
    sender.record(ContentType::DATA, piece);
    let end = sender.plain.len();
    let first = sender.send(0..end);
    // Sent again from the middle: the NIC reads the page once more, and it must be plaintext still.
    let again = sender.send(2000..end);
    assert_eq!(first[2000..], again);
    assert_eq!(sender.memory.view(piece).unwrap(), page);
    assert_eq!(sender.memory.written_bytes, 0);
    let mut truth = sender.plain.clone();
    oracle::seal(&session_keys(0), 0, &mut truth);
    assert_eq!(first, truth);
}

#[test]
fn a_write_that_goes_on_from_a_moved_buffer_keeps_its_record() {
    let mut sender = Sender::new();
    let data = vec![7; 3000];
    let first_place = sender.memory.place(&data);
    sender.record(ContentType::DATA, first_place);
    let wire = sender.send(0..1448);
    // The application retries the rest out of another buffer. The record's bytes are those it was framed with, so the
    // copy goes into the next record, and the first one is completed from where it lies.
    let moved = sender.memory.place(&vec![8; 500]);
    sender.record(ContentType::DATA, moved);
    let first_end = sender.plain.len() - (500 + 22);
    let rest = sender.send(1448..sender.plain.len());
    let wire = [wire, rest].concat();
    let keys = session_keys(0);
    assert_eq!(oracle::open(&keys, 0, &wire[..first_end]).unwrap()[..3000], data);
    assert_eq!(oracle::open(&keys, 1, &wire[first_end..]).unwrap()[..500], [8; 500]);
}

#[test]
fn a_retransmission_of_an_acknowledged_record_is_dropped() {
    let mut sender = Sender::new();
    (0..3).for_each(|byte| sender.data(&[byte; 1000]));
    let end = sender.plain.len();
    sender.send(0..end);
    sender.acknowledge(1022 + 10);
    // Record 0 is gone. Under record 1's number its bytes would leave with a nonce that encrypted something else.
    assert!(sender.send(0..500).is_empty());
    assert_eq!(sender.driver.counters().tx_drop_no_sync_data, 1);
    assert_eq!(sender.send(1022..1500).len(), 478);
    assert_eq!(sender.driver.counters().tx_ooo, 1);
}

#[test]
fn bytes_before_the_start_of_offload_leave_as_they_are() {
    let mut sender = Sender::new();
    sender.data(&[1; 100]);
    let seq = Seq(START.tcpsn.0 - 20);
    let payload = [&[0xaa; 20][..], &sender.plain].concat();
    let descriptors = sender.driver.send(&sender.writer, seq, &payload);
    assert_eq!(descriptors[0], Descriptor::Plain { seq, payload: vec![0xaa; 20] });
    assert!(matches!(&descriptors[1], Descriptor::Packet { seq, .. } if *seq == START.tcpsn));
    assert_eq!(sender.driver.counters().tx_skip_no_sync_data, 1);
}

#[test]
fn recovery_reads_no_more_than_the_record_again() {
    let mut sender = Sender::new();
    sender.data(&[1; 16000]);
    sender.data(&[2; 16000]);
    let end = sender.plain.len();
    sender.send(0..end);
    let from = 16022 + 9000;
    sender.send(from..from + 1448);
    let counters = sender.driver.counters();
    assert_eq!((counters.tx_ooo, counters.tx_dump_bytes), (1, 9000));
    // Header and data are pieces of their own, and no dump is longer than an MTU.
    assert_eq!(counters.tx_dump_packets, 1 + 6);
}

#[test]
fn control_records_are_not_swallowed_by_data_reads() {
    let mut sender = Sender::new();
    sender.data(b"before");
    let alert = sender.memory.place(&[1, 0]);
    sender.record(ContentType::ALERT, alert);
    sender.data(b"after");
    let end = sender.plain.len();
    let mut wire = sender.send(0..end);
    let mut nic = Engine::default();
    let keys = session_keys(0);
    let mut context = nic.create(create("tls", Direction::Receive, START, keys.state())).unwrap();
    let received = nic.receive(&mut context, &mut sender.memory, START.tcpsn, &mut wire);
    assert_eq!(received.outcome, Outcome::Offloaded);
    let mut reader = RecordReader::new(&keys, START, ContextId(1));
    reader.push(&wire, &received);
    let mut read = || reader.read().unwrap().map(|record| (record.content, record.data));
    assert_eq!(read(), Some((ContentType::DATA, b"before".to_vec())));
    assert_eq!(read(), Some((ContentType::ALERT, vec![1, 0])));
    assert_eq!(read(), Some((ContentType::DATA, b"after".to_vec())));
    assert_eq!(read(), None);
}

#[test]
fn a_key_update_is_not_taken_for_a_bad_mac() {
    let mut sender = Sender::new();
    sender.data(&[1; 100]);
    let update = sender.memory.place(&[24, 0, 0, 1, 0]);
    sender.record(ContentType::HANDSHAKE, update);
    let new = session_keys(1);
    let start = sender.writer.rekey(&new);
    sender.driver.rekey(start, new.state());
    sender.data(&[2; 4000]);
    let end = sender.plain.len();
    let wire = sender.send(0..end);
    let boundary = start.tcpsn.since(START.tcpsn) as usize;
    assert_eq!(oracle::open(&new, 0, &wire[boundary..]).unwrap()[..4000], [2; 4000]);

    // The NIC goes on with the old key in the middle of a new record, and reports the packet as decrypted.
    let old = session_keys(0);
    let mut nic = Engine::default();
    let mut context = nic.create(create("tls", Direction::Receive, START, old.state())).unwrap();
    let mut reader = RecordReader::new(&old, START, ContextId(1));
    let mut outcomes = Vec::new();
    for (index, packet) in wire.chunks(1000).enumerate() {
        let mut payload = packet.to_vec();
        let seq = START.tcpsn.plus(index * 1000);
        let received = nic.receive(&mut context, &mut sender.memory, seq, &mut payload);
        outcomes.push(received.outcome);
        reader.push(&payload, &received);
    }
    assert_eq!(outcomes[1], Outcome::Offloaded);
    assert_eq!(*outcomes.last().unwrap(), Outcome::Failed);
    assert_eq!(reader.read().unwrap().unwrap().data, [1; 100]);
    assert!(reader.read().unwrap().unwrap().changes_key);
    assert_eq!(reader.read().unwrap(), None, "it waits for the key");
    reader.rekey(&new, ContextId(2));
    assert_eq!(reader.read().unwrap().unwrap().data, [2; 4000]);
    assert_eq!(reader.counters().partly_offloaded, 1);
}

#[test]
fn packets_of_different_results_are_never_joined() {
    let processed = Received { outcome: Outcome::Offloaded, ..untouched() };
    let placed = Received { is_placed: true, ..processed };
    let failed = Received { outcome: Outcome::Failed, ..untouched() };
    let other_key = Received { context: ContextId(2), ..processed };
    let all = [processed, placed, failed, other_key, untouched()];
    for (a, first) in all.iter().enumerate() {
        for (b, second) in all.iter().enumerate() {
            assert_eq!(first.may_join(second), a == b);
        }
    }
}

#[test]
fn records_that_were_queued_when_receive_offload_began() {
    let mut sender = Sender::new();
    (0..8).for_each(|byte| sender.data(&[byte; 1000]));
    let end = sender.plain.len();
    let wire = sender.send(0..end);
    let keys = session_keys(0);
    let mut nic = Engine::default();
    let mut reader = RecordReader::new(&keys, START, ContextId(1));
    // Two and a half records came before the NIC had a context.
    reader.push(&wire[..2500], &untouched());
    assert!(reader.read().unwrap().is_some());
    let mut context = nic.create(create("tls", Direction::Receive, reader.boundary(), keys.state())).unwrap();
    let mut records = 1;
    for (index, packet) in wire[2500..].chunks(300).enumerate() {
        let mut payload = packet.to_vec();
        let received =
            nic.receive(&mut context, &mut sender.memory, START.tcpsn.plus(2500 + index * 300), &mut payload);
        if let Some(tcpsn) = received.resync {
            reader.l5o_resync_rx_req(tcpsn);
        }
        reader.push(&payload, &received);
        while let Some(record) = reader.read().unwrap() {
            assert_eq!(record.data, [records; 1000]);
            records += 1;
        }
        for answer in reader.take_answers() {
            nic.resync_response(&mut context, answer.tcpsn, answer.number);
        }
    }
    assert_eq!((records, context.mode()), (8, Mode::Offloading));
    assert!(reader.counters().offloaded >= 1);
}

#[test]
fn each_pdu_has_a_digest_of_its_own() {
    let digests = Digests { header: true, data: true };
    let mut memory = FlatMemory::default();
    let mut connection = Connection::new(START.tcpsn, Seq(0));
    connection.set_digests(digests);
    connection.offload_transmit();
    let data = memory.place(&[9; 3000]);
    // One command, three PDUs.
    for index in 0..3_u32 {
        let header = Transfer { command: 5, tag: 0, offset: index * 1000, length: 1000 }.to_bytes();
        let part = Piece { address: data.address + u64::from(index) * 1000, bytes: 1000 };
        let last = if index == 2 { flags::LAST } else { 0 };
        connection.send(&mut memory, PduType::C2hData, last, &header, Some(part)).unwrap();
    }
    let mut stream = Vec::new();
    while let Some(piece) = connection.next_output() {
        stream.extend_from_slice(memory.view(piece).unwrap());
    }
    let mut nic = Engine::default();
    let state = NvmeState::state(digests);
    let mut context = nic.create(create("nvme_tcp", Direction::Transmit, START, state)).unwrap();
    let packet = Descriptor::Packet { seq: START.tcpsn, payload: stream };
    let Ok(Executed::Sent { mut payload, .. }) = nic.execute(&mut context, &mut memory, packet) else {
        panic!("a packet leaves")
    };
    let mut icreq = vec![0, 0, 128, 0, 128, 0, 0, 0];
    icreq.resize(128, 0);
    assert_eq!(crate::common::storage::check_wire(&[icreq, payload.clone()].concat(), digests), 4);
    // The second PDU's digest is damaged: its packet fails, and only that PDU's data is bad.
    payload[1032 + 500] ^= 1;
    let mut context = nic.create(create("nvme_tcp", Direction::Receive, START, state)).unwrap();
    let mut receiver = Connection::new(Seq(0), START.tcpsn);
    receiver.set_digests(digests);
    let received = nic.receive(&mut context, &mut memory, START.tcpsn, &mut payload);
    assert_eq!((received.outcome, context.mode()), (Outcome::Failed, Mode::Offloading));
    receiver.push(&payload, &received);
    let good: Vec<bool> = (0..3).map(|_| receiver.read().unwrap().unwrap().is_data_good).collect();
    assert_eq!(good, [true, false, true]);
}

#[test]
fn destroy_overwrites_keys() {
    let keys = session_keys(0);
    let mut nic = Engine::default();
    let mut context = nic.create(create("tls", Direction::Receive, START, keys.state())).unwrap();
    let needle = &keys.key[..16];
    assert!(context.to_bytes().windows(16).any(|bytes| bytes == needle));
    nic.receive(&mut context, &mut FlatMemory::default(), START.tcpsn, &mut [23, 3, 3, 1, 0, 0]);
    assert_eq!(nic.keys().len(), 1);
    nic.destroy(&mut context);
    assert_eq!(context.to_bytes(), [0; CONTEXT_BYTES]);
    assert!(nic.keys().is_empty());
}
