//! Source files of a program, and places in them.

use std::sync::Arc;

use codespan_reporting::files::SimpleFiles;

/// A name of a program; cheap to copy.
pub type Name = Arc<str>;

/// A range of bytes of one source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Index of the file in the [`SourceMap`].
    pub file: u32,
    /// First byte.
    pub low: u32,
    /// Byte after the last one.
    pub high: u32,
}

impl Span {
    /// From the start of `self` to the end of `other`; `self` where they are in different files.
    pub fn to(self, other: Span) -> Span {
        if self.file == other.file && other.high >= self.low { Span { high: other.high, ..self } } else { self }
    }
}

/// All files that a compilation read.
#[derive(Clone, Debug)]
pub struct SourceMap {
    pub(crate) files: SimpleFiles<String, Arc<str>>,
    count: u32,
}

impl Default for SourceMap {
    fn default() -> SourceMap {
        SourceMap { files: SimpleFiles::new(), count: 0 }
    }
}

impl SourceMap {
    /// Adds a file and returns its index.
    pub fn add(&mut self, name: String, text: Arc<str>) -> u32 {
        self.files.add(name, text);
        self.count += 1;
        self.count - 1
    }

    /// The text of a file.
    pub fn text(&self, file: u32) -> Arc<str> {
        self.files.get(file as usize).map_or_else(|_| Arc::from(""), |file| file.source().clone())
    }

    /// The name of a file as it was given or included.
    pub fn name(&self, file: u32) -> &str {
        self.files.get(file as usize).map_or("", |file| file.name())
    }

    /// The text of a place.
    pub fn slice(&self, span: Span) -> String {
        self.text(span.file).get(span.low as usize..span.high as usize).unwrap_or("").to_owned()
    }

    /// File, line and column (both from 1) of a place.
    pub fn position(&self, span: Span) -> Position {
        let text = self.text(span.file);
        let before = text.get(..span.low as usize).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Position { file: self.name(span.file).to_owned(), line, column }
    }
}

/// A place as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// File as it was given or included.
    pub file: String,
    /// Line from 1.
    pub line: usize,
    /// Column from 1.
    pub column: usize,
}
