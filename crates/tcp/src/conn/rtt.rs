//! Round-trip time and retransmission timeout (RFC 6298), with the least of a window of time beside it.

use nicforge_units::Time;

use crate::config::Config;
use crate::seq::Seq;

/// Smoothed round-trip time, its variation and the timeout that they give.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// Eight times the smoothed RTT in microseconds; zero before the first sample.
    smoothed_8: u32,
    /// Four times the mean deviation in microseconds.
    deviation_4: u32,
    /// Largest deviation in this round trip.
    deviation_max: u32,
    /// Variation that the timeout adds.
    variation: u32,
    /// The round trip that `deviation_max` belongs to ends here.
    round: Seq,
    /// Present timeout, without backoff.
    rto: Time,
    rto_min_us: u32,
    rto_max: Time,
    least: Least,
}

/// The least RTT of the last minutes, kept as two windows.
#[derive(Clone, Copy, Debug)]
struct Least {
    /// In the present window.
    us: u32,
    /// Its begin.
    at: Time,
    /// In the window before it.
    before_us: u32,
}

const LEAST_WINDOW: Time = Time::from_ms(300_000);

/// Whole microseconds of a time.
pub fn micros(time: Time) -> u64 {
    time.as_ps() / 1_000_000
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(config: &Config) -> RttEstimator {
        RttEstimator {
            smoothed_8: 0,
            deviation_4: 0,
            deviation_max: 0,
            variation: 0,
            round: Seq(0),
            rto: config.rto_initial,
            rto_min_us: micros(config.rto_min) as u32,
            rto_max: config.rto_max,
            least: Least { us: u32::MAX, at: Time::ZERO, before_us: u32::MAX },
        }
    }

    /// Takes a sample of `us` microseconds. `una` and `next` tell round trips apart.
    pub fn sample(&mut self, us: u32, una: Seq, next: Seq, now: Time) {
        let us = us.clamp(1, u32::MAX >> 4);
        self.note_least(us, now);
        if self.smoothed_8 == 0 {
            self.smoothed_8 = us << 3;
            self.deviation_4 = us << 1;
            self.variation = self.deviation_4.max(self.rto_min_us);
            self.deviation_max = self.variation;
            self.round = next;
        } else {
            self.smooth(us, una, next);
        }
        let rto = Time::from_us(u64::from(self.smoothed_8 >> 3) + u64::from(self.variation));
        self.rto = rto.min(self.rto_max);
    }

    fn smooth(&mut self, us: u32, una: Seq, next: Seq) {
        let error = i64::from(us) - i64::from(self.smoothed_8 >> 3);
        self.smoothed_8 = (i64::from(self.smoothed_8) + error).max(1) as u32;
        let mut change = error.abs() - i64::from(self.deviation_4 >> 2);
        if error < 0 && change > 0 {
            // A falling RTT must not raise the timeout as fast as a rising one.
            change >>= 3;
        }
        self.deviation_4 = (i64::from(self.deviation_4) + change).max(0) as u32;
        if self.deviation_4 > self.deviation_max {
            self.deviation_max = self.deviation_4;
            self.variation = self.variation.max(self.deviation_max);
        }
        if una.after(self.round) {
            if self.deviation_max < self.variation {
                self.variation -= (self.variation - self.deviation_max) >> 2;
            }
            self.round = next;
            self.deviation_max = self.rto_min_us;
        }
    }

    fn note_least(&mut self, us: u32, now: Time) {
        if now.saturating_sub(self.least.at) > LEAST_WINDOW {
            self.least = Least { us, at: now, before_us: self.least.us };
        }
        self.least.us = self.least.us.min(us);
    }

    /// Whether a sample has been taken.
    pub fn is_measured(&self) -> bool {
        self.smoothed_8 != 0
    }

    /// Smoothed RTT in microseconds, zero before the first sample.
    pub fn smoothed_us(&self) -> u32 {
        self.smoothed_8 >> 3
    }

    /// Mean deviation in microseconds.
    pub fn deviation_us(&self) -> u32 {
        self.deviation_4 >> 2
    }

    /// Least RTT of the last minutes in microseconds, `u32::MAX` before the first sample.
    pub fn least_us(&self) -> u32 {
        self.least.us.min(self.least.before_us)
    }

    /// Timeout without backoff.
    pub fn rto(&self) -> Time {
        self.rto
    }

    /// Timeout after `backoff` doublings, bounded.
    pub fn backed_off(&self, backoff: u32) -> Time {
        Time::from_ps(self.rto.as_ps().saturating_mul(1 << backoff.min(20))).min(self.rto_max)
    }

    /// Raises the timeout to `rto` where a handshake was retransmitted (RFC 6298 section 5.7).
    pub fn raise_rto(&mut self, rto: Time) {
        self.rto = self.rto.max(rto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_timeout_to_three_times_the_rtt() {
        let mut rtt = RttEstimator::new(&Config::default());
        assert_eq!(rtt.rto(), Time::from_ms(1000));
        rtt.sample(300_000, Seq(1), Seq(2), Time::ZERO);
        assert_eq!((rtt.smoothed_us(), rtt.rto()), (300_000, Time::from_ms(900)));
    }

    #[test]
    fn steady_samples_bring_the_timeout_to_the_rtt_and_the_least_variation() {
        let mut rtt = RttEstimator::new(&Config::default());
        for round in 0..100u32 {
            rtt.sample(10_000, Seq(round + 1), Seq(round + 2), Time::from_ms(10 * u64::from(round)));
        }
        assert_eq!((rtt.smoothed_us(), rtt.rto()), (10_000, Time::from_ms(210)));
        assert_eq!(rtt.backed_off(1), Time::from_ms(420));
        assert_eq!(rtt.backed_off(30), Time::from_ms(120_000));
    }

    #[test]
    fn the_least_rtt_is_forgotten_after_its_window() {
        let mut rtt = RttEstimator::new(&Config::default());
        rtt.sample(1_000, Seq(1), Seq(2), Time::ZERO);
        for minute in 1..=13 {
            rtt.sample(5_000, Seq(1), Seq(2), Time::from_ms(60_000 * minute));
        }
        assert_eq!(rtt.least_us(), 5_000);
    }
}
