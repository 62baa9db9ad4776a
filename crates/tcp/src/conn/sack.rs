//! Selective acknowledgments: which records a block covers, duplicates (RFC 2883), reordering.

use nicforge_units::Time;

use super::ack::Round;
use super::rtt::micros;
use super::{CaState, Connection};
use crate::segment::Header;
use crate::seq::{Seq, Span};

/// Reordering is never assumed to be larger, in segments.
const REORDERING_MOST: u32 = 300;

impl Connection {
    pub(crate) fn process_sack(&mut self, header: &Header, round: &mut Round, now: Time) {
        let blocks = header.options.sack;
        if blocks.is_empty() || !self.agreed.sack {
            return;
        }
        let blocks = blocks.as_slice();
        let prior_high = self.rec.sack_high;
        let mut first = 0;
        if self.is_dsack(blocks, header.ack) {
            first = 1;
            self.note_dsack(blocks[0], header.ack, round);
        }
        for block in &blocks[first..] {
            if self.is_plausible(*block) {
                self.cover(*block, prior_high, round, now);
            }
        }
        if let Some(low) = round.sack_reordered.filter(|_| self.rec.ca != CaState::Loss || self.rec.undo.is_some()) {
            self.reordered_from(low, self.rec.sack_high);
        }
    }

    fn is_plausible(&self, block: Span) -> bool {
        block.end.after(block.start) && block.start.after(self.una()) && !block.end.after(self.next())
    }

    /// RFC 2883 section 4: the first block lies below the acknowledgment or inside the second block.
    fn is_dsack(&self, blocks: &[Span], ack: Seq) -> bool {
        let first = blocks[0];
        let inside =
            blocks.get(1).is_some_and(|second| !first.start.before(second.start) && !first.end.after(second.end));
        first.start.before(ack) || inside
    }

    fn note_dsack(&mut self, block: Span, ack: Seq, round: &mut Round) {
        let old_limit = self.una() - self.tx.window_most.max(1);
        if !block.end.after(block.start) || block.end.after(self.next()) || block.start.before(old_limit) {
            return;
        }
        round.dsack = true;
        let segments = block.len().div_ceil(self.payload_most().max(1)).max(1);
        self.counters.dsack_duplicates += segments;
        if self.rec.probe_high == Some(block.end) {
            round.dsack_of_probe = true;
        }
        self.rec.rack.dsack_seen = true;
        // A retransmission of this episode was needless.
        let Some(marker) = self.rec.undo else { return };
        if self.rec.undo_retransmits > 0 && block.end.after(marker) && !block.start.before(marker.min(ack)) {
            self.rec.undo_retransmits = (self.rec.undo_retransmits - i64::from(segments)).max(0);
        }
    }

    /// Marks the records inside `block`, splitting those that it covers in part at segment boundaries.
    fn cover(&mut self, block: Span, prior_high: Option<Seq>, round: &mut Round, now: Time) {
        let Some(mut index) = self.tx.sent.find(block.start) else { return };
        if let Some(sent) = self.tx.sent.get(index).copied().filter(|sent| sent.span.start.before(block.start)) {
            let whole = (block.start - sent.span.start).next_multiple_of(sent.mss.max(1));
            self.tx.sent.split(index, sent.span.start + whole);
            index += 1;
        }
        while let Some(sent) = self.tx.sent.get(index).copied().filter(|sent| sent.span.start.before(block.end)) {
            let mut sent = sent;
            if sent.span.end.after(block.end) {
                let mss = sent.mss.max(1);
                let whole = (block.end - sent.span.start) / mss * mss;
                if whole == 0 {
                    break;
                }
                self.tx.sent.split(index, sent.span.start + whole);
                let Some(part) = self.tx.sent.get(index) else { break };
                sent = *part;
            }
            if !sent.sacked {
                self.mark_sacked(index, &sent, prior_high, round, now);
            }
            index += 1;
        }
    }

