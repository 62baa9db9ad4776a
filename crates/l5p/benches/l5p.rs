//! Speed of the engine beside the libraries that it stands on, in the same run: bytes per second, the best of many
//! short rounds, engine and library taking turns.
//!
//!     cargo bench -p nicforge-l5p

use std::hint::black_box;
use std::time::Instant;

use aes::cipher::{KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use nicforge_l5p::context::{CONTEXT_BYTES, Context, ContextId, FlowKey, Start, State};
use nicforge_l5p::crc;
use nicforge_l5p::engine::{Create, Descriptor, Engine, Outcome};
use nicforge_l5p::host::FlatMemory;
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::nvme::pdu::{CommonHeader, Digests, PduType, Transfer, flags};
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, ContentType, RecordHeader, Version};
use nicforge_l5p::tls::software::SoftwareTls;
use ring::aead;

/// A round is a single pass of about a millisecond, so that on a busy machine some rounds are not interrupted.
const ROUNDS: usize = 300;
/// Records of 16 KiB in a pass.
const RECORDS: usize = 64;

/// A thing to measure: processes one pass over its data and tells how many bytes that were.
struct Job<'a> {
    name: String,
    pass: Box<dyn FnMut() -> usize + 'a>,
    best: f64,
}

impl<'a> Job<'a> {
    fn new(name: impl Into<String>, pass: impl FnMut() -> usize + 'a) -> Self {
        Self { name: name.into(), pass: Box::new(pass), best: 0.0 }
    }

    fn round(&mut self) {
        let begin = Instant::now();
        let bytes = (self.pass)();
        self.best = self.best.max(bytes as f64 / begin.elapsed().as_secs_f64() / 1e9);
    }
}

/// Measures jobs in turns, and prints each with its share of the second one, the library.
fn measure(title: &str, rounds: usize, mut jobs: Vec<Job<'_>>) {
    for _ in 0..rounds {
        jobs.iter_mut().for_each(Job::round);
    }
    println!("{title}");
    let library = jobs[1].best;
    for job in jobs {
        println!("  {:44} {:7.2} GB/s {:6.0} % of the library", job.name, job.best, 100.0 * job.best / library);
    }
}

fn context(engine: &mut Engine, protocol: &str, direction: Direction, state: State) -> Context {
    let protocol = registry::find(protocol).expect("a protocol of the registry");
    let start = Start { tcpsn: Seq(1), number: 0 };
    let create = Create { id: ContextId(1), flow: FlowKey::default(), protocol, direction, start, state };
    engine.create(create).expect("a known protocol")
}

fn keys(cipher: Cipher) -> TlsKeys {
    let mut key = [7; 32];
    key[cipher.key_bytes()..].fill(0);
    TlsKeys { version: Version::Tls13, cipher, key, iv: [9; 12] }
}

/// Prepared records of 16 KiB.
fn prepared() -> Vec<u8> {
    let mut record = RecordHeader { content: ContentType::DATA, payload_bytes: 16384 + 17 }.to_bytes().to_vec();
    record.extend_from_slice(&[5; 16384]);
    record.push(ContentType::DATA.0);
    record.extend_from_slice(&[0; 16]);
    record.repeat(RECORDS)
}

/// Packets through the engine, each with its context fetched from memory and written back.
fn receive<'a>(name: &str, protocol: &'a str, state: State, stream: &'a [u8], piece: usize) -> Job<'a> {
    let mut engine = Engine::default();
    let mut memory = FlatMemory::default();
    let start = context(&mut engine, protocol, Direction::Receive, state);
    let mut payload = vec![0; piece];
    Job::new(name, move || {
        let mut stored: [u8; CONTEXT_BYTES] = start.to_bytes();
        let mut seq = Seq(1);
        for packet in stream.chunks(piece) {
            let payload = &mut payload[..packet.len()];
            payload.copy_from_slice(packet);
            let mut context = Context::from_bytes(black_box(&stored));
            let received = engine.receive(&mut context, &mut memory, seq, payload);
            assert_eq!(received.outcome, Outcome::Offloaded);
            stored = context.to_bytes();
            seq = seq.plus(packet.len());
        }
        stream.len()
    })
}

fn transmit<'a>(name: &str, state: State, stream: &'a [u8], piece: usize) -> Job<'a> {
    let mut engine = Engine::default();
    let mut memory = FlatMemory::default();
    let start = context(&mut engine, "tls", Direction::Transmit, state);
    Job::new(name, move || {
        let mut context = start;
        let mut seq = Seq(1);
        for packet in stream.chunks(piece) {
            let descriptor = Descriptor::Packet { seq, payload: packet.to_vec() };
            black_box(engine.execute(&mut context, &mut memory, descriptor)).expect("a packet leaves");
            seq = seq.plus(packet.len());
        }
        stream.len()
    })
}

/// What the library does to a piece.
type Apply<'a> = Box<dyn FnMut(&mut [u8]) + 'a>;

