//! Limits per application: connections, and bytes per second that it sends.

use nicforge_units::Time;

/// What an application may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections and listeners at a time.
    pub connections: usize,
    /// Bytes per second, or no limit.
    pub bytes_per_second: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 65536, bytes_per_second: None }
    }
}

/// A token bucket that holds a tenth of a second.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    tokens: u64,
    filled: Time,
}

const PS_PER_SECOND: u128 = 1_000_000_000_000;

impl Rate {
    /// An empty bucket.
    pub fn new(now: Time) -> Rate {
        Rate { tokens: 0, filled: now }
    }

    /// Bytes that may leave now.
    pub fn allowance(&mut self, now: Time, limits: &Limits) -> usize {
        let Some(rate) = limits.bytes_per_second else { return usize::MAX };
        let gained = u128::from(now.saturating_sub(self.filled).as_ps()) * u128::from(rate) / PS_PER_SECOND;
        let most = (rate / 10).max(1500);
        if gained > 0 {
            self.filled = now;
            self.tokens = (u128::from(self.tokens) + gained).min(u128::from(most)) as u64;
        }
        self.tokens as usize
    }

    /// Takes bytes out.
    pub fn spend(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lets_its_rate_pass_in_tenths() {
        let limits = Limits { bytes_per_second: Some(1_000_000), ..Limits::default() };
        let mut rate = Rate::new(Time::ZERO);
        let mut sent = 0;
        for ms in 1..=1000 {
            let now = rate.allowance(Time::from_ms(ms), &limits);
            rate.spend(now);
            sent += now;
        }
        assert_eq!(sent, 1_000_000);
        assert_eq!(rate.allowance(Time::from_ms(10_000), &limits), 100_000, "at most a tenth of a second is saved up");
    }
}