    fn mark_sacked(
        &mut self,
        index: usize,
        sent: &super::sent::Sent,
        prior_high: Option<Seq>,
        round: &mut Round,
        now: Time,
    ) {
        self.rack_advance(sent, now);
        if !sent.ever_retransmitted {
            if prior_high.is_some_and(|high| sent.span.start.before(high)) {
                let lowest = round.sack_reordered.map_or(sent.span.start, |known| known.min(sent.span.start));
                round.sack_reordered = Some(lowest);
            }
            round.original_arrived |= !sent.span.end.after(self.rec.high);
            let us = micros(now.saturating_sub(sent.sent_at)) as u32;
            round.sack_rtt_us = Some(round.sack_rtt_us.map_or(us, |known| known.max(us)));
        }
        self.tx.sent.change(index, |record| {
            record.sacked = true;
            record.lost = false;
            record.retransmitted = false;
        });
        round.sacked_data = true;
        self.counters.delivered += sent.segments;
        let high = self.rec.sack_high.map_or(sent.span.end, |known| known.max(sent.span.end));
        self.rec.sack_high = Some(high);
    }

    /// Originals that arrived after later ones show reordering (RFC 8985 section 6.2 step 3).
    pub(crate) fn note_reordering(&mut self, round: &Round) {
        if !self.agreed.sack {
            return;
        }
        if let Some(low) = round.reordered {
            self.reordered_from(low, round.prior_sack_high);
        }
        if self.rec.sack_high.is_some_and(|high| !high.after(self.una())) {
            self.rec.sack_high = None;
        }
    }

    /// `low` arrived after `high` had been reported.
    pub(crate) fn reordered_from(&mut self, low: Seq, high: Option<Seq>) {
        let Some(high) = high.filter(|high| low.before(*high)) else { return };
        let distance = high.since(low).div_ceil(self.payload_most().max(1));
        if distance > self.rec.reordering {
            self.rec.reordering = distance.min(REORDERING_MOST);
        }
        self.rec.reordering_seen = self.rec.reordering_seen.saturating_add(1);
    }

    /// Forgets SACK marks: a receiver may take back what it reported (RFC 2018 section 8).
    pub(crate) fn forget_sacks(&mut self) {
        self.tx.sent.change_all(|sent| sent.sacked = false);
        self.rec.sack_high = None;
    }

    /// Duplicate acknowledgments of a peer without SACK count as departed segments.
    pub(crate) fn add_emulated_sacks(&mut self, duplicates: u32) {
        if self.agreed.sack || duplicates == 0 {
            return;
        }
        let before = self.tx.sent.sacked_out;
        self.tx.sent.set_sacked(before + duplicates);
        self.limit_emulated_sacks(0);
        self.counters.delivered += self.tx.sent.sacked_out.saturating_sub(before);
    }

    /// An acknowledgment covers some of the departed segments.
    pub(crate) fn remove_emulated_sacks(&mut self, round: &Round) {
        if round.acked == 0 {
            return;
        }
        let sacked = self.tx.sent.sacked_out;
        self.counters.delivered += round.acked.saturating_sub(sacked).max(1);
        self.tx.sent.set_sacked(sacked.saturating_sub(round.acked - 1).min(self.tx.sent.packets_out));
        self.limit_emulated_sacks(round.acked);
    }

    fn limit_emulated_sacks(&mut self, acked: u32) {
        let packets = self.tx.sent.packets_out;
        let holes = self.tx.sent.lost_out.max(1).min(packets);
        if self.tx.sent.sacked_out + holes > packets {
            self.tx.sent.set_sacked(packets - holes);
            if self.rec.ca < CaState::Recovery || acked > 0 {
                self.rec.reordering = (packets + acked).min(REORDERING_MOST).max(self.config.reordering);
            }
        }
    }

    pub(crate) fn reset_emulated_sacks(&mut self) {
        if !self.agreed.sack {
            self.tx.sent.set_sacked(0);
        }
    }
}
