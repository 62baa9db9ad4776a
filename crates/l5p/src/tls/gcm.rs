//! AES-GCM in pieces (NIST SP 800-38D), over the kernels of RustCrypto's `aes`, `ctr` and `polyval`.
//!
//! Between two pieces the whole state is sixteen bytes: the hash so far, with the bytes of an unfinished block
//! already added into it. The position in the keystream follows from the offset. GHASH is linear, so a fresh hasher
//! goes on where another stopped when the old value is added to the first block.
//!
//! Blocks are reversed in batches for POLYVAL, in which GHASH is computed.

use aes::cipher::array::Array;
use aes::cipher::consts::U16;
use aes::cipher::{BlockCipherEncrypt, InnerIvInit, KeyInit, StreamCipherCore};
use aes::{Aes128Enc, Aes256Enc};
use ctr::CtrCore;
use ctr::flavors::Ctr32BE;
use polyval::Polyval;
use polyval::hazmat::FieldElement;
use polyval::universal_hash::UniversalHash;

/// Bytes of a block.
pub const BLOCK: usize = 16;
/// Blocks that are hashed at once.
const HASH_BATCH: usize = 32;

enum BlockCipher {
    Aes128(Aes128Enc),
    Aes256(Aes256Enc),
}

/// An expanded key: AES round keys and the hash's powers.
pub struct GcmKey {
    cipher: BlockCipher,
    hash: Polyval,
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
        let mut zero = [[0; BLOCK]];
        cipher.encrypt(&mut zero);
        // GHASH is POLYVAL with its bytes in reverse and its key multiplied by x (RFC 8452, appendix A).
        let key: polyval::Key = FieldElement::from(zero[0]).reverse().mulx().into();
        Self { cipher, hash: Polyval::new(&key) }
    }

    /// Adds the keystream from byte `at` of the message on.
    pub fn apply_keystream(&self, nonce: &[u8; 12], at: u32, bytes: &mut [u8]) {
        let within = at as usize % BLOCK;
        let mut counter = at / BLOCK as u32 + 2;
        let mut rest = bytes;
        if within > 0 {
            let mut block = [counter_block(nonce, counter)];
            self.cipher.encrypt(&mut block);
            let (head, tail) = rest.split_at_mut(rest.len().min(BLOCK - within));
            add(head, &block[0][within..]);
            rest = tail;
            counter += 1;
        }
        if rest.is_empty() {
            return;
        }
        let begin = counter_block(nonce, counter);
        match &self.cipher {
            BlockCipher::Aes128(aes) => counter_mode(aes, begin, rest),
            BlockCipher::Aes256(aes) => counter_mode(aes, begin, rest),
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
        if within > 0 && within + head.len() < BLOCK {
            return;
        }
        let (blocks, tail) = rest.as_chunks::<BLOCK>();
        // A block that was finished just now stands in front of the others.
        let finished = (within > 0).then_some([0; BLOCK]);
        let mut all = finished.iter().chain(blocks);
        let mut left = finished.iter().len() + blocks.len();
        if left > 0 {
            let mut hasher = self.hash.clone();
            let mut batch = [[0; BLOCK]; HASH_BATCH];
            let mut carried = reverse(hash);
            while left > 0 {
                let count = left.min(HASH_BATCH);
                batch.iter_mut().zip(all.by_ref().take(count)).for_each(|(into, block)| *into = reverse(block));
                add(&mut batch[0], &carried);
                carried = [0; BLOCK];
                hasher.update(Array::cast_slice_from_core(&batch[..count]));
                left -= count;
            }
            *hash = reverse(&hasher.finalize().into());
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
        hasher.update(&[reverse(hash).into()]);
        *hash = reverse(&hasher.finalize().into());
    }

    /// The tag, once the last byte is hashed.
    pub fn tag(&self, mut hash: [u8; BLOCK], nonce: &[u8; 12], additional_bytes: u64, bytes: u64) -> [u8; BLOCK] {
        self.pad(&mut hash, bytes);
        add(&mut hash[..8], &(additional_bytes * 8).to_be_bytes());
        add(&mut hash[8..], &(bytes * 8).to_be_bytes());
        self.multiply(&mut hash);
        let mut mask = [counter_block(nonce, 1)];
        self.cipher.encrypt(&mut mask);
        add(&mut hash, &mask[0]);
        hash
    }
}

impl Drop for GcmKey {
    /// The round keys overwrite themselves. The library would overwrite each working copy of the hash's powers too, byte
    /// by byte, which takes a tenth of a packet's time; here only the powers that stay are overwritten.
    fn drop(&mut self) {
        self.hash = Polyval::new(&polyval::Key::default());
        std::hint::black_box(&self.hash);
    }
}

impl BlockCipher {
    fn encrypt(&self, blocks: &mut [[u8; BLOCK]]) {
        let blocks = Array::cast_slice_from_core_mut(blocks);
        match self {
            Self::Aes128(aes) => aes.encrypt_blocks(blocks),
            Self::Aes256(aes) => aes.encrypt_blocks(blocks),
        }
    }
}

/// One function per cipher, not inlined: the kernel in it is then compiled as a whole, which decides its speed.
#[inline(never)]
fn counter_mode<C: BlockCipherEncrypt<BlockSize = U16>>(cipher: &C, begin: [u8; BLOCK], bytes: &mut [u8]) {
    CtrCore::<&C, Ctr32BE>::inner_iv_init(cipher, &begin.into()).apply_keystream_partial(bytes.into());
}

fn counter_block(nonce: &[u8; 12], counter: u32) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..12].copy_from_slice(nonce);
    block[12..].copy_from_slice(&counter.to_be_bytes());
    block
}

fn reverse(block: &[u8; BLOCK]) -> [u8; BLOCK] {
    u128::from_be_bytes(*block).to_le_bytes()
}

fn add(into: &mut [u8], bytes: &[u8]) {
    into.iter_mut().zip(bytes).for_each(|(into, byte)| *into ^= byte);
}
