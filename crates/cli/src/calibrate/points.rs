//! The file of points: which numbers of a machine may be otherwise, and what was measured.
//!
//! ```toml
//! seed = 1
//! samples = 32                        # candidates of the Latin hypercube
//! rounds = 4                          # of refinement around the best
//! members = 4                         # machine files that are written
//!
//! [[parameter]]
//! key = "dram.peak_gb_per_s"          # section.key of the machine file
//! also = ["…"]                        # keys that get the same value
//! range = [46, 62]
//! step = 0.5                          # values are so far apart
//! source = "what bounds it"
//!
//! [[point]]
//! name = "c1"
//! scenario = "scenarios/calibration/c1-c2.toml"
//! set = ["rx_entries=1024"]           # as `run --set`
//! predicted = "throughput_gbps{}"     # as in a file of claims
//! value = 162.0
//! bound = "at_least"                  # where the value is one
//! tolerance = 0.05                    # share of the value
//! ```

use std::path::{Path, PathBuf};

use nicforge_options::{ConfigError, Located, Node, parse_tree, read_text};
use nicforge_report::claims::{Bound, Expression};

use crate::fields::{Fields, number, tables};
use crate::reproduce::{bound, expression};

const KEYS: [&str; 6] = ["seed", "samples", "rounds", "members", "parameter", "point"];
const PARAMETER_KEYS: [&str; 5] = ["key", "also", "range", "step", "source"];
const POINT_KEYS: [&str; 7] = ["name", "scenario", "set", "predicted", "value", "bound", "tolerance"];
/// Members that files of their own can be named by.
const MEMBERS_MOST: f64 = 26.0;

/// A points file: parameters with their ranges, and results with their tolerances.
pub struct Points {
    /// Decides every draw.
    pub seed: u64,
    /// Candidates of the Latin hypercube.
    pub samples: u64,
    /// Rounds of refinement.
    pub rounds: u64,
    /// Members that are written, at most.
    pub members: usize,
    /// Numbers that are varied.
    pub parameters: Vec<Parameter>,
    /// Measured results that the machine has to fit.
    pub points: Vec<Point>,
}

/// A number of the machine that may lie in a range.
pub struct Parameter {
    /// Its section and key, and those of numbers that are the same.
    pub keys: Vec<String>,
    /// From where to where.
    pub range: [f64; 2],
    /// Values are so far apart.
    pub step: f64,
    /// The source of the range: what bounds the parameter.
    pub source: String,
}

impl Parameter {
    /// The value at `share` of the range.
    pub fn at(&self, share: f64) -> f64 {
        let [low, high] = self.range;
        let steps = (share * (high - low) / self.step).round();
        // To digits that mean something: a sum of steps has others.
        let value = ((low + steps * self.step) * 1e6).round() / 1e6;
        value.clamp(low, high)
    }
}

/// A measurement.
pub struct Point {
    /// Its name.
    pub name: String,
    /// The scenario that runs for it.
    pub scenario: PathBuf,
    /// Overrides of it.
    pub set: Vec<String>,
    /// How the model's value is read from the record.
    pub predicted: Expression,
    /// The same as it was written.
    pub quantity: String,
    /// The value that was measured.
    pub value: f64,
    /// Whether the result bounds the metric from below or above; none: it is to be met.
    pub bound: Option<Bound>,
    /// How far off is still a fit, as a share of the value.
    pub tolerance: f64,
}

impl Point {
    /// How far `predicted` is off, in tolerances: above 0 it is too much, and beyond ±1 it does not fit.
    pub fn error(&self, predicted: f64) -> f64 {
        let error = (predicted - self.value) / (self.value.abs() * self.tolerance);
        match self.bound {
            Some(Bound::AtLeast) => error.min(0.0),
            Some(Bound::AtMost) => error.max(0.0),
            None => error,
        }
    }
}

