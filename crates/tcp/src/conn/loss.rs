//! RACK-TLP (RFC 8985): losses by time of sending, and probes that find the loss of a tail.

use nicforge_units::Time;

use super::ack::Round;
use super::output::Probe;
use super::rtt::micros;
use super::sent::Sent;
use super::{CaState, Connection, TimerKind};
use crate::congestion::Trouble;
use crate::seq::Seq;

/// Time that a probe waits for a delayed acknowledgment.
const DELAYED_ACK_MOST: Time = Time::from_ms(200);
/// Least time of any probe timer.
const PROBE_LEAST: Time = Time::from_us(2_000);

/// What RACK remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rack {
    /// Time of sending of the most recently sent segment that arrived.
    pub sent_at: Time,
    /// Its end.
    pub end: Seq,
    /// Its round-trip time in microseconds.
    pub rtt_us: u32,
    /// An acknowledgment brought news.
    pub advanced: bool,
    /// Reordering window in quarters of the least RTT.
    pub steps: u32,
    /// Recoveries for which the larger window persists.
    pub persist: u32,
    pub dsack_seen: bool,
    /// Steps were raised in this round trip.
    pub raised_at: Option<Seq>,
    /// The clock that was echoed last lies before the first retransmission.
    pub echo_before_retransmit: bool,
}

impl Connection {
    /// A record arrived.
    pub(crate) fn rack_advance(&mut self, sent: &Sent, now: Time) {
        let rtt_us = micros(now.saturating_sub(sent.sent_at)) as u32;
        if sent.ever_retransmitted && rtt_us < self.rtt.least_us() {
            // Too fast for the retransmission: the original arrived.
            return;
        }
        self.rec.rack.advanced = true;
        self.rec.rack.rtt_us = rtt_us;
        let rack = &mut self.rec.rack;
        let later = sent.sent_at > rack.sent_at || (sent.sent_at == rack.sent_at && sent.span.end.after(rack.end));
        if later {
            rack.sent_at = sent.sent_at;
            rack.end = sent.span.end;
        }
    }

    /// Reordering window in microseconds.
    fn rack_window_us(&self) -> u32 {
        let in_doubt = self.rec.ca >= CaState::Recovery || self.tx.sent.sacked_out >= self.rec.reordering;
        if self.rec.reordering_seen == 0 && in_doubt {
            return 0;
        }
        let quarter = self.rtt.least_us() / 4;
        quarter.saturating_mul(self.rec.rack.steps.max(1)).min(self.rtt.smoothed_us())
    }

    /// Microseconds until `sent` must be taken for lost, `None` when that is now.
    pub(crate) fn rack_time_left(&self, sent: &Sent, window_us: u32, now: Time) -> Option<u64> {
        let allowed = u64::from(self.rec.rack.rtt_us) + u64::from(window_us);
        let passed = micros(now.saturating_sub(sent.sent_at));
        (allowed > passed).then(|| allowed - passed)
    }

    /// Takes for lost what was sent long enough before something that arrived. Returns whether a timer was set.
    pub(crate) fn rack_mark_lost(&mut self, now: Time) -> bool {
        if !self.rec.rack.advanced {
            return false;
        }
        self.rec.rack.advanced = false;
        let wait = self.rack_detect(now);
        if wait > 0 {
            self.timers.main = Some((TimerKind::Reordering, now + Time::from_us(wait) + PROBE_LEAST));
        }
        wait > 0
    }

    /// Returns the microseconds until the next record may turn out lost, zero for never.
    fn rack_detect(&mut self, now: Time) -> u64 {
        let window_us = self.rack_window_us();
        let mut wait = 0;
        for index in 0..self.tx.sent.len() {
            let Some(sent) = self.tx.sent.get(index).copied() else { break };
            if (sent.lost && !sent.retransmitted) || sent.sacked {
                continue;
            }
            let rack = &self.rec.rack;
            let before =
                sent.sent_at < rack.sent_at || (sent.sent_at == rack.sent_at && sent.span.end.before(rack.end));
            if !before {
                if !sent.ever_retransmitted {
                    break;
                }
                continue;
            }
            match self.rack_time_left(&sent, window_us, now) {
                None => self.mark_lost(index),
                Some(left) => wait = wait.max(left + 1),
            }
        }
        wait
    }

