//! Poly1305 in pieces (RFC 8439, 2.5). The library that has the other kernels does not let its state out; this one's
//! is 130 bits and the key.
//!
//! Numbers have limbs of 44, 44 and 42 bits. Four blocks are multiplied by four powers of `r` and reduced once. Bytes
//! of an unfinished block are added at their place; finishing the block adds the bit above it and multiplies.

const MASK44: u64 = (1 << 44) - 1;
const MASK42: u64 = (1 << 42) - 1;
/// Bytes of a block.
const BLOCK: usize = 16;

/// A number modulo 2^130 - 5, not quite reduced.
pub type Limbs = [u64; 3];

/// A power of the multiplier.
#[derive(Clone, Copy)]
struct Power {
    limbs: Limbs,
    /// 20 times the upper limbs: 2^132 is 20 modulo 2^130 - 5.
    wrapped: [u64; 2],
}

impl Power {
    fn of(limbs: Limbs) -> Self {
        Self { limbs, wrapped: [limbs[1] * 20, limbs[2] * 20] }
    }
}

/// The multiplier and its first powers.
pub struct Multiplier {
    powers: [Power; 4],
    /// Whether all four are filled in; short pieces need only the first.
    has_all: bool,
}

impl Multiplier {
    /// Reads `r` out of the one-time key's first half and clamps it. `bytes` is how much will be hashed.
    pub fn new(key: &[u8; BLOCK], bytes: usize) -> Self {
        let [low, high] = words(key);
        let (low, high) = (low & 0x0fff_fffc_0fff_ffff, high & 0x0fff_fffc_0fff_fffc);
        let r = Power::of(limbs(low, high, 0));
        let mut powers = [r; 4];
        let has_all = bytes >= 4 * BLOCK;
        if has_all {
            for power in 1..4 {
                powers[power] = Power::of(reduce(multiply(&powers[power - 1].limbs, &r)));
            }
        }
        Self { powers, has_all }
    }

    /// Hashes bytes that begin at byte `at` of the message.
    pub fn absorb(&self, hash: &mut Limbs, at: u64, bytes: &[u8]) {
        bound(hash);
        let within = (at % BLOCK as u64) as usize;
        let mut rest = bytes;
        if within > 0 {
            let (head, tail) = rest.split_at(rest.len().min(BLOCK - within));
            add_bytes(hash, within, head);
            if within + head.len() < BLOCK {
                return;
            }
            self.finish_block(hash);
            rest = tail;
        }
        let mut chunks = rest.chunks_exact(4 * BLOCK);
        if self.has_all {
            for chunk in &mut chunks {
                *hash = self.four_blocks(hash, chunk);
            }
            rest = chunks.remainder();
        }
        let mut blocks = rest.chunks_exact(BLOCK);
        for block in &mut blocks {
            let [low, high] = words(block);
            *hash = reduce(multiply(&sum(hash, &limbs(low, high, 1)), &self.powers[0]));
        }
        add_bytes(hash, 0, blocks.remainder());
    }

    fn four_blocks(&self, hash: &Limbs, chunk: &[u8]) -> Limbs {
        let block = |index: usize| {
            let [low, high] = words(&chunk[index * BLOCK..][..BLOCK]);
            limbs(low, high, 1)
        };
        let [r1, r2, r3, r4] = &self.powers;
        let a = multiply(&sum(hash, &block(0)), r4);
        let b = multiply(&block(1), r3);
        let c = multiply(&block(2), r2);
        let d = multiply(&block(3), r1);
        reduce([0, 1, 2].map(|limb| a[limb] + (b[limb] + c[limb] + d[limb])))
    }

    fn finish_block(&self, hash: &mut Limbs) {
        hash[2] += 1 << 40;
        *hash = reduce(multiply(hash, &self.powers[0]));
    }

    /// Fills a block that `bytes` bytes left unfinished with zeros, as the AEAD construction wants it (RFC 8439, 2.8).
    pub fn pad(&self, hash: &mut Limbs, bytes: u64) {
        bound(hash);
        if !bytes.is_multiple_of(BLOCK as u64) {
            self.finish_block(hash);
        }
    }
}

/// The tag: the hash, wholly reduced, plus the one-time key's second half.
pub fn tag(hash: &Limbs, key: &[u8; BLOCK]) -> [u8; BLOCK] {
    let [mut a, mut b, mut c] = *hash;
    for _ in 0..3 {
        b += a >> 44;
        a &= MASK44;
        c += b >> 44;
        b &= MASK44;
        a += (c >> 42) * 5;
        c &= MASK42;
    }
    // Subtract the modulus if that leaves something.
    let x = a + 5;
    let y = b + (x >> 44);
    let z = c.wrapping_add(y >> 44).wrapping_sub(1 << 42);
    let keep = (z >> 63).wrapping_neg();
    let a = (a & keep) | (x & MASK44 & !keep);
    let b = (b & keep) | (y & MASK44 & !keep);
    let c = (c & keep) | (z & MASK42 & !keep);
    let number = u128::from(a) | u128::from(b) << 44 | u128::from(c) << 88;
    number.wrapping_add(u128::from_le_bytes(*key)).to_le_bytes()
}

/// Keeps a hash out of a damaged context from running over. A hash of ours has no such bits.
fn bound(hash: &mut Limbs) {
    hash.iter_mut().for_each(|limb| *limb &= (1 << 46) - 1);
}

/// The first 16 bytes as two little-endian words.
fn words(bytes: &[u8]) -> [u64; 2] {
    let mut halves = [[0; 8]; 2];
    halves[0].copy_from_slice(&bytes[..8]);
    halves[1].copy_from_slice(&bytes[8..16]);
    halves.map(u64::from_le_bytes)
}

/// A block as a number, with `top` as bit 128.
fn limbs(low: u64, high: u64, top: u64) -> Limbs {
    [low & MASK44, (low >> 44 | high << 20) & MASK44, high >> 24 | top << 40]
}

fn sum(a: &Limbs, b: &Limbs) -> Limbs {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// Adds `bytes` at byte `place` of a block that is not finished.
fn add_bytes(hash: &mut Limbs, place: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let mut block = [0; BLOCK];
    block[place..place + bytes.len()].copy_from_slice(bytes);
    let [low, high] = words(&block);
    *hash = carry(sum(hash, &limbs(low, high, 0)));
}

fn carry([a, b, c]: Limbs) -> Limbs {
    let b = b + (a >> 44);
    let c = c + (b >> 44);
    let a = (a & MASK44) + (c >> 42) * 5;
    [a, b & MASK44, c & MASK42]
}

#[inline(always)]
fn multiply(a: &Limbs, b: &Power) -> [u128; 3] {
    // Inlined, because four products are added up before they leave registers.
    let product = |x: u64, y: u64| u128::from(x) * u128::from(y);
    let (limbs, [b1, b2]) = (&b.limbs, b.wrapped);
    [
        product(a[0], limbs[0]) + product(a[1], b2) + product(a[2], b1),
        product(a[0], limbs[1]) + product(a[1], limbs[0]) + product(a[2], b2),
        product(a[0], limbs[2]) + product(a[1], limbs[1]) + product(a[2], limbs[0]),
    ]
}

fn reduce([a, b, c]: [u128; 3]) -> Limbs {
    let b = b + (a >> 44);
    let c = c + (b >> 44);
    let low = (a as u64 & MASK44) + (c >> 42) as u64 * 5;
    let middle = (b as u64 & MASK44) + (low >> 44);
    [low & MASK44, middle, c as u64 & MASK42]
}
