//! Scenario files: the workload, the variants to compare, the sweep, and the machine's name.
//!
//! ```text
//! text ── parse_scenario ──► Scenario ── expand(machine, --set) ──► points ──► one run each
//!         (pure: no files)              (files must exist)
//! ```

mod assign;
mod expand;
mod find;
mod parse;
mod sample;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nicforge_options::{ConfigError, Place, Value, read_text};

use crate::settings::{Catalogue, Settings};

pub use assign::{Assignment, parse_override, parse_setting, push_once};
#[cfg(target_os = "linux")]
pub(crate) use expand::find_file;
pub use parse::parse_scenario;
#[cfg(target_os = "linux")]
pub(crate) use parse::{FILE_NAME, is_file_name};
pub use sample::{Drawn, Method, Sample};

/// Most points that one scenario may expand to.
pub const MOST_POINTS: usize = 10_000;

/// A scenario file, each key checked by itself.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file, as it was named.
    pub file: PathBuf,
    /// Its name, which is also that of its output folder.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it shows and why, free text.
    pub description: String,
    /// Name of its machine.
    pub machine: String,
    /// Where the machine is named.
    pub machine_place: Place,
    /// Seed of everything random.
    pub seed: u64,
    /// `[settings]`.
    pub settings: Vec<Assignment>,
    /// `[[variant]]`, in file order.
    pub variants: Vec<Variant>,
    /// `[sweep]`, in file order.
    pub sweep: Vec<Sweep>,
    /// `[sample]`.
    pub sample: Option<Sample>,
}

impl Scenario {
    /// Keys that are swept or sampled.
    pub fn axes(&self) -> Vec<&'static str> {
        let swept = self.sweep.iter().map(|sweep| sweep.values[0].key.name);
        let sampled = self.sample.iter().flat_map(|sample| &sample.drawn).map(|drawn| drawn.key.name);
        swept.chain(sampled).collect()
    }
}

/// One `[[variant]]`.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name; the interface's when absent.
    pub name: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// What it overrides.
    pub settings: Vec<Assignment>,
}

impl Variant {
    /// Its name, or that of the interface that it sets.
    fn written_name(&self) -> Option<String> {
        let interface =
            || self.settings.iter().rfind(|set| set.key.name == "interface").map(|set| set.value.to_string());
        self.name.clone().or_else(interface)
    }
}

/// One key of `[sweep]` and its values.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The same key with each of its values.
    pub values: Vec<Assignment>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What is compared.
    pub variant: String,
    /// Every swept or varied value and the common ones, as far as they count here, in the order of the
    /// settings table.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// All settings.
    pub settings: Settings,
    /// Where each key was set, and the variant.
    places: (BTreeMap<&'static str, Place>, Place),
}

impl Point {
    /// Whether somebody set `key`, and it is not the default's value by itself.
    pub fn sets(&self, key: &str) -> bool {
        self.places.0.contains_key(key)
    }

    /// Where `key` was set, if it was.
    pub fn place_of_value(&self, key: &str) -> Option<&Place> {
        self.places.0.get(key)
    }

    /// Whether everything that counts is the same in `other`, so that both measure the same.
    pub fn equals(&self, other: &Point) -> bool {
        let of = |point: &Point| -> Vec<(&'static str, Option<Value>)> {
            let effective = point.settings.effective().into_iter();
            effective.map(|(_, key, value)| (key.name, value)).collect()
        };
        of(self) == of(other)
    }

    /// Where the first of `keys` was set that was; where none was, the variant's place.
    pub fn place_of(&self, keys: &[&str]) -> &Place {
        let (places, variant) = &self.places;
        keys.iter().find_map(|key| places.get(*key)).unwrap_or(variant)
    }
}

/// Reads and parses a scenario file.
pub fn load_scenario(file: &Path, catalogue: &Catalogue) -> Result<Scenario, ConfigError> {
    parse_scenario(&read_text(file)?, file, catalogue)
}

#[cfg(test)]
mod tests;
