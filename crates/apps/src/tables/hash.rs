//! A cheap deterministic hash, and the pseudo-random numbers made of it.

const A: u64 = 0x9e37_79b9_7f4a_7c15;
const B: u64 = 0xd6e8_feb8_6659_fd93;

/// Both halves of the 128-bit product, folded: two multiplications mix 128 bits of key.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of two words.
#[inline]
pub fn hash2(a: u64, b: u64) -> u64 {
    fold(fold(a ^ A, b ^ B), A)
}

/// A well mixed function of one word.
#[inline]
pub fn mix(word: u64) -> u64 {
    // Not `hash2(word, B)`: B cancels itself there, and what remains is 0.
    hash2(word, A)
}

/// A small seeded generator: `mix` of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to `seed`.
    #[inline]
    pub fn new(seed: u64) -> Random {
        Random(mix(seed))
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(A);
        mix(self.0)
    }

    /// A number below `limit` (which is at least 1).
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_keys_spread_evenly() {
        let mut buckets = [0u32; 64];
        for word in 0..64_000u64 {
            buckets[(hash2(word, 6) & 63) as usize] += 1;
            buckets[(hash2(7, word << 32) >> 58) as usize] += 1;
        }
        assert!(buckets.iter().all(|&n| (1800..2200).contains(&n)), "{buckets:?}");
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_it() {
        let mut random = Random::new(1);
        let seen: std::collections::BTreeSet<u64> = (0..200).map(|_| random.below(10)).collect();
        assert_eq!(seen, (0..10).collect());
    }
}
