//! Timers: what firing means.

use nicforge_units::Time;

use super::output::Probe;
use super::{CaState, Connection, ConnectionError, State};
use crate::congestion::Trouble;

/// The timers of which only one is set at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// The oldest data is not acknowledged (RFC 6298).
    Retransmit,
    /// A tail loss probe is due (RFC 8985 section 7).
    Probe,
    /// A segment that may only be reordered is lost now (RFC 8985 section 6.2).
    Reordering,
    /// The peer's window is closed, or data is held back (RFC 9293 section 3.8.6.1).
    Persist,
}

impl Connection {
    /// Lets every timer fire that is due.
    pub fn on_timer(&mut self, now: Time) {
        self.tx.paced_waits &= self.tx.paced_until > now;
        if self.timers.delayed_ack.is_some_and(|at| at <= now) {
            self.delayed_ack_due();
        }
        if let Some((kind, _)) = self.timers.main.filter(|(_, at)| *at <= now) {
            match kind {
                TimerKind::Retransmit => self.on_retransmit_timer(now),
                TimerKind::Probe => self.on_probe_timer(now),
                TimerKind::Reordering => {
                    self.timers.main = None;
                    self.on_reordering_timer(now);
                }
                TimerKind::Persist => self.on_persist_timer(now),
            }
        }
        if self.timers.life.is_some_and(|at| at <= now) {
            self.timers.life = None;
            self.on_life_timer(now);
        }
    }

    /// Timeout with backoff.
    pub(crate) fn backed_off_rto(&self) -> Time {
        self.rtt.backed_off(self.tx.backoff)
    }

    /// When the oldest data times out, counted from its sending.
    pub(crate) fn retransmit_deadline(&self) -> Time {
        let sent_at = self.tx.sent.head().map_or(Time::ZERO, |head| head.sent_at);
        sent_at + self.backed_off_rto()
    }

    /// Starts the retransmission timer, or stops it when nothing is out. Time that another timer used up counts.
    pub(crate) fn rearm_retransmit(&mut self, now: Time) {
        if self.tx.sent.is_empty() {
            self.timers.main = None;
            return;
        }
        let replaced = matches!(self.timers.main, Some((TimerKind::Probe | TimerKind::Reordering, _)));
        let at =
            if replaced { self.retransmit_deadline().max(now + Time::from_us(1)) } else { now + self.backed_off_rto() };
        self.timers.main = Some((TimerKind::Retransmit, at));
    }

    /// After an acknowledgment: a probe or a timeout from now.
    pub(crate) fn set_transmit_timer(&mut self, now: Time) {
        if self.tx.sent.is_empty() {
            self.timers.main = None;
        } else if !self.schedule_probe(now) {
            self.rearm_retransmit(now);
        }
    }

    fn on_retransmit_timer(&mut self, now: Time) {
        self.timers.main = None;
        if self.tx.sent.is_empty() {
            self.push(super::output::Push::Everything);
            return;
        }
        if !self.state.is_synchronized() {
            self.on_handshake_timeout(now);
            return;
        }
        let closed = self.flow.protocol.remote_win == 0 && !self.orphan;
        if !closed && self.gives_up(now) {
            self.end(Some(self.soft_error.unwrap_or(ConnectionError::TimedOut)));
            return;
        }
        self.counters.timeouts += 1;
        if self.goes_back_n() {
            self.window.threshold = self.control.threshold(&self.window, Trouble::Timeout);
            self.window.size = self.window.threshold;
            self.tx.retransmits += 1;
            self.tx.backoff += 1;
            self.counters.retransmitted += 1;
            self.tx.retransmitted_at.get_or_insert(now);
            self.go_back(now);
            return;
        }
        self.enter_loss(now);
        self.tx.retransmits += 1;
        self.begin_again(0, 1, now);
        self.tx.backoff += 1;
        let after = self.bounded_by_user(self.backed_off_rto(), now);
        self.timers.main = Some((TimerKind::Retransmit, now + after));
    }

    fn since_first_retransmission(&self, now: Time) -> Time {
        let head = self.tx.sent.head().map_or(now, |head| head.sent_at);
        now.saturating_sub(self.tx.retransmitted_at.unwrap_or(head))
    }

    fn gives_up(&self, now: Time) -> bool {
        if let Some(limit) = self.tuning.user_timeout {
            return self.tx.retransmits > 0 && self.since_first_retransmission(now) >= limit;
        }
        let most = if self.orphan { self.config.orphan_retries } else { self.config.data_retries };
        self.tx.retransmits >= u32::from(most)
    }

