//! AES-GCM in pieces (NIST SP 800-38D), over the kernels of RustCrypto's `aes`, `ctr` and `ghash`.
//!
//! Between two pieces the whole state is sixteen bytes: the hash so far, with the bytes of an unfinished block
//! already added into it. The position in the keystream follows from the offset. GHASH is linear, so a fresh hasher
//! goes on where another stopped when the old value is added to the first block.

use aes::cipher::{BlockCipherEncrypt, InnerIvInit, KeyInit, StreamCipherCore};
use aes::{Aes128Enc, Aes256Enc};
use ctr::CtrCore;
use ctr::flavors::Ctr32BE;
use ghash::GHash;
use ghash::universal_hash::UniversalHash;

/// Bytes of a block.
pub const BLOCK: usize = 16;

enum BlockCipher {
    Aes128(Aes128Enc),
    Aes256(Aes256Enc),
}

/// An expanded key: AES round keys and GHASH's powers.
pub struct GcmKey {
    cipher: BlockCipher,
    hash: GHash,
}

impl GcmKey {
    /// Expands a key of 128 bits.
    pub fn aes128(key: &[u8; 16]) -> Self {
        Self::of(BlockCipher::Aes128(Aes128Enc::new(key.into())))
    }

    /// Expands a key of 256 bits.
    pub fn aes256(key: &[u8; 32]) -> Self {
        Self::of(BlockCipher::Aes256(Aes256Enc::new(key.into())))
    }

    fn of(cipher: BlockCipher) -> Self {
        let mut zero = [0; BLOCK].into();
        cipher.encrypt(&mut zero);
        Self { cipher, hash: GHash::new(&zero) }
    }

    /// Adds the keystream from byte `at` of the message on.
    pub fn apply_keystream(&self, nonce: &[u8; 12], at: u32, bytes: &mut [u8]) {
        let within = at as usize % BLOCK;
        let mut counter = at / BLOCK as u32 + 2;
        let mut rest = bytes;
        if within > 0 {
            let mut block = counter_block(nonce, counter).into();
            self.cipher.encrypt(&mut block);
            let (head, tail) = rest.split_at_mut(rest.len().min(BLOCK - within));
            head.iter_mut().zip(&block[within..]).for_each(|(byte, key)| *byte ^= key);
            rest = tail;
            counter += 1;
        }
        if rest.is_empty() {
            return;
        }
        let begin = counter_block(nonce, counter).into();
        match &self.cipher {
            BlockCipher::Aes128(aes) => {
                CtrCore::<_, Ctr32BE>::inner_iv_init(aes, &begin).apply_keystream_partial(rest.into())
            }
            BlockCipher::Aes256(aes) => {
                CtrCore::<_, Ctr32BE>::inner_iv_init(aes, &begin).apply_keystream_partial(rest.into())
            }
        }
    }

    /// Begins the hash with the additional data.
    pub fn begin(&self, additional: &[u8]) -> [u8; BLOCK] {
        let mut hash = [0; BLOCK];
        self.absorb(&mut hash, 0, additional);
        self.pad(&mut hash, additional.len() as u64);
        hash
    }

    /// Hashes ciphertext that begins at byte `at` of the message.
    pub fn absorb(&self, hash: &mut [u8; BLOCK], at: u64, ciphertext: &[u8]) {
        let within = (at % BLOCK as u64) as usize;
        let (head, rest) = ciphertext.split_at(ciphertext.len().min((BLOCK - within) % BLOCK));
        add(&mut hash[within..], head);
        let mut hasher = None;
        if within > 0 {
            if within + head.len() < BLOCK {
                return;
            }
            let mut begun = self.hash.clone();
            begun.update(&[(*hash).into()]);
            hasher = Some(begun);
        }
        let (blocks, tail) = ghash::Block::slice_as_chunks(rest);
        if let Some((first, others)) = blocks.split_first() {
            match &mut hasher {
                Some(begun) => begun.update(blocks),
                None => {
                    add(hash, first);
                    let mut begun = self.hash.clone();
                    begun.update(&[(*hash).into()]);
                    begun.update(others);
                    hasher = Some(begun);
                }
            }
        }
        if let Some(hasher) = hasher {
            *hash = hasher.finalize().into();
        }
        add(hash, tail);
    }

    /// Finishes a block that `bytes` bytes left unfinished.
    fn pad(&self, hash: &mut [u8; BLOCK], bytes: u64) {
        if !bytes.is_multiple_of(BLOCK as u64) {
            self.multiply(hash);
        }
    }

    fn multiply(&self, hash: &mut [u8; BLOCK]) {
        let mut hasher = self.hash.clone();
        hasher.update(&[(*hash).into()]);
        *hash = hasher.finalize().into();
    }

    /// The tag, once the last byte is hashed.
    pub fn tag(&self, mut hash: [u8; BLOCK], nonce: &[u8; 12], additional_bytes: u64, bytes: u64) -> [u8; BLOCK] {
        self.pad(&mut hash, bytes);
        add(&mut hash[..8], &(additional_bytes * 8).to_be_bytes());
        add(&mut hash[8..], &(bytes * 8).to_be_bytes());
        self.multiply(&mut hash);
        let mut mask = counter_block(nonce, 1).into();
        self.cipher.encrypt(&mut mask);
        add(&mut hash, &mask);
        hash
    }
}

impl BlockCipher {
    fn encrypt(&self, block: &mut aes::Block) {
        match self {
            Self::Aes128(aes) => aes.encrypt_block(block),
            Self::Aes256(aes) => aes.encrypt_block(block),
        }
    }
}

fn counter_block(nonce: &[u8; 12], counter: u32) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..12].copy_from_slice(nonce);
    block[12..].copy_from_slice(&counter.to_be_bytes());
    block
}

fn add(into: &mut [u8], bytes: &[u8]) {
    into.iter_mut().zip(bytes).for_each(|(into, byte)| *into ^= byte);
}
