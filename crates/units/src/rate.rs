//! Rates: bits per second, bytes per second and clock frequency.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Cycles, Time};

/// A rate in bits per second, as links are sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BitRate(u64);

impl BitRate {
    /// From bits per second.
    pub const fn from_bits_per_second(bits: u64) -> BitRate {
        BitRate(bits)
    }

    /// From Gbit/s (10^9 bits per second).
    pub fn from_gbps(gbps: f64) -> BitRate {
        BitRate((gbps * 1e9).round() as u64)
    }

    /// In bits per second.
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// In Gbit/s.
    pub fn as_gbps(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long `bytes` take at this rate, rounded up to a picosecond. Exact up to 2 MB.
    pub const fn time_for(self, bytes: Bytes) -> Time {
        Time::from_ps((bytes.0 * 8_000_000_000_000).div_ceil(self.0))
    }
}

/// A rate in bytes per second, as memory is measured.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct ByteRate(f64);

impl ByteRate {
    /// From GB/s (10^9 bytes per second).
    pub fn from_gb_per_second(gb: f64) -> ByteRate {
        ByteRate(gb * 1e9)
    }

    /// In bytes per second.
    pub fn as_bytes_per_second(self) -> f64 {
        self.0
    }

    /// Bytes that pass in `time`.
    pub fn bytes_in(self, time: Time) -> f64 {
        self.0 * time.as_seconds()
    }
}

/// A clock frequency; converts cycles to time and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequency {
    hertz: u64,
    /// Picoseconds per cycle in 2^-32: a multiplication in the hot path instead of a division.
    ps_per_cycle_q32: u64,
}

impl Frequency {
    /// Cycles take no time.
    pub const INFINITE: Frequency = Frequency { hertz: u64::MAX, ps_per_cycle_q32: 0 };

    /// From GHz. `ghz` must be positive.
    pub fn from_ghz(ghz: f64) -> Frequency {
        let hertz = (ghz * 1e9).round() as u64;
        let ps_per_cycle_q32 = ((1_000_000_000_000u128 << 32) / u128::from(hertz.max(1))) as u64;
        Frequency { hertz, ps_per_cycle_q32 }
    }

    /// In hertz.
    pub const fn as_hertz(self) -> u64 {
        self.hertz
    }

    /// How long `cycles` last.
    pub const fn time_for(self, cycles: Cycles) -> Time {
        Time::from_ps(((cycles.0 as u128 * self.ps_per_cycle_q32 as u128) >> 32) as u64)
    }

    /// How many cycles pass in `time`.
    pub fn cycles_in(self, time: Time) -> f64 {
        time.as_seconds() * self.hertz as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_1500_byte_frame_takes_120_ns_at_100_gbps() {
        let wire = BitRate::from_gbps(100.0);
        assert_eq!(wire.time_for(Bytes(1500)), Time::from_ns(120));
    }

    #[test]
    fn cycles_at_2_1_ghz() {
        let clock = Frequency::from_ghz(2.1);
        assert_eq!(clock.time_for(Cycles(2_100_000)), Time::from_ps(999_999_999));
        assert!((clock.cycles_in(Time::from_us(1)) - 2100.0).abs() < 1e-9);
    }
}
