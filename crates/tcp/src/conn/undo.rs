//! Undoing a reduction that turns out to be unfounded: duplicates reported (RFC 3708), clocks (RFC 3522), F-RTO.

use super::ack::Round;
use super::{CaState, Connection};

impl Connection {
    /// The first retransmission went out after the segment that is acknowledged: the original arrived.
    fn is_original_acked(&self) -> bool {
        self.tx.retransmitted_at.is_some() && self.agreed.timestamps && self.rec.rack.echo_before_retransmit
    }

    fn may_undo(&self) -> bool {
        self.rec.undo.is_some() && (self.rec.undo_retransmits == 0 || self.is_original_acked())
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.tx.sent.change_all(|sent| sent.lost = false);
        }
        if self.rec.prior_threshold > 0 {
            self.window.size = self.control.undone(&self.window).max(self.window.size);
            if self.rec.prior_threshold > self.window.threshold {
                self.window.threshold = self.rec.prior_threshold;
                self.tx.cwr = false;
            }
        }
        self.rec.undo = None;
        self.counters.undone += 1;
    }

    /// Returns whether the state is kept until something above the recovery point is acknowledged.
    pub(crate) fn try_undo_recovery(&mut self) -> bool {
        if self.may_undo() {
            self.undo_reduction(false);
        }
        if self.keeps_state_without_sack() {
            return true;
        }
        self.set_ca(CaState::Open);
        false
    }

    /// RFC 6582 section 3.2: without SACK the state must outlast the recovery point, or old duplicates begin anew.
    fn keeps_state_without_sack(&mut self) -> bool {
        if self.una() == self.rec.high && !self.agreed.sack {
            if !self.has_retransmissions() {
                self.tx.retransmitted_at = None;
            }
            return true;
        }
        false
    }

    pub(crate) fn try_undo_dsack(&mut self) -> bool {
        if self.rec.undo.is_some() && self.rec.undo_retransmits == 0 {
            self.rec.rack.persist = (self.rec.rack.persist + 1).min(16);
            self.undo_reduction(false);
            return true;
        }
        false
    }

    pub(crate) fn try_undo_loss(&mut self, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo() {
            return false;
        }
        self.undo_reduction(true);
        self.tx.retransmits = 0;
        if self.keeps_state_without_sack() {
            return true;
        }
        if by_frto || self.agreed.sack {
            self.set_ca(CaState::Open);
        }
        true
    }

    /// A partial acknowledgment of a delayed original. Returns whether nothing must be marked or sent again.
    pub(crate) fn try_undo_partial(&mut self, round: &Round) -> bool {
        if self.rec.undo.is_none() || !self.is_original_acked() {
            return false;
        }
        self.reordered_from(round.prior_una, self.rec.sack_high);
        if self.tx.sent.retrans_out > 0 {
            return true;
        }
        if !self.has_retransmissions() {
            self.tx.retransmitted_at = None;
        }
        self.undo_reduction(true);
        self.try_keep_open();
        false
    }

    fn has_retransmissions(&self) -> bool {
        self.tx.sent.retrans_out > 0 || self.tx.sent.head().is_some_and(|head| head.ever_retransmitted)
    }

    pub(crate) fn try_to_open(&mut self, round: &Round) {
        if !self.has_retransmissions() {
            self.tx.retransmitted_at = None;
        }
        if round.marked {
            self.enter_reduction();
        }
        if self.rec.ca != CaState::Reducing {
            self.try_keep_open();
        }
    }

    pub(crate) fn try_keep_open(&mut self) {
        let left = self.tx.sent.sacked_out + self.tx.sent.lost_out > 0 || self.has_retransmissions();
        let ca = if left { CaState::Disorder } else { CaState::Open };
        if self.rec.ca != ca {
            self.set_ca(ca);
            self.rec.high = self.next();
        }
    }
}
