//! The fuzz targets' seeds, and random bytes, through the same functions as the fuzz targets.

use std::path::PathBuf;

use nicforge_l5p::context::Start;
use nicforge_l5p::host::{FlatMemory, HostBuffers};
use nicforge_l5p::nvme::initiator::{Initiator, InitiatorConfig};
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, ContentType, Version};
use nicforge_l5p::tls::software::SoftwareTls;
use nicforge_l5p::tls::writer::RecordWriter;
use nicforge_l5p::toy;
use proptest::prelude::*;

use crate::exercise;

fn seeds(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target)
}

fn run(target: &str, exercise: fn(&[u8])) {
    let mut files = 0;
    for entry in std::fs::read_dir(seeds(target)).unwrap() {
        exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 3, "seeds of {target} are missing");
}

#[test]
fn seeds_of_contexts() {
    run("contexts", exercise::packets);
}

#[test]
fn seeds_of_resync() {
    run("resync", exercise::resync);
}

#[test]
fn seeds_of_pdus() {
    run("pdus", exercise::pdus);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn random_bytes(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise::packets(&data);
        exercise::pdus(&data);
        exercise::resync(&data);
    }
}

/// A packet of a script: in sequence, with these bytes.
fn packet(payload: &[u8]) -> Vec<u8> {
    payload.chunks(255).flat_map(|piece| [&[0, piece.len() as u8][..], piece, &[0, 0]].concat()).collect()
}

#[test]
#[ignore = "writes the seeds; run it when they shall change"]
fn rewrite_the_seeds() {
    let write = |target: &str, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(seeds(target)).unwrap();
        std::fs::write(seeds(target).join(name), bytes).unwrap();
    };
    let mut messages = Vec::new();
    for number in 0..3 {
        let mut message = toy::prepare(&[number as u8; 50]);
        toy::seal(5, number, &mut message);
        messages.extend(message);
    }
    write("contexts", "toy", &[&[0, 0, 9, 0][..], &packet(&messages)].concat());
    // Options 3: TLS 1.3 and AES-256-GCM, as `exercise` reads them.
    let keys = TlsKeys { version: Version::Tls13, cipher: Cipher::Aes256Gcm, key: [3; 32], iv: [3; 12] };
    let mut memory = FlatMemory::default();
    let data = memory.place(&[1; 100]);
    let start = Start { tcpsn: Seq(9 << 16), number: 0 };
    let pieces = RecordWriter::new(&keys, start).write(&mut memory, ContentType::DATA, data, 0).unwrap();
    let prepared: Vec<u8> = pieces.iter().flat_map(|piece| memory.view(*piece).unwrap().to_vec()).collect();
    let mut sealed = prepared.clone();
    SoftwareTls::new(&keys).seal(0, &mut sealed);
    write("contexts", "tls-receive", &[&[1, 3, 9, 0][..], &packet(&sealed)].concat());
    let keys = TlsKeys { key: [0x23; 32], ..keys };
    assert_eq!(keys.cipher, Cipher::Aes256Gcm);
    write("contexts", "tls-transmit", &[&[1, 0x23, 9, 0][..], &packet(&prepared)].concat());
    write("resync", "all-well", &[&[0, 1][..], &[40; 40], &[90, 1].repeat(60)].concat());
    write("resync", "every-third-lost", &[&[0, 1][..], &[40; 40], &[30, 1, 60, 1, 20, 0].repeat(40)].concat());
    write("resync", "software-lies", &[&[0, 1][..], &[40; 40], &[30, 25, 7, 60, 0, 20, 9].repeat(40)].concat());
    let digests = Digests { header: true, data: true };
    let config = InitiatorConfig { digests, depth: 4, block_bytes: 512, in_capsule_max: 4096, offloads: false };
    let mut host = Initiator::new(config, Seq(0), Seq(0), &mut memory).unwrap();
    let piece = host.connection.next_output().unwrap();
    let request = memory.view(piece).unwrap().to_vec();
    write("pdus", "initialise", &[&[3][..], &request_packet(&request)].concat());
    let mut response = request.clone();
    response[0] = 1;
    write("pdus", "response", &[&[7][..], &request_packet(&response)].concat());
    let mut capsule = vec![4, 0, 72, 0, 72, 0, 0, 0, 2];
    capsule.resize(72, 0);
    write("pdus", "command", &[&[0][..], &request_packet(&request), &request_packet(&capsule)].concat());
}

/// Bytes for `pdus`, which has no kinds of packets.
fn request_packet(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8][..], bytes, &[0, 0]].concat()
}
