//! STF: files of packets and what is expected of them, as p4c's tests have them.

mod parse;
mod run;

pub use parse::{Command, KeyText, StfError, parse};
pub use run::{Report, run_file, run_text};
