//! Figures of several rounds: their median, with the least and the most.

use std::fmt;

/// The median of some values, and how far they lie apart.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The value in the middle; NaN without values.
    pub median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    /// Of `values`, in any order.
    pub fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let at = |number: usize| values.get(number).copied().unwrap_or(f64::NAN);
        Spread { median: at(values.len() / 2), least: at(0), most: at(values.len().saturating_sub(1)) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.median.is_nan() {
            return f.pad("-");
        }
        f.pad(&format!("{:.2} ({:.2}-{:.2})", self.median, self.least, self.most))
    }
}
