//! A record's cryptography at any byte: what the NIC and the software fallback both do.

use bytemuck::{Pod, Zeroable};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::chacha::{self, OneTimeKey};
use super::record::{Cipher, HEADER_BYTES, Shape, TAG_BYTES, Version};
use crate::keys::KeyCache;

/// Keys of one direction from a handshake or an update, as software hands them to the NIC.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct TlsKeys {
    /// Protocol version.
    #[zeroize(skip)]
    pub version: Version,
    /// Cipher.
    #[zeroize(skip)]
    pub cipher: Cipher,
    /// The key; a key of 128 bits fills the first half.
    pub key: [u8; 32],
    /// The nonce's fixed part: 12 bytes, or in TLS 1.2 with GCM the first 4.
    pub iv: [u8; 12],
}

/// What a context holds of TLS.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct TlsState {
    /// Hash so far, and the tag from the last byte of data on.
    hash: [u64; 3],
    /// Poly1305's key of this record; AES-GCM does not use it.
    one_time: OneTimeKey,
    key: [u8; 32],
    iv: [u8; 12],
    cipher: u8,
    version: u8,
    /// Bits in which the tag differs from what came.
    difference: u8,
    unused: u8,
    /// The nonce's part on the wire.
    explicit: [u8; 8],
}

impl TlsState {
    /// The state before the first record.
    pub fn new(keys: &TlsKeys) -> Self {
        Self { key: keys.key, iv: keys.iv, cipher: keys.cipher as u8, version: keys.version as u8, ..Self::zeroed() }
    }

    /// Protocol version.
    pub fn version(&self) -> Version {
        if self.version == Version::Tls12 as u8 { Version::Tls12 } else { Version::Tls13 }
    }

    /// Cipher.
    pub fn cipher(&self) -> Cipher {
        match self.cipher {
            0 => Cipher::Aes128Gcm,
            1 => Cipher::Aes256Gcm,
            _ => Cipher::ChaCha20Poly1305,
        }
    }

    /// Where a record's parts are.
    pub fn shape(&self) -> Shape {
        Shape::of(self.version(), self.cipher())
    }

    /// The raw key.
    pub(super) fn key(&self) -> &[u8] {
        &self.key[..self.cipher().key_bytes()]
    }

