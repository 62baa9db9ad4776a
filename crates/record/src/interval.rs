//! How sure a measured value is: 95 % confidence intervals from samples, and whether two values differ.
//!
//! Samples are batch means of one window, or whole runs with different seeds. Student's t distribution makes an interval of
//! them; Welch's test compares two. Both hold where samples are about normal and independent, which batches are where each
//! is much longer than what the simulated system remembers. [`Interval::correlation`] says how far they are from that.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Share of intervals that hold the true value.
pub const CONFIDENCE: f64 = 0.95;
/// Values differ where equal ones would be as far apart in fewer cases than this.
pub const SIGNIFICANT: f64 = 1.0 - CONFIDENCE;
/// Relative deviation that is rounding, and no noise.
const ROUNDING: f64 = 1e-12;

/// What samples say of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Mean of the samples. The value of the whole window may differ from it, as percentiles do.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval: value ± this.
    pub half_width: f64,
    /// How many samples there are.
    pub samples: usize,
    /// Correlation of each sample with the next; near 0 where the interval can be trusted. Absent with fewer than 4
    /// samples, and for replicas, which are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<f64>,
}

/// What a test says of two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// How probable it is that equal values come out as far apart.
    pub p: f64,
}

impl Difference {
    /// Whether the values differ, by the test.
    pub fn is_significant(self) -> bool {
        self.p < SIGNIFICANT
    }
}

impl Interval {
    /// Of batches of one window, in their order; `None` for fewer than two.
    pub fn of_batches(samples: &[f64]) -> Option<Interval> {
        let correlation = correlation(samples);
        Some(Interval { correlation, ..Interval::of_replicas(samples)? })
    }

    /// Of independent samples; `None` for fewer than two.
    pub fn of_replicas(samples: &[f64]) -> Option<Interval> {
        if samples.len() < 2 || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half_width = if error <= mean.abs() * ROUNDING { 0.0 } else { error * quantile(count - 1.0)? };
        Some(Interval { mean, half_width, samples: samples.len(), correlation: None })
    }

    /// Half the width as a share of `value`; `None` where that is zero.
    pub fn relative(&self, value: f64) -> Option<f64> {
        (value != 0.0).then(|| self.half_width / value.abs())
    }

    /// Welch's test of this interval's mean against `other`'s.
    pub fn difference(&self, other: &Interval) -> Option<Difference> {
        let (one, two) = (self.variance_of_mean()?, other.variance_of_mean()?);
        let apart = (self.mean - other.mean).abs();
        let both = one + two;
        if both == 0.0 {
            let equal = apart <= self.mean.abs().max(other.mean.abs()) * ROUNDING;
            return Some(Difference { p: if equal { 1.0 } else { 0.0 } });
        }
        let own = |variance: f64, of: &Interval| variance * variance / (of.samples as f64 - 1.0);
        let freedom = both * both / (own(one, self) + own(two, other));
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        Some(Difference { p: 2.0 * student.sf(apart / both.sqrt()) })
    }

    /// Square of the standard error.
    fn variance_of_mean(&self) -> Option<f64> {
        if self.samples < 2 {
            return None;
        }
        Some((self.half_width / quantile(self.samples as f64 - 1.0)?).powi(2))
    }
}

/// Student's t that holds [`CONFIDENCE`] with so many degrees of freedom.
fn quantile(freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf((1.0 + CONFIDENCE) / 2.0))
}

/// Correlation of neighbours.
fn correlation(samples: &[f64]) -> Option<f64> {
    if samples.len() < 4 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    if squares <= (mean * ROUNDING).powi(2) {
        return Some(0.0);
    }
    let neighbours: f64 = samples.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    Some(neighbours / squares)
}

/// Where the warm-up of `series` ends, by MSER: the cut at which the mean of what is left is most certain, among
/// those of the first half. `None` where that is the end of the half: then the series is too short to tell.
///
/// Marginal standard error rule of White (1997). Values should be means of several events each.
pub fn warmup_end(series: &[f64]) -> Option<usize> {
    let half = series.len() / 2;
    let error = |cut: usize| {
        let rest = &series[cut..];
        let mean = rest.iter().sum::<f64>() / rest.len() as f64;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let mut best = (0, f64::INFINITY);
    for cut in 0..half {
        let here = error(cut);
        if here < best.1 {
            best = (cut, here);
        }
    }
    (best.0 + 1 < half).then_some(best.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Near enough for rounding and for the table's digits.
    fn near(left: f64, right: f64, within: f64) {
        assert!((left - right).abs() <= within, "{left} is not {right}");
    }

    #[test]
    fn an_interval_is_students() {
        // Mean 12, deviation 2, four samples: t = 3.182 with three degrees of freedom.
        let samples = [10.0, 11.0, 13.0, 14.0];
        let interval = Interval::of_replicas(&samples).unwrap();
        near(interval.mean, 12.0, 1e-12);
        let deviation = (10.0_f64 / 3.0).sqrt();
        near(interval.half_width, 3.1824 * deviation / 2.0, 1e-3);
        assert_eq!(Interval::of_replicas(&[1.0]), None);
        assert_eq!(Interval::of_replicas(&[3.0; 5]).unwrap().half_width, 0.0);
    }

    #[test]
    fn welchs_test_gives_the_published_value() {
        // Welch's example with unequal variances (R: t.test(a, b), p = 0.0128).
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.7];
        let of = |samples: &[f64]| Interval::of_replicas(samples).unwrap();
        let difference = of(&a).difference(&of(&b)).unwrap();
        assert!(difference.is_significant());
        let (ma, mb) = (of(&a).mean, of(&b).mean);
        near(ma, 20.82, 0.01);
        near(mb, 23.67, 0.01);
        near(difference.p, 0.0058, 0.003);
        assert!(!of(&a).difference(&of(&a)).unwrap().is_significant());
    }

    #[test]
    fn values_without_noise_differ_where_they_are_not_equal() {
        let of = |value: f64| Interval::of_replicas(&[value; 4]).unwrap();
        assert!(of(1.0).difference(&of(1.1)).unwrap().is_significant());
        assert!(!of(1.0).difference(&of(1.0)).unwrap().is_significant());
    }

    #[test]
    fn neighbours_that_follow_each_other_are_correlated() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert!(Interval::of_batches(&rising).unwrap().correlation.unwrap() > 0.8);
        let swinging: Vec<f64> = (0..20).map(|step| f64::from(step % 2)).collect();
        assert!(Interval::of_batches(&swinging).unwrap().correlation.unwrap() < -0.8);
        assert_eq!(Interval::of_batches(&[1.0; 20]).unwrap().correlation, Some(0.0));
    }

    #[test]
    fn a_warmup_ends_where_the_series_is_level() {
        let series: Vec<f64> =
            (0..100).map(|step| if step < 20 { f64::from(step) } else { 20.0 + f64::from(step % 3) }).collect();
        let end = warmup_end(&series).unwrap();
        assert!((18..=22).contains(&end), "{end}");
        assert_eq!(warmup_end(&[5.0; 40]), Some(0));
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(warmup_end(&rising), None);
    }
}
