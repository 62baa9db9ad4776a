//! Real NVMe/TCP and iSCSI sessions: every PDU is checked, by the NIC as far as packets come in sequence.

use nicforge_l5p::context::{Context, ContextId, FlowKey, Start, State};
use nicforge_l5p::driver::Layer5;
use nicforge_l5p::engine::{Create, Descriptor, Engine, Executed, Outcome};
use nicforge_l5p::host::FlatMemory;
use nicforge_l5p::iscsi::reader::PduReader;
use nicforge_l5p::iscsi::{self, Sender};
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::nvme::connection::Connection;
use nicforge_l5p::nvme::pdu::{CommonHeader, Digests, PduType};
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;

use crate::common::capture::{Half, connections, hex, shared};
use crate::common::storage::{check_wire, crc32c};
use crate::common::tcp::Reassembly;

fn context(nic: &mut Engine, protocol: &str, direction: Direction, tcpsn: Seq, state: State) -> Context {
    let protocol = registry::find(protocol).unwrap();
    let start = Start { tcpsn, number: 0 };
    nic.create(Create { id: ContextId(0), flow: FlowKey::default(), protocol, direction, start, state }).unwrap()
}

/// Runs a direction through the NIC and software; returns PDUs and PDUs whose digests the NIC checked.
fn nvme(half: &Half, digests: Digests) -> (usize, u64) {
    let mut nic = Engine::default();
    let mut memory = FlatMemory::default();
    let mut context = context(&mut nic, "nvme_tcp", Direction::Receive, half.first, NvmeState::state(digests));
    let mut connection = Connection::new(Seq(0), half.first);
    let mut tcp = Reassembly::new(half.first);
    let mut pdus = 0;
    for (seq, payload) in &half.packets {
        let mut payload = payload.clone();
        let received = nic.receive(&mut context, &mut memory, *seq, &mut payload);
        assert_ne!(received.outcome, Outcome::Failed);
        if let Some(tcpsn) = received.resync {
            connection.l5o_resync_rx_req(tcpsn);
        }
        for (payload, received) in tcp.push(*seq, payload, received) {
            connection.push(&payload, &received);
        }
        while let Some(pdu) = connection.read().unwrap() {
            assert!(pdu.is_data_good);
            if matches!(pdu.common.kind, PduType::IcReq | PduType::IcResp) {
                connection.set_digests(digests);
            }
            pdus += 1;
        }
        for answer in connection.take_answers() {
            nic.resync_response(&mut context, answer.tcpsn, answer.number);
        }
    }
    (pdus, connection.counters.digests_offloaded)
}

fn nvme_capture(name: &str, digests: Digests) {
    let Some(path) = shared(name) else { return };
    let (mut sessions, mut pdus, mut offloaded) = (0, 0, 0);
    for connection in connections(&path) {
        for half in [&connection.client, &connection.server] {
            // Connections that began before the capture are left out.
            if !matches!(half.stream.get(..3), Some([0 | 1, 0, 128])) {
                continue;
            }
            sessions += 1;
            let (here, by_nic) = nvme(half, digests);
            assert_eq!(here, check_wire(&half.stream, digests));
            pdus += here;
            offloaded += by_nic;
        }
    }
    println!("{name}: {sessions} directions, {pdus} PDUs, digests of {offloaded} checked by the NIC");
    assert!(sessions >= 2 && pdus > 100);
    assert!(!digests.header || offloaded > pdus as u64 / 2);
}

#[test]
fn nvme_with_digests() {
    nvme_capture("nvmetcp/c1-hdgst-ddgst-clean.pcap", Digests { header: true, data: true });
}

#[test]
fn nvme_without_digests() {
    nvme_capture("nvmetcp/c4-nodigest.pcap", Digests::default());
}

