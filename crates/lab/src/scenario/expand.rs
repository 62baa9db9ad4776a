//! From a scenario, a machine and `--set` to the points to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nicforge_options::{Allowed, ConfigError, Place, Value};

use super::parse::check_points;
use super::{Assignment, Point, Scenario, Sweep, Variant};
use crate::machine::Machine;
use crate::settings::{Catalogue, Settings};
use crate::storm::MACHINE;

/// Keys that stand in `params` of every point, swept or not.
const ALWAYS_SHOWN: [&str; 9] =
    ["interface", "app", "cores", "packet_bytes", "rx_entries", "tx_entries", "io_ways", "offered_gbps", "in_flight"];

/// Where each key was set, for one point.
type Places = BTreeMap<&'static str, Place>;

impl Scenario {
    /// All points: variants in file order, each with every combination of the sweep, the
    /// last swept key changing fastest, and each combination with every row of the sample. A key of `overrides` replaces that key wherever the
    /// file sets, varies or sweeps it.
    ///
    /// # Errors
    /// Settings that do not go together, files that are not there, points that look alike in a report.
    pub fn expand(
        &self,
        machine: &Machine,
        overrides: &[Assignment],
        catalogue: &Arc<Catalogue>,
    ) -> Result<Vec<Point>, ConfigError> {
        let scenario = self.overridden(overrides);
        let rows = match &scenario.sample {
            Some(sample) => sample.rows(self.seed, catalogue)?,
            None => vec![Vec::new()],
        };
        let axes = scenario.axes();
        let shown = scenario.shown_keys(overrides);
        let mut points: Vec<Point> = Vec::new();
        let plain = Variant { name: None, place: Place::file(&self.file), settings: Vec::new() };
        let variants = match scenario.variants.as_slice() {
            [] => std::slice::from_ref(&plain),
            some => some,
        };
        for variant in variants {
            for swept in scenario.combinations(&rows) {
                let assignments = scenario.settings.iter().chain(&variant.settings).chain(swept);
                let (settings, places) = apply(machine, catalogue, assignments, &self.file)?;
                let point = Point {
                    variant: self.name_of(variant, &settings),
                    params: params(&settings, &shown, &axes),
                    settings,
                    places: (places, variant.place.clone()),
                };
                point.settings.check(machine).map_err(|finding| {
                    let place = point.place_of(finding.keys);
                    ConfigError::new(place, finding.wrong, finding.right)
                })?;
                points.push(point);
            }
        }
        refuse_twins(&points, variants)?;
        Ok(points)
    }

    /// The variant's name, or that of its interface. One that sets an interface is named after it, so where
    /// another one runs in its place, that stands in front.
    fn name_of(&self, variant: &Variant, settings: &Settings) -> String {
        let runs = settings.interface();
        let mut all = self.variants.iter();
        let written = all.find(|written| written.place == variant.place);
        let written = written.into_iter().flat_map(|written| &written.settings);
        let mut interfaces = written.filter(|set| set.key.name == "interface");
        let asked = interfaces.next_back().map(|set| &set.value);
        let replaced = asked.filter(|asked| **asked != Value::Text(runs.clone()));
        match (&variant.name, replaced) {
            (Some(name), Some(_)) => format!("{runs} for {name}"),
            (Some(name), None) => name.clone(),
            (None, Some(Value::Text(asked))) => format!("{runs} for {asked}"),
            (None, _) => runs.clone(),
        }
    }

    fn overridden(&self, overrides: &[Assignment]) -> Scenario {
        let mut scenario = self.without(|name| overrides.iter().any(|set| set.key.name == name));
        scenario.settings.extend_from_slice(overrides);
        scenario
    }

    /// The same without the keys of which `replaced` says that others set them.
    fn without(&self, replaced: impl Fn(&str) -> bool) -> Scenario {
        let mut scenario = self.clone();
        scenario.settings.retain(|set| !replaced(set.key.name));
        for variant in &mut scenario.variants {
            variant.settings.retain(|set| !replaced(set.key.name));
        }
        scenario.sweep.retain(|sweep| !replaced(sweep.values[0].key.name));
        if let Some(sample) = &mut scenario.sample {
            sample.drawn.retain(|drawn| !replaced(drawn.key.name));
        }
        scenario
    }

    /// The same, swept over the values in each of `sweeps` as well. They replace what the file says of these keys.
    ///
    /// # Errors
    /// Too many points, or no value, or one that is there twice.
    pub fn swept_over(&self, sweeps: &[Vec<Assignment>]) -> Result<Scenario, ConfigError> {
        let mut scenario = self.without(|name| sweeps.iter().flatten().any(|value| value.key.name == name));
        for values in sweeps {
            let Some(first) = values.first() else {
                return Err(ConfigError::new(&Place::file(&self.file), "a sweep has no value", "give it one or more"));
            };
            for (index, value) in values.iter().enumerate() {
                if values[..index].iter().any(|other| other.value == value.value) {
                    let wrong = format!("the sweep of `{}` has {} twice", value.key.name, value.value);
                    return Err(ConfigError::new(&value.place, wrong, "remove one of the two"));
                }
            }
            scenario.sweep.push(Sweep { values: values.clone() });
            check_points(&scenario, &first.place)?;
        }
        Ok(scenario)
    }

