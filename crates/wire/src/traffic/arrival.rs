//! When frames arrive: constant rate, Poisson, bursts, ping-pong.

use nicforge_units::{BitRate, Time};
use rand_pcg::Pcg64;

use super::TrafficError;
use super::closed_loop::ClosedLoop;
use super::line::Line;
use super::random::unit;

/// Picoseconds per second, times bits per byte: bytes to picoseconds at 1 bit/s.
const PS_BITS_PER_BYTE: u64 = 8_000_000_000_000;

/// A model of arrival times. Rates are of frame bytes, and are met on average as long as the line
/// allows; when frames come faster than the line takes them, they queue up before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalModel {
    /// Evenly: each frame is followed by the time that its bytes take at the rate.
    Constant {
        /// Frame bytes per time.
        rate: BitRate,
    },
    /// Exponentially distributed gaps, their mean proportional to the frame's length.
    Poisson {
        /// Mean of frame bytes per time.
        rate: BitRate,
    },
    /// Bursts at line rate, apart so that the mean is the rate.
    Bursts {
        /// Mean of frame bytes per time.
        rate: BitRate,
        /// Frames per burst.
        frames: u32,
    },
    /// A frame is sent when an earlier one came back or was given up; this many are on their way.
    PingPong {
        /// Frames on their way.
        in_flight: u32,
        /// How long after it was sent a frame that did not come back is given up.
        timeout: Time,
    },
}

/// Keeps an arrival model's time.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    model: ArrivalModel,
    line: Line,
    random: Pcg64,
    /// When the next frame arrives by the model alone.
    ideal: Time,
    /// What `ideal` still lacks, in ps × bit/s: so that rates are met exactly in the long run.
    remainder: u64,
    /// When the line has taken the frame before.
    line_free: Time,
    burst_left: u32,
    /// Ping-pong: the frames on their way.
    closed_loop: ClosedLoop,
}

impl Clock {
    pub(super) fn new(model: ArrivalModel, line: Line, random: Pcg64) -> Result<Clock, TrafficError> {
        let (rate, burst) = match model {
            ArrivalModel::Constant { rate } | ArrivalModel::Poisson { rate } => (rate, 1),
            ArrivalModel::Bursts { rate, frames } => (rate, frames),
            ArrivalModel::PingPong { in_flight: 0, .. } => {
                return Err(TrafficError::ZeroFrames("frames in flight"));
            }
            ArrivalModel::PingPong { timeout: Time::ZERO, .. } => {
                return Err(TrafficError::ZeroTimeout);
            }
            ArrivalModel::PingPong { .. } => (line.rate, 1),
        };
        if burst == 0 {
            return Err(TrafficError::ZeroFrames("frames per burst"));
        }
        if rate.as_bits_per_second() == 0 || line.rate.as_bits_per_second() == 0 {
            return Err(TrafficError::ZeroRate);
        }
        let closed_loop = match model {
            ArrivalModel::PingPong { in_flight, timeout } => ClosedLoop::new(in_flight, timeout),
            _ => ClosedLoop::new(0, Time::NEVER),
        };
        Ok(Clock {
            model,
            line,
            random,
            ideal: Time::ZERO,
            remainder: 0,
            line_free: Time::ZERO,
            burst_left: burst,
            closed_loop,
        })
    }

    /// When the next frame arrives.
    pub(super) fn next_time(&self) -> Time {
        match self.model {
            ArrivalModel::Constant { .. } | ArrivalModel::Poisson { .. } => self.ideal.max(self.line_free),
            ArrivalModel::Bursts { frames, .. } if self.burst_left == frames => self.ideal.max(self.line_free),
            ArrivalModel::Bursts { .. } => self.line_free,
            ArrivalModel::PingPong { .. } => self.closed_loop.next_free().max(self.line_free),
        }
    }

    /// A frame of `bytes` is sent at [`Clock::next_time`].
    #[inline(always)]
    pub(super) fn send(&mut self, bytes: u32) {
        let now = self.next_time();
        self.line_free = now + self.line.time_for(bytes);
        match self.model {
            ArrivalModel::Constant { rate } => self.add_time_at(rate, bytes),
            ArrivalModel::Poisson { rate } => {
                let ps_per_byte = PS_BITS_PER_BYTE as f64 / rate.as_bits_per_second() as f64;
                let mean = f64::from(bytes) * ps_per_byte;
                let gap = -libm::log(1.0 - unit(&mut self.random)) * mean;
                self.ideal += Time::from_ps((gap + 0.5) as u64);
            }
            ArrivalModel::Bursts { rate, frames } => {
                self.add_time_at(rate, bytes);
                self.burst_left -= 1;
                if self.burst_left == 0 {
                    self.burst_left = frames;
                }
            }
            ArrivalModel::PingPong { .. } => self.closed_loop.send(now),
        }
    }

    /// Goes on at `rate` from `from` on, as if nothing had been sent. Ping-pong has no rate.
    pub(super) fn begin_again(&mut self, from: Time, rate: BitRate) {
        let as_model = match &mut self.model {
            ArrivalModel::Constant { rate } | ArrivalModel::Poisson { rate } => rate,
            ArrivalModel::Bursts { rate, frames } => {
                self.burst_left = *frames;
                rate
            }
            ArrivalModel::PingPong { .. } => return,
        };
        *as_model = rate;
        (self.ideal, self.remainder, self.line_free) = (from, 0, from);
    }

