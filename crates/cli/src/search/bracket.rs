//! Where a bound is crossed along a key: halves a range until its ends are neighbours.

use nicforge_options::{Allowed, Key};

/// The values that are looked at, by number from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steps {
    /// Whole numbers, so far apart.
    Whole { first: u64, apart: u64, last: u64 },
    /// Powers of two.
    PowersOfTwo { first: u64, last: u64 },
    /// Numbers, so far apart.
    Numbers { first: f64, apart: f64, last: f64 },
}

impl Steps {
    /// Those of `key` from `from` to `to`, `apart` from each other: left out, 1 for whole numbers, a hundredth of the range
    /// for others. `None` for keys without numbers, and where there are no two values.
    pub fn of(key: &Key, from: f64, to: f64, apart: Option<f64>) -> Option<Steps> {
        let is_range = from < to && apart.is_none_or(|apart| apart > 0.0);
        let steps = match key.allowed {
            Allowed::Whole(..) => Steps::Whole {
                first: from.ceil() as u64,
                apart: apart.map_or(1, |apart| (apart.round() as u64).max(1)),
                last: to as u64,
            },
            Allowed::PowerOfTwo(..) => Steps::PowersOfTwo {
                first: (from.ceil().max(1.0) as u64).next_power_of_two(),
                last: 1 << (to as u64).checked_ilog2()?,
            },
            Allowed::Number(..) => {
                Steps::Numbers { first: from, apart: apart.unwrap_or((to - from) / 100.0), last: to }
            }
            _ => return None,
        };
        (is_range && steps.last() > 0).then_some(steps)
    }

    /// The number of the last value.
    pub fn last(self) -> u64 {
        match self {
            Steps::Whole { first, apart, last } => last.saturating_sub(first).div_ceil(apart),
            Steps::PowersOfTwo { first, last } => u64::from(last.ilog2().saturating_sub(first.ilog2())),
            Steps::Numbers { first, apart, last } => ((last - first) / apart - 1e-9).ceil().max(0.0) as u64,
        }
    }

    /// Value `number` as a setting's text. The last one is the range's end, even where it is nearer than the others.
    pub fn value(self, number: u64) -> String {
        match self {
            Steps::Whole { first, apart, last } => (first + number * apart).min(last).to_string(),
            Steps::PowersOfTwo { first, .. } => (first << number).to_string(),
            Steps::Numbers { first, apart, last } => {
                // As a person would write it: 0.1 × 3 is no 0.3.
                let value = (first + number as f64 * apart).min(last);
                ((value * 1e9).round() / 1e9).to_string()
            }
        }
    }
}

/// What a bracket found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// The condition holds at every value, as far as both ends say.
    Always,
    /// It holds at neither end.
    Never,
    /// It holds up to this value, and not at the next one.
    UpTo(u64),
    /// It holds from this value on, and not at the one before.
    From(u64),
}

/// A search along the values of one point.
#[derive(Clone, Debug, Default)]
pub struct Bracket {
    /// Whether the condition holds at the low end, and at the high end, each with the value's number.
    low: Option<(u64, bool)>,
    high: Option<(u64, bool)>,
}

impl Bracket {
    /// The numbers of values to look at next, of `last` + 1; none where nothing is open.
    pub fn wanted(&self, last: u64) -> Vec<u64> {
        match (self.low, self.high) {
            (Some((low, at_low)), Some((high, at_high))) if at_low != at_high && high - low > 1 => {
                vec![low + (high - low) / 2]
            }
            (Some(_), Some(_)) => Vec::new(),
            _ => vec![0, last],
        }
    }

    /// The condition `holds` at value `number`, which was wanted.
    pub fn learn(&mut self, number: u64, holds: bool) {
        match (self.low, self.high) {
            (None, _) => self.low = Some((number, holds)),
            (_, None) => self.high = Some((number, holds)),
            (Some((_, at_low)), _) if at_low == holds => self.low = Some((number, holds)),
            _ => self.high = Some((number, holds)),
        }
    }

    /// What was found, once nothing is wanted.
    pub fn crossing(&self) -> Crossing {
        match (self.low, self.high) {
            (Some((_, true)), Some((_, true))) => Crossing::Always,
            (Some((low, true)), _) => Crossing::UpTo(low),
            (_, Some((high, true))) => Crossing::From(high),
            _ => Crossing::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is found where `holds` says it of each of `last` + 1 values, and after how many looks.
    fn found(last: u64, holds: impl Fn(u64) -> bool) -> (Crossing, usize) {
        let (mut bracket, mut looks) = (Bracket::default(), 0);
        loop {
            let wanted = bracket.wanted(last);
            if wanted.is_empty() {
                return (bracket.crossing(), looks);
            }
            looks += wanted.len();
            wanted.into_iter().for_each(|number| bracket.learn(number, holds(number)));
        }
    }

    proptest! {
        #[test]
        fn the_crossing_is_found_in_as_many_looks_as_halvings_take(last in 1u64..5000, share in 0.0f64..1.0) {
            let at = (share * last as f64) as u64;
            let (up_to, looks) = found(last, |number| number <= at);
            prop_assert_eq!(up_to, Crossing::UpTo(at));
            prop_assert!(looks <= 3 + last.ilog2() as usize);
            prop_assert_eq!(found(last, |number| number > at).0, Crossing::From(at + 1));
        }
    }

    #[test]
    fn ends_that_agree_end_the_search() {
        assert_eq!(found(100, |_| true), (Crossing::Always, 2));
        assert_eq!(found(100, |_| false), (Crossing::Never, 2));
    }

    #[test]
    fn values_cover_the_range_with_both_ends() {
        let all = |steps: Steps| (0..=steps.last()).map(|number| steps.value(number)).collect::<Vec<_>>();
        assert_eq!(all(Steps::Whole { first: 3, apart: 4, last: 12 }), ["3", "7", "11", "12"]);
        assert_eq!(all(Steps::PowersOfTwo { first: 64, last: 512 }), ["64", "128", "256", "512"]);
        assert_eq!(all(Steps::Numbers { first: 0.0, apart: 0.1, last: 0.35 }), ["0", "0.1", "0.2", "0.3", "0.35"]);
    }
}
