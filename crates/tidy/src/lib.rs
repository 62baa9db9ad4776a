//! Checks that keep the house in shape; `tests/house.rs` runs them over the repository.
//!
//! Each check is a function from the source files to its findings, so that its own unit
//! tests can show that it fails when it should. What is allowed in spite of a rule stands
//! in [`exceptions`], by name. [`figures`] counts what a change of the house is to change.
//! Nothing here is part of the simulator.

pub mod banned;
pub mod exceptions;
pub mod figures;
pub mod layers;
pub mod leftovers;
pub mod lengths;
pub mod scan;
pub mod tree;

use std::fmt;

/// One broken rule: where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path from the repository's root, with forward slashes.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong and the remedy.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file, self.line, self.message)
    }
}
