//! The key-value store's own protocol: the data of one UDP datagram is one request or reply.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | version, [`KVS_VERSION`] |
//! | 1 | operation |
//! | 2 | status; zero in requests |
//! | 3 | zero |
//! | 4–5 | length of the key; zero in replies |
//! | 6–7 | length of the value |
//! | 8–15 | hash of the key, [`key_hash`] |
//! | 16–23 | tag: the client's, repeated in the reply |
//! | 24– | key, then value |
//!
//! As in MICA (Lim et al., NSDI 2014, section 4.2) the client computes the hash, and sends the
//! request so that it reaches the core of the key's partition ([`partition_of`]).

use super::{WireError, array, be16, put16, require};

/// The only version of the protocol.
pub const KVS_VERSION: u8 = 1;
/// Length of the header in bytes.
pub const KVS_HEADER_LEN: usize = 24;
/// The UDP port of the store: a number that IANA has not assigned.
pub const KVS_PORT: u16 = 9_700;

const VERSION: usize = 0;
const OPERATION: usize = 1;
const STATUS: usize = 2;
const KEY_LEN: usize = 4;
const VALUE_LEN: usize = 6;
const HASH: usize = 8;
const TAG: usize = 16;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvsOperation {
    /// The value of a key.
    Get,
    /// Store a value under a key.
    Put,
    /// Forget a key.
    Delete,
}

