//! Loss recovery's state machine: when a recovery begins, what an acknowledgment means in it, when it ends
//! (RFC 6582, RFC 6675, RFC 5682, RFC 8985).

use nicforge_units::Time;

use super::ack::Round;
use super::loss::Rack;
use super::output::Push;
use super::{CaState, Connection, RecoverySide};
use crate::config::Config;
use crate::congestion::Trouble;
use crate::seq::Seq;

impl RecoverySide {
    /// All is well; `iss` is the oldest number there is.
    pub(crate) fn new(iss: Seq, config: &Config) -> RecoverySide {
        RecoverySide {
            ca: CaState::Open,
            high: iss,
            undo: None,
            undo_retransmits: 0,
            prior_threshold: 0,
            prior_window: 0,
            prr_delivered: 0,
            prr_out: 0,
            frto: false,
            reordering: config.reordering,
            reordering_seen: 0,
            rack: Rack { steps: 1, ..Rack::default() },
            probe_high: None,
            probe_retransmitted: false,
            window_limited: false,
            window_used_until: iss,
            packets_out_most: 0,
            sack_high: None,
        }
    }
}

impl Connection {
    /// Something unusual was acknowledged.
    pub(crate) fn alert(&mut self, round: &mut Round, now: Time) {
        if self.tx.sent.packets_out == 0 && self.tx.sent.sacked_out > 0 {
            self.tx.sent.set_sacked(0);
        }
        if round.marked {
            self.rec.prior_threshold = 0;
        }
        if self.is_reneging(now) {
            return;
        }
        if self.rec.ca == CaState::Open {
            self.tx.retransmitted_at = None;
        } else if !self.una().before(self.rec.high) && self.leaves_state() {
            return;
        }
        match self.rec.ca {
            CaState::Recovery => self.alert_in_recovery(round, now),
            CaState::Loss => self.alert_in_loss(round, now),
            _ => self.alert_in_order(round, now),
        }
    }

    /// The recovery point was reached. Returns whether nothing else is to be done.
    fn leaves_state(&mut self) -> bool {
        match self.rec.ca {
            CaState::Reducing => {
                if self.una() != self.rec.high {
                    self.end_reduction();
                    self.set_ca(CaState::Open);
                }
                false
            }
            CaState::Recovery => {
                self.reset_emulated_sacks();
                if self.try_undo_recovery() {
                    return true;
                }
                self.end_reduction();
                false
            }
            _ => false,
        }
    }

    fn alert_in_recovery(&mut self, round: &mut Round, now: Time) {
        if !round.advanced {
            self.add_emulated_sacks(round.duplicates);
        } else if self.try_undo_partial(round) {
            return;
        }
        if self.try_undo_dsack() {
            self.try_to_open(round);
        }
        self.find_losses(round, now);
        if self.rec.ca != CaState::Recovery {
            if !self.is_loss_proven() {
                return;
            }
            self.enter_recovery(round.marked);
        }
        self.tx.retransmit = true;
    }

    fn alert_in_loss(&mut self, round: &mut Round, now: Time) {
        let sends_new = self.process_loss(round);
        self.find_losses(round, now);
        if self.rec.ca == CaState::Loss && !round.lost_retransmission {
            if !sends_new {
                self.tx.retransmit = true;
            }
            return;
        }
        self.alert_in_order(round, now);
    }

    fn alert_in_order(&mut self, round: &mut Round, now: Time) {
        if round.advanced {
            self.reset_emulated_sacks();
        }
        self.add_emulated_sacks(round.duplicates);
        if self.rec.ca <= CaState::Disorder {
            self.try_undo_dsack();
        }
        self.find_losses(round, now);
        if !self.is_loss_proven() {
            self.try_to_open(round);
            return;
        }
        self.enter_recovery(round.marked);
        self.tx.retransmit = true;
    }

    pub(crate) fn is_loss_proven(&self) -> bool {
        self.tx.sent.lost_out > 0
    }

    /// Marks what must be lost.
    fn find_losses(&mut self, round: &mut Round, now: Time) {
        if self.tx.sent.is_empty() {
            return;
        }
        if !self.agreed.sack {
            self.mark_lost_newreno(round.advanced);
            return;
        }
        let before = self.tx.sent.retrans_out;
        if self.rack_mark_lost(now) {
            round.set_timer = false;
        }
        round.lost_retransmission |= self.tx.sent.retrans_out < before;
    }

    /// Duplicate acknowledgments, or a partial one in recovery, prove the oldest segment lost (RFC 6582).
    fn mark_lost_newreno(&mut self, advanced: bool) {
        let begins = self.rec.ca < CaState::Recovery && self.tx.sent.sacked_out >= self.rec.reordering;
        let partial = self.rec.ca == CaState::Recovery && advanced;
        let Some(head) = self.tx.sent.head().copied().filter(|head| (begins || partial) && !head.lost) else { return };
        if head.segments > 1 {
            self.tx.sent.split(0, head.span.start + head.mss);
        }
        self.mark_lost(0);
    }

