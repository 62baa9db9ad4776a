//! What fuzzing does with an input: shared by the fuzz target, the seeds and the properties.
#![allow(dead_code)]

use std::path::Path;
use std::sync::LazyLock;

use nicforge_lab::machine::{Machine, parse_machine};
use nicforge_lab::scenario::{MOST_POINTS, parse_override, parse_scenario};
use nicforge_lab::settings::Catalogue;
use nicforge_options::ConfigError;

/// Parsed once: it is longer than most inputs.
static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("xeon.toml")).expect("the shipped machine")
});

/// Points that one input may cost; more would only be slow.
const FEW_POINTS: usize = 50;

/// Takes `data` for a scenario file, a machine file, a live run's file and arguments of `--set`.
pub fn scenarios(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines().take(FEW_POINTS) {
        let _ = parse_override(line, &Catalogue::shipped());
    }
    if let Err(error) = parse_machine(&text, Path::new("fuzz.toml")) {
        says_where_and_what(&error);
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = nicforge_lab::live::parse_live(&text, Path::new("fuzz.toml"), &Catalogue::shipped()) {
        says_where_and_what(&error);
    }
    let scenario = match parse_scenario(&text, Path::new("fuzz.toml"), &Catalogue::shipped()) {
        Ok(scenario) => scenario,
        Err(error) => return says_where_and_what(&error),
    };
    let swept: usize = scenario.sweep.iter().map(|sweep| sweep.values.len()).product();
    let count = swept * scenario.variants.len().max(1);
    assert!(count <= MOST_POINTS);
    if count > FEW_POINTS {
        return;
    }
    match scenario.expand(&MACHINE, &[], &Catalogue::shipped()) {
        Ok(points) => {
            assert_eq!(points.len(), count);
            assert!(points.iter().all(|point| point.settings.check(&MACHINE).is_ok()));
        }
        Err(error) => says_where_and_what(&error),
    }
}

fn says_where_and_what(error: &ConfigError) {
    assert!(error.to_string().starts_with("fuzz.toml"), "{error}");
    assert!(!error.wrong.is_empty() && !error.right.is_empty(), "{error}");
    assert!(error.to_string().lines().count() == 1, "{error}");
}
