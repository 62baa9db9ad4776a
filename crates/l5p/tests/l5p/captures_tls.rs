//! Real TLS sessions: every protected record is decrypted, by the NIC as far as packets come in sequence, and compared
//! with what another library makes of it.

use std::collections::BTreeMap;

use nicforge_l5p::context::{ContextId, FlowKey, Start};
use nicforge_l5p::driver::Layer5;
use nicforge_l5p::engine::{Create, Engine, Outcome};
use nicforge_l5p::host::FlatMemory;
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::reader::RecordReader;
use nicforge_l5p::tls::record::{ContentType, HEADER_BYTES, Version};

use crate::common::capture::{Connection, Half, connections, key_log, shared};
use crate::common::oracle;
use crate::common::schedule::{Hellos, Suite};
use crate::common::tcp::Reassembly;

#[derive(Default, Debug)]
struct Tally {
    sessions: usize,
    records: usize,
    offloaded: u64,
    partly: u64,
    packets_processed: usize,
    requests: usize,
}

/// Bytes before the first protected record, and whether that is behind a `change_cipher_spec`.
fn protected_from(stream: &[u8], version: Version) -> Option<usize> {
    let mut at = 0;
    while let Some([kind, _, _, high, low]) = stream.get(at..at + HEADER_BYTES) {
        if version == Version::Tls13 && *kind == 23 {
            return Some(at);
        }
        at += HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
        if version == Version::Tls12 && *kind == 20 {
            return Some(at);
        }
    }
    None
}

/// Keys in the order in which a direction uses them.
struct Keys {
    now: TlsKeys,
    application: Option<TlsKeys>,
    secret: Vec<u8>,
    suite: Suite,
}

impl Keys {
    /// The key behind `record`, if it changes there.
    fn after(&mut self, content: ContentType, data: &[u8], changes_key: bool) -> Option<TlsKeys> {
        let is_finished = content == ContentType::HANDSHAKE && self.application.is_some() && has_finished(data);
        if is_finished {
            self.now = self.application.take()?;
        } else if changes_key {
            self.secret = self.suite.next_secret(&self.secret);
            self.now = self.suite.keys_of(&self.secret);
        } else {
            return None;
        }
        Some(self.now.clone())
    }
}

fn has_finished(mut messages: &[u8]) -> bool {
    while let [kind, a, b, c, ..] = *messages {
        if kind == 20 {
            return true;
        }
        let bytes = 4 + (usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c));
        messages = messages.get(bytes..).unwrap_or_default();
    }
    false
}

fn run(half: &Half, mut keys: Keys, tally: &mut Tally) {
    let Some(from) = protected_from(&half.stream, keys.suite.version) else {
        return;
    };
    let start = Start { tcpsn: half.first.plus(from), number: 0 };
    let mut nic = Engine::default();
    let mut memory = FlatMemory::default();
    let protocol = registry::find("tls").unwrap();
    let create = |id, start, keys: &TlsKeys| Create {
        id: ContextId(id),
        flow: FlowKey::default(),
        protocol,
        direction: Direction::Receive,
        start,
        state: keys.state(),
    };
    let mut context = nic.create(create(0, start, &keys.now)).unwrap();
    let mut reader = RecordReader::new(&keys.now, start, ContextId(0));
    let mut tcp = Reassembly::new(start.tcpsn);
    let mut at = from;
    for (seq, payload) in &half.packets {
        let skip = start.tcpsn.since(*seq).max(0) as usize;
        if skip >= payload.len() {
            continue;
        }
        let (seq, mut payload) = (seq.plus(skip), payload[skip..].to_vec());
        let received = nic.receive(&mut context, &mut memory, seq, &mut payload);
        tally.packets_processed += usize::from(received.outcome == Outcome::Offloaded);
        if let Some(tcpsn) = received.resync {
            tally.requests += 1;
            reader.l5o_resync_rx_req(tcpsn);
        }
        for (payload, received) in tcp.push(seq, payload, received) {
            reader.push(&payload, &received);
        }
        while let Some(record) = reader.read().unwrap() {
            let [_, _, _, high, low] = half.stream[at..at + HEADER_BYTES] else { panic!("a header") };
            let end = at + HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
            let wire = &half.stream[at..end];
            at = end;
            if record.content == ContentType::CHANGE_CIPHER_SPEC {
                continue;
            }
            let plain = oracle::open(&keys.now, record.number, wire).expect("the oracle agrees");
            assert!(plain.starts_with(&record.data));
            tally.records += 1;
            if let Some(new) = keys.after(record.content, &record.data, record.changes_key) {
                let id = context.id.0 + 1;
                nic.destroy(&mut context);
                let start = reader.rekey(&new, ContextId(id));
                context = nic.create(create(id, start, &new)).unwrap();
            }
        }
        for answer in reader.take_answers() {
            nic.resync_response(&mut context, answer.tcpsn, answer.number);
        }
    }
    // Whatever is left is the beginning of a record that the capture cuts off.
    assert!(half.stream.len() - at < 17_000, "{} bytes are left", half.stream.len() - at);
    tally.offloaded += reader.counters().offloaded;
    tally.partly += reader.counters().partly_offloaded;
}

