//! Longest prefix match beside exact keys: the exact keys name a group, whose prefixes are tried longest first.

use super::WordMap;

/// Entries of a table with one lpm key of at most 64 bits; all others are exact.
#[derive(Debug)]
pub(super) struct PrefixMap {
    /// Word of the lpm key, and its bits.
    word: usize,
    width: u32,
    /// By exact keys: lengths of prefixes that there are, longest first, and how often.
    groups: WordMap<Vec<(u32, u32)>>,
    /// By exact keys, prefix and length.
    entries: WordMap<usize>,
}

/// Keys of more words take memory from the heap in each look-up.
const STACK_WORDS: usize = 16;

impl PrefixMap {
    /// For an lpm key of `width` bits in word number `word`.
    pub fn new(word: usize, width: u32) -> PrefixMap {
        PrefixMap { word, width, groups: WordMap::default(), entries: WordMap::default() }
    }

    /// `key` is masked; its last word is free for the length.
    fn cut(&self, key: &mut [u64], length: u32) {
        let mask = if length == 0 { 0 } else { u64::MAX << (self.width - length) };
        key[self.word] &= mask;
        if let Some(last) = key.last_mut() {
            *last = u64::from(length);
        }
    }

    /// The length of the prefix in an entry's mask.
    pub fn length(&self, mask: &[u64]) -> u32 {
        mask[self.word].count_ones()
    }

    fn group_of(&self, value: &[u64]) -> Box<[u64]> {
        let mut key: Vec<u64> = value.to_vec();
        key[self.word] = 0;
        key.into()
    }

    fn key_of(&self, value: &[u64], length: u32) -> Box<[u64]> {
        let mut key: Vec<u64> = value.iter().copied().chain([0]).collect();
        self.cut(&mut key, length);
        key.into()
    }

    pub fn insert(&mut self, value: &[u64], length: u32, number: usize) {
        let lengths = self.groups.entry(self.group_of(value)).or_default();
        match lengths.iter_mut().find(|(known, _)| *known == length) {
            Some((_, count)) => *count += 1,
            None => {
                let place = lengths.partition_point(|(known, _)| *known > length);
                lengths.insert(place, (length, 1));
            }
        }
        self.entries.insert(self.key_of(value, length), number);
    }

    pub fn remove(&mut self, value: &[u64], length: u32) {
        self.entries.remove(&self.key_of(value, length));
        let group = self.group_of(value);
        let Some(lengths) = self.groups.get_mut(&group) else { return };
        if let Some((_, count)) = lengths.iter_mut().find(|(known, _)| *known == length) {
            *count -= 1;
        }
        lengths.retain(|(_, count)| *count > 0);
        if lengths.is_empty() {
            self.groups.remove(&group);
        }
    }

    pub fn find(&self, keys: &[u64]) -> Option<usize> {
        let mut stack = [0u64; STACK_WORDS];
        let mut heap = Vec::new();
        let count = keys.len() + 1;
        let key = if count <= STACK_WORDS {
            &mut stack[..count]
        } else {
            heap.resize(count, 0);
            &mut heap[..]
        };
        key[..keys.len()].copy_from_slice(keys);
        key[self.word] = 0;
        let lengths = self.groups.get(&key[..keys.len()])?;
        lengths.iter().find_map(|(length, _)| {
            key[self.word] = keys[self.word];
            self.cut(key, *length);
            self.entries.get(&key[..]).copied()
        })
    }
}
