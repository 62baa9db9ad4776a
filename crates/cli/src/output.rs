//! Standard output, standard error, and text in aligned columns.

use std::io::Write;
use std::path::Path;

use crate::error::CliError;

/// Writes `text` to standard output.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|cause| CliError::Write { what: "standard output".to_string(), cause })
}

/// Prints what was done and what was counted.
#[cfg(target_os = "linux")]
pub fn show_counters(done: &str, counters: &[(String, u64)]) -> Result<(), CliError> {
    let lines = counters.iter().map(|(name, count)| format!("{name:<32} {count}\n"));
    print(&format!("{done}\n{}", lines.collect::<String>()))
}

/// Writes `text` to standard error. Where nobody reads it (any more) what we do goes on, and ends as it
/// would have.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes what is no error, and said all the same, to standard error: also where all else is to be
/// quiet, as notes say how far results are to be trusted.
pub fn print_notes(notes: &[String]) {
    for note in notes {
        tell(&format!("note: {note}\n"));
    }
}

/// `text` as a shell takes it for one word.
pub fn word(text: &str) -> String {
    // Only a zero byte cannot be quoted, and no argument has one.
    shlex::try_quote(text).map_or_else(|_| text.to_string(), |word| word.into_owned())
}

/// The same for a path.
pub fn path_word(path: &Path) -> String {
    word(&path.display().to_string())
}

/// Rows as lines with aligned columns, two spaces apart and indented by two.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("  {cell:<width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
