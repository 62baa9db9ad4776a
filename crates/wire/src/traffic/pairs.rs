//! Keys and values of a key-value store: what clients ask for, and what it is filled with.

use super::TrafficError;
use super::random::nth;

/// Bytes of the word that tells keys apart; the least size of keys and values.
pub const WORD_BYTES: usize = 8;

/// All pairs that there are: key i is a pure function of the seed and i, its value of i and of
/// how often it was written.
///
/// A key begins with a word of its own and a value repeats that word, so that whoever sees a
/// value can tell whose it is; the version follows if there is room. All else is filler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairSpace {
    seed: u64,
    count: u64,
    key_bytes: u16,
    value_bytes: u16,
}

impl PairSpace {
    /// `count` pairs (at least 1) of these sizes (at least [`WORD_BYTES`] each).
    pub fn new(seed: u64, count: u64, key_bytes: u16, value_bytes: u16) -> Result<PairSpace, TrafficError> {
        if count == 0 {
            return Err(TrafficError::NoPairs);
        }
        for (what, bytes) in [("key", key_bytes), ("value", value_bytes)] {
            if usize::from(bytes) < WORD_BYTES {
                return Err(TrafficError::PairBytes(what, u32::from(bytes)));
            }
        }
        Ok(PairSpace { seed, count, key_bytes, value_bytes })
    }

    /// How many pairs there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of every key.
    pub fn key_bytes(&self) -> u16 {
        self.key_bytes
    }

    /// Bytes of every value.
    pub fn value_bytes(&self) -> u16 {
        self.value_bytes
    }

    /// The word that key `index` and its value begin with; all are different.
    pub fn word(&self, index: u64) -> u64 {
        nth(self.seed, index)
    }

    /// Puts key `index` into `key`.
    pub fn key(&self, index: u64, key: &mut Vec<u8>) {
        fill(key, self.key_bytes);
        key[..WORD_BYTES].copy_from_slice(&self.word(index).to_be_bytes());
    }

    /// Puts the value that key `index` has in its `version` into `value`.
    pub fn value(&self, index: u64, version: u64, value: &mut Vec<u8>) {
        fill(value, self.value_bytes);
        value[..WORD_BYTES].copy_from_slice(&self.word(index).to_be_bytes());
        if self.values_have_versions() {
            value[WORD_BYTES..2 * WORD_BYTES].copy_from_slice(&version.to_be_bytes());
        }
    }

    /// Whether values have room for their version.
    pub(super) fn values_have_versions(&self) -> bool {
        usize::from(self.value_bytes) >= 2 * WORD_BYTES
    }
}

fn fill(bytes: &mut Vec<u8>, len: u16) {
    bytes.clear();
    bytes.extend((0..len).map(|place| place as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_values_tell_whose_they_are() {
        let pairs = PairSpace::new(3, 1000, 20, 16).unwrap();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut keys = std::collections::BTreeSet::new();
        for index in 0..pairs.count() {
            pairs.key(index, &mut key);
            pairs.value(index, 5, &mut value);
            assert_eq!((key.len(), value.len()), (20, 16));
            assert_eq!(key[..8], value[..8]);
            assert_eq!(value[8..], 5u64.to_be_bytes());
            keys.insert(key.clone());
        }
        assert_eq!(keys.len(), 1000);
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        assert!(PairSpace::new(1, 0, 8, 8).is_err());
        assert!(PairSpace::new(1, 1, 7, 8).is_err());
        assert!(PairSpace::new(1, 1, 8, 7).is_err());
        assert!(PairSpace::new(1, 1, 8, 8).is_ok());
    }
}
