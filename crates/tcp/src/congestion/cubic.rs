//! CUBIC (RFC 9438) in integers, with HyStart and the Reno-friendly region.

use nicforge_units::Time;

use super::hystart::HyStart;
use super::{Ack, Congestion, Trouble, Window};
use crate::conn::rtt::micros;

/// Reduction factor: 717 of 1024.
const BETA: u32 = 717;
const BETA_BASE: u32 = 1024;
/// C = 0.4 as 410 of 1024.
const SCALE: u64 = 410;
/// Time is counted in 1/1024 s.
const TICKS_PER_SECOND_SHIFT: u32 = 10;
/// 2^40 / 410: K^3 per segment of distance.
const CUBE_FACTOR: u64 = (1 << 40) / SCALE;
/// 8 (1024 + 717) / 3 / (1024 - 717): growth of the Reno-friendly window.
const FRIENDLY: u32 = 8 * (BETA_BASE + BETA) / 3 / (BETA_BASE - BETA);

/// CUBIC's state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic {
    /// Window before the last reduction.
    last_max: u32,
    epoch: Option<Time>,
    last_at: Time,
    last_window: u32,
    origin: u32,
    /// Time from the epoch to the origin, in 1/1024 s.
    k: u64,
    per: u32,
    acks: u32,
    reno_window: u32,
    delay_least_us: u32,
    hystart: HyStart,
}

impl Cubic {
    fn update(&mut self, window: &Window, ack: &Ack) {
        self.acks += ack.acked;
        // At least once in a round trip: the Reno-friendly region (RFC 9438 section 4.3) has to keep up on short paths.
        let recent = micros(ack.now.saturating_sub(self.last_at)) <= u64::from(ack.smoothed_us.min(31_250));
        if self.last_window == window.size && recent && self.per != 0 {
            return;
        }
        let fresh_epoch = self.epoch.is_none();
        if fresh_epoch || ack.now != self.last_at {
            self.last_window = window.size;
            self.last_at = ack.now;
            if fresh_epoch {
                self.begin(window, ack);
            }
            self.aim(window, ack);
        }
        self.friendly(window);
        self.per = self.per.max(2);
    }

    fn begin(&mut self, window: &Window, ack: &Ack) {
        self.epoch = Some(ack.now);
        self.acks = ack.acked;
        self.reno_window = window.size;
        if self.last_max <= window.size {
            (self.k, self.origin) = (0, window.size);
        } else {
            let distance = u64::from(self.last_max - window.size);
            self.k = libm::cbrt((CUBE_FACTOR * distance) as f64) as u64;
            self.origin = self.last_max;
        }
    }

    fn aim(&mut self, window: &Window, ack: &Ack) {
        let epoch = self.epoch.unwrap_or(ack.now);
        let us = micros(ack.now.saturating_sub(epoch)) + u64::from(self.delay_least_us);
        let ticks = (us << TICKS_PER_SECOND_SHIFT) / 1_000_000;
        let distance = ticks.abs_diff(self.k).min(1 << 20);
        let delta = ((SCALE * distance * distance * distance) >> 40) as u32;
        let target = if ticks < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        self.per = if target > window.size { window.size / (target - window.size) } else { 100 * window.size };
        if self.last_max == 0 {
            self.per = self.per.min(20);
        }
    }

    fn friendly(&mut self, window: &Window) {
        let delta = ((window.size * FRIENDLY) >> 3).max(1);
        while self.acks > delta {
            self.acks -= delta;
            self.reno_window += 1;
        }
        if self.reno_window > window.size {
            self.per = self.per.min(window.size / (self.reno_window - window.size));
        }
    }
}

impl Congestion for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        let Some(rtt_us) = ack.rtt_us else { return };
        // Right after a reduction the queue has not drained yet.
        if self.epoch.is_some_and(|epoch| ack.now.saturating_sub(epoch) < Time::from_ms(1_000)) {
            return;
        }
        let rtt_us = rtt_us.max(1);
        if self.delay_least_us == 0 || self.delay_least_us > rtt_us {
            self.delay_least_us = rtt_us;
        }
        self.hystart.observe(window, ack, rtt_us, self.delay_least_us);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.update(window, &Ack { acked, ..*ack });
        window.avoid(self.per, acked);
    }

    fn threshold(&mut self, window: &Window, _trouble: Trouble) -> u32 {
        self.epoch = None;
        self.last_max = if window.size < self.last_max {
            // Fast convergence: leave room for new flows.
            (u64::from(window.size) * u64::from(BETA_BASE + BETA) / u64::from(2 * BETA_BASE)) as u32
        } else {
            window.size
        };
        ((u64::from(window.size) * u64::from(BETA) / u64::from(BETA_BASE)) as u32).max(2)
    }

    fn trouble(&mut self, _window: &Window, trouble: Trouble) {
        if trouble == Trouble::Timeout {
            *self = Cubic::default();
        }
    }

    fn restart(&mut self, now: Time, idle: Time) {
        // The epoch moves with the idle time, so that the curve does not grow while nothing is sent.
        if let Some(epoch) = self.epoch {
            self.epoch = Some((epoch + idle).min(now));
        }
    }
}
