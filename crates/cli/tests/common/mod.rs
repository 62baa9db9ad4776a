//! Runs the command in a folder of its own.
#![allow(dead_code)] // Each test binary uses a part of this.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder with the shipped machines and scenarios, as a user has them.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scenarios = ["scenarios", "scenarios/calibration", "scenarios/paper", "scenarios/captures"];
    for part in ["machines", "examples/p4", "examples/p4/flexnic"].into_iter().chain(scenarios) {
        std::fs::create_dir_all(folder.path().join(part)).unwrap();
        for entry in std::fs::read_dir(root.join(part)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                let copy = folder.path().join(part).join(entry.file_name());
                std::fs::copy(entry.path(), copy).unwrap();
            }
        }
    }
    folder
}

/// `nicforge` with `arguments`, started in `folder`.
pub fn nicforge(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    command.args(arguments).current_dir(folder.path());
    command.output().unwrap()
}

/// What the command wrote to standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What the command wrote to standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Every file under `folder`, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        found.push(next.display().to_string());
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path.display().to_string()) }
        }
    }
    found.sort();
    found
}
