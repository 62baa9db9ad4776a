//! The wall clock as [`Time`].

use std::time::Duration;

use nicforge_units::Time;
use rustix::time::{ClockId, clock_gettime};

/// Time since an origin that all processes of one region share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock { origin_ns: monotonic_ns() }
    }

    /// A clock that began elsewhere ([`Clock::origin_ns`]).
    pub const fn since(origin_ns: u64) -> Clock {
        Clock { origin_ns }
    }

    /// When it began, in ns of the system's monotonic clock.
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_ns(monotonic_ns().saturating_sub(self.origin_ns))
    }

    /// From now until `time`; zero when that is past.
    pub fn until(&self, time: Time) -> Duration {
        let left = time.saturating_sub(self.now());
        Duration::from_nanos(left.as_ps().div_ceil(1_000))
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
