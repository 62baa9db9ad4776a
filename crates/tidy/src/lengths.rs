//! Files of at most 400 lines and functions of at most 70, tests included.

use crate::Finding;
use crate::exceptions::SLACK_LINES;
use crate::scan::{is_word, item_end, line_of, words};
use crate::tree::File;

/// Lines of a file at most.
pub const FILE_LINES: usize = 400;
/// Lines of a function at most, from `fn` to its closing brace.
pub const FUNCTION_LINES: usize = 70;

/// A function found in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of its `fn`.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub lines: usize,
}

/// All functions with a body, nested ones too. `code` as `scan::code_only` leaves it.
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for at in words(code, "fn") {
        let rest = code[at + "fn".len()..].trim_start();
        let name: String = rest.chars().take_while(|c| is_word(*c as u8) || "$#".contains(*c)).collect();
        if name.is_empty() {
            continue; // a function pointer's type
        }
        let end = item_end(code, at);
        if code[..end].ends_with('}') {
            let line = line_of(code, at);
            found.push(Function { name, line, lines: line_of(code, end) + 1 - line });
        }
    }
    found
}

/// Files over the limit and not in `allowed`, and entries of `allowed` to be lowered.
pub fn files(files: &[File], allowed: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let allowance = allowed.iter().find(|(path, _)| *path == file.path).map(|entry| entry.1);
        let lines = file.text.lines().count();
        let what = format!("file of {lines} lines");
        findings.extend(judge(&what, lines, FILE_LINES, allowance).map(|message| Finding {
            file: file.path.clone(),
            line: lines,
            message: message + "; split it so that each file says one thing",
        }));
    }
    for (path, _) in allowed.iter().filter(|(path, _)| !files.iter().any(|file| file.path == *path)) {
        findings.push(stale(path, "LONG_FILES"));
    }
    findings
}

/// Functions over the limit and not in `allowed`, and entries of `allowed` to be lowered.
pub fn function_lengths(files: &[File], allowed: &[(&str, &str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = vec![false; allowed.len()];
    for file in files.iter().filter(|file| file.is_rust()) {
        for function in functions(&file.code) {
            let entry = allowed.iter().position(|e| e.0 == file.path && e.1 == function.name);
            if let Some(index) = entry {
                used[index] = true;
            }
            let what = format!("function `{}` of {} lines", function.name, function.lines);
            let allowance = entry.map(|index| allowed[index].2);
            findings.extend(judge(&what, function.lines, FUNCTION_LINES, allowance).map(|message| Finding {
                file: file.path.clone(),
                line: function.line,
                message: message + "; take steps out into functions named after what they do",
            }));
        }
    }
    for (entry, _) in allowed.iter().zip(used).filter(|(_, used)| !used) {
        findings.push(stale(entry.0, "LONG_FUNCTIONS"));
    }
    findings
}

fn judge(what: &str, lines: usize, limit: usize, allowance: Option<usize>) -> Option<String> {
    let Some(allowance) = allowance else {
        return (lines > limit).then(|| format!("{what}, the limit is {limit}"));
    };
    if lines > allowance {
        Some(format!("{what} grew over its exception of {allowance}, which may only shrink"))
    } else if lines <= limit {
        Some(format!("{what} needs no exception: delete its entry in crates/tidy/src/exceptions.rs"))
    } else if lines + SLACK_LINES < allowance {
        Some(format!("{what}: lower its exception of {allowance} in crates/tidy/src/exceptions.rs to {lines}"))
    } else {
        None
    }
}

fn stale(path: &str, table: &str) -> Finding {
    let message = format!("{table} in crates/tidy/src/exceptions.rs names this, but it is gone: delete the entry");
    Finding { file: path.into(), line: 1, message }
}
