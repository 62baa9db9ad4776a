//! The NIC's reports of received bytes, kept beside the receive ring until the stack delivers the bytes.
//!
//! A TCP stack copies payload to its final place in the ring as it comes. Of bytes that come twice the later copy may
//! overwrite the earlier one, and the NIC may have processed only one of them. So a report belongs to bytes of the
//! ring, as they were written last, and never to a packet as a whole.

use std::collections::BTreeMap;

use crate::engine::Received;
use crate::sequence::Seq;

/// Bytes in order with one report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// How many.
    pub bytes: usize,
    /// What the NIC said of them.
    pub received: Received,
}

#[derive(Clone, Copy)]
struct Noted {
    end: u64,
    received: Received,
}

/// Reports of bytes that wait in a receive ring.
pub struct Reports {
    /// Stream offset and sequence number of the next byte that is delivered.
    read: u64,
    next: Seq,
    noted: BTreeMap<u64, Noted>,
}

impl Reports {
    /// No reports yet; the next byte to be delivered is the one at `next`.
    pub fn new(next: Seq) -> Self {
        Self { read: 0, next, noted: BTreeMap::new() }
    }

    /// Sequence number of the next byte that is delivered.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// The stack wrote `bytes` from `seq` on into the ring, out of a packet that the NIC reported as `received`.
    pub fn note(&mut self, seq: Seq, bytes: usize, received: &Received) {
        let Some(from) = self.read.checked_add_signed(i64::from(seq.since(self.next))) else {
            return;
        };
        let to = from + bytes as u64;
        let before = self.noted.range(..from).next_back().map(|(start, noted)| (*start, *noted));
        if let Some((start, noted)) = before.filter(|(_, noted)| noted.end > from) {
            self.noted.insert(start, Noted { end: from, ..noted });
            if noted.end > to {
                self.noted.insert(to, noted);
            }
        }
        while let Some((&start, &noted)) = self.noted.range(from..to).next() {
            self.noted.remove(&start);
            if noted.end > to {
                self.noted.insert(to, noted);
            }
        }
        if bytes > 0 {
            self.noted.insert(from, Noted { end: to, received: *received });
        }
    }

    /// The stack delivers `bytes`: their reports in order. Bytes without a report met no context.
    pub fn take(&mut self, bytes: usize) -> Vec<Stretch> {
        let end = self.read + bytes as u64;
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut add = |bytes: u64, received: Received| match stretches.last_mut() {
            Some(last) if last.received.may_join(&received) => last.bytes += bytes as usize,
            _ => stretches.push(Stretch { bytes: bytes as usize, received }),
        };
        while self.read < end {
            let first = self.noted.first_key_value().map(|(start, noted)| (*start, *noted));
            let Some((start, noted)) = first.filter(|(start, _)| *start < end) else {
                add(end - self.read, Received::without_context());
                self.read = end;
                break;
            };
            if start > self.read {
                add(start - self.read, Received::without_context());
            }
            let from = start.max(self.read);
            let to = noted.end.min(end);
            self.noted.remove(&start);
            if noted.end > end {
                self.noted.insert(end, noted);
            }
            if to > from {
                add(to - from, noted.received);
            }
            self.read = self.read.max(to);
        }
        self.next = self.next.plus(bytes);
        stretches
    }

    /// Ranges that are noted.
    pub fn len(&self) -> usize {
        self.noted.len()
    }

    /// Whether nothing is noted.
    pub fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ContextId;
    use proptest::prelude::*;

    fn report(context: u32) -> Received {
        Received { context: ContextId(context), ..Received::without_context() }
    }

    proptest! {
        #[test]
        fn each_byte_has_the_report_of_its_last_copy(
            writes in prop::collection::vec((0usize..300, 0usize..80, 1u32..5), 0..40),
            reads in prop::collection::vec(1usize..90, 0..8),
            base in any::<u32>(),
        ) {
            let mut reports = Reports::new(Seq(base));
            let mut model = [0u32; 400];
            for (at, bytes, context) in writes {
                reports.note(Seq(base).plus(at), bytes, &report(context));
                model[at..at + bytes].fill(context);
            }
            let mut at = 0;
            for bytes in reads {
                let bytes = bytes.min(400 - at);
                let got: Vec<u32> = reports
                    .take(bytes)
                    .iter()
                    .flat_map(|stretch| std::iter::repeat_n(stretch.received.context.0, stretch.bytes))
                    .collect();
                prop_assert_eq!(&got[..], &model[at..at + bytes]);
                at += bytes;
                prop_assert_eq!(reports.next(), Seq(base).plus(at));
            }
        }
    }
}