    /// The reordering timer fired.
    pub(crate) fn on_reordering_timer(&mut self, now: Time) {
        let before = self.tx.sent.in_flight();
        self.rack_detect(now);
        if self.tx.sent.in_flight() != before {
            if self.rec.ca != CaState::Recovery {
                self.enter_recovery(false);
                // One segment goes out at once, whatever the reduction says.
                self.reduce_window(1, 1, false);
            }
            self.tx.retransmit = true;
        }
        self.tx.retransmit |= self.tx.sent.lost_out > 0;
        if !matches!(self.timers.main, Some((TimerKind::Retransmit, _))) {
            self.rearm_retransmit(now);
        }
    }

    /// Adapts the reordering window to reported duplicates (RFC 8985 section 6.2 step 4).
    pub(crate) fn rack_update_window(&mut self, round: &Round) {
        if !round.dsack && !self.rec.rack.dsack_seen && self.rec.rack.persist == 0 {
            return;
        }
        let (una, next) = (self.una(), self.next());
        let rack = &mut self.rec.rack;
        if rack.raised_at.is_some_and(|at| !una.before(at)) {
            rack.raised_at = None;
        }
        if rack.dsack_seen && rack.raised_at.is_none() {
            rack.steps = (rack.steps.max(1) + 1).min(255);
            rack.raised_at = Some(next);
            rack.persist = 16;
            rack.dsack_seen = false;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }

    /// Sets the probe timer where a probe makes sense. Returns whether it did.
    pub(crate) fn schedule_probe(&mut self, now: Time) -> bool {
        let calm = matches!(self.rec.ca, CaState::Open | CaState::Reducing);
        let usable = self.config.tail_loss_probe && self.agreed.sack && !self.goes_back_n();
        if !usable || !calm || self.tx.sent.packets_out == 0 || self.tx.sent.sacked_out > 0 {
            return false;
        }
        if !self.state.is_synchronized() || self.tx.sent.head().is_some_and(|head| head.syn) {
            return false;
        }
        let mut after = if self.rtt.is_measured() {
            let twice = Time::from_us(u64::from(self.rtt.smoothed_us()) * 2);
            twice + if self.tx.sent.packets_out == 1 { DELAYED_ACK_MOST } else { PROBE_LEAST }
        } else {
            self.config.rto_initial
        };
        let due = self.retransmit_deadline();
        let rto_left = due.saturating_sub(now);
        if due > now {
            after = after.min(rto_left);
        }
        self.timers.main = Some((TimerKind::Probe, now + after.max(PROBE_LEAST)));
        true
    }

    /// The probe timer fired: new data, or the last segment again.
    pub(crate) fn on_probe_timer(&mut self, now: Time) {
        self.timers.main = None;
        if self.rec.probe_high.is_some() || self.tx.sent.is_empty() {
            self.rearm_retransmit(now);
            return;
        }
        self.rec.probe_retransmitted = false;
        self.tx.probe = Some(Probe::Tail);
    }

    /// A probe went out.
    pub(crate) fn probe_went_out(&mut self, retransmitted: bool, now: Time) {
        self.rec.probe_high = Some(self.next());
        self.rec.probe_retransmitted = retransmitted;
        self.timers.main = None;
        self.rearm_retransmit(now);
    }

    /// An acknowledgment reaches the probe: a duplicate means no loss, silence about it a repaired one.
    pub(crate) fn process_probe_ack(&mut self, ack: Seq, round: &Round, _now: Time) {
        let Some(high) = self.rec.probe_high.filter(|high| !ack.before(*high)) else { return };
        if !self.rec.probe_retransmitted || round.dsack_of_probe {
            self.rec.probe_high = None;
        } else if ack.after(high) {
            self.rec.probe_high = None;
            self.begin_reduction(Trouble::Recovery);
            self.set_ca(CaState::Reducing);
            self.end_reduction();
            self.try_keep_open();
        } else if !(round.advanced || round.with_data || round.window_update || round.sacked_data) {
            self.rec.probe_high = None;
        }
    }
}
