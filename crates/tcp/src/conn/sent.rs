//! What was sent and not acknowledged: one record per burst, split where acknowledgments split it.
//!
//! Memory grows with the number of distinct bursts in flight, not with the number of segments.

use std::collections::VecDeque;

use nicforge_units::Time;

use crate::seq::{Seq, Span};

/// What is known about a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Its sequence numbers, SYN and FIN included.
    pub span: Span,
    /// Its segments.
    pub segments: u32,
    /// Largest payload of its segments, in bytes.
    pub mss: u32,
    /// When it was sent last.
    pub sent_at: Time,
    /// Connection-wide count of delivered segments at that time.
    pub delivered: u32,
    /// The last segment carries a FIN.
    pub fin: bool,
    /// It is a SYN.
    pub syn: bool,
    /// The last segment carries PSH.
    pub push: bool,
    /// A SACK block covers it.
    pub sacked: bool,
    /// It is taken for lost.
    pub lost: bool,
    /// It was sent again and that copy is in flight.
    pub retransmitted: bool,
    /// It was sent more than once, so it gives no RTT (Karn).
    pub ever_retransmitted: bool,
    /// The application had nothing more to send when it went out.
    pub limited: bool,
}

/// The records in order of sequence numbers, and sums over them.
#[derive(Clone, Debug, Default)]
pub struct SentQueue {
    records: VecDeque<Sent>,
    /// Segments in the queue.
    pub packets_out: u32,
    /// Segments that SACK covers; with peers that lack SACK, duplicate acknowledgments.
    pub sacked_out: u32,
    /// Segments taken for lost.
    pub lost_out: u32,
    /// Segments sent again.
    pub retrans_out: u32,
}

fn segments_of(bytes: u32, mss: u32) -> u32 {
    bytes.div_ceil(mss.max(1)).max(1)
}

impl SentQueue {
    /// Whether nothing is unacknowledged.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The record at `index`.
    pub fn get(&self, index: usize) -> Option<&Sent> {
        self.records.get(index)
    }

    /// The oldest record.
    pub fn head(&self) -> Option<&Sent> {
        self.records.front()
    }

    /// The newest record.
    pub fn tail(&self) -> Option<&Sent> {
        self.records.back()
    }

    /// All records, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> + ExactSizeIterator {
        self.records.iter()
    }

    /// Appends a burst. A burst with the same fate as the newest one joins it.
    pub fn push(&mut self, sent: Sent) {
        self.packets_out += sent.segments;
        self.records.push_back(sent);
    }

    /// Removes the oldest record and its counts.
    pub fn pop(&mut self) -> Option<Sent> {
        let sent = self.records.pop_front()?;
        self.uncount(&sent);
        Some(sent)
    }

    fn uncount(&mut self, sent: &Sent) {
        self.packets_out -= sent.segments;
        self.sacked_out -= if sent.sacked { sent.segments } else { 0 };
        self.lost_out -= if sent.lost { sent.segments } else { 0 };
        self.retrans_out -= if sent.retransmitted { sent.segments } else { 0 };
    }

    fn count(&mut self, sent: &Sent) {
        self.packets_out += sent.segments;
        self.sacked_out += if sent.sacked { sent.segments } else { 0 };
        self.lost_out += if sent.lost { sent.segments } else { 0 };
        self.retrans_out += if sent.retransmitted { sent.segments } else { 0 };
    }

    /// Changes the record at `index` and keeps the sums right.
    pub fn change(&mut self, index: usize, change: impl FnOnce(&mut Sent)) {
        let Some(mut sent) = self.records.get(index).copied() else { return };
        self.uncount(&sent);
        change(&mut sent);
        self.count(&sent);
        self.records[index] = sent;
    }

    /// Changes every record.
    pub fn change_all(&mut self, mut change: impl FnMut(&mut Sent)) {
        for index in 0..self.records.len() {
            self.change(index, &mut change);
        }
    }

    /// Splits the record at `index` before `at`, which lies inside it.
    pub fn split(&mut self, index: usize, at: Seq) {
        let Some(old) = self.records.get(index).copied() else { return };
        if !(at.after(old.span.start) && at.before(old.span.end)) {
            return;
        }
        self.uncount(&old);
        let (mut first, mut second) = (old, old);
        first.span.end = at;
        first.segments = segments_of(first.span.len(), old.mss);
        (first.fin, first.push) = (false, false);
        second.span.start = at;
        second.segments = segments_of(second.span.len() - u32::from(old.fin && second.span.len() > 1), old.mss);
        second.syn = false;
        self.count(&first);
        self.count(&second);
        self.records[index] = first;
        self.records.insert(index + 1, second);
    }

    /// Cuts the oldest record at `una`, which lies inside it; returns the segments that this acknowledges.
    pub fn trim_head(&mut self, una: Seq) -> u32 {
        let before = self.packets_out;
        let len = self.records.len();
        self.split(0, una);
        if self.records.len() > len {
            self.pop();
        }
        before - self.packets_out
    }

    /// Index of the record that holds `seq`.
    pub fn find(&self, seq: Seq) -> Option<usize> {
        let index = self.records.partition_point(|sent| !sent.span.end.after(seq));
        let sent = self.records.get(index)?;
        (!sent.span.start.after(seq)).then_some(index)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = SentQueue { records: std::mem::take(&mut self.records), ..SentQueue::default() };
        self.records.clear();
    }

    /// Sets the emulated count of segments that left the network (peers without SACK).
    pub fn set_sacked(&mut self, segments: u32) {
        self.sacked_out = segments;
    }

    /// Segments in flight: sent, not sacked, not lost, plus those sent again.
    pub fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }
}
