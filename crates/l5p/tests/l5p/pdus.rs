//! PDUs of NVMe/TCP and iSCSI in any pieces: digests filled in and checked, data placed; headers that cannot be.

use nicforge_l5p::context::{Context, ContextId, FlowKey, Start, State};
use nicforge_l5p::engine::{Create, Descriptor, Engine, Executed, Outcome};
use nicforge_l5p::host::{FlatMemory, HostBuffers};
use nicforge_l5p::iscsi::{self, IscsiState, Lead, Sender};
use nicforge_l5p::nvme::pdu::{CommonHeader, Digests, PduType, Transfer, flags};
use nicforge_l5p::nvme::{NvmeState, command_state};
use nicforge_l5p::placement::{RrState, RrStateId};
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use proptest::prelude::*;

use crate::common::storage::crc32c;

const START: Start = Start { tcpsn: Seq(u32::MAX - 50), number: 0 };

fn context(nic: &mut Engine, protocol: &str, direction: Direction, state: State) -> Context {
    let protocol = registry::find(protocol).unwrap();
    let (id, flow) = (ContextId(direction as u32), FlowKey::default());
    nic.create(Create { id, flow, protocol, direction, start: START, state }).unwrap()
}

/// A PDU with empty digests through a NIC that sends and one that receives, in pieces; returns the wire's bytes and
/// what lies in the buffer of the answer.
fn through(
    protocol: &str,
    state: State,
    id: RrStateId,
    empty: &[u8],
    buffer: usize,
    cuts: &[usize],
) -> (Vec<u8>, Vec<u8>) {
    let (mut nic, mut memory) = (Engine::default(), FlatMemory::default());
    let mut transmit = context(&mut nic, protocol, Direction::Transmit, state);
    let mut receive = context(&mut nic, protocol, Direction::Receive, state);
    let target = memory.place(&vec![0; buffer]);
    nic.add_rr_state(&receive, id, RrState { pieces: vec![target] }).unwrap();
    let (mut wire, mut cuts) = (Vec::new(), cuts.iter().cycle());
    while wire.len() < empty.len() {
        let at = wire.len();
        let bytes = (*cuts.next().unwrap()).min(empty.len() - at);
        let seq = START.tcpsn.plus(at);
        let packet = Descriptor::Packet { seq, payload: empty[at..at + bytes].to_vec() };
        let Ok(Executed::Sent { mut payload, .. }) = nic.execute(&mut transmit, &mut memory, packet) else {
            panic!("a packet leaves")
        };
        wire.extend_from_slice(&payload);
        let received = nic.receive(&mut receive, &mut memory, seq, &mut payload);
        assert_eq!((received.outcome, received.unplaced_bytes), (Outcome::Offloaded, 0));
    }
    (wire, memory.view(target).unwrap().to_vec())
}

proptest! {
    #[test]
    fn nvme_data(
        data in proptest::collection::vec(any::<u8>(), 1..1500),
        cuts in proptest::collection::vec(1_usize..200, 1..20),
        padding in 0_usize..5,
        offset in 0_u32..100,
    ) {
        let data_at = 28 + 4 * padding;
        let length = (data_at + data.len() + 4) as u32;
        let flags = flags::HEADER_DIGEST | flags::DATA_DIGEST | flags::LAST;
        let common = CommonHeader { kind: PduType::C2hData, flags, data_at: data_at as u8, length };
        let transfer = Transfer { command: 9, tag: 0, offset, length: data.len() as u32 };
        let mut pdu = [&common.to_bytes()[..], &transfer.to_bytes()].concat();
        pdu.resize(data_at, 0);
        pdu.extend_from_slice(&data);
        pdu.extend_from_slice(&[0; 4]);
        let state = NvmeState::state(Digests { header: true, data: true });
        let room = offset as usize + data.len();
        let (wire, buffer) = through("nvme_tcp", state, command_state(9), &pdu, room, &cuts);
        prop_assert_eq!(&wire[24..28], crc32c(&wire[..24]));
        prop_assert_eq!(&wire[data_at + data.len()..], crc32c(&data));
        prop_assert_eq!(&buffer[offset as usize..], &data[..]);
    }

    #[test]
    fn iscsi_data_in(
        data in proptest::collection::vec(any::<u8>(), 1..1500),
        cuts in proptest::collection::vec(1_usize..200, 1..20),
        offset in 0_u32..100,
    ) {
        let mut pdu = vec![0; iscsi::BASIC_BYTES];
        pdu[..2].copy_from_slice(&[0x25, 0x80]);
        pdu[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        pdu[16..20].copy_from_slice(&77_u32.to_be_bytes());
        pdu[40..44].copy_from_slice(&offset.to_be_bytes());
        pdu.extend_from_slice(&[0; 4]);
        pdu.extend_from_slice(&data);
        pdu.resize(pdu.len().next_multiple_of(4) + 4, 0);
        let state = IscsiState::state(Sender::Target, iscsi::Digests { header: true, data: true });
        let room = offset as usize + data.len();
        let (wire, buffer) = through("iscsi", state, RrStateId(77), &pdu, room, &cuts);
        prop_assert_eq!(&wire[48..52], crc32c(&wire[..48]));
        let end = wire.len() - 4;
        prop_assert_eq!(&wire[end..], crc32c(&wire[52..end]));
        prop_assert_eq!(&buffer[offset as usize..], &data[..]);
    }

    #[test]
    fn headers_of_chance_hold_what_they_claim(bytes in proptest::collection::vec(any::<u8>(), 0..12), options in 0..4) {
        let digests = Digests { header: options & 1 != 0, data: options & 2 != 0 };
        if let Some(header) = CommonHeader::parse(digests, &bytes) {
            let data = header.data();
            prop_assert!(data.start <= data.end && data.end <= header.length as usize);
            prop_assert!(header.header_bytes() + header.header_digest_bytes() <= header.length as usize);
        }
        let digests = iscsi::Digests { header: digests.header, data: digests.data };
        for sender in [Sender::Initiator, Sender::Target] {
            if let Some(lead) = Lead::parse(sender, digests, &bytes) {
                prop_assert!(lead.header_bytes <= lead.data_at() && lead.padded_end() <= lead.length());
            }
        }
    }
}

#[test]
fn nine_types_and_no_other() {
    let none = Digests::default();
    let header =
        |kind: u8, header_bytes: u8, data_at: u8, length: u8| [kind, 0, header_bytes, data_at, length, 0, 0, 0];
    let mut known = Vec::new();
    for kind in 0..=u8::MAX {
        let right = PduType::from_byte(kind).map_or(24, |kind| kind.header_bytes() as u8);
        let needs_data = matches!(kind, 6 | 7);
        let data_at = if needs_data { right } else { 0 };
        let parsed = CommonHeader::parse(none, &header(kind, right, data_at, right));
        known.extend(parsed.map(|header| header.kind as u8));
        let wrong = CommonHeader::parse(none, &header(kind, right + 1, data_at, right + 1));
        assert_eq!(wrong, None, "a header length that does not belong to type {kind}");
    }
    assert_eq!(known, [0, 1, 2, 3, 4, 5, 6, 7, 9]);
    let digests = Digests { header: true, data: false };
    assert_eq!(CommonHeader::parse(digests, &header(5, 24, 0, 24)), None, "a digest was agreed on");
}
