//! A bound of a metric, as a user writes it: `drop_fraction <= 0.001`.

use nicforge_lab::run::options::{Measure, Measurement};
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;
use nicforge_report::{flat, metric_keys};

/// A metric and the bound that it keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The metric's key in `points.csv`.
    pub metric: String,
    comparison: Comparison,
    bound: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    AtMost,
    AtLeast,
    Below,
    Above,
}

/// Longer signs first: each is looked for in turn.
const SIGNS: [(&str, Comparison); 4] =
    [("<=", Comparison::AtMost), (">=", Comparison::AtLeast), ("<", Comparison::Below), (">", Comparison::Above)];

/// What a drop counter's key begins with; causes have no list.
const DROPS: &str = "drops.";

impl Condition {
    /// From the text of an argument; else what is wrong and what is right.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let found = SIGNS.iter().find_map(|&(sign, comparison)| Some((text.split_once(sign)?, comparison)));
        let Some(((metric, bound), comparison)) = found else {
            return Err(format!("`{text}` has none of <=, >=, <, >: write METRIC <= NUMBER"));
        };
        let (metric, bound) = (metric.trim(), bound.trim());
        let Some(bound) = bound.parse().ok().filter(|bound: &f64| bound.is_finite()) else {
            return Err(format!("`{bound}` is no number"));
        };
        let keys = metric_keys();
        if !keys.contains(&metric) && !metric.starts_with(DROPS) {
            let near = nicforge_options::nearest(metric, &keys);
            let near = near.map_or("points.csv has their names".to_owned(), |near| format!("did you mean `{near}`?"));
            return Err(format!("there is no metric `{metric}`; {near}"));
        }
        Ok(Condition { metric: metric.to_owned(), comparison, bound })
    }

    /// The metric's value; `None` where it was not measured.
    pub fn value(&self, metrics: &Metrics) -> Option<f64> {
        match flat(metrics).into_iter().find(|(key, _)| *key == self.metric) {
            Some((_, value)) => value.as_f64(),
            None => self.metric.starts_with(DROPS).then_some(0.0),
        }
    }

    /// Whether points with `settings` may measure the metric, as far as their workload says.
    pub fn may_be_measured(&self, settings: &Settings) -> bool {
        let is = |begins: &[&str]| begins.iter().any(|begin| self.metric.starts_with(begin));
        if is(&["no_drop_gbps"]) {
            settings.is_of_frames() && settings.read::<Measurement>().measure == Measure::NoDropRate
        } else if is(&["misses_per_kb", "interrupts_khz", "cpu_time."]) {
            settings.is_of_whole_systems()
        } else if is(&["bandwidth_gbps"]) {
            settings.is_of_whole_systems() || settings.is_of_rpcs()
        } else if is(&["rpc_mps", "fairness"]) {
            settings.is_of_rpcs()
        } else if is(&["tuples_mps", "counted_mps", "tuple_us."]) {
            settings.is_of_storm()
        } else {
            true
        }
    }

    /// Whether `value` keeps the bound.
    pub fn holds(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::AtMost => value <= self.bound,
            Comparison::AtLeast => value >= self.bound,
            Comparison::Below => value < self.bound,
            Comparison::Above => value > self.bound,
        }
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = SIGNS.iter().find(|(_, comparison)| *comparison == self.comparison).map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", self.metric, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_conditions_or_say_why_not() {
        for text in ["drop_fraction <= 0.001", "throughput_gbps>100", "drops.ring_full < 1", "latency_us.p99>= 5"] {
            assert!(Condition::parse(text).is_ok(), "{text}: {:?}", Condition::parse(text));
        }
        assert_eq!(Condition::parse("drop_fraction<=0.5").unwrap().to_string(), "drop_fraction <= 0.5");
        for (text, why) in [
            ("drop_fraction", "none of <="),
            ("drop_fraction <= much", "`much` is no number"),
            ("drop_fracton < 1", "did you mean `drop_fraction`?"),
        ] {
            assert!(Condition::parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}
