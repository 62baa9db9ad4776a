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
pub mod ir;
mod lower;
pub(crate) use lower::prefix_mask as lower_prefix_mask;
pub mod meter;
pub mod tables;
mod bits;
mod hash;
pub mod types;
pub mod compile;
mod machine;
mod interpret;
mod externs;
pub mod trace;
mod arch;
mod jit;
mod names;
mod pipeline;

pub use compile::Options;
pub use diagnostics::Diagnostics;
pub use jit::JitError;
pub use pipeline::{Counters, Engine, Output, OwnedOutput, PACKET_BYTES_MAX, PacketGone, Pipeline, Program, Session, Switch};
pub mod stf;
pub mod entries;
