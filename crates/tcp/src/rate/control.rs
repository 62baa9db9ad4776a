//! The slow path's control loop: reads what the fast path counted, decides on rates and on timeouts.

use std::collections::BTreeSet;

use nicforge_units::Time;

use crate::congestion::{Congestion, Timely};
use crate::fast::Flow;

/// Flows that one turn of the loop looks at, at most.
pub const TURN_FLOWS: usize = 128;
/// The loop's granularity, and the first estimate of a round trip.
const GRANULARITY: Time = Time::from_us(50);
/// 10 Mbit/s in bytes per second: start, step and least rate.
const STEP: f64 = 1.25e6;
/// Weight of a new observation of the marked fraction.
const GAIN: f64 = 1.0 / 16.0;
/// Weight of the present in the measured rate.
const MEASURED_GAIN: f64 = 1.0 / 8.0;
/// A rate exceeds what was measured by this factor at most.
const HEADROOM: f64 = 1.2;
/// Bytes acknowledged between two updates of the fraction: 50 acknowledgments of full segments.
const UPDATE_BYTES: u64 = 50 * 1448;
/// Control intervals without an acknowledgment that are a timeout.
const TIMEOUT_INTERVALS: u64 = 4;
/// Rates fit the flow's field: 34 Gbit/s.
const RATE_MOST: f64 = u32::MAX as f64;

/// How rates are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLaw {
    /// TAS's DCTCP: by the fraction of marked bytes.
    Dctcp,
    /// TIMELY: by the gradient of round-trip times.
    Timely,
    /// Unlimited; only timeouts are looked for.
    None,
}

/// One flow's control.
#[derive(Clone, Debug)]
struct Controlled {
    due: Time,
    looked_at: Time,
    /// Nothing was acknowledged since.
    quiet_since: Time,
    /// There was no sign of congestion yet, and there is no rate before one.
    is_calm: bool,
    rate: f64,
    measured: f64,
    slow_start: bool,
    alpha: f64,
    acked: u64,
    marked: u64,
    timely: Timely,
}

/// The control loop over all flows.
#[derive(Clone, Debug)]
pub struct RateControl {
    law: RateLaw,
    /// Flows have no rate before a first sign of congestion.
    bypasses: bool,
    flows: Vec<Option<Controlled>>,
    /// Flows by the time of their next look.
    order: BTreeSet<(Time, u32)>,
}

impl RateControl {
    /// For flows numbered below `flows`.
    pub fn new(law: RateLaw, flows: usize) -> RateControl {
        RateControl { law, bypasses: false, flows: vec![None; flows], order: BTreeSet::new() }
    }

    /// The same, but DCTCP leaves flows without a rate until a first mark, loss or timeout: the queue manager's limiter is
    /// bypassed for uncongested flows (TASNIC thesis, section 3.6.4).
    pub fn bypassing(self) -> RateControl {
        RateControl { bypasses: self.law == RateLaw::Dctcp, ..self }
    }

    /// `flow` is open: it gets its first rate. One without a number here is ignored.
    pub fn begin(&mut self, flow: u32, state: &mut Flow, now: Time) {
        self.end(flow);
        let Some(slot) = self.flows.get_mut(flow as usize) else { return };
        let due = now + GRANULARITY;
        *slot = Some(Controlled {
            due,
            looked_at: now,
            quiet_since: now,
            is_calm: self.bypasses,
            rate: STEP,
            measured: 0.0,
            slow_start: true,
            alpha: 1.0,
            acked: 0,
            marked: 0,
            timely: Timely::default(),
        });
        state.post.rate = if self.law == RateLaw::None || self.bypasses { 0 } else { STEP as u32 };
        self.order.insert((due, flow));
    }

    /// `flow` is gone.
    pub fn end(&mut self, flow: u32) {
        if let Some(controlled) = self.flows.get_mut(flow as usize).and_then(Option::take) {
            self.order.remove(&(controlled.due, flow));
        }
    }

    /// When the loop has to look at a flow next.
    pub fn due(&self) -> Time {
        self.order.first().map_or(Time::NEVER, |(due, _)| *due)
    }

