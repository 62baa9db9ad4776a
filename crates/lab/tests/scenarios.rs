//! No text makes the parsers of scenarios and machines panic, or give an error without a place.

#[path = "common/exercise.rs"]
mod exercise;

use std::path::{Path, PathBuf};

use proptest::prelude::*;

/// Every TOML file under `folder` of the repository.
fn toml_files(folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<PathBuf> = vec![root.join(folder)];
    let mut texts = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    texts.sort();
    texts
}

#[test]
fn scenario_seeds() {
    let seeds = toml_files("fuzz/seeds/scenarios");
    assert!(seeds.len() >= 5, "seeds of scenarios are missing");
    for seed in seeds {
        exercise::scenarios(seed.as_bytes());
    }
}

#[test]
fn every_shipped_scenario_parses() {
    let mut interfaces = nicforge_interfaces::registry::names();
    interfaces.extend(nicforge_interfaces::kernel::registry::names());
    let names = nicforge_lab::settings::Names {
        interfaces: &interfaces,
        apps: nicforge_apps::names(),
    };
    for text in toml_files("scenarios") {
        let file = Path::new("s.toml");
        nicforge_lab::scenario::parse_scenario(&text, file, &names).unwrap();
    }
}

/// Pieces that mean something in a scenario file.
const PIECES: [&str; 18] = [
    "[sweep]\n",
    "[[variant]]\n",
    "[settings]\n",
    "[scenario]\n",
    "= [",
    "]",
    "\"",
    "'''",
    "-1",
    "nan",
    "1e999",
    "9223372036854775807",
    "{ a = 1 }",
    "\u{0}",
    "µ",
    "\r\n",
    "a.b.c",
    "cores = [1, 2]\n",
];

proptest! {
    #[test]
    fn mutated_files_never_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..12usize, 0..PIECES.len()),
            1..6,
        ),
    ) {
        let mut files = toml_files("scenarios");
        files.extend(toml_files("machines"));
        let mut text: Vec<char> = which.get(&files).chars().collect();
        for (at, removed, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        exercise::scenarios(String::from_iter(text).as_bytes());
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise::scenarios(&data);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        exercise::scenarios(text.as_bytes());
    }
}
