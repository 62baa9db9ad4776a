//! When received data is acknowledged: at once, delayed, or with data (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).

use nicforge_units::Time;

use super::{Connection, Timers};

/// Acknowledgments sent at once when data begins to flow.
const QUICK_MOST: u32 = 16;
/// Least and largest delay.
const DELAY_LEAST: Time = Time::from_ms(40);
const DELAY_MOST: Time = Time::from_ms(200);

/// State of acknowledging.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acking {
    /// Data waits for an acknowledgment.
    pub scheduled: bool,
    /// Acknowledgments that must go out now, one segment each.
    pub now: u32,
    /// The next acknowledgment must not wait.
    pub urgent: bool,
    /// A segment with PSH, or two of them, wait for the application.
    pub pushed: u8,
    /// Acknowledgments that still go out at once.
    pub quick: u32,
    /// The connection alternates between requests and answers.
    pub interactive: bool,
    /// Present delay.
    pub delay: Time,
    /// Estimated size of the peer's full segments.
    pub peer_segment: u32,
    pub last_size: u32,
}

impl Connection {
    /// Allows acknowledgments without delay for a while.
    pub(crate) fn quicken(&mut self, most: u32) {
        let per = 2 * self.ack.peer_segment.max(1);
        let quick = (self.rx.window / per).clamp(2, most.max(2));
        self.ack.quick = self.ack.quick.max(quick);
    }

    /// Leaves delayed acknowledgments: something unusual arrived.
    pub(crate) fn enter_quick(&mut self) {
        self.quicken(QUICK_MOST);
        self.ack.interactive = false;
        self.ack.delay = DELAY_LEAST;
    }

    /// Estimates the peer's segment size and the delay from the arrival of `len` in-order bytes.
    pub(crate) fn note_data(&mut self, len: u32, push: bool, now: Time) {
        self.ack.scheduled = true;
        self.measure_segment(len, push);
        if self.ack.delay == Time::ZERO {
            self.quicken(QUICK_MOST);
            self.ack.delay = DELAY_LEAST;
        } else {
            let gap = now.saturating_sub(self.rx.last_data_at);
            let half = Time::from_ps(self.ack.delay.as_ps() / 2);
            if gap <= Time::from_ps(DELAY_LEAST.as_ps() / 2) {
                self.ack.delay = half + Time::from_ps(DELAY_LEAST.as_ps() / 2);
            } else if gap < self.ack.delay {
                self.ack.delay = (half + gap).min(self.rtt.rto());
            } else if gap > self.rtt.rto() {
                self.quicken(QUICK_MOST);
            }
        }
        self.rx.last_data_at = now;
    }

    fn measure_segment(&mut self, len: u32, push: bool) {
        if len >= self.ack.peer_segment {
            if push {
                self.ack.pushed = self.ack.pushed.max(1);
            }
            self.ack.peer_segment = len.min(u32::from(self.agreed.own_mss)).max(1);
            return;
        }
        if len >= 536 {
            let again = len == self.ack.last_size;
            self.ack.last_size = len;
            if again {
                self.ack.peer_segment = len;
                return;
            }
        }
        self.ack.pushed = (self.ack.pushed + 1).min(2);
    }

    fn is_quick(&self) -> bool {
        self.config.ack_every_segment || (self.ack.quick > 0 && !self.ack.interactive)
    }

    /// Decides about the acknowledgment of what arrived.
    pub(crate) fn consider_ack(&mut self, now: Time) {
        if !self.ack.scheduled {
            return;
        }
        let unacked = self.expected() - self.rx.window_at;
        let segment = self.ack.peer_segment;
        // RFC 9293 MUST-58's every second segment; a little earlier where the window moves on, too.
        let far_enough = unacked >= 2 * segment || (unacked > segment && self.window_to_offer() >= self.rx.window);
        if !self.rx.intervals.is_empty() || self.rx.duplicate.is_some() {
            // Each segment out of order has an acknowledgment of its own: the peer counts them.
            self.ack_now();
        } else if far_enough || self.is_quick() || self.ack.urgent {
            // One covers all that is in order, however many segments arrive before it leaves.
            self.ack.now = self.ack.now.max(1);
        } else {
            self.delay_ack(now);
        }
    }

    /// One acknowledgment now.
    pub(crate) fn ack_now(&mut self) {
        self.ack.now = (self.ack.now + 1).min(255);
    }

    fn delay_ack(&mut self, now: Time) {
        let mut delay = self.ack.delay;
        if delay > DELAY_LEAST {
            let mut most = if self.ack.interactive || self.ack.pushed > 0 { DELAY_MOST } else { Time::from_ms(500) };
            if self.rtt.is_measured() {
                most = most.min(Time::from_us(self.rtt.smoothed_us().into()).max(DELAY_LEAST));
            }
            delay = delay.min(most);
        }
        let mut at = now + delay.min(DELAY_MOST);
        if let Some(set) = self.timers.delayed_ack {
            if set <= now + Time::from_ps(delay.as_ps() / 4) {
                self.ack_now();
                return;
            }
            at = at.min(set);
        }
        self.timers.delayed_ack = Some(at);
    }

    /// The timer of a delayed acknowledgment fired.
    pub(crate) fn delayed_ack_due(&mut self) {
        self.timers.delayed_ack = None;
        if !self.ack.scheduled {
            return;
        }
        if self.ack.interactive {
            self.ack.interactive = false;
            self.ack.delay = DELAY_LEAST;
        } else {
            // The peer waited for the acknowledgment: wait longer next time would only slow it more.
            self.ack.delay = Time::from_ps(self.ack.delay.as_ps() * 2).min(self.rtt.rto());
        }
        self.ack_now();
    }

    /// An acknowledgment went out, alone or with data.
    pub(crate) fn ack_went_out(&mut self, segments: u32) {
        if self.ack.quick > 0 {
            self.ack.quick = self.ack.quick.saturating_sub(segments);
            if self.ack.quick == 0 {
                self.ack.delay = DELAY_LEAST;
            }
        }
        self.ack.scheduled = false;
        self.ack.urgent = false;
        self.ack.pushed = 0;
        let Timers { delayed_ack, .. } = &mut self.timers;
        *delayed_ack = None;
    }

    /// The application read `bytes`: acknowledges, or offers the window that this opens (RFC 9293 section 3.8.6.2.2).
    pub(crate) fn after_read(&mut self, bytes: u32, _now: Time) {
        let mut due = false;
        if self.ack.scheduled {
            let unacked = self.expected() - self.rx.window_at;
            let pushed = self.ack.pushed == 2 || (self.ack.pushed == 1 && !self.ack.interactive);
            due = unacked > self.ack.peer_segment || (bytes > 0 && pushed && self.flow.rx_waiting() == 0);
        }
        if bytes > 0 && !due && !self.rx.shut && self.state.takes_data() {
            let offered = self.window_offered();
            if 2 * u64::from(offered) <= u64::from(self.window_bound()) {
                let could = self.window_to_offer();
                due = could > 0 && u64::from(could) >= 2 * u64::from(offered);
            }
        }
        if due {
            self.ack_now();
        }
    }
}