    /// Takes the record at `index` for lost; a copy in flight no longer counts.
    pub(crate) fn mark_lost(&mut self, index: usize) {
        self.tx.sent.change(index, |sent| {
            if !sent.sacked {
                sent.lost = true;
            }
            sent.retransmitted = false;
        });
    }

    pub(crate) fn set_ca(&mut self, ca: CaState) {
        if ca == CaState::Open && self.rec.ca != CaState::Open {
            self.control.trouble(&self.window, Trouble::Open);
        }
        self.rec.ca = ca;
    }

    pub(crate) fn enter_recovery(&mut self, marked: bool) {
        self.rec.prior_threshold = 0;
        self.begin_undo();
        if !self.is_reducing() {
            if !marked {
                self.rec.prior_threshold = self.current_threshold();
            }
            self.begin_reduction(Trouble::Recovery);
        }
        self.counters.fast_recoveries += 1;
        self.flow.post.cnt_fretx = self.flow.post.cnt_fretx.saturating_add(1);
        self.set_ca(CaState::Recovery);
    }

    pub(crate) fn begin_undo(&mut self) {
        self.rec.undo = Some(self.una());
        let retransmitted = i64::from(self.tx.sent.retrans_out);
        self.rec.undo_retransmits = if retransmitted > 0 { retransmitted } else { -1 };
    }

    /// A timeout: everything outstanding is lost, except what was sent just now (RFC 8985 section 6.3).
    pub(crate) fn enter_loss(&mut self, now: Time) {
        let fresh = self.rec.ca < CaState::Recovery;
        self.mark_all_lost(now);
        let already = self.rec.ca == CaState::Loss && self.tx.retransmits > 0;
        if self.rec.ca <= CaState::Disorder
            || !self.rec.high.after(self.una())
            || (self.rec.ca == CaState::Loss && !already)
        {
            self.rec.prior_threshold = self.current_threshold();
            self.rec.prior_window = self.window.size;
            self.window.prior = self.window.size;
            self.window.threshold = self.control.threshold(&self.window, Trouble::Timeout);
            self.control.trouble(&self.window, Trouble::Timeout);
            self.begin_undo();
        }
        self.window.size = self.tx.sent.in_flight() + 1;
        self.window.count = 0;
        if self.rec.ca <= CaState::Disorder && self.tx.sent.sacked_out >= self.config.reordering {
            self.rec.reordering = self.rec.reordering.min(self.config.reordering);
        }
        self.set_ca(CaState::Loss);
        self.rec.high = self.next();
        self.rec.probe_high = None;
        self.tx.cwr = self.agreed.ecn;
        self.rec.frto = self.config.frto && (fresh || self.tx.retransmits > 0);
    }

    fn mark_all_lost(&mut self, now: Time) {
        let reneged = self.tx.sent.head().is_some_and(|head| head.sacked);
        if reneged {
            self.forget_sacks();
        } else {
            self.reset_emulated_sacks();
        }
        for index in 0..self.tx.sent.len() {
            let Some(sent) = self.tx.sent.get(index).copied() else { break };
            if !reneged && self.agreed.sack && index > 0 && self.rack_time_left(&sent, 0, now).is_some() {
                continue;
            }
            self.mark_lost(index);
        }
    }

    /// An acknowledgment while a timeout is repaired. Returns whether new data is to be sent instead of old.
    fn process_loss(&mut self, round: &Round) -> bool {
        let recovered = !self.una().before(self.rec.high);
        if round.advanced && self.try_undo_loss(false) {
            return false;
        }
        if self.rec.frto {
            if round.original_arrived && self.try_undo_loss(true) {
                return false;
            }
            if self.next().after(self.rec.high) {
                if round.sacked_data || round.duplicates > 0 {
                    self.rec.frto = false;
                }
            } else if round.advanced && !recovered {
                self.rec.high = self.next();
                let window_open = (self.una() + self.flow.protocol.remote_win).after(self.next());
                if self.flow.protocol.tx_avail > 0 && window_open {
                    // RFC 5682 step 2b: new data tells whether the old was lost at all.
                    self.push(Push::Everything);
                    return true;
                }
                self.rec.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return false;
        }
        if self.next().after(self.rec.high) && round.duplicates > 0 {
            self.add_emulated_sacks(round.duplicates);
        } else if round.advanced {
            self.reset_emulated_sacks();
        }
        false
    }

    /// The receiver acknowledges up to a record that it had reported as received: it took the report back.
    fn is_reneging(&mut self, now: Time) -> bool {
        if !self.agreed.sack || !self.tx.sent.head().is_some_and(|head| head.sacked) {
            return false;
        }
        let delay = Time::from_us(u64::from(self.rtt.smoothed_us() / 2).max(10_000));
        self.timers.main = Some((super::TimerKind::Retransmit, now + delay));
        true
    }

    /// Retransmission begins or goes on where the acknowledgment says so.
    pub(crate) fn recover(&mut self, _round: &Round) {
        if self.tx.retransmit && self.tx.sent.lost_out == 0 {
            self.tx.retransmit = false;
        }
    }
}
