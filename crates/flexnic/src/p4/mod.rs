//! P4-16 1.2.5: front end, IR, interpreter, JIT, architectures.

pub mod ast;
pub mod diagnostics;
mod include;
mod lexer;
mod parse;
mod preprocess;
pub mod source;
mod token;
pub mod check;
pub mod constant;
pub mod hir;
pub mod types;
pub mod compile;
