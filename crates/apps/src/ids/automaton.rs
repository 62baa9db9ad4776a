//! The patterns of a port group as a deterministic automaton in memory: a row of 256 words for each state.

use std::collections::BTreeMap;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind, StartKind};
use nicforge_platform::{Addr, AddressSpace, Cpu};

/// Words of a row: the state that a byte leads to, and above it how many patterns end there.
const ROW: usize = 256;
/// Bits of a state's number.
const STATE_BITS: u32 = 24;

/// An automaton, and where it lies.
#[derive(Clone, Debug)]
pub struct Automaton {
    at: Addr,
    rows: std::sync::Arc<Vec<u32>>,
}

/// More states than numbers, or patterns that no automaton takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// The automaton of `patterns` as rows, the first of the state that it begins in.
pub fn rows(patterns: &[&[u8]]) -> Result<Vec<u32>, TooLarge> {
    let dfa = DFA::builder()
        .match_kind(MatchKind::Standard)
        .start_kind(StartKind::Unanchored)
        .prefilter(false)
        .build(patterns)
        .map_err(|_| TooLarge)?;
    let first = dfa.start_state(Anchored::No).map_err(|_| TooLarge)?;
    let (mut numbers, mut states) = (BTreeMap::from([(first, 0u32)]), vec![first]);
    let mut rows = Vec::new();
    let mut done = 0;
    while let Some(&state) = states.get(done) {
        done += 1;
        for byte in 0..=u8::MAX {
            let next: StateID = dfa.next_state(Anchored::No, state, byte);
            let fresh = states.len() as u32;
            let number = *numbers.entry(next).or_insert_with(|| {
                states.push(next);
                fresh
            });
            if number >> STATE_BITS != 0 {
                return Err(TooLarge);
            }
            let ends = if dfa.is_match(next) { dfa.match_len(next).min(255) as u32 } else { 0 };
            rows.push(number | ends << STATE_BITS);
        }
    }
    Ok(rows)
}

impl Automaton {
    /// Room for `rows`.
    pub fn new(rows: std::sync::Arc<Vec<u32>>, space: &mut AddressSpace) -> Automaton {
        Automaton { at: space.data(rows.len() as u64 * 4, 4096), rows }
    }

    /// Writes it.
    pub fn fill<C: Cpu>(&self, cpu: &mut C) {
        for (number, row) in self.rows.chunks(ROW).enumerate() {
            let at = self.at + (number * ROW * 4) as u64;
            let bytes: Vec<u8> = row.iter().flat_map(|word| word.to_le_bytes()).collect();
            cpu.bytes_mut(at, bytes.len()).copy_from_slice(&bytes);
        }
    }

    /// How many patterns end somewhere in `bytes`.
    pub fn scan<C: Cpu>(&self, cpu: &mut C, bytes: &[u8]) -> u64 {
        let (mut state, mut ends) = (0u64, 0u64);
        for byte in bytes {
            let word: u32 = cpu.load(self.at + (state * ROW as u64 + u64::from(*byte)) * 4);
            state = u64::from(word & ((1 << STATE_BITS) - 1));
            ends += u64::from(word >> STATE_BITS);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use nicforge_platform::FlatCpu;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As many as there are, one by one.
        #[test]
        fn it_finds_what_is_there(
            patterns in prop::collection::vec(prop::collection::vec(0u8..3, 1..5), 1..8),
            text in prop::collection::vec(0u8..4, 0..200),
        ) {
            let borrowed: Vec<&[u8]> = patterns.iter().map(|pattern| &pattern[..]).collect();
            let mut space = AddressSpace::default();
            let automaton = Automaton::new(rows(&borrowed).unwrap().into(), &mut space);
            let mut cpu = FlatCpu::new(space.end());
            automaton.fill(&mut cpu);
            let one = |pattern: &&Vec<u8>| text.windows(pattern.len()).filter(|part| *part == &pattern[..]).count();
            let expected: usize = patterns.iter().map(|pattern| one(&pattern)).sum();
            prop_assert_eq!(automaton.scan(&mut cpu, &text), expected as u64);
        }
    }
}
