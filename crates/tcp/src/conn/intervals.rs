//! Out-of-order data as intervals; the bytes themselves already lie in the receive ring.

use crate::options::SackBlocks;
use crate::seq::{Seq, Span};

/// Intervals at most: more than any honest reordering needs, few enough to search.
pub const INTERVALS_MAX: usize = 256;

/// Disjoint intervals above the next expected byte, in order, and which of them changed last.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    sorted: Vec<Span>,
    /// The most recent ones first, as SACK reports them (RFC 2018 section 4).
    recent: Vec<Span>,
}

/// What became of new out-of-order data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// At least one byte is new; the part that was there already, if any.
    New {
        /// Bytes that came again (RFC 2883).
        duplicate: Option<Span>,
    },
    /// All of it was there.
    Duplicate(Span),
    /// No room for another interval.
    Full,
}

const RECENT: usize = 4;

impl Intervals {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The intervals in order.
    pub fn as_slice(&self) -> &[Span] {
        &self.sorted
    }

    /// The first interval.
    pub fn first(&self) -> Option<Span> {
        self.sorted.first().copied()
    }

    /// End of the last interval.
    pub fn end(&self) -> Option<Seq> {
        self.sorted.last().map(|span| span.end)
    }

    /// Adds `span` when at most `most` intervals result.
    pub fn insert(&mut self, span: Span, most: usize) -> Insert {
        let from = self.sorted.partition_point(|have| have.end.before(span.start));
        let mut to = from;
        let mut merged = span;
        let mut duplicate: Option<Span> = None;
        while let Some(have) = self.sorted.get(to).filter(|have| !have.start.after(span.end)) {
            if !span.start.before(have.start) && !span.end.after(have.end) {
                let whole = *have;
                self.touch(whole);
                return Insert::Duplicate(span);
            }
            let overlap = Span::new(span.start.max(have.start), span.end.min(have.end));
            if !overlap.is_empty() && duplicate.is_none() {
                duplicate = Some(overlap);
            }
            merged = Span::new(merged.start.min(have.start), merged.end.max(have.end));
            to += 1;
        }
        if from == to && self.sorted.len() >= most {
            return Insert::Full;
        }
        for gone in self.sorted.splice(from..to, [merged]) {
            self.recent.retain(|recent| *recent != gone);
        }
        self.touch(merged);
        Insert::New { duplicate }
    }

    fn touch(&mut self, span: Span) {
        self.recent.retain(|recent| *recent != span);
        self.recent.insert(0, span);
        self.recent.truncate(RECENT);
    }

    /// Takes away what `next` has reached; returns the next expected byte after that.
    pub fn advance(&mut self, mut next: Seq) -> Seq {
        let mut gone = 0;
        for span in &self.sorted {
            if span.start.after(next) {
                break;
            }
            next = next.max(span.end);
            gone += 1;
        }
        for span in self.sorted.drain(..gone) {
            self.recent.retain(|recent| *recent != span);
        }
        next
    }

    /// The blocks for a SACK option, a duplicate first.
    pub fn blocks(&self, duplicate: Option<Span>, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for span in duplicate.into_iter().chain(self.recent.iter().copied()) {
            blocks.push(span);
        }
        blocks.truncate(most);
        blocks
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.sorted.clear();
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u32, end: u32) -> Span {
        Span::new(Seq(start), Seq(end))
    }

    #[test]
    fn the_most_recent_interval_is_reported_first() {
        let mut intervals = Intervals::default();
        intervals.insert(span(10, 20), 9);
        intervals.insert(span(30, 40), 9);
        intervals.insert(span(20, 25), 9);
        assert_eq!(intervals.blocks(None, 4).as_slice(), [span(10, 25), span(30, 40)]);
        assert_eq!(intervals.insert(span(12, 15), 9), Insert::Duplicate(span(12, 15)));
        let overlap = intervals.insert(span(35, 50), 9);
        assert_eq!(overlap, Insert::New { duplicate: Some(span(35, 40)) });
        assert_eq!(intervals.insert(span(60, 70), 2), Insert::Full);
        assert_eq!(intervals.advance(Seq(10)), Seq(25));
        assert_eq!(intervals.advance(Seq(30)), Seq(50));
        assert!(intervals.is_empty() && intervals.blocks(None, 4).is_empty());
    }

    proptest! {
        #[test]
        fn intervals_hold_exactly_what_was_inserted(base in any::<u32>(), parts in prop::collection::vec((0u32..200, 1u32..30), 1..40)) {
            let mut intervals = Intervals::default();
            let mut have = [false; 300];
            for (start, len) in parts {
                let new = (start..start + len).any(|at| !have[at as usize]);
                let before = intervals.insert(Span::new(Seq(base) + start, Seq(base) + (start + len)), 1000);
                prop_assert_eq!(matches!(before, Insert::New { .. }), new);
                have[start as usize..(start + len) as usize].fill(true);
            }
            for at in 0..300u32 {
                let seq = Seq(base) + at;
                let inside = intervals.as_slice().iter().any(|s| !s.start.after(seq) && s.end.after(seq));
                prop_assert_eq!(inside, have[at as usize]);
            }
            for pair in intervals.as_slice().windows(2) {
                prop_assert!(pair[0].end.before(pair[1].start));
            }
        }
    }
}
