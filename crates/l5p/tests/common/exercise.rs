//! What fuzzing does with an input: shared by the fuzz targets, the seeds test and the properties.

#![allow(dead_code, reason = "each target uses its part")]

use nicforge_l5p::context::{CONTEXT_BYTES, Context, ContextId, FlowKey, Start, State};
use nicforge_l5p::driver::Layer5;
use nicforge_l5p::engine::{Create, Descriptor, Engine, EngineConfig, Executed, Outcome, Received};
use nicforge_l5p::host::{FlatMemory, HostBuffers, Piece};
use nicforge_l5p::iscsi::{self, IscsiState, Sender};
use nicforge_l5p::nvme::initiator::{Initiator, InitiatorConfig};
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::nvme::store::MemoryStore;
use nicforge_l5p::nvme::subsystem::{Queue, Subsystem, SubsystemConfig};
use nicforge_l5p::nvme::target::{Target, TargetConfig};
use nicforge_l5p::nvme::{NvmeState, command_state};
use nicforge_l5p::placement::RrState;
use nicforge_l5p::protocol::{Direction, ProtocolId};
use nicforge_l5p::registry::PROTOCOLS;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, Version};
use nicforge_l5p::toy::driver::{ToyReader, ToyWriter};
use nicforge_l5p::toy::{self, ToyState};

/// Reads an input from front to back; at the end everything is 0.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

fn state(protocol: u8, options: u8) -> State {
    let digests = (options & 1 != 0, options & 2 != 0);
    match protocol {
        0 => ToyState::state(5),
        1 => {
            let version = if options & 1 == 0 { Version::Tls12 } else { Version::Tls13 };
            let cipher = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305][usize::from(options / 2 % 3)];
            TlsKeys { version, cipher, key: [options; 32], iv: [3; 12] }.state()
        }
        2 => NvmeState::state(Digests { header: digests.0, data: digests.1 }),
        _ => {
            let sender = if options & 4 == 0 { Sender::Initiator } else { Sender::Target };
            IscsiState::state(sender, iscsi::Digests { header: digests.0, data: digests.1 })
        }
    }
}

/// Packets, descriptors and answers against a context that may be damaged. No panic; a packet that was not processed
/// is unmodified; what is refused does not leave.
pub fn packets(data: &[u8]) {
    let mut script = Script(data);
    let protocol = script.byte() % PROTOCOLS.len() as u8;
    let options = script.byte();
    let config = EngineConfig {
        places_ahead: options & 0x40 != 0,
        proves_resync: options & 0x80 != 0,
        ..EngineConfig::default()
    };
    let mut nic = Engine::new(config);
    let mut memory = FlatMemory::default();
    let buffer = memory.place(&[0; 4096]);
    let direction = if options & 0x20 == 0 { Direction::Receive } else { Direction::Transmit };
    let start = Start { tcpsn: Seq(u32::from(script.word()) << 16), number: 0 };
    let create = Create {
        id: ContextId(0),
        flow: FlowKey::default(),
        protocol: ProtocolId(protocol),
        direction,
        start,
        state: state(protocol, options),
    };
    let mut context = nic.create(create).unwrap();
    nic.add_rr_state(&context, command_state(0), RrState { pieces: vec![buffer] }).unwrap();
    let mut asked = start.tcpsn;
    while !script.is_over() {
        let kind = script.byte();
        // Mostly in sequence, sometimes a little off.
        let off = if kind & 0x80 == 0 { 0 } else { i32::from(script.word() as i16) };
        let seq = Seq(context.tcpsn.0.wrapping_add_signed(off));
        match kind % 8 {
            0..=3 if direction == Direction::Receive => {
                let mut payload = bytes_of(&mut script);
                let before = payload.clone();
                let received = nic.receive(&mut context, &mut memory, seq, &mut payload);
                assert!(received.outcome == Outcome::Offloaded || payload == before);
                asked = received.resync.unwrap_or(asked);
            }
            0..=3 => {
                let packet = Descriptor::Packet { seq, payload: bytes_of(&mut script) };
                let _ = nic.execute(&mut context, &mut memory, packet);
            }
            4 => nic.resync_response(&mut context, asked, (kind & 8 != 0).then_some(u64::from(script.byte()))),
            5 => {
                let bytes = u32::from(script.word());
                let _ = nic.execute(&mut context, &mut memory, Descriptor::Dump(Piece { address: 1, bytes }));
            }
            6 => {
                let start = Start { tcpsn: seq, number: u64::from(kind) };
                let _ = nic.execute(&mut context, &mut memory, Descriptor::ProgressParameters(start));
                let _ = nic.execute(&mut context, &mut memory, Descriptor::Fence);
            }
            _ => {
                let mut bytes = context.to_bytes();
                bytes[usize::from(script.byte()) % CONTEXT_BYTES] = script.byte();
                context = Context::from_bytes(&bytes);
            }
        }
    }
}

/// A payload: some bytes of the input, a byte repeated behind them.
fn bytes_of(script: &mut Script<'_>) -> Vec<u8> {
    let literal = usize::from(script.byte());
    let mut payload = script.bytes(literal).to_vec();
    let repeated = usize::from(script.byte()) * 8;
    payload.resize(payload.len() + repeated, script.byte());
    payload
}

