//! Values that a file does not list one by one: even ranges in `[sweep]`, and draws in `[sample]`.
//!
//! ```toml
//! [sweep]
//! rx_entries = { from = 64, to = 4096, values = 7, spacing = "log" }
//! [sample]                      # in place of all combinations, or beside a sweep
//! points = 40
//! method = "latin_hypercube"    # or "random"
//! offered_gbps = { from = 10, to = 200 }
//! io_ways = [2, 5, 8]
//! ```

use nicforge_options::{Allowed, ConfigError, Field, Key, Located, Node, Place, nearest};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::{Assignment, MOST_POINTS};
use crate::settings::Catalogue;

/// How points of a sample lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Each value for itself.
    Random,
    /// Each key's range is cut into as many strata as there are points, and each stratum has one point.
    LatinHypercube,
}

const METHODS: [(&str, Method); 2] = [("latin_hypercube", Method::LatinHypercube), ("random", Method::Random)];

/// `[sample]`.
#[derive(Clone, Debug)]
pub struct Sample {
    /// How many points it has.
    pub points: usize,
    /// How they lie.
    pub method: Method,
    /// What is drawn, in file order.
    pub drawn: Vec<Drawn>,
}

/// A key whose values are drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The key.
    pub key: &'static Key,
    pub(super) place: Place,
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    Range(Range),
    List(Vec<Assignment>),
}

/// Numbers between two ends.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Range {
    /// The number at `share` of the way.
    fn at(self, share: f64) -> f64 {
        match self.is_log {
            true => (self.low.ln() + (self.high.ln() - self.low.ln()) * share).exp(),
            false => self.low + (self.high - self.low) * share,
        }
    }
}

impl Sample {
    /// Parses `[sample]`.
    pub(super) fn read(value: &Located, catalogue: &Catalogue) -> Result<Sample, ConfigError> {
        let mut sample = Sample { points: 0, method: Method::LatinHypercube, drawn: Vec::new() };
        for field in value.table("[sample]")? {
            match field.key.as_str() {
                "points" => sample.points = count(&field.value, "points", 1)?,
                "method" => sample.method = method(&field.value)?,
                _ => sample.drawn.push(Drawn::read(field, catalogue)?),
            }
        }
        let refuse = |wrong: &str, right: &str| Err(ConfigError::new(&value.place, wrong, right));
        if sample.points == 0 {
            return refuse("[sample] has no `points`", "add points = 40");
        }
        if sample.drawn.is_empty() {
            return refuse("[sample] draws no key", "add a line such as offered_gbps = { from = 10, to = 200 }");
        }
        Ok(sample)
    }

    /// The points; `seed` decides them. What is drawn for a key does not depend on the other keys.
    pub(super) fn rows(&self, seed: u64, catalogue: &Catalogue) -> Result<Vec<Vec<Assignment>>, ConfigError> {
        if self.drawn.is_empty() {
            // The command line set all of its keys.
            return Ok(vec![Vec::new()]);
        }
        let columns: Result<Vec<_>, _> = self.drawn.iter().map(|drawn| self.column(drawn, seed, catalogue)).collect();
        let columns = columns?;
        Ok((0..self.points).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect())
    }

    fn column(&self, drawn: &Drawn, seed: u64, catalogue: &Catalogue) -> Result<Vec<Assignment>, ConfigError> {
        let name = drawn.key.name.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        let mut random = Pcg64::seed_from_u64(seed ^ name);
        // 53 bits: every double of that many in [0, 1) is as likely.
        let mut share = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let shares: Vec<f64> = match self.method {
            Method::Random => (0..self.points).map(|_| share()).collect(),
            Method::LatinHypercube => {
                let mut strata: Vec<usize> = (0..self.points).collect();
                for last in (1..strata.len()).rev() {
                    strata.swap(last, (share() * (last + 1) as f64) as usize);
                }
                strata.into_iter().map(|stratum| (stratum as f64 + share()) / self.points as f64).collect()
            }
        };
        shares.into_iter().map(|share| drawn.at(share, catalogue)).collect()
    }
}

impl Drawn {
    fn read(field: &Field, catalogue: &Catalogue) -> Result<Drawn, ConfigError> {
        let key = super::assign::known_key(&field.key, &field.place, catalogue)?;
        let from = match &field.value.node {
            Node::List(items) if !items.is_empty() => {
                let items = items.iter().map(|item| Assignment::new(key, item, catalogue));
                From::List(items.collect::<Result<_, _>>()?)
            }
            Node::Table(_) => From::Range(Ends::read(&field.value, key, false)?.range),
            other => {
                let wrong = format!("the sample of `{}` is {}", key.name, other.show());
                let right = format!("write {} = {{ from = 1, to = 10 }} or a list of values", key.name);
                return Err(ConfigError::new(&field.value.place, wrong, right));
            }
        };
        let drawn = Drawn { key, place: field.value.place.clone(), from };
        // Both ends now, so that none is refused in the middle of a sample.
        drawn.at(0.0, catalogue)?;
        drawn.at(1.0, catalogue)?;
        Ok(drawn)
    }

    fn at(&self, share: f64, catalogue: &Catalogue) -> Result<Assignment, ConfigError> {
        match &self.from {
            From::Range(range) => value(self.key, range.at(share), &self.place, catalogue),
            From::List(items) => Ok(items[((share * items.len() as f64) as usize).min(items.len() - 1)].clone()),
        }
    }
}