impl KvsOperation {
    /// Its number in the header.
    pub const fn code(self) -> u8 {
        match self {
            KvsOperation::Get => 1,
            KvsOperation::Put => 2,
            KvsOperation::Delete => 3,
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvsStatus {
    /// Done; the reply to a GET has the value.
    Done,
    /// No such key, or not any more.
    Missing,
    /// Key and value are larger than the store has room for.
    TooLarge,
    /// The request reached a core that does not own the key's partition.
    Misdirected,
}

impl KvsStatus {
    /// Its number in the header.
    pub const fn code(self) -> u8 {
        match self {
            KvsStatus::Done => 0,
            KvsStatus::Missing => 1,
            KvsStatus::TooLarge => 2,
            KvsStatus::Misdirected => 3,
        }
    }

    /// The status of this number.
    pub const fn of(code: u8) -> Option<KvsStatus> {
        match code {
            0 => Some(KvsStatus::Done),
            1 => Some(KvsStatus::Missing),
            2 => Some(KvsStatus::TooLarge),
            3 => Some(KvsStatus::Misdirected),
            _ => None,
        }
    }
}

/// A view over a request or reply.
#[derive(Clone, Copy, Debug)]
pub struct KvsView<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> KvsView<B> {
    /// Views `bytes`, which begin with the version.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        require("KVS", bytes.as_ref(), KVS_HEADER_LEN)?;
        Ok(KvsView { bytes })
    }

    /// Version of the protocol.
    pub fn version(&self) -> u8 {
        self.bytes.as_ref()[VERSION]
    }

    /// The operation; `None` for a number that has no meaning.
    pub fn operation(&self) -> Option<KvsOperation> {
        match self.bytes.as_ref()[OPERATION] {
            1 => Some(KvsOperation::Get),
            2 => Some(KvsOperation::Put),
            3 => Some(KvsOperation::Delete),
            _ => None,
        }
    }

    /// The status; `None` for a number that has no meaning.
    pub fn status(&self) -> Option<KvsStatus> {
        KvsStatus::of(self.bytes.as_ref()[STATUS])
    }

    /// Bytes of key after the header.
    pub fn key_len(&self) -> u16 {
        be16(self.bytes.as_ref(), KEY_LEN)
    }

    /// Bytes of value after the key.
    pub fn value_len(&self) -> u16 {
        be16(self.bytes.as_ref(), VALUE_LEN)
    }

    /// Hash of the key, as the client has computed it.
    pub fn hash(&self) -> u64 {
        u64::from_be_bytes(array(self.bytes.as_ref(), HASH))
    }

    /// The client's tag.
    pub fn tag(&self) -> u64 {
        u64::from_be_bytes(array(self.bytes.as_ref(), TAG))
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> KvsView<B> {
    /// Sets version and operation, and clears status and padding.
    pub fn set_operation(&mut self, operation: KvsOperation) {
        let bytes = self.bytes.as_mut();
        bytes[..4].copy_from_slice(&[KVS_VERSION, operation.code(), 0, 0]);
    }

    /// Sets the status.
    pub fn set_status(&mut self, status: KvsStatus) {
        self.bytes.as_mut()[STATUS] = status.code();
    }

    /// Sets the lengths of key and value.
    pub fn set_lengths(&mut self, key: u16, value: u16) {
        put16(self.bytes.as_mut(), KEY_LEN, key);
        put16(self.bytes.as_mut(), VALUE_LEN, value);
    }

    /// Sets the hash of the key.
    pub fn set_hash(&mut self, hash: u64) {
        self.bytes.as_mut()[HASH..HASH + 8].copy_from_slice(&hash.to_be_bytes());
    }

    /// Sets the client's tag.
    pub fn set_tag(&mut self, tag: u64) {
        self.bytes.as_mut()[TAG..TAG + 8].copy_from_slice(&tag.to_be_bytes());
    }
}

/// The hash of a key, for partition, bucket and tag alike: words are folded in by rotation and
/// multiplication, and the sum is mixed once. Not meant to withstand an adversary.
pub fn key_hash(key: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = key.as_chunks::<8>();
    // The length spread over all bits, lest it cancel with bits of the first word.
    let length = (key.len() as u64).wrapping_mul(FACTOR);
    let mut hash = words.iter().fold(length, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [0u8; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = fold(hash, u64::from_le_bytes(last));
    }
    // Multiplication carries upwards only: bring the upper half down.
    let hash = (hash ^ hash >> 32).wrapping_mul(FACTOR);
    hash ^ hash >> 29
}

/// Which of `partitions` (at least 1) a key belongs to: by the upper bits of its hash.
pub fn partition_of(hash: u64, partitions: u16) -> u16 {
    ((u128::from(hash) * u128::from(partitions.max(1))) >> 64) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_table_has_them() {
        let mut bytes = [0xff; KVS_HEADER_LEN];
        let mut view = KvsView::new(&mut bytes[..]).unwrap();
        view.set_operation(KvsOperation::Put);
        view.set_status(KvsStatus::TooLarge);
        view.set_lengths(0x0102, 0x0304);
        view.set_hash(0x0506_0708_090a_0b0c);
        view.set_tag(0x0d0e_0f10_1112_1314);
        let expected: Vec<u8> = [1, 2, 2, 0].into_iter().chain(1..=0x14).collect();
        assert_eq!(bytes[..], expected);
        let view = KvsView::new(&bytes[..]).unwrap();
        assert_eq!(view.operation(), Some(KvsOperation::Put));
        assert_eq!(view.status(), Some(KvsStatus::TooLarge));
        assert_eq!((view.key_len(), view.value_len()), (0x0102, 0x0304));
        assert!(KvsView::new(&bytes[..KVS_HEADER_LEN - 1]).is_err());
    }

    #[test]
    fn similar_keys_spread_over_partitions_and_buckets() {
        let mut partitions = [0u32; 8];
        let mut buckets = [0u32; 64];
        for number in 0..64_000u64 {
            let mut key = [7u8; 20];
            key[..8].copy_from_slice(&number.to_be_bytes());
            let hash = key_hash(&key);
            partitions[usize::from(partition_of(hash, 8))] += 1;
            buckets[(hash & 63) as usize] += 1;
        }
        assert!(partitions.iter().all(|&n| (7_700..8_300).contains(&n)));
        assert!(buckets.iter().all(|&n| (850..1_150).contains(&n)));
    }

    /// A core's index chooses buckets by the lower bits.
    #[test]
    fn keys_of_a_partition_spread_over_all_buckets() {
        let mut buckets = [0u32; 64];
        let hashes = (0..64_000u64).map(|number| key_hash(&number.to_be_bytes()));
        for hash in hashes.filter(|&hash| partition_of(hash, 8) == 3) {
            buckets[(hash & 63) as usize] += 1;
        }
        assert!(buckets.iter().all(|&n| (75..175).contains(&n)), "{buckets:?}");
    }

    #[test]
    fn length_and_every_byte_count() {
        let key = [0u8; 19];
        let hashes: std::collections::BTreeSet<u64> = (0..19)
            .map(|at| {
                let mut other = key;
                other[at] = 1;
                key_hash(&other)
            })
            .chain((0..=19).map(|len| key_hash(&key[..len])))
            .collect();
        assert_eq!(hashes.len(), 39);
    }
}
