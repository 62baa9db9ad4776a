//! ChaCha20-Poly1305 in pieces (RFC 8439), over RustCrypto's ChaCha20 kernel.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};

use super::poly1305::{self, Limbs, Multiplier};

/// The one-time key of a message: `r` and `s`.
pub type OneTimeKey = [[u8; 16]; 2];

/// The one-time key: the first half of the keystream's block 0.
pub fn one_time_key(key: &[u8; 32], nonce: &[u8; 12]) -> OneTimeKey {
    let mut block = [[0; 16]; 2];
    ChaCha20::new(key.into(), nonce.into()).apply_keystream(block.as_flattened_mut());
    block
}

/// Adds the keystream from byte `at` of the message on; the message begins with block 1.
pub fn apply_keystream(key: &[u8; 32], nonce: &[u8; 12], at: u32, bytes: &mut [u8]) {
    let mut cipher = ChaCha20::new(key.into(), nonce.into());
    cipher.seek(u64::from(at) + 64);
    cipher.apply_keystream(bytes);
}

/// Begins the hash with the additional data.
pub fn begin(one_time: &OneTimeKey, additional: &[u8]) -> Limbs {
    let multiplier = Multiplier::new(&one_time[0], additional.len());
    let mut hash = [0; 3];
    multiplier.absorb(&mut hash, 0, additional);
    multiplier.pad(&mut hash, additional.len() as u64);
    hash
}

/// Hashes ciphertext that begins at byte `at` of the message.
pub fn absorb(one_time: &OneTimeKey, hash: &mut Limbs, at: u64, ciphertext: &[u8]) {
    Multiplier::new(&one_time[0], ciphertext.len()).absorb(hash, at, ciphertext);
}

/// The tag, once the last byte is hashed.
pub fn tag(one_time: &OneTimeKey, mut hash: Limbs, additional_bytes: u64, bytes: u64) -> [u8; 16] {
    let multiplier = Multiplier::new(&one_time[0], 16);
    multiplier.pad(&mut hash, bytes);
    let mut lengths = [0; 16];
    lengths[..8].copy_from_slice(&additional_bytes.to_le_bytes());
    lengths[8..].copy_from_slice(&bytes.to_le_bytes());
    multiplier.absorb(&mut hash, 0, &lengths);
    poly1305::tag(&hash, &one_time[1])
}
