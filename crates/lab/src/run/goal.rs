//! How sure the values of a window are to be, and what follows where they are not.

use nicforge_record::Metrics;
use nicforge_units::Time;

use super::batches::{CORRELATED, drift, intervals, main_metric};
use crate::run::options::{PrecisionOptions, WindowOptions};
use crate::settings::Settings;

/// What follows when a window is over.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// It is good enough, or there is no time left.
    Nothing,
    /// It lasts until then.
    Longer(Time),
    /// It was warm-up: another one.
    Anew {
        /// From.
        begins: Time,
        /// Until.
        ends: Time,
    },
}

/// How narrow intervals are to be, and how long that may take.
#[derive(Clone, Copy)]
pub struct Goal {
    precision: f64,
    /// How long the first window is.
    length: Time,
    /// When the last one ends.
    latest: Time,
}

impl Goal {
    /// What `settings` ask for, if they do; the window begins at `from`.
    pub fn of(settings: &Settings, from: Time) -> Option<Goal> {
        let PrecisionOptions { precision, max_window_ms } = settings.read();
        let latest = from + Time::from_seconds(max_window_ms / 1e3);
        let length = Time::from_seconds(settings.read::<WindowOptions>().window_ms / 1e3);
        precision.map(|precision| Goal { precision, length, latest })
    }

    /// What follows the window `from` `until`, which has `batches`. One that drifts was warm-up; one that is not precise
    /// becomes twice as long, of as many batches.
    pub fn next(self, (from, until): (Time, Time), batches: &[Metrics]) -> Next {
        let length = until - from;
        if drift(batches).is_some() {
            // A batch further on, so that no frame that leaves then has left already.
            let begins = until + Time::from_ps(length.as_ps() / batches.len().max(1) as u64);
            let ends = begins + self.length;
            if ends <= self.latest {
                return Next::Anew { begins, ends };
            }
        } else if self.missed_by(batches).is_some() && until + length <= self.latest {
            return Next::Longer(until + length);
        }
        Next::Nothing
    }

    /// The widest relative half width of the main metrics, where it is too wide or cannot be trusted yet.
    pub fn missed_by(self, batches: &[Metrics]) -> Option<f64> {
        let intervals = intervals(batches);
        let mut worst: Option<f64> = None;
        let main = batches.first().map_or("throughput_gbps", |batch| main_metric(batch).0);
        for key in [main, "latency_us.mean"] {
            let Some(interval) = intervals.get(key) else {
                continue;
            };
            let relative = interval.relative(interval.mean).unwrap_or(0.0);
            let follows = interval.correlation.is_some_and(|correlation| correlation > CORRELATED);
            // Batches that follow each other make intervals too narrow.
            if relative > self.precision || (follows && relative > self.precision / 10.0) {
                worst = Some(worst.unwrap_or(0.0).max(relative));
            }
        }
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_drifts_was_warm_up_and_one_that_is_too_wide_is_doubled() {
        let ms = Time::from_ms;
        let goal = Goal { precision: 0.01, length: ms(5), latest: ms(100) };
        let batches = |value: fn(usize) -> f64| -> Vec<Metrics> {
            let batch = |number| Metrics { throughput_gbps: value(number), ..Metrics::default() };
            (0..25).map(batch).collect()
        };
        let rising = batches(|number| 100.0 + number as f64);
        assert_eq!(goal.next((ms(10), ms(35)), &rising), Next::Anew { begins: ms(36), ends: ms(41) });
        assert_eq!(goal.next((ms(48), ms(98)), &rising), Next::Nothing);
        let wide = batches(|number| 100.0 + 10.0 * (number % 2) as f64);
        assert_eq!(goal.next((ms(10), ms(35)), &wide), Next::Longer(ms(60)));
        assert_eq!(goal.next((ms(10), ms(60)), &wide), Next::Nothing);
        let level = batches(|number| 100.0 + 0.1 * (number % 2) as f64);
        assert_eq!(goal.next((ms(10), ms(35)), &level), Next::Nothing);
    }
}