#[test]
fn nvme_vectors() {
    let Some(path) = shared("nvmetcp/pdu_vectors.toml") else { return };
    let table: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let digests = Digests { header: true, data: true };
    let mut kinds = std::collections::BTreeSet::new();
    for vector in table["pdu"].as_array().unwrap() {
        let bytes = hex(vector["bytes"].as_str().unwrap());
        let header = CommonHeader::parse(digests, &bytes).expect("a header");
        let number = |key: &str| vector[key].as_integer().unwrap() as usize;
        assert_eq!(header.length as usize, number("plen"));
        assert_eq!(header.header_bytes(), number("hlen"));
        assert_eq!((usize::from(header.flags), usize::from(header.data_at)), (number("flags"), number("pdo")));
        kinds.insert(header.kind);
        let mut empty = bytes.clone();
        let (head, data) = (header.header_bytes(), header.data());
        if header.header_digest_bytes() > 0 {
            assert_eq!(bytes[head..head + 4], hex(vector["hdgst"].as_str().unwrap()));
            assert_eq!(bytes[head..head + 4], crc32c(&bytes[..head]));
            empty[head..head + 4].fill(0);
        }
        if header.data_digest_bytes() > 0 {
            assert_eq!(bytes[data.end..], hex(vector["ddgst"].as_str().unwrap()));
            empty[data.end..].fill(0);
        }
        let (mut nic, mut memory) = (Engine::default(), FlatMemory::default());
        let state = NvmeState::state(digests);
        let mut transmit = context(&mut nic, "nvme_tcp", Direction::Transmit, Seq(1), state);
        let packet = Descriptor::Packet { seq: Seq(1), payload: empty };
        let Ok(Executed::Sent { mut payload, .. }) = nic.execute(&mut transmit, &mut memory, packet) else {
            panic!("a packet leaves")
        };
        assert_eq!(payload, bytes, "digests are filled in");
        let mut receive = context(&mut nic, "nvme_tcp", Direction::Receive, Seq(1), state);
        let received = nic.receive(&mut receive, &mut memory, Seq(1), &mut payload);
        assert_eq!(received.outcome, Outcome::Offloaded);
    }
    assert_eq!(kinds.len(), 6, "the vectors' kinds: {kinds:?}");
}

/// The packets in order. The capture lacks the second packet of most Data-In PDUs, for which zeros stand in; where it
/// lacks more, the direction ends.
fn without_holes(half: &Half) -> Vec<(Seq, Vec<u8>)> {
    let mut packets = Vec::new();
    let mut next = half.first;
    for (seq, payload) in &half.packets {
        match seq.since(next) {
            636 => packets.push((next, vec![0; 636])),
            hole if hole > 0 => break,
            _ => {}
        }
        packets.push((*seq, payload.clone()));
        let end = seq.plus(payload.len());
        next = if next.is_before(end) { end } else { next };
    }
    packets
}

#[test]
fn iscsi_in_order_and_with_packets_swapped() {
    let Some(path) = shared("pcap/bulk/wiki-iscsi-cdrom.pcap") else { return };
    for swap_each in [0, 40] {
        let (mut pdus, mut processed, mut packets, mut resyncs, mut past) = (0, 0, 0, 0, 0);
        for connection in connections(&path) {
            for (half, sender) in [(&connection.client, Sender::Initiator), (&connection.server, Sender::Target)] {
                let mut half_packets = without_holes(half);
                for at in (0..half_packets.len().saturating_sub(2)).filter(|at| swap_each > 0 && at % swap_each == 1) {
                    half_packets.swap(at, at + 1);
                }
                let start = Start { tcpsn: half.first, number: 0 };
                let mut reader = PduReader::new(sender, iscsi::Digests::default(), start);
                let (mut nic, mut memory) = (Engine::default(), FlatMemory::default());
                let mut context = context(&mut nic, "iscsi", Direction::Receive, half.first, reader.state());
                let mut tcp = Reassembly::new(half.first);
                for (seq, mut payload) in half_packets {
                    let received = nic.receive(&mut context, &mut memory, seq, &mut payload);
                    packets += 1;
                    processed += u64::from(received.outcome == Outcome::Offloaded);
                    if let Some(tcpsn) = received.resync {
                        reader.l5o_resync_rx_req(tcpsn);
                    }
                    for (payload, received) in tcp.push(seq, payload, received) {
                        reader.push(&payload, &received);
                    }
                    while reader.read().unwrap().is_some() {
                        pdus += 1;
                    }
                    for answer in reader.take_answers() {
                        nic.resync_response(&mut context, answer.tcpsn, answer.number);
                    }
                }
                let counters = nic.counters(registry::find("iscsi").unwrap());
                resyncs += counters.rx_resync_res_ok;
                past += counters.rx_past;
            }
        }
        println!(
            "iSCSI, swap each {swap_each}: {pdus} PDUs, {processed} of {packets} packets, {past} repeated, {resyncs} resyncs"
        );
        assert!(pdus > 500);
        if swap_each == 0 {
            assert_eq!(processed + past, packets);
        } else {
            assert!(processed > (packets - past) / 2);
        }
    }
}