    fn bounded_by_user(&self, after: Time, now: Time) -> Time {
        let Some(limit) = self.tuning.user_timeout else { return after };
        let left = limit.saturating_sub(self.since_first_retransmission(now));
        after.min(left.max(Time::from_ms(1)))
    }

    /// Time until window probe number `count`.
    pub(crate) fn persist_after(&self, count: u32) -> Time {
        let base = self.rtt.rto().max(self.config.rto_min);
        Time::from_ps(base.as_ps() << count.min(12)).min(self.config.rto_max)
    }

    fn on_persist_timer(&mut self, now: Time) {
        self.timers.main = None;
        if self.flow.protocol.tx_sent > 0 {
            self.tx.probes_out = 0;
            return;
        }
        let since = *self.tx.probing_since.get_or_insert(now);
        let most = if self.orphan { self.config.orphan_retries } else { self.config.data_retries };
        let too_long = self.tuning.user_timeout.is_some_and(|limit| now.saturating_sub(since) >= limit);
        if too_long || self.tx.probes_out >= u32::from(most) {
            self.end(Some(self.soft_error.unwrap_or(ConnectionError::TimedOut)));
            return;
        }
        self.tx.probe = Some(Probe::Window);
    }

    pub(crate) fn window_probe_went_out(&mut self, now: Time) {
        if self.flow.protocol.tx_sent > 0 {
            (self.tx.probes_out, self.tx.backoff, self.tx.probing_since) = (0, 0, None);
            return;
        }
        self.tx.probes_out += 1;
        self.tx.backoff = (self.tx.backoff + 1).min(u32::from(self.config.data_retries));
        self.timers.main = Some((TimerKind::Persist, now + self.persist_after(self.tx.backoff)));
    }

    /// An acknowledgment arrived while nothing is out: the window may have opened.
    pub(crate) fn after_probe_ack(&mut self, now: Time) {
        if self.flow.protocol.tx_avail == 0 {
            return;
        }
        let first = self.flow.protocol.tx_avail.min(self.payload_most());
        if first <= self.window_left() {
            (self.tx.backoff, self.tx.probing_since) = (0, None);
            if matches!(self.timers.main, Some((TimerKind::Persist, _))) {
                self.timers.main = None;
            }
        } else {
            self.timers.main = Some((TimerKind::Persist, now + self.persist_after(self.tx.backoff)));
        }
    }

    fn on_life_timer(&mut self, now: Time) {
        match self.state {
            State::TimeWait => self.end(None),
            State::FinWait2 if self.orphan => self.end(None),
            State::Established | State::CloseWait | State::FinWait1 | State::FinWait2 => self.on_keep_alive(now),
            _ => {}
        }
    }

    /// Starts or stops keep-alive as the options say.
    pub fn start_keep_alive(&mut self, now: Time) {
        let keep = self.tuning.keep_alive;
        if self.state.takes_data() || self.state == State::CloseWait {
            self.timers.life = keep.on.then_some(now + keep.idle);
        }
    }

    fn on_keep_alive(&mut self, now: Time) {
        let keep = self.tuning.keep_alive;
        if !keep.on {
            return;
        }
        let quiet = self.flow.protocol.tx_sent == 0 && self.flow.protocol.tx_avail == 0;
        if !quiet {
            // Retransmissions find out whether the peer lives.
            self.timers.life = Some(now + keep.idle);
            return;
        }
        let idle = now.saturating_sub(self.rx.last_segment_at.max(self.opened_at));
        if idle < keep.idle {
            self.tx.probes_out = 0;
            self.timers.life = Some(now + (keep.idle - idle));
            return;
        }
        let expired = match self.tuning.user_timeout {
            Some(limit) => idle >= limit && self.tx.probes_out > 0,
            None => self.tx.probes_out >= u32::from(keep.probes),
        };
        if expired {
            let reset = super::emit::Reset { seq: self.next(), ack: Some(self.expected()) };
            self.end(Some(ConnectionError::TimedOut));
            self.reset = Some(reset);
            return;
        }
        self.tx.probes_out += 1;
        self.tx.probe = Some(Probe::Alive);
        self.timers.life = Some(now + keep.interval);
    }

    /// Sends everything unacknowledged again, from the left edge on (paper 3.4.2).
    pub(crate) fn go_back(&mut self, now: Time) {
        crate::fast::retransmit(&mut self.flow);
        self.tx.sent.clear();
        self.tx.burst = None;
        self.rec.high = self.tx.highest;
        self.set_ca(CaState::Open);
        self.push(super::output::Push::Everything);
        self.timers.main = Some((TimerKind::Retransmit, now + self.backed_off_rto()));
    }
}
