//! From source text to a checked program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check;
use super::diagnostics::{Diagnostics, Reporter};
use super::hir::Checked;
use super::include::{self, Included};
use super::parse;
use super::preprocess::Preprocessor;
use super::source::SourceMap;

/// How to compile.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders in which `#include` looks, in order.
    pub include: Vec<PathBuf>,
    /// Macros: `NAME` or `NAME=VALUE`.
    pub define: Vec<String>,
}

/// Stack of the thread that compiles: nesting of the source is bounded, so this is enough.
const STACK_BYTES: usize = 256 << 20;

/// A checked program and the warnings about it.
pub struct FrontEnd {
    /// The program.
    pub checked: Checked,
    /// Warnings.
    pub warnings: Diagnostics,
}

/// Reads and checks a file.
pub fn check_file(path: &Path, options: &Options) -> Result<FrontEnd, Diagnostics> {
    match include::read(path) {
        Ok(main) => check_included(main, options),
        Err(why) => {
            let mut sources = SourceMap::default();
            let file = sources.add(path.display().to_string(), Arc::from(""));
            let mut reporter = Reporter::default();
            reporter.error(super::source::Span { file, low: 0, high: 0 }, why);
            Err(Diagnostics { problems: reporter.problems, sources: Arc::new(sources) })
        }
    }
}

/// Checks a text; `name` stands in messages.
pub fn check_text(name: &str, text: &str, options: &Options) -> Result<FrontEnd, Diagnostics> {
    check_included(Included { name: name.to_owned(), text: Arc::from(text), folder: None }, options)
}

fn check_included(main: Included, options: &Options) -> Result<FrontEnd, Diagnostics> {
    on_large_stack(|| front_end(main, options)).unwrap_or_else(|error| {
        let mut reporter = Reporter::default();
        let mut sources = SourceMap::default();
        let file = sources.add("<compiler>".to_owned(), Arc::from(""));
        reporter.error(super::source::Span { file, low: 0, high: 0 }, format!("no thread for the compiler: {error}"));
        Err(Diagnostics { problems: reporter.problems, sources: Arc::new(sources) })
    })
}

/// Runs work that recurses as deep as the source nests.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn front_end(main: Included, options: &Options) -> Result<FrontEnd, Diagnostics> {
    let (mut sources, mut reporter) = (SourceMap::default(), Reporter::default());
    let mut preprocessor = Preprocessor::new(&mut sources, &mut reporter, &options.include);
    for definition in &options.define {
        preprocessor.define(definition);
    }
    let tokens = preprocessor.run(main);
    let program = parse::program(&tokens, &mut reporter);
    // After a syntax error a declaration is missing, and each of its uses would be reported as well.
    let checked = if reporter.has_errors() { Checked::default() } else { check::check(&program, &mut reporter) };
    let failed = reporter.has_errors();
    let diagnostics = Diagnostics { problems: reporter.problems, sources: Arc::new(sources) };
    if failed { Err(diagnostics) } else { Ok(FrontEnd { checked, warnings: diagnostics }) }
}
