//! Meters: two rates, three colours (RFC 2698), in packets or bytes.

/// Rates and bursts of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterRates {
    /// Committed rate, units per second.
    pub committed: u64,
    /// Committed burst, units.
    pub committed_burst: u64,
    /// Peak rate, units per second.
    pub peak: u64,
    /// Peak burst, units.
    pub peak_burst: u64,
}

/// A colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Color {
    #[default]
    Green,
    Yellow,
    Red,
}

/// A meter; without rates everything is green.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    rates: Option<MeterRates>,
    /// Millionths of a unit in the buckets.
    committed: u128,
    peak: u128,
    last: u64,
}

const MILLION: u128 = 1_000_000;

impl Meter {
    /// Sets or removes rates; the buckets start full.
    pub fn set(&mut self, rates: Option<MeterRates>) {
        self.rates = rates;
        if let Some(rates) = rates {
            self.committed = u128::from(rates.committed_burst) * MILLION;
            self.peak = u128::from(rates.peak_burst) * MILLION;
        }
    }

    /// Rates, if set.
    pub fn rates(&self) -> Option<MeterRates> {
        self.rates
    }

    /// The colour of `units` at a time in microseconds.
    pub fn execute(&mut self, units: u64, microseconds: u64) -> Color {
        let Some(rates) = self.rates else {
            return Color::Green;
        };
        let passed = u128::from(microseconds.saturating_sub(self.last));
        self.last = microseconds;
        let units = u128::from(units) * MILLION;
        self.committed =
            (self.committed + passed * u128::from(rates.committed)).min(u128::from(rates.committed_burst) * MILLION);
        self.peak = (self.peak + passed * u128::from(rates.peak)).min(u128::from(rates.peak_burst) * MILLION);
        if self.peak < units {
            return Color::Red;
        }
        self.peak -= units;
        if self.committed < units {
            return Color::Yellow;
        }
        self.committed -= units;
        Color::Green
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_green_then_yellow_then_red_and_time_refills() {
        let mut meter = Meter::default();
        meter.set(Some(MeterRates { committed: 10, committed_burst: 1, peak: 20, peak_burst: 2 }));
        assert_eq!(meter.execute(1, 0), Color::Green);
        assert_eq!(meter.execute(1, 0), Color::Yellow);
        assert_eq!(meter.execute(1, 0), Color::Red);
        assert_eq!(meter.execute(1, 100_000), Color::Green);
    }
}
