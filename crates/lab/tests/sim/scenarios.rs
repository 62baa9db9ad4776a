//! No text makes the parsers of scenarios and machines panic, or give an error without a place. Shipped
//! scenarios take the interfaces that README.md says.

use std::path::{Path, PathBuf};

use nicforge_lab::machine::load_machine;
use nicforge_lab::scenario::{load_scenario, parse_override};
use nicforge_lab::settings::Catalogue;
use proptest::prelude::*;

use crate::common::exercise;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every TOML file under `folder` of the repository.
fn toml_paths(folder: &str) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    let mut paths = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                paths.push(path);
            }
        }
    }
    // Stage `p4` and interface `flexnic` come with the command, whose own tests check these.
    paths.retain(|path| {
        let with_p4 =
            ["p4-router.toml", "flexkvs.toml", "flexnic-steering.toml", "fx-04.toml", "fx-t2.toml", "tn-ext.toml"];
        !with_p4.iter().any(|name| path.ends_with(name))
    });
    paths.sort();
    paths
}

/// What stands in them.
fn toml_files(folder: &str) -> Vec<String> {
    let paths = toml_paths(folder).into_iter();
    paths.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Whether a scenario's interface is a P4 program, which only the command knows: its tests check the file.
fn is_of_a_program(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("interface") && line.contains("\"flexnic\""))
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
    for text in toml_files("scenarios").iter().filter(|text| !is_of_a_program(text)) {
        let file = Path::new("s.toml");
        nicforge_lab::scenario::parse_scenario(text, file, &Catalogue::shipped()).unwrap();
    }
}

#[test]
fn shipped_scenarios_take_the_interfaces_that_the_readme_says() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let row = |interface: &str| {
        let begins = format!("| `{interface}` |");
        readme.lines().find(|line| line.starts_with(&begins)).unwrap()
    };
    let of_one_server = nicforge_interfaces::Interfaces::shipped().of_rings();
    let (_, not_emulated) = row("emulated").split_once("except in").unwrap();
    for path in toml_paths("scenarios") {
        if is_of_a_program(&std::fs::read_to_string(&path).unwrap()) {
            continue;
        }
        let scenario = load_scenario(&path, &Catalogue::shipped()).unwrap();
        let machine = load_machine(&scenario.machine_file().unwrap()).unwrap();
        let file = path.file_name().unwrap().to_string_lossy();
        let whole = file.starts_with("int-") || ["integrated-cores.toml", "tcp-loss.toml"].contains(&&*file);
        for interface in &of_one_server {
            let set = format!("interface={interface}");
            let set = parse_override(&set, &Catalogue::shipped()).unwrap();
            let taken = scenario.expand(&machine, &[set], &Catalogue::shipped()).is_ok();
            let families = [("tn-", "paper/tn-*"), ("off-", "paper/off-*"), ("o-c", "calibration/o-c*")];
            let family = families.iter().find(|(begins, _)| file.starts_with(begins));
            let named = family.map_or_else(|| format!("{file}`"), |(_, all)| format!("`{all}.toml`"));
            let excepted = *interface == "emulated" && not_emulated.contains(&named);
            assert_eq!(taken, !whole && !excepted, "{file} {interface}");
        }
    }
    for whole in ["`integrated-cores.toml`", "`tcp-loss.toml`", "`paper/int-*.toml`"] {
        assert!(row("priv_ring").contains(whole));
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
