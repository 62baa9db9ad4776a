//! HyStart: leaves slow start before the queue overflows (RFC 9406's ancestor, as CUBIC carries it).

use nicforge_units::Time;

use super::{Ack, Window};
use crate::conn::rtt::micros;
use crate::seq::Seq;

const WINDOW_LEAST: u32 = 16;
const SAMPLES: u32 = 8;
const DELAY_LEAST_US: u32 = 4_000;
const DELAY_MOST_US: u32 = 16_000;
const TRAIN_GAP_US: u64 = 2_000;
/// Time that a burst of the sender may take.
const BURST_DELAY_US: u32 = 1_000;

/// Watches the rounds of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyStart {
    round_end: Option<Seq>,
    round_start: Time,
    last_ack: Time,
    samples: u32,
    round_us: u32,
    found: bool,
}

impl HyStart {
    /// Sees an acknowledgment with a round-trip sample; `least_us` is the least ever seen.
    pub fn observe(&mut self, window: &mut Window, ack: &Ack, rtt_us: u32, least_us: u32) {
        if self.found || !window.in_slow_start() || window.size < WINDOW_LEAST {
            return;
        }
        self.round(ack);
        self.watch_train(window, ack, least_us);
        if self.round_us > rtt_us {
            self.round_us = rtt_us;
        }
        if self.samples < SAMPLES {
            self.samples += 1;
        } else if self.round_us > least_us + (least_us >> 3).clamp(DELAY_LEAST_US, DELAY_MOST_US) {
            self.leave(window);
        }
    }

    /// Rounds end when their last segment is acknowledged.
    fn round(&mut self, ack: &Ack) {
        if self.round_end.is_none_or(|end| ack.una.after(end)) {
            self.round_end = Some(ack.next);
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.samples = 0;
            self.round_us = u32::MAX;
        }
    }

    fn watch_train(&mut self, window: &mut Window, ack: &Ack, least_us: u32) {
        if micros(ack.now.saturating_sub(self.last_ack)) <= TRAIN_GAP_US {
            self.last_ack = ack.now;
            let train = micros(ack.now.saturating_sub(self.round_start));
            if train > u64::from((least_us + BURST_DELAY_US) >> 1) {
                self.leave(window);
            }
        }
    }

    fn leave(&mut self, window: &mut Window) {
        self.found = true;
        window.threshold = window.size;
    }
}
