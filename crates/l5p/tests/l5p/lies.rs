//! Descriptors, contexts, states and protocols that lie or lack something.

use nicforge_l5p::context::{CONTEXT_BYTES, Context, ContextId, FlowKey, Start, State};
use nicforge_l5p::engine::{Create, Descriptor, Engine, EngineConfig, Outcome, Refusal};
use nicforge_l5p::host::{FlatMemory, HostBuffers, Piece};
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::placement::{RrError, RrState, RrStateId};
use nicforge_l5p::protocol::{Direction, Header, MessagePiece, Properties, Protocol, ProtocolId, Unfit, Verdict, Work};
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, ContentType, Version};
use nicforge_l5p::tls::writer::RecordWriter;

use crate::common::tls_rig::keys;

const START: Start = Start { tcpsn: Seq(1000), number: 0 };

fn session_keys() -> TlsKeys {
    keys(Version::Tls13, Cipher::Aes128Gcm, 0)
}

fn create(protocol: &str, direction: Direction, state: State) -> Create {
    let protocol = registry::find(protocol).unwrap();
    Create { id: ContextId(1), flow: FlowKey::default(), protocol, direction, start: START, state }
}

#[test]
fn descriptors_that_lie_are_refused_and_nothing_leaves() {
    let keys = session_keys();
    let (mut nic, mut memory) = (Engine::default(), FlatMemory::default());
    let mut context = nic.create(create("tls", Direction::Transmit, keys.state())).unwrap();
    let data = memory.place(&[1; 100]);
    let pieces = RecordWriter::new(&keys, START).write(&mut memory, ContentType::DATA, data, 0).unwrap();
    let plain: Vec<u8> = pieces.iter().flat_map(|piece| memory.view(*piece).unwrap().to_vec()).collect();
    let packet = |seq| Descriptor::Packet { seq, payload: plain.clone() };
    let mut refuse = |descriptor| nic.execute(&mut context, &mut memory, descriptor).unwrap_err();
    let wrong = refuse(packet(Seq(999)));
    assert_eq!(wrong, Refusal::OutOfSync { expected: START.tcpsn, seq: Seq(999) });
    assert!(matches!(refuse(Descriptor::Dump(Piece { address: 0, bytes: 9000 })), Refusal::DumpTooLong { .. }));
    let not_a_record = Descriptor::Packet { seq: START.tcpsn, payload: vec![0; 50] };
    assert!(matches!(refuse(not_a_record), Refusal::NotAMessage(_)));
    assert_eq!(refuse(packet(START.tcpsn)), Refusal::NoPlace);
    nic.execute(&mut context, &mut memory, Descriptor::ProgressParameters(START)).unwrap();
    let mut refuse = |descriptor| nic.execute(&mut context, &mut memory, descriptor).unwrap_err();
    assert_eq!(refuse(packet(START.tcpsn)), Refusal::NoFence);
    nic.execute(&mut context, &mut memory, Descriptor::Fence).unwrap();
    let mut refuse = |descriptor| nic.execute(&mut context, &mut memory, descriptor).unwrap_err();
    assert!(matches!(refuse(Descriptor::Dump(Piece { address: 1 << 40, bytes: 100 })), Refusal::Host(_)));
    assert_eq!(nic.counters(context.protocol()).tx_refused, 6);
}

#[test]
fn contexts_that_lie_lose_their_place_and_nothing_else() {
    let keys = session_keys();
    let mut nic = Engine::default();
    let context = nic.create(create("tls", Direction::Receive, keys.state())).unwrap();
    let good = context.to_bytes();
    for place in 40..CONTEXT_BYTES {
        for value in [0, 1, 3, 0x7f, 0xff] {
            let mut bytes = good;
            bytes[place] = value;
            let mut context = Context::from_bytes(&bytes);
            let mut payload = [&[23, 3, 3, 0, 60][..], &[0; 200]].concat();
            let before = payload.clone();
            let received = nic.receive(&mut context, &mut FlatMemory::default(), START.tcpsn, &mut payload);
            assert_ne!(received.outcome, Outcome::Offloaded);
            assert_eq!(payload, before);
            let packet = Descriptor::Packet { seq: START.tcpsn, payload: vec![0x99; 300] };
            let mut context = Context::from_bytes(&bytes);
            assert!(nic.execute(&mut context, &mut FlatMemory::default(), packet).is_err(), "byte {place}: {value}");
        }
    }
}

#[test]
fn a_response_state_is_bounded_and_belongs_to_one_command() {
    let mut nic = Engine::new(EngineConfig { placements_max: 1, ..EngineConfig::default() });
    let state = NvmeState::state(Digests::default());
    let context = nic.create(create("nvme_tcp", Direction::Receive, state)).unwrap();
    nic.add_rr_state(&context, RrStateId(1), RrState::default()).unwrap();
    let again = nic.add_rr_state(&context, RrStateId(1), RrState::default());
    assert_eq!(again, Err(RrError::InUse { context: 1, id: 1 }));
    assert_eq!(nic.add_rr_state(&context, RrStateId(2), RrState::default()), Err(RrError::Full(1)));
    assert!(nic.del_rr_state(&context, RrStateId(1)));
    assert!(!nic.del_rr_state(&context, RrStateId(1)));
    let counters = nic.counters(context.protocol());
    assert_eq!((counters.rx_setup, counters.rx_setup_fail, counters.rx_teardown), (1, 2, 1));
}

/// A protocol of whatever properties.
struct Odd(Properties);

impl Protocol for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }

    fn properties(&self) -> Properties {
        self.0
    }

    fn parse(&self, _state: &State, _bytes: &[u8]) -> Option<Header> {
        None
    }

    fn begin(&self, _work: &mut Work<'_>, _length: u32) {}

    fn advance(&self, _work: &mut Work<'_>, _piece: MessagePiece<'_>) {}

    fn finish(&self, _work: &mut Work<'_>, _length: u32) -> Verdict {
        Verdict::Passed
    }
}

#[test]
fn the_registry_refuses_a_protocol_that_lacks_a_property() {
    registry::check(&registry::PROTOCOLS).unwrap();
    let fit = Properties { size_preserving: true, incremental: true, state_bytes: 128, header_bytes: 8, magic_bits: 8 };
    let reason = |properties| registry::check(&[&Odd(properties)]).map_err(|refused| refused.reason);
    assert_eq!(reason(fit), Ok(()));
    assert_eq!(reason(Properties { size_preserving: false, ..fit }), Err(Unfit::Size));
    assert_eq!(reason(Properties { incremental: false, ..fit }), Err(Unfit::Increments));
    assert_eq!(reason(Properties { state_bytes: 129, ..fit }), Err(Unfit::State(129)));
    assert_eq!(reason(Properties { header_bytes: 9, ..fit }), Err(Unfit::Magic { bytes: 9, bits: 8 }));
    // The headers of SSH are encrypted.
    assert_eq!(reason(Properties { header_bytes: 0, ..fit }), Err(Unfit::Magic { bytes: 0, bits: 8 }));
    assert_eq!(reason(Properties { magic_bits: 7, ..fit }), Err(Unfit::Magic { bytes: 8, bits: 7 }));
}

#[test]
fn each_protocol_has_its_own_name_and_number() {
    for (number, protocol) in (0..).zip(registry::PROTOCOLS) {
        assert_eq!(registry::find(protocol.name()), Some(ProtocolId(number)));
    }
}
