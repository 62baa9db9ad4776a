//! One key with its value, from a scenario file or from `--set`.

use crate::settings::{self, Allowed, Condition, Key, Names, Settings, Value};
use nicforge_options::{ConfigError, Field, Located, Node, Place, nearest, parse_value};

/// A key, its checked value, and where it was set.
#[derive(Clone)]
pub struct Assignment {
    /// The key's declaration.
    pub key: &'static Key,
    /// A value that the declaration allows.
    pub value: Value,
    /// Where it was set.
    pub place: Place,
}

impl std::fmt::Debug for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {} ({})", self.key.name, self.value, self.place)
    }
}

impl Assignment {
    pub(super) fn new(key: &'static Key, value: &Located, names: &Names<'_>) -> Result<Assignment, ConfigError> {
        let place = value.place.clone();
        match key.check(&value.node, names) {
            Ok(value) => Ok(Assignment { key, value, place }),
            Err(refusal) => Err(ConfigError::new(&place, refusal.wrong, refusal.right)),
        }
    }

    pub(crate) fn of_field(field: &Field, names: &Names<'_>) -> Result<Assignment, ConfigError> {
        Assignment::new(known_key(&field.key, &field.place)?, &field.value, names)
    }

    /// The error of a key that is set where nothing uses it.
    pub fn unused(&self) -> ConfigError {
        unused(self.key, &self.place, false)
    }

    /// Stores the value.
    pub fn apply(&self, settings: &mut Settings) -> Result<(), ConfigError> {
        if (self.key.set)(settings, &self.value) {
            return Ok(());
        }
        // Only a declaration whose range is wider than its field's type gets here.
        let wrong = format!("`{}` cannot be {}", self.key.name, self.value);
        Err(ConfigError::new(&self.place, wrong, "use a smaller value"))
    }
}

/// The error of a key that is set at `place` where nothing uses it; `with_systems`: among the points are whole systems.
pub(super) fn unused(key: &Key, place: &Place, with_systems: bool) -> ConfigError {
    let of_one_server: Condition = ("workload", &["frames"]);
    let used = key.used_when.iter().copied();
    // Where one server runs, what else the key needs is what is missing.
    let lacks_server = key.is_of_one_server() && (with_systems || key.used_when.is_empty());
    let used = lacks_server.then_some(of_one_server).into_iter().chain(used);
    let is_out = |other: &str, value: &str| {
        let mut conditions = key.unused_when.iter();
        conditions.any(|(key, values)| *key == other && values.contains(&value))
    };
    let used: Vec<(&str, Vec<&str>)> = used
        .map(|(other, values)| {
            let values = values.iter().copied();
            (other, values.filter(|value| !is_out(other, value)).collect())
        })
        .collect();
    let said = |(other, _): &&Condition| used.iter().any(|(key, _)| key == other);
    let unused = key.unused_when.iter().filter(|when| !said(when));
    let unused = unused.map(|(other, values)| format!("not {other} = {}", any_of(values)));
    let used = used.iter().map(|(other, values)| format!("{other} = {}", any_of(values)));
    let wanted: Vec<String> = used.chain(unused).collect();
    let wrong = format!("`{}` is set, but nothing uses it here", key.name);
    let wanted = wanted.join(" and ");
    let right = format!("it needs {wanted}; set that, or remove `{}`", key.name);
    ConfigError::new(place, wrong, right)
}

fn any_of(values: &[&str]) -> String {
    let said = values.iter().map(|value| match value.split_once('/') {
        Some((interface, plays)) => format!("{interface} with emulates = {plays}"),
        None => value.to_string(),
    });
    said.collect::<Vec<_>>().join(" or ")
}

pub(super) fn known_key(name: &str, place: &Place) -> Result<&'static Key, ConfigError> {
    const SCENARIO: [&str; 3] = ["seed", "machine", "name"];
    if SCENARIO.contains(&name) {
        let right = match name {
            "seed" => "it stands in [scenario]; on the command line use --seed",
            _ => "it stands in [scenario]",
        };
        return Err(ConfigError::new(place, format!("`{name}` is no setting"), right));
    }
    settings::key(name).ok_or_else(|| unknown_key(name, place))
}

/// There are too many keys to list them where none is near.
fn unknown_key(name: &str, place: &Place) -> ConfigError {
    let mut error = ConfigError::unknown(place, "setting", name, &settings::key_names());
    if nearest(name, &settings::key_names()).is_none() {
        error.right = "`nicforge list settings` and docs/settings.md list all".to_string();
    }
    error
}

/// Parses `key=value` of `--set`. Names and paths need no quotes.
pub fn parse_override(text: &str, names: &Names<'_>) -> Result<Assignment, ConfigError> {
    let place = Place::argument(&format!("--set {text}"));
    let Some((name, value)) = text.split_once('=') else {
        let right = "write --set key=value, such as --set rx_entries=128";
        return Err(ConfigError::new(&place, "no `=` in it", right));
    };
    let key = known_key(name.trim(), &place)?;
    let parsed = parse_value(value.trim());
    let node = match (key.allowed, parsed) {
        (_, Some(node @ Node::Text(_))) => node,
        (
            Allowed::Choice(_)
            | Allowed::Interface
            | Allowed::Emulated
            | Allowed::App
            | Allowed::Placement
            | Allowed::File
            | Allowed::RingNumbers
            | Allowed::RingSets,
            _,
        )
        | (_, None) => Node::Text(value.trim().to_string()),
        (_, Some(node)) => node,
    };
    Assignment::new(key, &Located { place, node }, names)
}