/// The library's own stream, with one key and one state for all pieces.
fn library<'a>(cipher: Cipher, stream: &'a [u8], piece: usize) -> Job<'a> {
    let each = move |mut apply: Apply<'a>| {
        let mut payload = vec![0; piece];
        move || {
            for packet in stream.chunks(piece) {
                let payload = &mut payload[..packet.len()];
                payload.copy_from_slice(packet);
                apply(payload);
            }
            stream.len()
        }
    };
    let name = "library, streaming";
    match cipher {
        Cipher::ChaCha20Poly1305 => {
            let mut stream_cipher = chacha20::ChaCha20::new(&[7; 32].into(), &[9; 12].into());
            let mut hash = poly1305::Poly1305::new(&[3; 32].into());
            Job::new(
                name,
                each(Box::new(move |bytes| {
                    hash.update_padded(bytes);
                    if stream_cipher.current_pos::<u64>() > 1 << 30 {
                        stream_cipher.seek(0_u64);
                    }
                    stream_cipher.apply_keystream(bytes);
                })),
            )
        }
        Cipher::Aes128Gcm => {
            let mut stream_cipher = ctr::Ctr32BE::<aes::Aes128Enc>::new(&[7; 16].into(), &[9; 16].into());
            let mut hash = GHash::new(&[3; 16].into());
            Job::new(name, each(Box::new(move |bytes| gcm_piece(&mut hash, &mut stream_cipher, bytes))))
        }
        Cipher::Aes256Gcm => {
            let mut stream_cipher = ctr::Ctr32BE::<aes::Aes256Enc>::new(&[7; 32].into(), &[9; 16].into());
            let mut hash = GHash::new(&[3; 16].into());
            Job::new(name, each(Box::new(move |bytes| gcm_piece(&mut hash, &mut stream_cipher, bytes))))
        }
    }
}

fn gcm_piece(hash: &mut GHash, cipher: &mut (impl StreamCipher + StreamCipherSeek), bytes: &mut [u8]) {
    hash.update_padded(bytes);
    if cipher.current_pos::<u64>() > 1 << 30 {
        cipher.seek(0_u64);
    }
    cipher.apply_keystream(bytes);
}

/// A second peer: one call per piece, with tag.
fn one_shot<'a>(cipher: Cipher, stream: &'a [u8], piece: usize) -> Job<'a> {
    let algorithm = match cipher {
        Cipher::Aes128Gcm => &aead::AES_128_GCM,
        Cipher::Aes256Gcm => &aead::AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
    };
    let key = aead::UnboundKey::new(algorithm, &[7; 32][..cipher.key_bytes()]).expect("a key of the right size");
    let key = aead::LessSafeKey::new(key);
    let mut payload = vec![0; piece];
    Job::new("ring, one call per piece", move || {
        for packet in stream.chunks(piece) {
            let payload = &mut payload[..packet.len()];
            payload.copy_from_slice(packet);
            let nonce = aead::Nonce::assume_unique_for_key([9; 12]);
            let tag = key.seal_in_place_separate_tag(nonce, aead::Aad::from([0; 5]), payload).expect("short enough");
            black_box(tag.as_ref());
        }
        stream.len()
    })
}

fn tls() {
    let plain = prepared();
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let keys = keys(cipher);
        let mut sealed = plain.clone();
        let mut software = SoftwareTls::new(&keys);
        (0..).zip(sealed.chunks_mut(plain.len() / RECORDS)).for_each(|(number, record)| software.seal(number, record));
        for piece in [1448, 16384] {
            let jobs = vec![
                receive("engine, receive", "tls", keys.state(), &sealed, piece),
                library(cipher, &sealed, piece),
                transmit("engine, transmit", keys.state(), &plain, piece),
                one_shot(cipher, &sealed, piece),
            ];
            measure(&format!("{cipher:?}, records of 16 KiB, pieces of {piece} bytes"), ROUNDS, jobs);
        }
    }
}

/// PDUs of data with both digests, of no command that the NIC knows.
fn pdus() -> Vec<u8> {
    let data = vec![5; 1 << 17];
    let length = (24 + 4 + data.len() + 4) as u32;
    let flags = flags::HEADER_DIGEST | flags::DATA_DIGEST;
    let mut pdu = CommonHeader { kind: PduType::C2hData, flags, data_at: 28, length }.to_bytes().to_vec();
    let transfer = Transfer { command: 1, tag: 0, offset: 0, length: data.len() as u32 };
    pdu.extend_from_slice(&transfer.to_bytes());
    let digest = crc::digest(&pdu);
    pdu.extend_from_slice(&digest);
    pdu.extend_from_slice(&data);
    pdu.extend_from_slice(&crc::digest(&data));
    pdu.repeat(8)
}

fn digests() {
    let stream = pdus();
    let state = NvmeState::state(Digests { header: true, data: true });
    for piece in [1448, 16384] {
        let bytes = &stream;
        let mut payload = vec![0; piece];
        let library = Job::new("library, streaming", move || {
            let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
            for packet in bytes.chunks(piece) {
                let payload = &mut payload[..packet.len()];
                payload.copy_from_slice(packet);
                digest.update(payload);
            }
            black_box(digest.finalize());
            bytes.len()
        });
        let jobs = vec![receive("engine, receive", "nvme_tcp", state, &stream, piece), library];
        measure(&format!("NVMe/TCP with both digests, PDUs of 128 KiB, pieces of {piece} bytes"), ROUNDS, jobs);
    }
    let large = vec![3_u64; 32 << 20];
    let bytes: &[u8] = bytemuck::cast_slice(&large);
    let jobs = vec![
        Job::new("CRC-32C, 256 MiB at once", || {
            black_box(crc::update(crc::BEGIN, black_box(bytes)));
            bytes.len()
        }),
        Job::new("sum of the same words: memory's own speed", || {
            black_box(black_box(&large[..]).iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
            bytes.len()
        }),
    ];
    measure("CRC-32C beside memory (here `library` is the sum)", 10, jobs);
}

fn main() {
    tls();
    digests();
}