fn session(connection: &Connection, log: &BTreeMap<(String, Vec<u8>), Vec<u8>>, tally: &mut Tally) {
    let Some(hellos) = Hellos::parse(&connection.client.stream, &connection.server.stream) else {
        return;
    };
    let Some(suite) = Suite::of(hellos.suite) else {
        return;
    };
    let secret = |label: &str| log.get(&(label.to_string(), hellos.client_random.clone()));
    let keys: [Keys; 2] = if suite.version == Version::Tls12 {
        let Some(master) = secret("CLIENT_RANDOM") else {
            return;
        };
        let both = suite.keys_of_master(master, &hellos.client_random, &hellos.server_random);
        both.map(|now| Keys { now, application: None, secret: Vec::new(), suite })
    } else {
        let of = |side: &str| {
            let handshake = secret(&format!("{side}_HANDSHAKE_TRAFFIC_SECRET"))?;
            let application = secret(&format!("{side}_TRAFFIC_SECRET_0"))?;
            Some(Keys {
                now: suite.keys_of(handshake),
                application: Some(suite.keys_of(application)),
                secret: application.clone(),
                suite,
            })
        };
        let (Some(client), Some(server)) = (of("CLIENT"), of("SERVER")) else {
            return;
        };
        [client, server]
    };
    let [client, server] = keys;
    tally.sessions += 1;
    run(&connection.client, client, tally);
    run(&connection.server, server, tally);
}

fn tally(capture: &str, keys: &str) -> Option<Tally> {
    let (capture, keys) = (shared(capture)?, shared(keys)?);
    let log = key_log(&keys);
    let mut tally = Tally::default();
    for connection in connections(&capture) {
        session(&connection, &log, &mut tally);
    }
    println!("{capture:?}: {tally:?}");
    Some(tally)
}

#[test]
fn sixteen_sessions_of_tls13() {
    let Some(tally) = tally("pcap/tls/mercury-test_decrypt.pcap", "pcap/tls/mercury-test_decrypt.keys") else { return };
    // The key log has none of the four sessions of TLS 1.2.
    assert_eq!(tally.sessions, 16);
    assert!(tally.records > 200 && tally.offloaded > 200, "{tally:?}");
}

#[test]
fn every_authenticated_cipher_suite_of_tls12() {
    let Some(tally) = tally("pcap/tls/pcapfs-all_ciphers.pcap", "pcap/tls/pcapfs-all_ciphers.keys") else { return };
    assert!(tally.sessions >= 8 && tally.records >= 4 * tally.sessions, "{tally:?}");
}

#[test]
fn the_illustrated_session() {
    let Some(tally) = tally("pcap/tls/illustrated-tls13.pcap", "pcap/tls/illustrated-tls13.keys") else { return };
    assert_eq!(tally.sessions, 1);
    assert!(tally.records >= 6, "{tally:?}");
}

#[test]
fn segments_out_of_order() {
    let made = ["t1-tls13-aes128gcm-ooo", "t3-tls13-chacha-reorder"];
    for name in made {
        let (capture, keys) = (format!("tls-made/{name}.pcap"), format!("tls-made/{name}.keys"));
        let Some(tally) = tally(&capture, &keys) else { return };
        assert_eq!(tally.sessions, 1);
        assert!(tally.records > 40 && tally.offloaded > 0 && tally.packets_processed > 0, "{tally:?}");
    }
}