    pub(super) fn set_explicit(&mut self, at: usize, bytes: &[u8]) {
        self.explicit[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The nonce: on the wire in TLS 1.2 with GCM, else out of the record's number.
    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        if self.shape().explicit_bytes > 0 {
            nonce[4..].copy_from_slice(&self.explicit);
        } else {
            nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
        }
        nonce
    }

    /// Begins a record.
    pub(super) fn begin(&mut self, keys: &mut KeyCache, number: u64, header: &[u8; HEADER_BYTES], length: usize) {
        self.difference = 0;
        let (additional, bytes) = self.additional(number, header, length);
        let additional = &additional[..bytes];
        if self.cipher() == Cipher::ChaCha20Poly1305 {
            self.one_time = chacha::one_time_key(&self.key, &self.nonce(number));
            self.hash = chacha::begin(&self.one_time, additional);
        } else {
            let hash = keys.gcm(self.key()).begin(additional);
            self.hash_bytes().copy_from_slice(&hash);
        }
    }

    /// Additional data: in TLS 1.3 the header, in TLS 1.2 the number and a header with the plaintext's length.
    fn additional(&self, number: u64, header: &[u8; HEADER_BYTES], length: usize) -> ([u8; 13], usize) {
        let mut additional = [0; 13];
        if self.version() == Version::Tls13 {
            additional[..HEADER_BYTES].copy_from_slice(header);
            return (additional, HEADER_BYTES);
        }
        additional[..8].copy_from_slice(&number.to_be_bytes());
        additional[8..11].copy_from_slice(&header[..3]);
        let plaintext = length - self.shape().data_at() - TAG_BYTES;
        additional[11..].copy_from_slice(&(plaintext as u16).to_be_bytes());
        (additional, 13)
    }

    /// Adds the keystream to data that begins at byte `at` of the encrypted part.
    pub(super) fn apply_keystream(&self, keys: &mut KeyCache, number: u64, at: u32, bytes: &mut [u8]) {
        let nonce = self.nonce(number);
        if self.cipher() == Cipher::ChaCha20Poly1305 {
            chacha::apply_keystream(&self.key, &nonce, at, bytes);
        } else {
            keys.gcm(self.key()).apply_keystream(&nonce, at, bytes);
        }
    }

    /// Hashes ciphertext that begins at byte `at` of the encrypted part.
    pub(super) fn absorb(&mut self, keys: &mut KeyCache, at: u32, ciphertext: &[u8]) {
        if self.cipher() == Cipher::ChaCha20Poly1305 {
            chacha::absorb(&self.one_time, &mut self.hash, u64::from(at), ciphertext);
        } else {
            keys.gcm(self.key()).absorb(self.hash_bytes(), u64::from(at), ciphertext);
        }
    }

    /// Encrypts data that begins at byte `at` of the encrypted part, and hashes the ciphertext.
    pub(super) fn encrypt(&mut self, keys: &mut KeyCache, number: u64, at: u32, bytes: &mut [u8]) {
        let nonce = self.nonce(number);
        if self.cipher() == Cipher::ChaCha20Poly1305 {
            chacha::apply_keystream(&self.key, &nonce, at, bytes);
            chacha::absorb(&self.one_time, &mut self.hash, u64::from(at), bytes);
        } else {
            let key = keys.gcm(self.key());
            key.apply_keystream(&nonce, at, bytes);
            key.absorb(self.hash_bytes(), u64::from(at), bytes);
        }
    }

    /// Hashes ciphertext that begins at byte `at` of the encrypted part, and decrypts it.
    pub(super) fn decrypt(&mut self, keys: &mut KeyCache, number: u64, at: u32, bytes: &mut [u8]) {
        let nonce = self.nonce(number);
        if self.cipher() == Cipher::ChaCha20Poly1305 {
            chacha::absorb(&self.one_time, &mut self.hash, u64::from(at), bytes);
            chacha::apply_keystream(&self.key, &nonce, at, bytes);
        } else {
            let key = keys.gcm(self.key());
            key.absorb(self.hash_bytes(), u64::from(at), bytes);
            key.apply_keystream(&nonce, at, bytes);
        }
    }

    /// Turns the hash into the tag: `length` bytes of the record have all been hashed but the tag.
    pub(super) fn make_tag(&mut self, keys: &mut KeyCache, number: u64, length: usize) {
        let bytes = (length - self.shape().data_at() - TAG_BYTES) as u64;
        let additional = if self.version() == Version::Tls13 { HEADER_BYTES as u64 } else { 13 };
        let tag = if self.cipher() == Cipher::ChaCha20Poly1305 {
            chacha::tag(&self.one_time, self.hash, additional, bytes)
        } else {
            let nonce = self.nonce(number);
            let hash = *self.hash_bytes();
            keys.gcm(self.key()).tag(hash, &nonce, additional, bytes)
        };
        self.hash_bytes().copy_from_slice(&tag);
    }

    /// Fills in a piece of the tag.
    pub(super) fn write_tag(&mut self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.hash_bytes()[at..at + into.len()]);
    }

    /// Compares a piece of the tag that came.
    pub(super) fn check_tag(&mut self, at: usize, came: &[u8]) {
        let tag = *self.hash_bytes();
        let pairs = tag[at..].iter().zip(came);
        self.difference = pairs.fold(self.difference, |difference, (made, came)| difference | (made ^ came));
    }

    /// Whether every byte of the tag that came was right.
    pub(super) fn is_authentic(&self) -> bool {
        self.difference == 0
    }

    fn hash_bytes(&mut self) -> &mut [u8; TAG_BYTES] {
        let (hash, _) = bytemuck::bytes_of_mut(&mut self.hash).split_first_chunk_mut().expect("24 bytes hold 16");
        hash
    }
}