    /// The next flow that is due by `now`; [`RateControl::update`] is to be called with it.
    pub fn next(&self, now: Time) -> Option<u32> {
        self.order.first().filter(|(due, _)| *due <= now).map(|(_, flow)| *flow)
    }

    /// Reads and clears the counters of `flow`, and writes its rate. Returns whether it timed out, or the peer's window
    /// stays closed, so that a RETX event is due.
    pub fn update(&mut self, flow: u32, state: &mut Flow, now: Time) -> bool {
        let law = self.law;
        let Some(Some(controlled)) = self.flows.get_mut(flow as usize) else { return false };
        self.order.remove(&(controlled.due, flow));
        let rtt = Time::from_us(state.post.rtt_est.into()).max(Time::from_us(1));
        let interval = Time::from_ps(2 * rtt.as_ps()).max(GRANULARITY);
        let timed_out = controlled.timed_out(state, interval, rtt, now);
        // A closed window is the peer's choice, and no congestion.
        let lost = timed_out && !state.is_stalled();
        let rate = match law {
            RateLaw::None => 0.0,
            RateLaw::Dctcp => controlled.dctcp(state, lost, now),
            RateLaw::Timely => controlled.timely(state, lost),
        };
        state.post.rate = rate as u32;
        (state.post.cnt_ackb, state.post.cnt_ecnb, state.post.cnt_fretx) = (0, 0, 0);
        controlled.looked_at = now;
        controlled.due = now + interval;
        self.order.insert((controlled.due, flow));
        timed_out
    }
}

impl Controlled {
    fn timed_out(&mut self, state: &Flow, interval: Time, rtt: Time, now: Time) -> bool {
        if state.post.cnt_ackb > 0 || state.protocol.tx_sent == 0 && !state.is_stalled() {
            self.quiet_since = now;
            return false;
        }
        let patience = Time::from_ps(interval.as_ps() * TIMEOUT_INTERVALS).max(Time::from_ps(2 * rtt.as_ps()));
        let timed_out = now.saturating_sub(self.quiet_since) >= patience;
        if timed_out {
            self.quiet_since = now;
        }
        timed_out
    }

    fn dctcp(&mut self, state: &Flow, timed_out: bool, now: Time) -> f64 {
        let acked = u64::from(state.post.cnt_ackb);
        let passed = now.saturating_sub(self.looked_at).as_seconds();
        if passed > 0.0 {
            self.measured += MEASURED_GAIN * (acked as f64 / passed - self.measured);
        }
        if self.is_calm {
            if !timed_out && state.post.cnt_fretx == 0 && state.post.cnt_ecnb == 0 {
                return 0.0;
            }
            (self.is_calm, self.slow_start, self.rate) = (false, false, self.measured.max(STEP));
        }
        self.acked += acked;
        self.marked += u64::from(state.post.cnt_ecnb);
        if timed_out || state.post.cnt_fretx > 0 {
            self.rate /= 2.0;
            self.slow_start = false;
        } else if state.post.cnt_ecnb > 0 {
            self.rate *= 1.0 - self.alpha / 2.0;
            self.slow_start = false;
        } else if acked > 0 {
            self.grow();
        }
        if self.acked >= UPDATE_BYTES {
            let fraction = self.marked as f64 / self.acked as f64;
            self.alpha += GAIN * (fraction - self.alpha);
            (self.acked, self.marked) = (0, 0);
        }
        let most = (HEADROOM * self.measured).max(STEP);
        // A flow in slow start has not shown yet what it can do.
        let most = if self.slow_start { 2.0 * most } else { most };
        self.rate = self.rate.min(most).clamp(STEP, RATE_MOST);
        self.rate
    }

    fn grow(&mut self) {
        if self.slow_start {
            self.rate *= 2.0;
        } else {
            self.rate += STEP;
        }
    }

    fn timely(&mut self, state: &Flow, timed_out: bool) -> f64 {
        if timed_out || state.post.cnt_fretx > 0 {
            self.timely.halve();
        } else if state.post.cnt_ackb > 0 {
            self.timely.update(f64::from(state.post.rtt_est));
        }
        self.timely.rate().map_or(0.0, |rate| (rate as f64).min(RATE_MOST))
    }
}
