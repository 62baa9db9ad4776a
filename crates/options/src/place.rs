//! Where something stands: a line of a file, a whole file, or a command-line argument.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Where something stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A line and column, both from 1, the column in characters.
    Line {
        /// The file, as it was named.
        file: Arc<Path>,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// A file as a whole.
    File(Arc<Path>),
    /// A command-line argument, as it was given.
    Argument(String),
}

impl Place {
    /// A file as a whole.
    pub fn file(file: &Path) -> Place {
        Place::File(file.into())
    }

    /// A command-line argument.
    pub fn argument(text: &str) -> Place {
        Place::Argument(text.to_string())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { file, line, column } => {
                write!(f, "{}:{line}:{column}", file.display())
            }
            Place::File(file) => write!(f, "{}", file.display()),
            Place::Argument(text) => write!(f, "{text}"),
        }
    }
}

/// Turns byte offsets of one text into places.
pub struct Places<'a> {
    file: Arc<Path>,
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Places<'a> {
    /// Of `text`, which stands in `file`.
    pub fn new(text: &'a str, file: &Path) -> Places<'a> {
        let after_newline = text.match_indices('\n').map(|(at, _)| at + 1);
        Places { file: file.into(), text, line_starts: std::iter::once(0).chain(after_newline).collect() }
    }

    /// The place where `span` begins; the file as a whole without one.
    pub fn at(&self, span: Option<Range<usize>>) -> Place {
        let Some(span) = span else {
            return Place::File(self.file.clone());
        };
        let line = self.line_starts.partition_point(|start| *start <= span.start);
        let line_start = self.line_starts[line - 1];
        let before = self.text.get(line_start..span.start).unwrap_or("");
        Place::Line { file: self.file.clone(), line, column: before.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns_in_characters() {
        let places = Places::new("a\nµb = 1\n", Path::new("x.toml"));
        assert_eq!(places.at(Some(0..1)).to_string(), "x.toml:1:1");
        assert_eq!(places.at(Some(4..5)).to_string(), "x.toml:2:2");
        assert_eq!(places.at(Some(10..10)).to_string(), "x.toml:3:1");
        assert_eq!(places.at(None).to_string(), "x.toml");
    }
}
