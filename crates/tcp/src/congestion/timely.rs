//! TIMELY: a sending rate from the gradient of round-trip times, with the paper's parameters (supplement, slow path).

use super::{Ack, Congestion, Trouble, Window};

const LOW_US: f64 = 30.0;
const HIGH_US: f64 = 150.0;
/// 10 Mbit/s in bytes per second: start, step and least rate.
const STEP: f64 = 1.25e6;
const ALPHA: f64 = 0.02;
const BETA: f64 = 0.8;
const RTT_LEAST_US: f64 = 11.0;
const HYPERACTIVE_AFTER: u32 = 5;
/// 100 Gbit/s: the fastest link that the model has.
const RATE_MOST: f64 = 1.25e10;

/// TIMELY's rate and gradient.
#[derive(Clone, Copy, Debug)]
pub struct Timely {
    /// Bytes per second.
    rate: f64,
    last_us: f64,
    gradient_us: f64,
    negative: u32,
}

impl Default for Timely {
    fn default() -> Timely {
        Timely { rate: STEP, last_us: 0.0, gradient_us: 0.0, negative: 0 }
    }
}

impl Timely {
    /// Halves the rate: something was lost.
    pub(crate) fn halve(&mut self) {
        self.rate = (self.rate / 2.0).max(STEP);
    }

    /// Takes a round-trip time.
    pub(crate) fn update(&mut self, rtt_us: f64) {
        if self.last_us == 0.0 {
            self.last_us = rtt_us;
            return;
        }
        let difference = rtt_us - self.last_us;
        self.last_us = rtt_us;
        self.gradient_us = (1.0 - ALPHA) * self.gradient_us + ALPHA * difference;
        let gradient = self.gradient_us / RTT_LEAST_US;
        let rate = if rtt_us < LOW_US {
            self.negative = 0;
            self.rate + STEP
        } else if rtt_us > HIGH_US {
            self.negative = 0;
            self.rate * (1.0 - BETA * (1.0 - HIGH_US / rtt_us))
        } else if gradient <= 0.0 {
            self.negative += 1;
            let steps = if self.negative >= HYPERACTIVE_AFTER { 5.0 } else { 1.0 };
            self.rate + steps * STEP
        } else {
            self.negative = 0;
            self.rate * (1.0 - BETA * gradient).max(0.5)
        };
        self.rate = rate.clamp(STEP, RATE_MOST);
    }
}

impl Congestion for Timely {
    fn name(&self) -> &'static str {
        "timely"
    }

    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        // One update per completion event, which is a round trip's worth of data at most.
        if let Some(rtt_us) = ack.rtt_us {
            self.update(f64::from(rtt_us).max(RTT_LEAST_US));
        }
        // The rate is the limit; the window only bounds the data in flight to two round trips of it.
        let bytes = self.rate * f64::from(ack.smoothed_us.max(1)) / 1e6;
        window.size = ((2.0 * bytes / f64::from(ack.mss.max(1))) as u32).clamp(2, window.most);
    }

    fn grow(&mut self, _window: &mut Window, _ack: &Ack) {}

    fn threshold(&mut self, window: &Window, _trouble: Trouble) -> u32 {
        (window.size / 2).max(2)
    }

    fn trouble(&mut self, _window: &Window, trouble: Trouble) {
        if matches!(trouble, Trouble::Timeout | Trouble::Recovery) {
            self.rate = (self.rate / 2.0).max(STEP);
        }
    }

    fn rate(&self) -> Option<u64> {
        Some(self.rate as u64)
    }
}
