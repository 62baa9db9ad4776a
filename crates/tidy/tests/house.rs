//! The checks, run over the repository.

use std::path::Path;
use std::sync::LazyLock;

use nicforge_tidy::tree::{File, read_all};
use nicforge_tidy::{Finding, banned, exceptions, layers, leftovers, lengths};

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    // Cargo says at run time where the package is. A copied build directory then checks the tree that it is run in.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&package).join("../..");
    read_all(&root).unwrap_or_else(|error| panic!("{error}"))
});

#[track_caller]
fn expect_none(findings: Vec<Finding>) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn the_repository_is_found() {
    assert!(FILES.iter().any(|file| file.path == "Cargo.toml"));
    assert!(FILES.iter().any(|file| file.path == "crates/tidy/tests/house.rs" && file.is_test));
}

#[test]
fn files_are_short() {
    expect_none(lengths::files(&FILES, exceptions::LONG_FILES));
}

#[test]
fn functions_are_short() {
    expect_none(lengths::function_lengths(&FILES, exceptions::LONG_FUNCTIONS));
}

#[test]
fn dependencies_point_one_way() {
    expect_none(layers::directions(&FILES));
}

#[test]
fn only_the_lab_knows_the_grounds() {
    expect_none(layers::grounds(&FILES));
}

#[test]
fn halves_see_one_contract() {
    expect_none(layers::halves(&FILES));
}

#[test]
fn no_banned_calls() {
    expect_none(banned::calls(&FILES));
}

#[test]
fn no_hashing_on_the_simulated_side() {
    expect_none(banned::hashing(&FILES, exceptions::HASHED));
}

#[test]
fn no_markers_left() {
    expect_none(leftovers::markers(&FILES));
}

#[test]
fn no_machine_paths() {
    expect_none(leftovers::machine_paths(&FILES));
}

#[test]
fn no_merge_left_its_marks() {
    expect_none(leftovers::conflicts(&FILES));
}

#[test]
fn crates_say_what_they_are() {
    expect_none(leftovers::crate_docs(&FILES));
}

/// The table of docs/frame.md: each function is in the file that stands beside it, and there are at most 15.
#[test]
fn the_path_of_a_frame_is_where_it_is_said() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/frame.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().trim_matches('`').to_string()).collect::<Vec<_>>();
    let is_step = |cells: &Vec<String>| cells.get(1).is_some_and(|number| number.parse::<usize>().is_ok());
    let steps: Vec<Vec<String>> = page.lines().map(cells).filter(is_step).collect();
    assert!((10..=15).contains(&steps.len()), "{} steps", steps.len());
    for step in steps {
        let (function, path) = (&step[2], &step[3]);
        let file = FILES.iter().find(|file| file.path == *path);
        let has = |start: String| file.is_some_and(|file| file.code.contains(&start));
        assert!(has(format!("fn {function}(")) || has(format!("fn {function}<")), "{path} has no `{function}`");
    }
}
