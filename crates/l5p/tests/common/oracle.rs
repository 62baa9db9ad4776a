//! TLS records by another library: the oracle.

use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, HEADER_BYTES, Shape, TAG_BYTES, Version};
use ring::aead;

fn key(keys: &TlsKeys) -> aead::LessSafeKey {
    let algorithm = match keys.cipher {
        Cipher::Aes128Gcm => &aead::AES_128_GCM,
        Cipher::Aes256Gcm => &aead::AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
    };
    aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, &keys.key[..keys.cipher.key_bytes()]).unwrap())
}

fn nonce(keys: &TlsKeys, number: u64, record: &[u8]) -> aead::Nonce {
    let mut nonce = keys.iv;
    if Shape::of(keys.version, keys.cipher).explicit_bytes > 0 {
        nonce[4..].copy_from_slice(&record[HEADER_BYTES..HEADER_BYTES + 8]);
    } else {
        nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(a, b)| *a ^= b);
    }
    aead::Nonce::assume_unique_for_key(nonce)
}

fn additional(keys: &TlsKeys, number: u64, record: &[u8]) -> Vec<u8> {
    if keys.version == Version::Tls13 {
        return record[..HEADER_BYTES].to_vec();
    }
    let plain = record.len() - Shape::of(keys.version, keys.cipher).data_at() - TAG_BYTES;
    [&number.to_be_bytes()[..], &record[..3], &(plain as u16).to_be_bytes()].concat()
}

/// Encrypts a prepared record.
pub fn seal(keys: &TlsKeys, number: u64, record: &mut [u8]) {
    let data_at = Shape::of(keys.version, keys.cipher).data_at();
    let tag_at = record.len() - TAG_BYTES;
    let (nonce, additional) = (nonce(keys, number, record), additional(keys, number, record));
    let data = &mut record[data_at..tag_at];
    let tag = key(keys).seal_in_place_separate_tag(nonce, aead::Aad::from(additional), data).unwrap();
    record[tag_at..].copy_from_slice(tag.as_ref());
}

/// Decrypts a record; `None` when it is not authentic.
pub fn open(keys: &TlsKeys, number: u64, record: &[u8]) -> Option<Vec<u8>> {
    let data_at = Shape::of(keys.version, keys.cipher).data_at();
    let (nonce, additional) = (nonce(keys, number, record), additional(keys, number, record));
    let mut data = record[data_at..].to_vec();
    let plain = key(keys).open_in_place(nonce, aead::Aad::from(additional), &mut data).ok()?;
    Some(plain.to_vec())
}