    /// The frame that was sent at `sent` came back at `at`. Returns whether it was waited for.
    pub(super) fn returned(&mut self, sent: Time, at: Time) -> bool {
        self.closed_loop.answered(sent, at)
    }

    /// Frames that were given up so far; `None` where nobody waits for them.
    pub(super) fn given_up(&self) -> Option<u64> {
        let waits = matches!(self.model, ArrivalModel::PingPong { .. });
        waits.then(|| self.closed_loop.given_up())
    }

    fn add_time_at(&mut self, rate: BitRate, bytes: u32) {
        let rate = rate.as_bits_per_second();
        let owed = u64::from(bytes) * PS_BITS_PER_BYTE + self.remainder;
        self.ideal += Time::from_ps(owed / rate);
        self.remainder = owed % rate;
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::generator;
    use super::*;

    fn clock(model: ArrivalModel) -> Clock {
        let line = Line::ethernet(BitRate::from_gbps(100.0));
        Clock::new(model, line, generator(1, 0)).unwrap()
    }

    fn times(clock: &mut Clock, bytes: u32, count: usize) -> Vec<u64> {
        let step = |_| {
            let time = clock.next_time().as_ps();
            clock.send(bytes);
            time
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn constant_rate_is_met_without_drift() {
        let rate = BitRate::from_gbps(30.0);
        let mut clock = clock(ArrivalModel::Constant { rate });
        // 1000 bytes at 30 Gbit/s take 266 666 and 2/3 ps.
        assert_eq!(times(&mut clock, 1000, 4), [0, 266_666, 533_333, 800_000]);
    }

    #[test]
    fn the_line_limits_what_is_asked_for() {
        let rate = BitRate::from_gbps(400.0);
        let mut clock = clock(ArrivalModel::Constant { rate });
        // 60 + 24 bytes at 100 Gbit/s take 6720 ps.
        assert_eq!(times(&mut clock, 60, 3), [0, 6_720, 13_440]);
    }

    #[test]
    fn bursts_are_back_to_back_and_meet_the_mean() {
        let rate = BitRate::from_gbps(10.0);
        let mut clock = clock(ArrivalModel::Bursts { rate, frames: 3 });
        // 1226 + 24 bytes at line rate: 100 ns. Three times 1226 bytes at 10 Gbit/s: 2942.4 ns.
        let expected = [0, 100_000, 200_000, 2_942_400, 3_042_400];
        assert_eq!(times(&mut clock, 1226, 5), expected);
    }

    #[test]
    fn poisson_meets_the_mean_and_never_beats_the_line() {
        let rate = BitRate::from_gbps(50.0);
        let mut clock = clock(ArrivalModel::Poisson { rate });
        let times = times(&mut clock, 1000, 100_001);
        let mean = times[100_000] as f64 / 100_000.0;
        assert!((mean - 160_000.0).abs() < 1_600.0, "{mean}");
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 81_920));
    }

    #[test]
    fn ping_pong_waits_for_what_comes_back() {
        let timeout = Time::from_us(10);
        let mut clock = clock(ArrivalModel::PingPong { in_flight: 2, timeout });
        assert_eq!(times(&mut clock, 60, 2), [0, 6_720]);
        assert_eq!(clock.next_time(), timeout);
        assert!(clock.returned(Time::ZERO, Time::from_us(3)));
        assert!(clock.returned(Time::from_ps(6_720), Time::from_us(3)));
        assert!(!clock.returned(Time::from_us(1), Time::from_us(4)));
        assert_eq!(times(&mut clock, 60, 2), [3_000_000, 3_006_720]);
        // Both are lost; the line is in the way of neither.
        assert_eq!(times(&mut clock, 60, 2), [13_000_000, 13_006_720]);
        assert_eq!(clock.given_up(), Some(2));
    }

    #[test]
    fn another_rate_begins_when_it_is_told_to() {
        let rate = BitRate::from_gbps(10.0);
        let from = Time::from_us(50);
        for model in [ArrivalModel::Constant { rate }, ArrivalModel::Bursts { rate, frames: 2 }] {
            let mut clock = clock(model);
            times(&mut clock, 1000, 3);
            clock.begin_again(from, BitRate::from_gbps(20.0));
            let seen = times(&mut clock, 1000, 3);
            // Two frames of 1000 bytes take 800 ns at 20 Gbit/s.
            assert_eq!((seen[0], seen[2]), (50_000_000, 50_800_000), "{model:?}");
        }
    }

    #[test]
    fn what_never_sends_is_refused() {
        let line = Line::ethernet(BitRate::from_gbps(100.0));
        let zero = BitRate::from_gbps(0.0);
        let rate = BitRate::from_gbps(1.0);
        for model in [
            ArrivalModel::Constant { rate: zero },
            ArrivalModel::Bursts { rate, frames: 0 },
            ArrivalModel::PingPong { in_flight: 0, timeout: Time::from_us(1) },
            ArrivalModel::PingPong { in_flight: 1, timeout: Time::ZERO },
        ] {
            assert!(Clock::new(model, line, generator(1, 0)).is_err());
        }
    }
}
