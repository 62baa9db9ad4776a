//! Tables at run time: entries, look-ups, and changes that apply all or not at all.

mod hasher;
mod prefix;
mod space;
mod trie;
mod update;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::hir::MatchKind;
use super::ir::{ActionCall, EntrySpec, KeyInfo, Match, TableInfo, words};
use super::lower_prefix_mask as prefix_mask;
pub(crate) use hasher::{WordHasher, WordMap};
pub use update::{Target, Update, UpdateError};

/// The effect of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// One action.
    Call(ActionCall),
    /// One of several, chosen by a hash of the selector keys; each with its weight.
    Group(Vec<(u32, ActionCall)>),
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One per key, selector keys left out.
    pub keys: Vec<Match>,
    /// The higher one wins where several match.
    pub priority: i64,
    /// Its effect.
    pub action: EntryAction,
    /// The program wrote it, for good.
    pub is_const: bool,
    /// Packets and bytes that hit it.
    pub hits: (u64, u64),
    /// Where a direct meter has it: packets or bytes in its buckets.
    pub meter: super::meter::Meter,
}

/// The result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Number of the entry; none for a miss.
    pub entry: Option<usize>,
}

/// How the entries are found.
#[derive(Debug)]
enum Index {
    /// No keys.
    None,
    Exact(WordMap<usize>),
    /// Exact keys of one word.
    Word(HashMap<u64, usize, BuildHasherDefault<WordHasher>>),
    /// One lpm key of at most 64 bits.
    Trie(trie::Trie),
    /// One lpm key of at most 64 bits beside exact ones.
    Prefix(prefix::PrefixMap),
    /// Everything else.
    Space(space::TupleSpace),
}

/// A table with its entries.
#[derive(Debug)]
pub struct Table {
    /// The program's own words about it.
    pub info: TableInfo,
    /// Action on a miss.
    pub default: ActionCall,
    /// Packets that hit and that missed.
    pub counts: (u64, u64),
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    /// Entries by keys and priority, so that duplicates are found.
    known: HashMap<EntryKey, usize, BuildHasherDefault<WordHasher>>,
    index: Index,
    /// Positions of the keys that are looked up, and of those that select.
    matched: Vec<usize>,
    selectors: Vec<usize>,
    /// Words of each key.
    key_words: Vec<usize>,
    scratch: Vec<u64>,
}

/// The parts by which two entries are the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EntryKey {
    words: Vec<u64>,
    priority: i64,
}

/// Most entries of a table whose program gives no size.
const ENTRIES_MAX: usize = 1 << 20;

impl Table {
    /// A table with the entries of the program.
    pub fn new(info: &TableInfo) -> Table {
        let matched: Vec<usize> =
            (0..info.keys.len()).filter(|at| info.keys[*at].kind != MatchKind::Selector).collect();
        let selectors = (0..info.keys.len()).filter(|at| info.keys[*at].kind == MatchKind::Selector).collect();
        let key_words = info.keys.iter().map(|key| words(key.width)).collect();
        let mut table = Table {
            default: info.default.clone(),
            info: info.clone(),
            counts: (0, 0),
            entries: Vec::new(),
            free: Vec::new(),
            known: HashMap::default(),
            index: Index::None,
            matched,
            selectors,
            key_words,
            scratch: Vec::new(),
        };
        table.reset();
        table
    }

    /// Back to the entries of the program.
    pub fn reset(&mut self) {
        self.entries.clear();
        self.free.clear();
        self.known.clear();
        self.default = self.info.default.clone();
        let keys: Vec<_> = self.matched.iter().map(|at| &self.info.keys[*at]).collect();
        self.index = match &keys[..] {
            [] => Index::None,
            [key] if key.kind == MatchKind::Exact && key.width <= 64 => Index::Word(HashMap::default()),
            keys if keys.iter().all(|key| key.kind == MatchKind::Exact) => Index::Exact(WordMap::default()),
            [key] if key.kind == MatchKind::Lpm && key.width <= 64 => Index::Trie(trie::Trie::new(key.width)),
            keys => match one_prefix(keys) {
                Some((word, width)) => Index::Prefix(prefix::PrefixMap::new(word, width)),
                None => Index::Space(space::TupleSpace::default()),
            },
        };
        for spec in self.info.entries.clone() {
            let EntrySpec { keys, priority, call, is_const } = spec;
            let keys = self.matched.iter().map(|at| keys[*at].clone()).collect();
            let entry = Entry {
                keys,
                priority,
                action: EntryAction::Call(call),
                is_const,
                hits: (0, 0),
                meter: super::meter::Meter::default(),
            };
            // Of two entries of the program with the same keys the first one wins.
            if !self.known.contains_key(&self.entry_key(&entry)) {
                self.add(entry);
            }
        }
    }

