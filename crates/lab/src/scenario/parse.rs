//! From the text of a scenario file to a [`Scenario`]. Touches no other file.

use std::path::Path;

use nicforge_options::{ConfigError, Field, Located, Node, Place, parse_tree, shorten};

use super::assign::known_key;
use super::sample::even;
use super::{Assignment, MOST_POINTS, Sample, Scenario, Sweep, Variant};
use crate::settings::Catalogue;

const SECTIONS: [&str; 5] = ["scenario", "settings", "variant", "sweep", "sample"];
const SCENARIO_KEYS: [&str; 5] = ["name", "title", "description", "machine", "seed"];

/// Parses a scenario file's text; `file` is only for the errors.
pub fn parse_scenario(text: &str, file: &Path, catalogue: &Catalogue) -> Result<Scenario, ConfigError> {
    let root = parse_tree(text, file)?;
    let mut scenario = Scenario {
        file: file.to_path_buf(),
        name: String::new(),
        title: String::new(),
        description: String::new(),
        machine: String::new(),
        machine_place: root.place.clone(),
        seed: 1,
        settings: Vec::new(),
        variants: Vec::new(),
        sweep: Vec::new(),
        sample: None,
    };
    let (mut header, mut sample_place) = (root.place.clone(), root.place.clone());
    for field in root.table("a scenario file")? {
        match field.key.as_str() {
            "scenario" => {
                header = field.value.place.clone();
                read_header(&mut scenario, &field.value, catalogue)?;
            }
            "settings" => scenario.settings = read_settings(&field.value, "[settings]", catalogue)?,
            "variant" => scenario.variants = read_variants(&field.value, catalogue)?,
            "sweep" => scenario.sweep = read_sweep(&field.value, catalogue)?,
            "sample" => {
                scenario.sample = Some(Sample::read(&field.value, catalogue)?);
                sample_place = field.place.clone();
            }
            _ => return Err(unknown_section(field, catalogue)),
        }
    }
    require(&scenario.name, "name", "name = \"my-scenario\"", &header)?;
    require(&scenario.machine, "machine", "machine = \"xeon-4216-cx5\"", &header)?;
    check_sweep_against_variants(&scenario)?;
    check_points(&scenario, &sample_place)?;
    Ok(scenario)
}

fn unknown_section(field: &Field, catalogue: &Catalogue) -> ConfigError {
    if catalogue.vocabulary().key(&field.key).is_some() {
        let wrong = format!("`{}` stands outside any section", field.key);
        return ConfigError::new(&field.place, wrong, "put it under [settings]");
    }
    ConfigError::unknown(&field.place, "section", &field.key, &SECTIONS)
}

fn require(value: &str, key: &str, example: &str, place: &Place) -> Result<(), ConfigError> {
    if !value.is_empty() {
        return Ok(());
    }
    let wrong = format!("[scenario] has no `{key}`");
    Err(ConfigError::new(place, wrong, format!("add {example} under [scenario]")))
}

fn read_header(scenario: &mut Scenario, value: &Located, catalogue: &Catalogue) -> Result<(), ConfigError> {
    for field in value.table("[scenario]")? {
        let value = &field.value;
        match field.key.as_str() {
            "name" => scenario.name = file_name(value, "name")?,
            "title" => scenario.title = value.text("title")?.to_string(),
            "description" => scenario.description = value.text("description")?.to_string(),
            "machine" => {
                scenario.machine = file_name(value, "machine")?;
                scenario.machine_place = value.place.clone();
            }
            "seed" => scenario.seed = read_seed(value)?,
            key if catalogue.vocabulary().key(key).is_some() => {
                let wrong = format!("`{key}` is a setting");
                return Err(ConfigError::new(&field.place, wrong, "put it under [settings]"));
            }
            key => {
                let place = &field.place;
                return Err(ConfigError::unknown(place, "key of [scenario]", key, &SCENARIO_KEYS));
            }
        }
    }
    Ok(())
}

/// A name that is also part of a path, so it must stay inside its folder.
fn file_name(value: &Located, what: &str) -> Result<String, ConfigError> {
    let text = value.text(what)?;
    if is_file_name(text) {
        return Ok(text.to_string());
    }
    let wrong = format!("`{what}` cannot be \"{}\"", shorten(text));
    Err(ConfigError::new(&value.place, wrong, format!("`{what}` takes {FILE_NAME}")))
}

/// How names of scenarios and live runs are written.
pub(crate) const FILE_NAME: &str = "letters, digits, `-`, `_` and `.`, at most 100, not beginning with `.`";

/// Whether `text` may be part of a path without leaving its folder.
pub(crate) fn is_file_name(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    plain && !text.is_empty() && !text.starts_with('.') && text.len() <= 100
}

fn read_seed(value: &Located) -> Result<u64, ConfigError> {
    let seed = match value.node {
        Node::Integer(seed) => u64::try_from(seed).ok(),
        _ => None,
    };
    seed.ok_or_else(|| {
        let wrong = format!("`seed` cannot be {}", value.node.show());
        ConfigError::new(&value.place, wrong, "`seed` takes a whole number from 0")
    })
}