/// The values of a range in `[sweep]`.
pub(super) fn even(value: &Located, key: &'static Key, catalogue: &Catalogue) -> Result<Vec<Assignment>, ConfigError> {
    let Ends { range, values } = Ends::read(value, key, true)?;
    let mut all: Vec<Assignment> = Vec::new();
    for step in 0..values {
        let share = step as f64 / (values - 1) as f64;
        let next = self::value(key, range.at(share), &value.place, catalogue)?;
        // Whole numbers may be fewer than the steps.
        if all.last().is_none_or(|last| last.value != next.value) {
            all.push(next);
        }
    }
    Ok(all)
}

/// `number` as a value of `key`: whole numbers and powers of two are the nearest, others have four digits.
fn value(key: &'static Key, number: f64, place: &Place, catalogue: &Catalogue) -> Result<Assignment, ConfigError> {
    let node = match key.allowed {
        Allowed::Whole(..) => Node::Integer(number.round() as i64),
        Allowed::PowerOfTwo(..) => Node::Integer(1i64 << (number.max(1.0).log2().round() as u32).min(62)),
        _ => {
            let digits = (3.0 - number.abs().max(f64::MIN_POSITIVE).log10().floor()).clamp(0.0, 12.0);
            let scale = 10f64.powf(digits);
            Node::Number((number * scale).round() / scale)
        }
    };
    Assignment::new(key, &Located { place: place.clone(), node }, catalogue)
}

/// A range as a file has it.
struct Ends {
    range: Range,
    values: usize,
}

impl Ends {
    fn read(value: &Located, key: &Key, has_values: bool) -> Result<Ends, ConfigError> {
        let name = key.name;
        let refuse = |place: &Place, wrong: String, right: String| Err(ConfigError::new(place, wrong, right));
        if key.range().is_none() {
            let wrong = format!("`{name}` takes no numbers, so it has no range");
            return refuse(&value.place, wrong, "write a list of its values".to_owned());
        }
        let (mut low, mut high, mut values, mut is_log) = (None, None, 0, false);
        let known: &[&str] = if has_values { &["from", "to", "values", "spacing"] } else { &["from", "to", "spacing"] };
        for field in value.table("a range")? {
            match field.key.as_str() {
                "from" => low = Some(number(&field.value)?),
                "to" => high = Some(number(&field.value)?),
                "values" if has_values => values = count(&field.value, "values", 2)?,
                "spacing" => is_log = spacing(&field.value)?,
                other => return Err(ConfigError::unknown(&field.place, "key of a range", other, known)),
            }
        }
        let form = if has_values { "{ from = 64, to = 4096, values = 7 }" } else { "{ from = 64, to = 4096 }" };
        let (Some(low), Some(high)) = (low, high) else {
            let wrong = format!("the range of `{name}` lacks an end");
            return refuse(&value.place, wrong, format!("write {name} = {form}"));
        };
        if has_values && values == 0 {
            let wrong = format!("the range of `{name}` does not say how many values it has");
            return refuse(&value.place, wrong, format!("write {name} = {form}"));
        }
        if low >= high || (is_log && low <= 0.0) {
            let least = if is_log { " and above 0" } else { "" };
            let wrong = format!("the range of `{name}` goes from {low} to {high}");
            return refuse(&value.place, wrong, format!("`from` is less than `to`{least}"));
        }
        Ok(Ends { range: Range { low, high, is_log }, values })
    }
}

fn number(value: &Located) -> Result<f64, ConfigError> {
    let number = match value.node {
        Node::Integer(number) => Some(number as f64),
        Node::Number(number) if number.is_finite() => Some(number),
        _ => None,
    };
    number.ok_or_else(|| {
        ConfigError::new(&value.place, format!("an end of a range is {}", value.node.show()), "it is a number")
    })
}

fn count(value: &Located, what: &str, least: i64) -> Result<usize, ConfigError> {
    match value.node {
        Node::Integer(count) if (least..=MOST_POINTS as i64).contains(&count) => Ok(count as usize),
        _ => {
            let wrong = format!("`{what}` cannot be {}", value.node.show());
            Err(ConfigError::new(
                &value.place,
                wrong,
                format!("`{what}` takes a whole number, {least} to {MOST_POINTS}"),
            ))
        }
    }
}

fn method(value: &Located) -> Result<Method, ConfigError> {
    let text = value.text("method")?;
    let found = METHODS.iter().find(|(name, _)| *name == text).map(|(_, method)| *method);
    found.ok_or_else(|| unknown(value, "method", text, &METHODS.map(|(name, _)| name)))
}

/// Whether values are spaced evenly in their logarithms.
fn spacing(value: &Located) -> Result<bool, ConfigError> {
    match value.text("spacing")? {
        "log" => Ok(true),
        "linear" => Ok(false),
        other => Err(unknown(value, "spacing", other, &["linear", "log"])),
    }
}

fn unknown(value: &Located, what: &str, text: &str, known: &[&str]) -> ConfigError {
    let right = match nearest(text, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("`{what}` takes one of {}", known.join(", ")),
    };
    ConfigError::new(&value.place, format!("`{what}` cannot be \"{text}\""), right)
}
