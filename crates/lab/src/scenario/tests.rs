//! Scenario files: what they expand to, and every way in which one can be wrong.

mod bad;
mod expansion;

use std::path::Path;

use super::*;
use crate::machine::{Machine, parse_machine};

const NAMES: Names<'static> = Names {
    interfaces: &["emulated", "priv_ring", "sh_ring"],
    apps: &["l2fwd", "l3fwd", "nat", "lb", "synthetic", "counter", "kvs"],
};

fn machine() -> Machine {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap()
}

/// A scenario with a header of three lines and `rest` from line 4 on.
fn with_header(rest: &str) -> String {
    format!("[scenario]\nname = \"s\"\nmachine = \"xeon-4216-cx5\"\n{rest}")
}

fn parse(text: &str) -> Result<Scenario, ConfigError> {
    parse_scenario(text, Path::new("s.toml"), &NAMES)
}

/// The points of a scenario with `--set` of each of `overrides`.
fn points(rest: &str, overrides: &[&str]) -> Result<Vec<Point>, ConfigError> {
    let overrides: Result<Vec<_>, _> = overrides.iter().map(|text| parse_override(text, &NAMES)).collect();
    parse(&with_header(rest))?.expand(&machine(), &overrides?)
}
