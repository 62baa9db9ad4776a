//! Errors that say where they are and what would be right.

use std::path::Path;

use thiserror::Error;

use crate::{Place, nearest};

/// Largest scenario or machine file we read, in bytes; a larger one is the wrong file.
pub const LARGEST_FILE_BYTES: u64 = 1 << 20;

/// No live run takes longer: four months. Times are counted in picoseconds, and end after seven.
pub const SECONDS_MAX: f64 = 1e7;

/// Something that a scenario file, a machine file or `--set` says and cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{place}: {wrong}; {right}")]
pub struct ConfigError {
    /// Where it stands.
    pub place: Place,
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl ConfigError {
    /// An error at `place`: what is wrong there, and what would be right.
    pub fn new(place: &Place, wrong: impl Into<String>, right: impl Into<String>) -> ConfigError {
        ConfigError { place: place.clone(), wrong: wrong.into(), right: right.into() }
    }

    /// An unknown name at `place`; proposes the nearest of `known`, or lists them.
    pub fn unknown(place: &Place, what: &str, name: &str, known: &[&str]) -> ConfigError {
        let right = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "none is known".to_string(),
            None => format!("known: {}", known.join(", ")),
        };
        ConfigError::new(place, format!("unknown {what} `{}`", shorten(name)), right)
    }
}

/// `text` cut to a length that fits a line of an error.
pub fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// Reads a scenario or machine file.
pub fn read_text(file: &Path) -> Result<String, ConfigError> {
    let place = Place::file(file);
    let meta = std::fs::metadata(file)
        .map_err(|error| ConfigError::new(&place, format!("cannot be read: {error}"), "name an existing TOML file"))?;
    if !meta.is_file() || meta.len() > LARGEST_FILE_BYTES {
        let wrong = format!("is no file of at most {LARGEST_FILE_BYTES} bytes");
        return Err(ConfigError::new(&place, wrong, "name a TOML file"));
    }
    std::fs::read_to_string(file)
        .map_err(|error| ConfigError::new(&place, format!("cannot be read: {error}"), "name a TOML file in UTF-8"))
}

/// Options that do not go together.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The keys concerned; the error points to the first of them that is set.
    pub keys: &'static [&'static str],
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

/// Whether a condition holds; `say` says what is wrong and what would be right where it does not.
///
/// # Errors
/// It does not hold.
pub fn ensure(
    holds: bool,
    keys: &'static [&'static str],
    say: impl FnOnce() -> (String, String),
) -> Result<(), Finding> {
    if holds {
        return Ok(());
    }
    let (wrong, right) = say();
    Err(Finding { keys, wrong, right })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_proposed_and_far_ones_are_listed() {
        let place = Place::argument("--set x");
        let known = ["rx_entries", "tx_entries", "app"];
        let error = ConfigError::unknown(&place, "key", "rx_entrys", &known);
        assert_eq!(error.to_string(), "--set x: unknown key `rx_entrys`; did you mean `rx_entries`?");
        let error = ConfigError::unknown(&place, "key", "zzz", &known);
        assert_eq!(error.right, "known: rx_entries, tx_entries, app");
    }
}