    /// Leaves out all variants but those with `names`.
    ///
    /// # Errors
    /// There is no variant of a name.
    pub fn keep_variants(&mut self, names: &[String]) -> Result<(), ConfigError> {
        let known: Vec<String> = self.variants.iter().filter_map(Variant::written_name).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(name)) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(ConfigError::unknown(&Place::file(&self.file), "variant", name, &known));
        }
        self.variants.retain(|variant| variant.written_name().is_some_and(|name| names.contains(&name)));
        Ok(())
    }

    /// Keys of `params`. Overridden keys stay, so that a report says what it was run with.
    fn shown_keys(&self, overrides: &[Assignment]) -> Vec<&'static str> {
        let varied = self.variants.iter().flat_map(|variant| &variant.settings);
        let named = varied.chain(overrides).map(|set| set.key.name);
        named.chain(self.axes()).chain(ALWAYS_SHOWN).collect()
    }

    /// Every combination of the sweep's values with each of `rows`.
    fn combinations<'a>(&'a self, rows: &'a [Vec<Assignment>]) -> impl Iterator<Item = Vec<&'a Assignment>> {
        let count: usize = self.sweep.iter().map(|sweep| sweep.values.len()).product();
        (0..count * rows.len()).map(|index| {
            let mut rest = index / rows.len();
            let mut chosen: Vec<&Assignment> = Vec::with_capacity(self.sweep.len());
            for sweep in self.sweep.iter().rev() {
                chosen.push(&sweep.values[rest % sweep.values.len()]);
                rest /= sweep.values.len();
            }
            chosen.reverse();
            chosen.extend(&rows[index % rows.len()]);
            chosen
        })
    }
}

fn apply<'a>(
    machine: &Machine,
    catalogue: &Arc<Catalogue>,
    assignments: impl Iterator<Item = &'a Assignment>,
    scenario_file: &Path,
) -> Result<(Settings, Places), ConfigError> {
    let mut settings = Settings::for_machine(catalogue, machine);
    let mut places = Places::new();
    for set in assignments {
        let found = find_file(set, scenario_file)?;
        found.as_ref().unwrap_or(set).apply(&mut settings);
        places.insert(set.key.name, set.place.clone());
    }
    Ok((settings, places))
}

/// For a key that names a file: the same with the path at which the file was found, beside `scenario_file` or from the
/// working directory.
pub(crate) fn find_file(set: &Assignment, scenario_file: &Path) -> Result<Option<Assignment>, ConfigError> {
    let (Allowed::File, Value::Text(name)) = (set.key.allowed, &set.value) else {
        return Ok(None);
    };
    let mut tries = vec![PathBuf::from(name)];
    if let (Place::Line { .. }, Some(folder)) = (&set.place, scenario_file.parent()) {
        tries.insert(0, folder.join(name));
    }
    tries.dedup();
    // Of a file for each machine the first is looked for.
    let first = |path: &&PathBuf| PathBuf::from(path.to_string_lossy().replace(MACHINE, "1"));
    if let Some(other) = tries.iter().find(|path| first(path).exists())
        && !tries.iter().any(|path| first(&path).is_file())
    {
        let wrong = format!("`{}` names what is no file: {}", set.key.name, other.display());
        return Err(ConfigError::new(&set.place, wrong, "name a file, no folder, pipe or device"));
    }
    match tries.iter().find(|path| first(path).is_file()) {
        Some(path) => Ok(Some(Assignment { value: Value::Text(path.to_string_lossy().into_owned()), ..set.clone() })),
        None => {
            let looked: Vec<String> = tries.iter().map(|path| path.display().to_string()).collect();
            let wrong = format!("`{}` names a file that is not there: {name}", set.key.name);
            let right = format!("name an existing file (looked for {})", looked.join(" and "));
            Err(ConfigError::new(&set.place, wrong, right))
        }
    }
}

/// Two rows of a report that look alike.
fn refuse_twins(points: &[Point], variants: &[Variant]) -> Result<(), ConfigError> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let per_variant = points.len() / variants.len().max(1);
    for (index, group) in points.chunks(per_variant.max(1)).enumerate() {
        for point in group {
            let first = *names.entry(&point.variant).or_insert(index);
            if first != index {
                let wrong = format!("two variants go by the name `{}`", point.variant);
                let right = "give each [[variant]] a name of its own";
                return Err(ConfigError::new(&variants[index].place, wrong, right));
            }
        }
    }
    Ok(())
}

/// What counts in this point, and what is swept, which is the axis of plots.
fn params(settings: &Settings, shown: &[&str], axes: &[&str]) -> serde_json::Map<String, serde_json::Value> {
    let chosen = settings.chosen();
    let counts = |name: &str| chosen.iter().any(|owner| owner.declares(name));
    let swept = |name: &str| axes.contains(&name);
    let keys = settings.catalogue().vocabulary().keys().into_iter();
    keys.filter(|key| shown.contains(&key.name))
        .filter(|key| counts(key.name) || swept(key.name))
        .filter_map(|key| Some((key.name.to_string(), serde_json::json!(settings.value(key)?))))
        .collect()
}
