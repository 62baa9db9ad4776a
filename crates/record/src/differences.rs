//! What differs between two runs.

use serde::{Deserialize, Serialize};

use super::SIGNIFICANT;

/// Two runs, A and B, point by point; only of `nicforge diff`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Differences {
    /// What the runs are called.
    pub runs: [String; 2],
    /// What differs beside the metrics.
    pub settings: Vec<SettingDifference>,
    /// Points that both have.
    pub points: Vec<PointDifferences>,
    /// Points that only A has, and only B.
    pub alone: [Vec<String>; 2],
}

/// A setting, a number of the machine, the program or the like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingDifference {
    /// Its name.
    pub key: String,
    /// In both runs; with units.
    pub values: [String; 2],
}

/// A point of both runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointDifferences {
    /// Variant and the parameters that vary.
    pub name: String,
    /// Metrics that at least one of both has.
    pub metrics: Vec<MetricDifference>,
}

/// A metric of a point in both runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricDifference {
    /// Its key, as in `points.csv`.
    pub key: String,
    /// In both runs, if it was measured.
    pub values: [Option<f64>; 2],
    /// Half the widths of their 95 % intervals.
    pub half_widths: [Option<f64>; 2],
    /// How probable it is that equal values come out as far apart, by Welch's test; absent where a run does not say how
    /// sure it is, and where both values are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

/// Whether a metric differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It is the same to the last bit.
    Same,
    /// Welch's test tells the values apart; how probable such a distance is between equal ones.
    Differs(f64),
    /// It does not.
    NotToldApart(f64),
    /// One of the runs does not say how sure it is.
    Unknown,
    /// Only one of the runs has it.
    OnlyOne,
}

impl MetricDifference {
    /// What can be said of the difference.
    pub fn verdict(&self) -> Verdict {
        match (self.values, self.p) {
            ([Some(a), Some(b)], _) if a == b => Verdict::Same,
            ([Some(_), Some(_)], None) => Verdict::Unknown,
            ([Some(_), Some(_)], Some(p)) if p < SIGNIFICANT => Verdict::Differs(p),
            ([Some(_), Some(_)], Some(p)) => Verdict::NotToldApart(p),
            _ => Verdict::OnlyOne,
        }
    }
}
