//! What should not be left behind: work markers, paths of one machine, crates without a word.

use crate::Finding;
use crate::scan::{is_word, line_of, words};
use crate::tree::File;

/// Markers, put together here so that this file does not find itself.
const MARKERS: [&str; 4] =
    [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Beginnings of paths that exist only on somebody's machine.
const MACHINE_PATHS: [&str; 2] = [concat!("/", "work/"), concat!("/", "root/")];

/// Markers of unfinished work in Rust files, comments included.
pub fn markers(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for marker in MARKERS {
            for at in words(&file.text, marker) {
                let message = format!("leftover `{marker}`: finish it, or return a typed error and open an issue");
                findings.push(Finding { file: file.path.clone(), line: line_of(&file.text, at), message });
            }
        }
    }
    findings
}

/// Absolute paths of one machine, in any text file.
pub fn machine_paths(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for path in MACHINE_PATHS {
            for (at, _) in file.text.match_indices(path) {
                // `a/work/` is a relative path or part of an address.
                let before = at.checked_sub(1).map(|index| file.text.as_bytes()[index]);
                if before.is_some_and(|byte| is_word(byte) || matches!(byte, b'.' | b'}' | b')')) {
                    continue;
                }
                let message = format!("`{path}` exists on one machine only: use a path relative to the repository");
                findings.push(Finding { file: file.path.clone(), line: line_of(&file.text, at), message });
            }
        }
    }
    findings
}

/// Lines that a merge left, in any text file.
pub fn conflicts(files: &[File]) -> Vec<Finding> {
    let is_left = |line: &str| {
        // A row of `=` alone is also how Markdown underlines a title, so the outer two have to do.
        ["<", ">"].iter().any(|sign| line.starts_with(&format!("{} ", sign.repeat(7))))
    };
    let of = |file: &File| -> Vec<Finding> {
        let lines = (1..).zip(file.text.lines());
        let left = lines.filter(|(_, line)| is_left(line));
        left.map(|(line, _)| Finding {
            file: file.path.clone(),
            line,
            message: "a merge left its mark here: decide which side stays".into(),
        })
        .collect()
    };
    files.iter().flat_map(of).collect()
}

/// Crates whose root does not open with a sentence that says what they are.
pub fn crate_docs(files: &[File]) -> Vec<Finding> {
    let root = |file: &&File| {
        file.crate_name().is_some_and(|name| {
            file.path == format!("crates/{name}/src/lib.rs") || file.path == format!("crates/{name}/src/main.rs")
        })
    };
    let says_something = |file: &&File| {
        let first = file.text.lines().next().unwrap_or("");
        first.strip_prefix("//! ").is_some_and(|doc| doc.split_whitespace().count() >= 3)
    };
    files
        .iter()
        .filter(root)
        .filter(|file| !says_something(file))
        .map(|file| Finding {
            file: file.path.clone(),
            line: 1,
            message: "the crate has no doc: open with `//!` and a sentence that says what it is".into(),
        })
        .collect()
}
