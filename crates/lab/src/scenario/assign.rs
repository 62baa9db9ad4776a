//! One key with its value, from a scenario file or from `--set`.

use nicforge_options::{ConfigError, Field, Key, Located, Node, Place, Value, parse_value};

use crate::settings::{Catalogue, Settings};

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
    pub(super) fn new(key: &'static Key, value: &Located, catalogue: &Catalogue) -> Result<Assignment, ConfigError> {
        let place = value.place.clone();
        match key.check(&value.node, catalogue.vocabulary()) {
            Ok(value) => Ok(Assignment { key, value, place }),
            Err(refusal) => Err(ConfigError::new(&place, refusal.wrong, refusal.right)),
        }
    }

    pub(crate) fn of_field(field: &Field, catalogue: &Catalogue) -> Result<Assignment, ConfigError> {
        Assignment::new(known_key(&field.key, &field.place, catalogue)?, &field.value, catalogue)
    }

    /// Stores the value.
    pub fn apply(&self, settings: &mut Settings) {
        settings.set(self.key.name, self.value.clone());
    }

    /// The note about a key that no owner in use declares.
    pub fn somebody_elses(&self, catalogue: &Catalogue) -> String {
        let (name, owners) = (self.key.name, catalogue.vocabulary().owners_of(self.key.name));
        format!("{}: nothing uses `{name}` here: it belongs to {owners}; use that, or leave `{name}` out", self.place)
    }
}

pub(super) fn known_key(name: &str, place: &Place, catalogue: &Catalogue) -> Result<&'static Key, ConfigError> {
    const SCENARIO: [&str; 3] = ["seed", "machine", "name"];
    if SCENARIO.contains(&name) {
        let right = match name {
            "seed" => "it stands in [scenario]; on the command line use --seed",
            _ => "it stands in [scenario]",
        };
        return Err(ConfigError::new(place, format!("`{name}` is no setting"), right));
    }
    catalogue.vocabulary().known(name, place)
}

/// Parses `key=value` of `--set`. Names and paths need no quotes.
pub fn parse_override(text: &str, catalogue: &Catalogue) -> Result<Assignment, ConfigError> {
    let place = Place::argument(&format!("--set {text}"));
    let Some((name, value)) = text.split_once('=') else {
        let right = "write --set key=value, such as --set rx_entries=128";
        return Err(ConfigError::new(&place, "no `=` in it", right));
    };
    parse_setting(name.trim(), value.trim(), &place, catalogue)
}

/// The key `name` with the value that `text` says, set at `place`. Names and paths need no quotes.
///
/// # Errors
/// There is no such key, or it does not take the value.
pub fn parse_setting(name: &str, text: &str, place: &Place, catalogue: &Catalogue) -> Result<Assignment, ConfigError> {
    let key = known_key(name, place, catalogue)?;
    let node = match parse_value(text) {
        Some(node @ Node::Text(_)) => node,
        Some(node) if !key.takes_text() => node,
        _ => Node::Text(text.to_string()),
    };
    Assignment::new(key, &Located { place: place.clone(), node }, catalogue)
}

/// Adds `set` to `all`. A key that is set twice is an error: no order says which of the two counts.
///
/// # Errors
/// `all` has another value for the key.
pub fn push_once(all: &mut Vec<Assignment>, set: Assignment) -> Result<(), ConfigError> {
    let same = |other: &&Assignment| other.key.name == set.key.name && other.value != set.value;
    if let Some(other) = all.iter().find(same) {
        let wrong = format!("`{}` is set by {}, too", set.key.name, other.place);
        return Err(ConfigError::new(&set.place, wrong, "keep one of the two"));
    }
    all.push(set);
    Ok(())
}