    /// Entries in the order of their numbers.
    pub fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_ref()?)))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// There are no entries.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// An entry by its number.
    #[inline]
    pub fn entry(&self, number: usize) -> Option<&Entry> {
        self.entries.get(number)?.as_ref()
    }

    pub(crate) fn entry_mut(&mut self, number: usize) -> Option<&mut Entry> {
        self.entries.get_mut(number)?.as_mut()
    }

    /// Most entries that it holds.
    pub fn capacity(&self) -> usize {
        // The size of a table is a hint that small programs leave at 0 or out.
        self.info.size.filter(|size| *size > 0).map_or(ENTRIES_MAX, |size| (size as usize).min(ENTRIES_MAX))
    }

    /// Looks up the words of all keys in order; counts the result.
    #[inline]
    pub fn lookup(&mut self, keys: &[u64], bytes: u64) -> Found {
        let entry = self.find(keys);
        match entry {
            Some(number) => {
                self.counts.0 += 1;
                if let Some(entry) = &mut self.entries[number] {
                    entry.hits.0 += 1;
                    entry.hits.1 += bytes;
                }
            }
            None => self.counts.1 += 1,
        }
        Found { entry }
    }

    /// Looks up without counting.
    #[inline]
    pub fn find(&mut self, keys: &[u64]) -> Option<usize> {
        if self.selectors.is_empty() {
            return self.find_matched(keys);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let mut at = 0;
        for (number, count) in self.key_words.iter().enumerate() {
            if self.matched.contains(&number) {
                scratch.extend_from_slice(&keys[at..at + count]);
            }
            at += count;
        }
        let found = self.find_matched(&scratch);
        self.scratch = scratch;
        found
    }

    #[inline]
    fn find_matched(&self, keys: &[u64]) -> Option<usize> {
        match &self.index {
            Index::None => None,
            Index::Exact(map) => map.get(keys).copied(),
            Index::Word(map) => map.get(&keys[0]).copied(),
            Index::Trie(trie) => trie.find(keys[0]),
            Index::Prefix(map) => map.find(keys),
            Index::Space(space) => space.find(keys),
        }
    }

    /// The action of an entry for these keys.
    #[inline]
    pub(crate) fn call(&self, entry: Option<usize>, keys: &[u64]) -> &ActionCall {
        match entry.and_then(|number| self.entry(number)).map(|entry| &entry.action) {
            None => &self.default,
            Some(EntryAction::Call(call)) => call,
            Some(EntryAction::Group(members)) => self.select(members, keys),
        }
    }

    fn select<'a>(&'a self, members: &'a [(u32, ActionCall)], keys: &[u64]) -> &'a ActionCall {
        let mut data = super::bits::BitString::default();
        let mut at = 0;
        for (number, count) in self.key_words.iter().enumerate() {
            if self.selectors.contains(&number) {
                data.push(self.info.keys[number].width, &keys[at..at + count]);
            }
            at += count;
        }
        let total: u64 = members.iter().map(|(weight, _)| u64::from(*weight)).sum();
        let hash = super::hash::hash(super::ir::HashKind::Crc32, &data);
        let mut left = hash % total.max(1);
        for (weight, call) in members {
            if left < u64::from(*weight) {
                return call;
            }
            left -= u64::from(*weight);
        }
        &self.default
    }

    fn widths(&self) -> impl Iterator<Item = u32> + '_ {
        self.matched.iter().map(|at| self.info.keys[*at].width)
    }

    /// Value and mask over the words of all keys, and ranges that a mask cannot say.
    fn pattern(&self, entry: &Entry) -> space::Pattern {
        let (mut value, mut mask, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
        for (key, width) in entry.keys.iter().zip(self.widths()) {
            let full = prefix_mask(width, width);
            let (v, m) = match key {
                Match::Exact(v) => (v.clone(), full),
                Match::Lpm(v, length) => (v.clone(), prefix_mask(width, *length)),
                Match::Ternary(v, m) => (v.clone(), m.clone()),
                Match::Any => (vec![0; full.len()], vec![0; full.len()]),
                Match::Range(low, high) if low == high => (low.clone(), full),
                Match::Range(low, high) => {
                    ranges.push(space::RangeCheck { word: value.len(), low: low.clone(), high: high.clone() });
                    (vec![0; full.len()], vec![0; full.len()])
                }
            };
            value.extend(v.iter().zip(&m).map(|(v, m)| v & m));
            mask.extend(m);
        }
        space::Pattern { value, mask, ranges }
    }

    /// The longest prefix wins in a table with an lpm key, otherwise the priority.
    fn rank(&self, entry: &Entry) -> i64 {
        let prefix = entry.keys.iter().zip(&self.matched).find_map(|(key, at)| {
            (self.info.keys[*at].kind == MatchKind::Lpm).then(|| match key {
                Match::Lpm(_, length) => i64::from(*length),
                _ => 0,
            })
        });
        let needs_priority = self.needs_priority();
        match prefix {
            Some(length) if !needs_priority => length,
            _ => entry.priority,
        }
    }

    /// Several entries may match, and no prefix decides.
    pub fn needs_priority(&self) -> bool {
        self.matched
            .iter()
            .any(|at| matches!(self.info.keys[*at].kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
    }

    fn entry_key(&self, entry: &Entry) -> EntryKey {
        let pattern = self.pattern(entry);
        let mut words = pattern.value;
        words.extend(pattern.mask);
        for range in pattern.ranges {
            words.extend(range.low);
            words.extend(range.high);
        }
        EntryKey { words, priority: if self.needs_priority() { entry.priority } else { 0 } }
    }

    fn add(&mut self, entry: Entry) -> usize {
        let key = self.entry_key(&entry);
        let pattern = self.pattern(&entry);
        let rank = self.rank(&entry);
        let number = self.free.pop().unwrap_or(self.entries.len());
        match &mut self.index {
            Index::None => {}
            Index::Exact(map) => {
                map.insert(pattern.value.into(), number);
            }
            Index::Word(map) => {
                map.insert(pattern.value[0], number);
            }
            Index::Prefix(map) => {
                let (value, length) = (&pattern.value, map.length(&pattern.mask));
                map.insert(value, length, number);
            }
            Index::Trie(trie) => {
                let length = pattern.mask[0].count_ones();
                trie.insert(pattern.value[0], length, number);
            }
            Index::Space(space) => space.insert(pattern, rank, number),
        }
        self.known.insert(key, number);
        if number == self.entries.len() {
            self.entries.push(Some(entry));
        } else {
            self.entries[number] = Some(entry);
        }
        number
    }

    fn remove(&mut self, number: usize) -> Option<Entry> {
        let entry = self.entries.get_mut(number)?.take()?;
        let pattern = self.pattern(&entry);
        match &mut self.index {
            Index::None => {}
            Index::Exact(map) => {
                map.remove(&pattern.value[..]);
            }
            Index::Word(map) => {
                map.remove(&pattern.value[0]);
            }
            Index::Prefix(map) => {
                let length = map.length(&pattern.mask);
                map.remove(&pattern.value, length);
            }
            Index::Trie(trie) => trie.remove(pattern.value[0], pattern.mask[0].count_ones()),
            Index::Space(space) => space.remove(&pattern, number),
        }
        self.known.remove(&self.entry_key(&entry));
        self.free.push(number);
        Some(entry)
    }
}

/// Word and width of the lpm key, where all others are exact.
fn one_prefix(keys: &[&KeyInfo]) -> Option<(usize, u32)> {
    let (at, key) = keys.iter().enumerate().find(|(_, key)| key.kind == MatchKind::Lpm)?;
    let others = keys.iter().enumerate().all(|(other, key)| other == at || key.kind == MatchKind::Exact);
    let word = keys[..at].iter().map(|key| words(key.width)).sum();
    (others && key.width <= 64).then_some((word, key.width))
}

#[cfg(test)]
mod tests;