/// Reads a file of points. Scenarios are found from the working directory, or from a folder above the file.
///
/// # Errors
/// It cannot be read, or does not say what it should: with the place and what would be right.
pub fn read(file: &Path) -> Result<Points, ConfigError> {
    let root = parse_tree(&read_text(file)?, file)?;
    let fields = Fields::of(&root, "file of points", &KEYS)?;
    let count = |key: &str, default: f64, least: f64, most: f64| {
        let value = fields.number(key)?.unwrap_or(default);
        if value.fract() == 0.0 && (least..=most).contains(&value) {
            return Ok(value as u64);
        }
        let place = fields.get(key).map_or(&root.place, |value| &value.place);
        Err(ConfigError::new(place, format!("`{key}` is {value}"), format!("a whole number, {least} to {most}")))
    };
    let parameters = tables(fields.must("parameter")?, "[[parameter]]")?.map(parameter);
    let points = tables(fields.must("point")?, "[[point]]")?.map(|table| point(table, file));
    Ok(Points {
        seed: count("seed", 1.0, 0.0, 1e15)?,
        samples: count("samples", 32.0, 0.0, 1e5)?,
        rounds: count("rounds", 4.0, 0.0, 1e3)?,
        members: count("members", 4.0, 1.0, MEMBERS_MOST)? as usize,
        parameters: parameters.collect::<Result<_, _>>()?,
        points: points.collect::<Result<_, _>>()?,
    })
}

/// The texts of the list at `key`; none where it is absent.
fn texts(fields: &Fields<'_>, key: &str) -> Result<Vec<String>, ConfigError> {
    let Some(value) = fields.get(key) else {
        return Ok(Vec::new());
    };
    let Node::List(all) = &value.node else {
        let right = format!("{key} = [\"…\"]");
        return Err(ConfigError::new(&value.place, format!("`{key}` is {}", value.node.show()), right));
    };
    all.iter().map(|text| text.text(&format!("`{key}`")).map(str::to_owned)).collect()
}

fn parameter(table: &Located) -> Result<Parameter, ConfigError> {
    let fields = Fields::of(table, "[[parameter]]", &PARAMETER_KEYS)?;
    let mut keys = vec![fields.needed("key")?.to_owned()];
    keys.extend(texts(&fields, "also")?);
    let value = fields.must("range")?;
    let ends = match &value.node {
        Node::List(ends) => ends.iter().map(|end| number(end, "range")).collect::<Result<Vec<f64>, _>>()?,
        _ => Vec::new(),
    };
    let range = <[f64; 2]>::try_from(ends).ok().filter(|[low, high]| low < high);
    let range = range.ok_or_else(|| {
        ConfigError::new(&value.place, "`range` has no lower and upper end", "range = [LOW, HIGH], LOW below HIGH")
    })?;
    let source = fields.needed("source")?.trim().to_owned();
    if source.is_empty() {
        let right = "name a data sheet or a measurement that bounds it";
        return Err(ConfigError::new(&fields.must("source")?.place, "`source` is empty", right));
    }
    let step = positive(&fields, "step")?;
    Ok(Parameter { keys, range, step, source })
}

fn positive(fields: &Fields<'_>, key: &str) -> Result<f64, ConfigError> {
    let place = fields.must(key)?;
    let value = number(place, key)?;
    let wrong = || ConfigError::new(&place.place, format!("`{key}` is {value}"), format!("`{key}` is above 0"));
    (value > 0.0).then_some(value).ok_or_else(wrong)
}

fn point(table: &Located, file: &Path) -> Result<Point, ConfigError> {
    let fields = Fields::of(table, "[[point]]", &POINT_KEYS)?;
    let predicted = fields.must("predicted")?;
    let read = expression(predicted)?;
    if read.is_truth() {
        let right = "ask for a number: a condition is no measurement";
        return Err(ConfigError::new(&predicted.place, "`predicted` is a condition", right));
    }
    Ok(Point {
        name: fields.needed("name")?.to_owned(),
        scenario: scenario(&fields, file)?,
        set: texts(&fields, "set")?,
        predicted: read,
        quantity: predicted.text("`predicted`")?.to_owned(),
        value: positive(&fields, "value")?,
        bound: bound(&fields)?,
        tolerance: positive(&fields, "tolerance")?,
    })
}

/// The scenario's file, in the working directory or above the file of points.
fn scenario(fields: &Fields<'_>, file: &Path) -> Result<PathBuf, ConfigError> {
    let name = fields.needed("scenario")?;
    let above = std::path::absolute(file).unwrap_or_default();
    let above = above.ancestors().skip(1).map(|folder| folder.join(name));
    let found = std::iter::once(PathBuf::from(name)).chain(above).find(|path| path.is_file());
    found.ok_or_else(|| {
        let place = fields.get("scenario").map_or(&fields.table.place, |value| &value.place);
        ConfigError::new(place, format!("there is no {name} here or above the file"), "name a scenario's file")
    })
}
