//! What a run was set to: the workload's settings and the machine's numbers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A setting in effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Key in the scenario file.
    pub key: String,
    /// Value in use.
    pub value: Value,
    /// Unit; empty for a plain number or a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Where the value comes from.
    #[serde(default)]
    pub origin: Origin,
    /// The module that reads it; where settings are those of several points, all modules that do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
}

impl Setting {
    /// Whether `other` is the same setting, read by any module.
    fn agrees_with(&self, other: &Setting) -> bool {
        (&self.key, &self.value, &self.unit, self.origin) == (&other.key, &other.value, &other.unit, other.origin)
    }
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Neither file nor command line set it: the key's default, or the machine's.
    #[default]
    Default,
    /// The scenario file or the file of a live run.
    File,
    /// The command line.
    Override,
}

/// A number of the machine, with its source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineParameter {
    /// `section.key` of the machine file.
    pub key: String,
    /// Value as the machine file has it.
    pub value: f64,
    /// Unit; empty for a plain number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Paper, data sheet or measurement.
    pub source: String,
    /// Calibration points that the value was fitted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<String>,
}

/// Moves the settings that have one value wherever they are in effect out of the points, in the order of `keys`.
pub fn share(points: &mut [Vec<Setting>], keys: &[&str]) -> Vec<Setting> {
    let common = |key: &&str| {
        let all: Vec<&Setting> = points.iter().flatten().filter(|setting| setting.key == **key).collect();
        let first = *all.first()?;
        let mut owners: Vec<&str> = Vec::new();
        for setting in &all {
            if !setting.agrees_with(first) {
                return None;
            }
            if !owners.contains(&setting.owner.as_str()) {
                owners.push(&setting.owner);
            }
        }
        Some(Setting { owner: owners.join(", "), ..first.clone() })
    };
    let shared: Vec<Setting> = keys.iter().filter_map(common).collect();
    for settings in points {
        settings.retain(|setting| !shared.iter().any(|other| other.key == setting.key));
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: u64) -> Setting {
        Setting { key: key.into(), value: value.into(), ..Setting::default() }
    }

    #[test]
    fn settings_with_one_value_are_shared_and_the_others_stay_with_their_points() {
        let mut points = [
            vec![setting("cores", 16), setting("rx_entries", 1024)],
            vec![setting("cores", 16), setting("rx_entries", 128), setting("sharing", 8)],
        ];
        let shared = share(&mut points, &["rx_entries", "cores", "sharing"]);
        assert_eq!(shared, [setting("cores", 16), setting("sharing", 8)]);
        assert_eq!(points, [vec![setting("rx_entries", 1024)], vec![setting("rx_entries", 128)]]);
    }

    #[test]
    fn a_value_that_was_set_in_one_point_and_is_the_default_in_another_is_not_shared() {
        let set = Setting { origin: Origin::File, ..setting("cores", 16) };
        let mut points = [vec![set], vec![setting("cores", 16)]];
        assert!(share(&mut points, &["cores"]).is_empty());
    }
}
