//! The congestion window around the algorithm: proportional rate reduction (RFC 6937), validation (RFC 7661's concern),
//! restart after idle time, pacing.

use nicforge_units::Time;

use super::ack::Round;
use super::{CaState, Connection};
use crate::congestion::{THRESHOLD_NONE, Trouble};

impl Connection {
    /// Whether the window is being reduced.
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.rec.ca, CaState::Reducing | CaState::Recovery)
    }

    pub(crate) fn current_threshold(&self) -> u32 {
        let window = &self.window;
        if self.is_reducing() {
            return window.threshold;
        }
        window.threshold.max(window.size / 2 + window.size / 4)
    }

    pub(crate) fn begin_reduction(&mut self, trouble: Trouble) {
        self.rec.high = self.next();
        self.rec.probe_high = None;
        self.window.count = 0;
        self.rec.prior_window = self.window.size;
        self.window.prior = self.window.size;
        (self.rec.prr_delivered, self.rec.prr_out) = (0, 0);
        self.window.threshold = self.control.threshold(&self.window, trouble);
        self.control.trouble(&self.window, trouble);
        self.tx.cwr = self.agreed.ecn;
    }

    pub(crate) fn end_reduction(&mut self) {
        let reduced = self.rec.ca == CaState::Reducing || self.rec.undo.is_some();
        if self.window.threshold < THRESHOLD_NONE && reduced {
            self.window.size = self.window.threshold;
        }
    }

    /// An ECN echo, or a probe that repaired a loss, reduces the window once per round trip.
    pub(crate) fn enter_reduction(&mut self) {
        self.rec.prior_threshold = 0;
        if self.rec.ca < CaState::Reducing {
            self.rec.undo = None;
            self.begin_reduction(Trouble::Marked);
            self.set_ca(CaState::Reducing);
        }
    }

    /// Reduces or grows the window by what the acknowledgment delivered.
    pub(crate) fn control_window(&mut self, round: &Round, delivered: u32, now: Time) {
        if self.is_reducing() {
            let lost = self.tx.sent.lost_out.saturating_sub(round.prior_lost);
            self.reduce_window(delivered, lost, round.advanced);
        } else if self.may_grow(round) && self.is_window_limited() {
            let ack = self.congestion_ack(round, delivered, now);
            self.control.grow(&mut self.window, &ack);
        }
        self.flow.post.window = self.window.size.saturating_mul(self.payload_most());
    }

    fn may_grow(&self, round: &Round) -> bool {
        if self.rec.reordering > self.config.reordering {
            return round.acked_data || round.sacked_data;
        }
        round.acked_data
    }

    pub(crate) fn reduce_window(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if delivered == 0 || self.rec.prior_window == 0 {
            return;
        }
        let in_flight = self.tx.sent.in_flight();
        let threshold = self.window.threshold;
        self.rec.prr_delivered += delivered;
        let (arrived, out) = (u64::from(self.rec.prr_delivered), u64::from(self.rec.prr_out));
        let mut send = if in_flight > threshold {
            let due = (u64::from(threshold) * arrived).div_ceil(u64::from(self.rec.prior_window));
            due.saturating_sub(out)
        } else {
            let mut send = arrived.saturating_sub(out).max(u64::from(delivered));
            if advanced && lost == 0 {
                send += 1;
            }
            send.min(u64::from(threshold - in_flight))
        };
        if self.rec.prr_out == 0 {
            send = send.max(1);
        }
        self.window.size = in_flight + send as u32;
    }

    /// Whether the window is what limits sending.
    pub(crate) fn is_window_limited(&self) -> bool {
        let slow = self.window.in_slow_start() && self.window.size < 2 * self.rec.packets_out_most;
        self.rec.window_limited || slow
    }

    /// Notes after sending how much of the window is used.
    pub(crate) fn validate_window(&mut self, limited: bool) {
        let packets = self.tx.sent.packets_out;
        let round_over = !self.una().before(self.rec.window_used_until);
        if round_over || limited || (!self.rec.window_limited && packets > self.rec.packets_out_most) {
            self.rec.window_limited = limited;
            self.rec.packets_out_most = packets;
            self.rec.window_used_until = self.next();
        }
    }

    /// RFC 5681 section 4.1: after an idle timeout the window falls back, halving per timeout.
    pub(crate) fn restart_if_idle(&mut self, now: Time) {
        if self.flow.protocol.tx_sent > 0 || self.tx.last_sent_at == Time::ZERO {
            return;
        }
        let idle = now.saturating_sub(self.tx.last_sent_at);
        self.control.restart(now, idle);
        if !self.config.slow_start_after_idle || idle <= self.rtt.rto() {
            return;
        }
        let mut left = idle;
        let restart = self.config.initial_window.min(self.window.size);
        self.window.threshold = self.current_threshold();
        while left > self.rtt.rto() && self.window.size > restart {
            self.window.size = (self.window.size / 2).max(restart);
            left = left.saturating_sub(self.rtt.rto());
        }
        self.window.count = 0;
        self.tx.last_sent_at = now;
    }

    /// Bytes per second at which bursts leave: what the algorithm says, or the window per round trip with head room.
    pub(crate) fn pacing_rate(&self) -> u64 {
        if let Some(rate) = self.control.rate() {
            return rate.max(1);
        }
        let rtt = u64::from(self.rtt.smoothed_us());
        let window = u64::from(self.window.size.max(self.tx.sent.packets_out));
        let (start, after) = self.config.pacing_percent;
        let percent = if self.window.size < self.window.threshold / 2 { start } else { after };
        let per_rtt = window * u64::from(self.full_segment()) * u64::from(percent) / 100;
        // Without a measurement a millisecond is assumed.
        (per_rtt * 1_000_000).checked_div(rtt).unwrap_or(per_rtt * 1000)
    }

    /// Segments in a burst at most: about a millisecond's worth at the pacing rate.
    pub(crate) fn burst_segments(&self) -> u32 {
        const BURST_BYTES_MOST: u64 = 65536 - 320;
        if !self.config.segmentation_offload {
            return 1;
        }
        let mut bytes = self.pacing_rate() >> 10;
        let least = self.rtt.least_us();
        let shift = if least == u32::MAX { 32 } else { least >> 9 };
        if shift < 32 {
            bytes += BURST_BYTES_MOST >> shift;
        }
        let bytes = bytes.min(BURST_BYTES_MOST);
        ((bytes / u64::from(self.payload_most().max(1))) as u32).max(self.config.burst_segments_min)
    }
}