fn read_settings(value: &Located, what: &str, catalogue: &Catalogue) -> Result<Vec<Assignment>, ConfigError> {
    let fields = value.table(what)?;
    fields.iter().map(|field| Assignment::of_field(field, catalogue)).collect()
}

fn read_variants(value: &Located, catalogue: &Catalogue) -> Result<Vec<Variant>, ConfigError> {
    let Node::List(tables) = &value.node else {
        let right = "head each variant with [[variant]], in double brackets";
        return Err(ConfigError::new(&value.place, "`variant` is no list of tables", right));
    };
    let mut variants: Vec<Variant> = Vec::new();
    for table in tables {
        let mut variant = Variant { name: None, place: table.place.clone(), settings: Vec::new() };
        for field in table.table("[[variant]]")? {
            if field.key == "name" {
                let name = file_name(&field.value, "name")?;
                if variants.iter().any(|other| other.name.as_ref() == Some(&name)) {
                    let wrong = format!("there are two variants called `{name}`");
                    return Err(ConfigError::new(&field.place, wrong, "rename one of them"));
                }
                variant.name = Some(name);
                variant.place = field.place.clone();
            } else {
                variant.settings.push(Assignment::of_field(field, catalogue)?);
            }
        }
        variants.push(variant);
    }
    Ok(variants)
}

fn read_sweep(value: &Located, catalogue: &Catalogue) -> Result<Vec<Sweep>, ConfigError> {
    let fields = value.table("[sweep]")?;
    fields.iter().map(|field| read_swept(field, catalogue)).collect()
}

fn read_swept(field: &Field, catalogue: &Catalogue) -> Result<Sweep, ConfigError> {
    let key = known_key(&field.key, &field.place, catalogue)?;
    if let Node::Table(_) = &field.value.node {
        return Ok(Sweep { values: even(&field.value, key, catalogue)? });
    }
    let Node::List(items) = &field.value.node else {
        let wrong = format!("the sweep of `{}` is {}", key.name, field.value.node.show());
        let right = format!("write a list: {} = [{}], or a range", key.name, field.value.node.show());
        return Err(ConfigError::new(&field.value.place, wrong, right));
    };
    if items.is_empty() {
        let wrong = format!("the sweep of `{}` is empty", key.name);
        let right = "give at least one value, or remove the line";
        return Err(ConfigError::new(&field.value.place, wrong, right));
    }
    if items.len() > MOST_POINTS {
        return Err(too_many(&field.value.place));
    }
    let mut values: Vec<Assignment> = Vec::new();
    for item in items {
        let value = Assignment::new(key, item, catalogue)?;
        if values.iter().any(|other| other.value == value.value) {
            let wrong = format!("the sweep of `{}` has {} twice", key.name, value.value);
            return Err(ConfigError::new(&value.place, wrong, "remove one of the two"));
        }
        values.push(value);
    }
    Ok(Sweep { values })
}

fn check_sweep_against_variants(scenario: &Scenario) -> Result<(), ConfigError> {
    let swept = |key: &str| scenario.sweep.iter().any(|sweep| sweep.values[0].key.name == key);
    let drawn = scenario.sample.iter().flat_map(|sample| &sample.drawn);
    if let Some(both) = drawn.clone().find(|drawn| swept(drawn.key.name)) {
        let wrong = format!("`{}` is swept and sampled", both.key.name);
        return Err(ConfigError::new(&both.place, wrong, "keep it in [sweep] or in [sample]"));
    }
    let sampled = |key: &str| drawn.clone().any(|drawn| drawn.key.name == key);
    for variant in &scenario.variants {
        let mut set = variant.settings.iter();
        if let Some(both) = set.find(|set| swept(set.key.name) || sampled(set.key.name)) {
            let (does, section) = if swept(both.key.name) { ("swept", "sweep") } else { ("sampled", "sample") };
            let wrong = format!("`{}` is set by a variant and {does} too", both.key.name);
            return Err(ConfigError::new(&both.place, wrong, format!("keep it in [[variant]] or in [{section}]")));
        }
    }
    Ok(())
}

pub(super) fn check_points(scenario: &Scenario, sample: &Place) -> Result<(), ConfigError> {
    let mut points = scenario.variants.len().max(1);
    for sweep in &scenario.sweep {
        points = points.saturating_mul(sweep.values.len());
        if points > MOST_POINTS {
            return Err(too_many(&sweep.values[0].place));
        }
    }
    match &scenario.sample {
        Some(drawn) if points.saturating_mul(drawn.points) > MOST_POINTS => Err(too_many(sample)),
        _ => Ok(()),
    }
}

fn too_many(place: &Place) -> ConfigError {
    let wrong = format!("the scenario has more than {MOST_POINTS} points");
    ConfigError::new(place, wrong, "shorten [sweep] or split the scenario")
}
