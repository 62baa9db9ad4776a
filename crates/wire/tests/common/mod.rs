//! What several test files need: the shared data, and hexadecimal.
#![allow(dead_code)]

pub mod exercise;
pub mod skip;

use std::path::PathBuf;

use skip::skipped;

/// A path in the shared data folder beside the repository, or `None`, with a printed line that
/// says so, when it is not there.
pub fn shared_data(path: &str) -> Option<PathBuf> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let full = data.join(path);
    if !full.exists() {
        skipped(&format!("../shared/data/{path} is not there"));
        return None;
    }
    Some(full)
}

/// A TOML file in the shared data folder.
pub fn shared_toml(path: &str) -> Option<toml::Table> {
    let text = std::fs::read_to_string(shared_data(path)?).expect("a readable file");
    Some(text.parse().expect("valid TOML"))
}

/// The bytes that a string of hexadecimal digits says.
pub fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}
