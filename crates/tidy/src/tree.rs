//! The repository's files, and which of them are tests.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::scan::{code_only, test_ranges, words};

/// What holds products or test input, not source.
const SKIPPED: [&str; 6] = [".git", "target", "out", "artifacts", "corpus", "node_modules"];

/// The repository cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {cause}; run the tests from a complete checkout")]
pub struct TreeError {
    path: PathBuf,
    cause: std::io::Error,
}

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the root, with forward slashes.
    pub path: String,
    /// All of it.
    pub text: String,
    /// As [`code_only`] leaves it; empty unless a Rust file.
    pub code: String,
    /// Whole file is test, bench or example code.
    pub is_test: bool,
    /// Byte ranges of test code in other files.
    pub test_ranges: Vec<Range<usize>>,
}

impl File {
    /// A file from its path and text.
    pub fn new(path: &str, text: &str) -> File {
        let code = if path.ends_with(".rs") { code_only(text) } else { String::new() };
        let test_ranges = test_ranges(&code);
        let is_test =
            path.split('/').any(|part| matches!(part, "tests" | "suite" | "benches" | "examples" | "tests.rs"))
                || path.ends_with("_tests.rs");
        File { path: path.into(), text: text.into(), code, is_test, test_ranges }
    }

    /// Whether this is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether a byte offset lies in test code.
    pub fn in_test(&self, offset: usize) -> bool {
        self.is_test || self.test_ranges.iter().any(|range| range.contains(&offset))
    }

    /// The name of the crate's folder under `crates/`, if it is in one.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

/// All text files under `root`, sorted by path.
///
/// # Errors
/// When a folder or file cannot be read; files that are not UTF-8 are left out.
pub fn read_all(root: &Path) -> Result<Vec<File>, TreeError> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let failed = |cause| TreeError { path: folder.clone(), cause };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            // In a second work tree `.git` is a file.
            if SKIPPED.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).map_err(|cause| TreeError { path: path.clone(), cause })?;
            if let Ok(text) = String::from_utf8(bytes) {
                let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                files.push(File::new(&relative, &text));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    mark_test_modules(&mut files);
    Ok(files)
}

/// Marks the files of modules that a parent declares with `#[cfg(test)] mod name;`.
pub fn mark_test_modules(files: &mut [File]) {
    let mut roots = BTreeSet::new();
    for file in files.iter() {
        let folder = match file.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder,
            _ => file.path.trim_end_matches(".rs"),
        };
        for range in &file.test_ranges {
            let item = &file.code[range.clone()];
            if let Some(name) = item.strip_suffix(';').and_then(declared_module) {
                roots.insert(format!("{folder}/{name}"));
            }
        }
    }
    for file in files {
        let stem = file.path.trim_end_matches(".rs");
        file.is_test |= roots.iter().any(|root| stem == root || stem.starts_with(&format!("{root}/")));
    }
}

fn declared_module(item: &str) -> Option<&str> {
    let at = words(item, "mod").next()?;
    Some(item[at + "mod".len()..].trim())
}
