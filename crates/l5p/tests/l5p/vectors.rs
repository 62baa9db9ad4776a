//! Published vectors: AES-GCM, ChaCha20-Poly1305 and CRC-32C, in pieces. Wycheproof's files are found in the folder
//! that `NICFORGE_WYCHEPROOF` names (`testvectors_v1` of C2SP/wycheproof).

use nicforge_l5p::tls::chacha;
use nicforge_l5p::tls::gcm::GcmKey;

use crate::common::Dice;
use crate::common::capture::{hex, shared};

/// Encrypts or decrypts in pieces and returns the text and the tag.
trait Aead {
    fn run(
        &self,
        nonce: &[u8; 12],
        additional: &[u8],
        text: &[u8],
        encrypts: bool,
        dice: &mut Dice,
    ) -> (Vec<u8>, [u8; 16]);
}

/// Pieces of random lengths.
fn pieces(text: &mut [u8], dice: &mut Dice, mut each: impl FnMut(u32, &mut [u8])) {
    let mut at = 0;
    while at < text.len() {
        let bytes = dice.range(1, 70).min(text.len() - at);
        each(at as u32, &mut text[at..at + bytes]);
        at += bytes;
    }
}

impl Aead for GcmKey {
    fn run(
        &self,
        nonce: &[u8; 12],
        additional: &[u8],
        text: &[u8],
        encrypts: bool,
        dice: &mut Dice,
    ) -> (Vec<u8>, [u8; 16]) {
        let mut text = text.to_vec();
        let mut hash = self.begin(additional);
        pieces(&mut text, dice, |at, piece| {
            if encrypts {
                self.apply_keystream(nonce, at, piece);
            }
            self.absorb(&mut hash, u64::from(at), piece);
            if !encrypts {
                self.apply_keystream(nonce, at, piece);
            }
        });
        let tag = self.tag(hash, nonce, additional.len() as u64, text.len() as u64);
        (text, tag)
    }
}

struct ChaCha([u8; 32]);

impl Aead for ChaCha {
    fn run(
        &self,
        nonce: &[u8; 12],
        additional: &[u8],
        text: &[u8],
        encrypts: bool,
        dice: &mut Dice,
    ) -> (Vec<u8>, [u8; 16]) {
        let mut text = text.to_vec();
        let one_time = chacha::one_time_key(&self.0, nonce);
        let mut hash = chacha::begin(&one_time, additional);
        pieces(&mut text, dice, |at, piece| {
            if encrypts {
                chacha::apply_keystream(&self.0, nonce, at, piece);
            }
            chacha::absorb(&one_time, &mut hash, u64::from(at), piece);
            if !encrypts {
                chacha::apply_keystream(&self.0, nonce, at, piece);
            }
        });
        let tag = chacha::tag(&one_time, hash, additional.len() as u64, text.len() as u64);
        (text, tag)
    }
}

struct Vector {
    nonce: [u8; 12],
    additional: Vec<u8>,
    plain: Vec<u8>,
    cipher: Vec<u8>,
    tag: Vec<u8>,
    is_valid: bool,
}

fn check(aead: &dyn Aead, vector: &Vector, dice: &mut Dice, what: &str) {
    let (plain, tag) = aead.run(&vector.nonce, &vector.additional, &vector.cipher, false, dice);
    assert_eq!(tag[..] == vector.tag[..], vector.is_valid, "{what}: tag");
    if vector.is_valid {
        assert_eq!(plain, vector.plain, "{what}: plaintext");
        let (cipher, tag) = aead.run(&vector.nonce, &vector.additional, &vector.plain, true, dice);
        assert_eq!((cipher, &tag[..]), (vector.cipher.clone(), &vector.tag[..]), "{what}: ciphertext");
    }
}

fn aead(key: &[u8], is_chacha: bool) -> Option<Box<dyn Aead>> {
    if is_chacha {
        return Some(Box::new(ChaCha(key.try_into().ok()?)));
    }
    match key.len() {
        16 => Some(Box::new(GcmKey::aes128(key.try_into().ok()?))),
        32 => Some(Box::new(GcmKey::aes256(key.try_into().ok()?))),
        _ => None,
    }
}

#[test]
fn aes128_gcm() {
    let Some(path) = shared("vectors/aes128_gcm.toml") else { return };
    let table: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let mut checked = 0;
    for case in table["case"].as_array().unwrap() {
        let field = |name: &str| hex(case[name].as_str().unwrap());
        let Ok(nonce) = field("iv").try_into() else {
            continue; // Records have nonces of 12 bytes only.
        };
        let vector = Vector {
            nonce,
            additional: field("aad"),
            plain: field("plaintext"),
            cipher: field("ciphertext"),
            tag: field("tag"),
            is_valid: case["valid"].as_bool().unwrap(),
        };
        let key = aead(&field("key"), false).unwrap();
        for seed in 0..5 {
            check(&*key, &vector, &mut Dice::new(seed), case["source"].as_str().unwrap());
        }
        checked += 1;
    }
    assert!(checked >= 10, "{checked} cases");
}

#[test]
fn crc32c() {
    let Some(path) = shared("vectors/crc32c.toml") else { return };
    let table: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    for case in table["case"].as_array().unwrap() {
        let (data, wire) = (hex(case["data"].as_str().unwrap()), hex(case["wire"].as_str().unwrap()));
        for split in 0..=data.len() {
            let state = nicforge_l5p::crc::update(nicforge_l5p::crc::BEGIN, &data[..split]);
            let state = nicforge_l5p::crc::update(state, &data[split..]);
            assert_eq!(nicforge_l5p::crc::finish(state)[..], wire);
        }
        assert_eq!(crate::common::storage::crc32c(&data)[..], wire);
    }
}

#[test]
fn wycheproof() {
    let Ok(folder) = std::env::var("NICFORGE_WYCHEPROOF") else {
        println!("skipped: NICFORGE_WYCHEPROOF names no folder with Wycheproof's test vectors");
        return;
    };
    for (file, is_chacha, least) in [("aes_gcm_test.json", false, 100), ("chacha20_poly1305_test.json", true, 200)] {
        let text = std::fs::read_to_string(std::path::Path::new(&folder).join(file)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let (mut checked, mut left_out) = (0, 0);
        for group in json["testGroups"].as_array().unwrap() {
            for test in group["tests"].as_array().unwrap() {
                let field = |name: &str| hex(test[name].as_str().unwrap());
                let (Ok(nonce), Some(key), 16) =
                    (field("iv").try_into(), aead(&field("key"), is_chacha), field("tag").len())
                else {
                    left_out += 1; // Not what a record has: nonces of 12 bytes, keys of 16 or 32, tags of 16.
                    continue;
                };
                let vector = Vector {
                    nonce,
                    additional: field("aad"),
                    plain: field("msg"),
                    cipher: field("ct"),
                    tag: field("tag"),
                    is_valid: test["result"] == "valid",
                };
                let what = format!("{file} {}", test["tcId"]);
                for seed in 0..3 {
                    check(&*key, &vector, &mut Dice::new(seed), &what);
                }
                checked += 1;
            }
        }
        println!("{file}: {checked} checked, {left_out} of other sizes");
        assert!(checked >= least);
    }
}
