//! Any split of a record gives what one call of another library gives.

use nicforge_l5p::context::{Context, ContextId, FlowKey, Start};
use nicforge_l5p::engine::{Create, Descriptor, Engine, Executed, Outcome};
use nicforge_l5p::host::{FlatMemory, HostBuffers};
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, ContentType, Version};
use nicforge_l5p::tls::software::SoftwareTls;
use nicforge_l5p::tls::writer::RecordWriter;
use proptest::prelude::*;

use crate::common::oracle;
use crate::common::tls_rig::keys;

fn suite() -> impl Strategy<Value = (Version, Cipher)> {
    let versions = prop_oneof![Just(Version::Tls12), Just(Version::Tls13)];
    let ciphers = prop_oneof![Just(Cipher::Aes128Gcm), Just(Cipher::Aes256Gcm), Just(Cipher::ChaCha20Poly1305)];
    (versions, ciphers)
}

fn context(engine: &mut Engine, keys: &TlsKeys, direction: Direction, start: Start) -> Context {
    let protocol = registry::find("tls").unwrap();
    let create = Create { id: ContextId(1), flow: FlowKey::default(), protocol, direction, start, state: keys.state() };
    engine.create(create).unwrap()
}

/// A prepared record as software hands it to TCP.
fn prepare(keys: &TlsKeys, start: Start, data: &[u8], padding: usize) -> Vec<u8> {
    let mut memory = FlatMemory::default();
    let data = memory.place(data);
    let pieces = RecordWriter::new(keys, start).write(&mut memory, ContentType::DATA, data, padding).unwrap();
    pieces.iter().flat_map(|piece| memory.view(*piece).unwrap().to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_split_gives_what_one_call_gives(
        (version, cipher) in suite(),
        data in proptest::collection::vec(any::<u8>(), 0..2000),
        padding in 0_usize..40,
        number in any::<u64>(),
        cuts in proptest::collection::vec(1_usize..300, 1..40),
    ) {
        let keys = keys(version, cipher, 3);
        let start = Start { tcpsn: Seq(u32::MAX - 100), number };
        let prepared = prepare(&keys, start, &data, padding);
        let mut truth = prepared.clone();
        oracle::seal(&keys, number, &mut truth);

        let mut sealed = prepared.clone();
        SoftwareTls::new(&keys).seal(number, &mut sealed);
        prop_assert_eq!(&sealed, &truth, "software");

        let mut engine = Engine::default();
        let mut memory = FlatMemory::default();
        let mut transmit = context(&mut engine, &keys, Direction::Transmit, start);
        let mut receive = context(&mut engine, &keys, Direction::Receive, start);
        let mut cuts = cuts.iter().cycle();
        let mut at = 0;
        while at < prepared.len() {
            let bytes = (*cuts.next().unwrap()).min(prepared.len() - at);
            let seq = start.tcpsn.plus(at);
            let packet = Descriptor::Packet { seq, payload: prepared[at..at + bytes].to_vec() };
            let Executed::Sent { mut payload, .. } = engine.execute(&mut transmit, &mut memory, packet).unwrap() else {
                panic!("a packet leaves")
            };
            prop_assert_eq!(&payload[..], &truth[at..at + bytes], "transmit");
            let received = engine.receive(&mut receive, &mut memory, seq, &mut payload);
            prop_assert_eq!(received.outcome, Outcome::Offloaded);
            // The tag is not written back; all else is as software prepared it.
            let end = (at + bytes).min(prepared.len() - 16).max(at) - at;
            prop_assert_eq!(&payload[..end], &prepared[at..at + end], "receive");
            at += bytes;
        }
    }

    #[test]
    fn a_damaged_record_goes_up_unmodified(
        (version, cipher) in suite(),
        data in proptest::collection::vec(any::<u8>(), 1..500),
        place in any::<prop::sample::Index>(),
        bit in 0_u32..8,
    ) {
        let keys = keys(version, cipher, 4);
        let start = Start { tcpsn: Seq(9), number: 77 };
        let mut record = prepare(&keys, start, &data, 0);
        oracle::seal(&keys, 77, &mut record);
        let place = 5 + place.index(record.len() - 5);
        record[place] ^= 1_u8 << bit;
        let mut engine = Engine::default();
        let mut context = context(&mut engine, &keys, Direction::Receive, start);
        let mut payload = record.clone();
        let received = engine.receive(&mut context, &mut FlatMemory::default(), start.tcpsn, &mut payload);
        prop_assert_eq!(received.outcome, Outcome::Failed);
        prop_assert_eq!(&payload, &record);
        prop_assert!(SoftwareTls::new(&keys).open(77, &mut payload).is_err());
        prop_assert!(oracle::open(&keys, 77, &record).is_none());
    }
}
