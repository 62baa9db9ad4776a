//! Mistakes of a program: place, line, and what would be right.

use std::fmt;
use std::sync::Arc;

use codespan_reporting::diagnostic::{Diagnostic, Label, LabelStyle};
use codespan_reporting::term::{self, termcolor::Buffer};

use super::source::{Position, SourceMap, Span};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program runs, but probably does not do what its author meant.
    Warning,
    /// The program is refused.
    Error,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// The mistake.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Other places that matter, each with what is there.
    pub related: Vec<(Span, String)>,
    /// The remedy.
    pub help: Option<String>,
}

/// All findings of a compilation with the sources that they point into.
#[derive(Clone, Default)]
pub struct Diagnostics {
    /// In the order in which the compiler met them.
    pub problems: Vec<Problem>,
    /// Files that the spans point into.
    pub sources: Arc<SourceMap>,
}

impl Diagnostics {
    /// Number of errors.
    pub fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    /// File, line and column of a finding.
    pub fn position(&self, problem: &Problem) -> Position {
        self.sources.position(problem.span)
    }

    /// All findings with their source lines; `color` adds terminal colours.
    pub fn render(&self, color: bool) -> String {
        let mut buffer = if color { Buffer::ansi() } else { Buffer::no_color() };
        let config = term::Config::default();
        for problem in &self.problems {
            let diagnostic = to_codespan(problem);
            if term::emit(&mut buffer, &config, &self.sources.files, &diagnostic).is_err() {
                // A place that the renderer cannot show still gets its message.
                return self.problems.iter().map(|problem| format!("{}\n", problem.message)).collect();
            }
        }
        String::from_utf8_lossy(buffer.as_slice()).into_owned()
    }
}

fn to_codespan(problem: &Problem) -> Diagnostic<usize> {
    let range = |span: Span| span.low as usize..span.high as usize;
    let base = match problem.severity {
        Severity::Error => Diagnostic::error(),
        Severity::Warning => Diagnostic::warning(),
    };
    let mut labels = vec![Label::new(LabelStyle::Primary, problem.span.file as usize, range(problem.span))];
    for (span, text) in &problem.related {
        labels.push(Label::new(LabelStyle::Secondary, span.file as usize, range(*span)).with_message(text));
    }
    let notes = problem.help.iter().map(|help| format!("help: {help}")).collect();
    base.with_message(&problem.message).with_labels(labels).with_notes(notes)
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.render(false))
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// Collects findings during a compilation; the number of errors is bounded.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    pub problems: Vec<Problem>,
}

/// More errors than this are not worth reading.
const ERRORS_MAX: usize = 50;

impl Reporter {
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Problem {
        self.push(Severity::Error, span, message.into())
    }

    pub fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Problem {
        self.push(Severity::Warning, span, message.into())
    }

    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    fn push(&mut self, severity: Severity, span: Span, message: String) -> &mut Problem {
        let known = self.problems.iter().position(|old| old.span == span && old.message == message);
        let at = match known {
            Some(at) => at,
            None if self.problems.len() >= ERRORS_MAX && severity == Severity::Warning => self.problems.len() - 1,
            None => {
                if self.problems.len() > ERRORS_MAX {
                    self.problems.truncate(ERRORS_MAX);
                }
                self.problems.push(Problem { severity, message, span, related: Vec::new(), help: None });
                self.problems.len() - 1
            }
        };
        &mut self.problems[at]
    }
}

impl Problem {
    /// Adds what would be right.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Problem {
        self.help.get_or_insert(help.into());
        self
    }

    /// Adds another place that matters.
    pub fn see(&mut self, span: Span, what: impl Into<String>) -> &mut Problem {
        if self.related.is_empty() {
            self.related.push((span, what.into()));
        }
        self
    }
}
