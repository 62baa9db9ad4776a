//! Finished points on disk, so that a run that was stopped continues where it stopped.
//!
//! ```text
//! machine file, settings, files that they name, seed ───── Keys ────┐
//! the program itself ── program_hash ─────────────────────────────┐ │
//!                                                                 ▼ ▼
//!                                    points/<key>.<program>.json: header with checksum, then the point
//! ```
//!
//! A point is found by everything that determines it. A file of another program, a file that was cut short and a file that
//! was changed are recognised, left alone, and the point runs again.

mod key;
mod store;

pub use key::{Keys, hash_of, program_hash, program_is, sha256};
pub use store::{Found, KeptError, Store};
