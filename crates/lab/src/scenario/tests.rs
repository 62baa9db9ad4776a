//! Scenario files: what they expand to, and every way in which one can be wrong.

mod bad;
mod expansion;
mod sampling;

use std::path::Path;

use super::*;
use crate::machine::{Machine, parse_machine};
use crate::settings::Catalogue;

fn machine() -> Machine {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap()
}

/// A scenario with a header of three lines and `rest` from line 4 on.
fn with_header(rest: &str) -> String {
    format!("[scenario]\nname = \"s\"\nmachine = \"xeon-4216-cx5\"\n{rest}")
}

fn parse(text: &str) -> Result<Scenario, ConfigError> {
    parse_scenario(text, Path::new("s.toml"), &Catalogue::shipped())
}

/// The points of a scenario with `--set` of each of `overrides`.
fn points(rest: &str, overrides: &[&str]) -> Result<Vec<Point>, ConfigError> {
    let overrides: Result<Vec<_>, _> =
        overrides.iter().map(|text| parse_override(text, &Catalogue::shipped())).collect();
    parse(&with_header(rest))?.expand(&machine(), &overrides?, &Catalogue::shipped())
}