/// A genuine stream of which packets are lost, and software that answers whatever the input says. The NIC proves
/// resynchronisation, so whatever it reports as processed is right.
pub fn resync(data: &[u8]) {
    let mut script = Script(data);
    let start = Start { tcpsn: Seq(u32::MAX - u32::from(script.word())), number: 0 };
    let mut memory = FlatMemory::default();
    let mut writer = ToyWriter::new(start);
    let (mut plain, mut truth) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let bytes = usize::from(script.byte()) * 3;
        let piece = writer.write(&mut memory, &vec![number as u8; bytes]);
        let mut message = memory.view(piece).unwrap().to_vec();
        plain.extend_from_slice(&message);
        toy::seal(9, number, &mut message);
        truth.extend_from_slice(&message);
    }
    let mut nic = Engine::new(EngineConfig { proves_resync: true, ..EngineConfig::default() });
    let (id, flow, direction) = (ContextId(0), FlowKey::default(), Direction::Receive);
    let create = Create { id, flow, protocol: ProtocolId(0), direction, start, state: ToyState::state(9) };
    let mut context = nic.create(create).unwrap();
    let mut reader = ToyReader::new(9, start);
    let mut at = 0;
    let mut asked = None;
    while at < truth.len() {
        let bytes = (1 + usize::from(script.byte()) * 4).min(truth.len() - at);
        let range = at..at + bytes;
        at += bytes;
        let kind = script.byte();
        let mut received = Received::without_context();
        let mut payload = truth[range.clone()].to_vec();
        if kind & 3 != 0 {
            received = nic.receive(&mut context, &mut memory, start.tcpsn.plus(range.start), &mut payload);
        }
        if received.outcome == Outcome::Offloaded {
            // The check at a message's end stays as it came.
            let pairs = payload.iter().zip(&plain[range.clone()]).zip(&truth[range.clone()]);
            assert!(pairs.into_iter().all(|((got, plain), truth)| got == plain || got == truth));
        } else {
            assert_eq!(payload, truth[range]);
        }
        if let Some(tcpsn) = received.resync {
            asked = Some(tcpsn);
            reader.l5o_resync_rx_req(tcpsn);
        }
        reader.push(&payload, &received);
        while reader.read().unwrap().is_some() {}
        for answer in reader.take_answers() {
            if kind & 4 == 0 {
                nic.resync_response(&mut context, answer.tcpsn, answer.number);
            }
        }
        if let Some(tcpsn) = asked.filter(|_| kind & 8 != 0) {
            let tcpsn = Seq(tcpsn.0.wrapping_add(u32::from(kind >> 6)));
            nic.resync_response(&mut context, tcpsn, (kind & 16 != 0).then_some(u64::from(script.byte())));
        }
    }
}

/// Bytes of a peer against host and target. No panic, no hang, and memory stays bounded by what was asked for.
pub fn pdus(data: &[u8]) {
    let mut script = Script(data);
    let options = script.byte();
    let digests = Digests { header: options & 1 != 0, data: options & 2 != 0 };
    let mut memory = FlatMemory::default();
    let config =
        InitiatorConfig { digests, depth: 4, block_bytes: 512, in_capsule_max: 4096, offloads: options & 4 != 0 };
    let mut host = Initiator::new(config, Seq(0), Seq(0), &mut memory).unwrap();
    let config = TargetConfig {
        digests,
        data_bytes_max: 1000,
        sends_success: options & 8 != 0,
        transfer_bytes_max: 8192,
        depth: 4,
        offloads: options & 4 != 0,
    };
    let mut target = Target::new(config, MemoryStore::new(512, 64), Seq(0), Seq(0));
    let subsystem = Subsystem::new(
        SubsystemConfig { nqn: "nqn.test".into(), at: ([10, 0, 0, 1], 4420).into() },
        MemoryStore::new(512, 64),
    );
    let mut queue = Target::new(config, Queue::new(&subsystem), Seq(0), Seq(0));
    let mut queue_is_over = false;
    let buffer = memory.place(&[1; 1024]);
    let (mut host_is_over, mut target_is_over) = (false, false);
    while !(script.is_over() || host_is_over && target_is_over && queue_is_over) {
        let payload = bytes_of(&mut script);
        if !host_is_over {
            host.connection.push(&payload, &Received::without_context());
            host_is_over = host.work(&mut memory).is_err();
            let _ = host.read(&mut memory, 3, buffer);
            let _ = host.write(&mut memory, 9, buffer);
        }
        if !target_is_over {
            target.connection.push(&payload, &Received::without_context());
            target_is_over = target.work(&mut memory).is_err();
        }
        if !queue_is_over {
            queue.connection.push(&payload, &Received::without_context());
            queue_is_over = queue.work(&mut memory).is_err();
        }
        while host.connection.next_output().is_some() || target.connection.next_output().is_some() {}
        while queue.connection.next_output().is_some() || queue.next_action().is_some() {}
        while host.next_action().is_some() || target.next_action().is_some() || host.next_done().is_some() {}
    }
}

/// What a NIC sends of a prepared stream: for seeds.
pub fn sent(nic: &mut Engine, context: &mut Context, payload: Vec<u8>) -> Vec<u8> {
    let packet = Descriptor::Packet { seq: context.tcpsn, payload };
    match nic.execute(context, &mut FlatMemory::default(), packet) {
        Ok(Executed::Sent { payload, .. }) => payload,
        other => panic!("{other:?}"),
    }
}
