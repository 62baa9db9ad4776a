//! How a test says that it, or a part of it, is skipped.

use std::io::Write;

/// Says on standard error that something is skipped, and why. Not by a macro: what these print in a
/// test that passes, nobody sees.
pub fn skipped(why: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
