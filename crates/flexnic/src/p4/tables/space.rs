//! Tuple space search: entries with the same mask share a hash table; masks are tried best rank first.

use super::WordMap;

/// A range of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeCheck {
    /// First word of the key.
    pub word: usize,
    pub low: Vec<u64>,
    pub high: Vec<u64>,
}

impl RangeCheck {
    fn holds(&self, keys: &[u64]) -> bool {
        let key = &keys[self.word..self.word + self.low.len()];
        let not_below = key.iter().rev().ge(self.low.iter().rev());
        not_below && key.iter().rev().le(self.high.iter().rev())
    }
}

/// The match of an entry.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub value: Vec<u64>,
    pub mask: Vec<u64>,
    pub ranges: Vec<RangeCheck>,
}

#[derive(Debug)]
struct Candidate {
    rank: i64,
    number: usize,
    ranges: Vec<RangeCheck>,
}

#[derive(Debug)]
struct Tuple {
    mask: Vec<u64>,
    /// The best rank of its entries, or better: it is not lowered on removal until it is empty.
    best: i64,
    count: usize,
    /// Candidates with the same value, best first.
    entries: WordMap<Vec<Candidate>>,
}

#[derive(Debug, Default)]
pub(super) struct TupleSpace {
    /// Best rank first.
    tuples: Vec<Tuple>,
}

/// Keys of more words take memory from the heap in each look-up.
const STACK_WORDS: usize = 16;

impl TupleSpace {
    pub fn insert(&mut self, pattern: Pattern, rank: i64, number: usize) {
        let at = match self.tuples.iter().position(|tuple| tuple.mask == pattern.mask) {
            Some(at) => at,
            None => {
                let tuple = Tuple { mask: pattern.mask, best: rank, count: 0, entries: WordMap::default() };
                self.tuples.push(tuple);
                self.tuples.len() - 1
            }
        };
        let tuple = &mut self.tuples[at];
        tuple.count += 1;
        let candidates = tuple.entries.entry(pattern.value.into()).or_default();
        let place = candidates.partition_point(|other| other.rank >= rank);
        candidates.insert(place, Candidate { rank, number, ranges: pattern.ranges });
        let better = tuple.best < rank || tuple.count == 1;
        if better {
            tuple.best = rank;
            self.tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.best));
        }
    }

    pub fn remove(&mut self, pattern: &Pattern, number: usize) {
        let Some(at) = self.tuples.iter().position(|tuple| tuple.mask == pattern.mask) else { return };
        let tuple = &mut self.tuples[at];
        if let Some(candidates) = tuple.entries.get_mut(&pattern.value[..]) {
            candidates.retain(|candidate| candidate.number != number);
            if candidates.is_empty() {
                tuple.entries.remove(&pattern.value[..]);
            }
        }
        tuple.count -= 1;
        if tuple.count == 0 {
            self.tuples.remove(at);
        }
    }

    #[inline]
    pub fn find(&self, keys: &[u64]) -> Option<usize> {
        let mut stack = [0u64; STACK_WORDS];
        let mut heap = Vec::new();
        let masked = if keys.len() <= STACK_WORDS {
            &mut stack[..keys.len()]
        } else {
            heap.resize(keys.len(), 0);
            &mut heap[..]
        };
        let mut best: Option<(i64, usize)> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|(rank, _)| rank >= tuple.best) {
                break;
            }
            for (to, (key, mask)) in masked.iter_mut().zip(keys.iter().zip(&tuple.mask)) {
                *to = key & mask;
            }
            let Some(candidates) = tuple.entries.get(&masked[..]) else { continue };
            let hit = candidates.iter().find(|candidate| candidate.ranges.iter().all(|range| range.holds(keys)));
            if let Some(hit) = hit
                && best.is_none_or(|(rank, _)| hit.rank > rank)
            {
                best = Some((hit.rank, hit.number));
            }
        }
        best.map(|(_, number)| number)
    }
}
