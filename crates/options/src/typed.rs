//! A TOML text as typed structs by serde, with errors that know their place.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::place::Places;
use crate::{ConfigError, Place, shorten};

/// Why a text does not have the form of its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Misfit {
    /// A key that its table does not have, and those that it has.
    Unknown(String, Vec<String>),
    /// A key that its table must have.
    Missing(String),
    /// A value of another type, and what is expected there.
    Type(String, String),
    /// No TOML.
    Syntax(String),
}

/// A [`Misfit`] and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedError {
    /// The key or the value; of a missing key its table, which is the first line for the file itself.
    pub place: Place,
    /// What is wrong there.
    pub misfit: Misfit,
}

impl TypedError {
    /// The error with a general remedy.
    pub fn into_config(self) -> ConfigError {
        let place = &self.place;
        match self.misfit {
            Misfit::Unknown(name, known) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                ConfigError::unknown(place, "key", &name, &known)
            }
            Misfit::Missing(name) => ConfigError::new(place, format!("`{name}` is missing"), format!("add `{name}`")),
            Misfit::Type(wrong, right) => ConfigError::new(place, wrong, format!("write {right}")),
            Misfit::Syntax(wrong) => {
                let right = if wrong.contains("duplicate key") {
                    "a key stands once in its table: remove one of the two"
                } else {
                    "write TOML: `key = value` lines under [section] headers, strings in quotes"
                };
                ConfigError::new(place, wrong, right)
            }
        }
    }
}

/// Reads `text` as a `T`; `file` is for the places of errors.
///
/// # Errors
/// The text is no TOML, or does not have the form of `T`.
pub fn parse_typed<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, TypedError> {
    toml::from_str(text).map_err(|error| {
        let place = Places::new(text, file).at(error.span());
        TypedError { place, misfit: misfit(error.message()) }
    })
}

/// What serde's `message` says; its forms are those of `serde::de::Error`.
fn misfit(message: &str) -> Misfit {
    let message = message.trim().replace('\n', ", ");
    let quoted: Vec<String> = message.split('`').skip(1).step_by(2).map(shorten).collect();
    if message.starts_with("unknown field") && !quoted.is_empty() {
        return Misfit::Unknown(quoted[0].clone(), quoted[1..].to_vec());
    }
    if message.starts_with("missing field") && !quoted.is_empty() {
        return Misfit::Missing(quoted[0].clone());
    }
    match message.split_once(", expected ") {
        Some((wrong, right)) if wrong.starts_with("invalid") => Misfit::Type(wrong.to_owned(), right.to_owned()),
        _ => Misfit::Syntax(message),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct File {
        core: Core,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Core {
        clock: f64,
        ways: Ways,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, expecting = "ways")]
    #[allow(dead_code)]
    struct Ways {
        count: u32,
    }

    fn error(text: &str) -> (String, Misfit) {
        let error = parse_typed::<File>(text, Path::new("x.toml")).unwrap_err();
        (error.place.to_string(), error.misfit)
    }

    #[test]
    fn errors_know_their_place_and_kind() {
        let (place, misfit) = error("[core]\nclock = 1.0\nways.count = 2\nclok = 3\n");
        assert_eq!(
            (place.as_str(), misfit),
            ("x.toml:4:1", Misfit::Unknown("clok".into(), ["clock", "ways"].map(str::to_owned).to_vec()))
        );
        let (place, misfit) = error("\n[core]\nclock = 1.0\n");
        assert_eq!((place.as_str(), misfit), ("x.toml:2:1", Misfit::Missing("ways".into())));
        let (place, misfit) = error("\n");
        assert_eq!((place.as_str(), misfit), ("x.toml:1:1", Misfit::Missing("core".into())));
        let (place, misfit) = error("[core]\nclock = 1.0\nways = 3\n");
        assert_eq!(place, "x.toml:3:8");
        assert!(matches!(misfit, Misfit::Type(_, right) if right == "ways"));
        let (place, misfit) = error("[core]\nclock = 1.0\nclock = 2.0\n");
        assert!(place.starts_with("x.toml:3:") && matches!(misfit, Misfit::Syntax(_)), "{place}");
    }
}
