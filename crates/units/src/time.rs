//! Points in time and durations, in picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A point in time or a duration, in picoseconds. `u64` holds 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct Time(u64);

impl Time {
    /// The beginning of a run, and the empty duration.
    pub const ZERO: Time = Time(0);
    /// Later than everything: the next step of an actor that waits for somebody else.
    pub const NEVER: Time = Time(u64::MAX);
    /// The longest that a simulated run may last, nearly 5 hours: a schedule keeps an actor's number
    /// beside a step's time, and what begins last needs up to a minute and more to end.
    pub const RUN_MAX: Time = Time::from_ms(17_900_000);

    /// From picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }

    /// From microseconds.
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }

    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }

    /// From seconds, rounded to the nearest picosecond; negative and NaN become zero.
    pub fn from_seconds(seconds: f64) -> Time {
        Time((seconds * 1e12).round() as u64)
    }

    /// In picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// In nanoseconds.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self - earlier`, or zero when `earlier` is later.
    pub const fn saturating_sub(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, rhs: Time) -> Time {
        Time(self.0 + rhs.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, rhs: Time) {
        self.0 += rhs.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, rhs: Time) -> Time {
        Time(self.0 - rhs.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, rhs: u64) -> Time {
        Time(self.0 * rhs)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => write!(f, "never"),
            ps if ps < 1_000 => write!(f, "{ps} ps"),
            ps if ps < 1_000_000 => write!(f, "{:.3} ns", ps as f64 / 1e3),
            ps if ps < 1_000_000_000 => write!(f, "{:.3} us", ps as f64 / 1e6),
            ps => write!(f, "{:.3} ms", ps as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_agree() {
        assert_eq!(Time::from_ns(1_500), Time::from_ps(1_500_000));
        assert_eq!(Time::from_seconds(0.001), Time::from_ms(1));
        assert_eq!(Time::from_us(3).as_ns(), 3_000.0);
        assert_eq!(Time::from_seconds(-1.0), Time::ZERO);
    }

    #[test]
    fn prints_in_the_unit_a_person_would_use() {
        assert_eq!(Time::from_ns(85).to_string(), "85.000 ns");
        assert_eq!(Time::NEVER.to_string(), "never");
    }

    #[test]
    fn subtraction_saturates_only_when_asked() {
        assert_eq!(Time::ZERO.saturating_sub(Time::from_ns(1)), Time::ZERO);
    }
}
