//! Workers that are processes of their own: they attach through a Unix socket, and may die.
//!
//! ```text
//!   worker process                       socket                       device's process
//!   attach(): hello ────────────────────────────────────────────────► keeper: finds it a place
//!             ◄─── invitation: blueprint, its number; region and bell as files ───┘
//!   lays out, brings its queues up: ready ──────────────────────────► keeper ─ order ─► device opens
//!   counts, now and then ───────────────────────────────────────────► keeper: the run's counts
//!             ✕ dies ── socket or process is gone ──────────────────► keeper ─ order ─► device closes,
//!                                                  begins the queues anew, takes the buffers back
//! ```
//!
//! Workers that share a ring with one that dies restart with it: they are asked to halt, the
//! ring is emptied, and they go on with fresh drivers and the tables that they had. A worker that does
//! not halt is ended.
//!
//! | file | what it says |
//! | --- | --- |
//! | message.rs | what goes over the socket |
//! | keeper.rs | the thread that has the socket, and the places of workers |
//! | place.rs | one worker's place: who works there, and what was counted |
//! | worker.rs | the other side: a worker's process |

mod keeper;
mod message;
mod place;
mod worker;

use std::path::PathBuf;

use nicforge_options::{Allowed, PATH, options};

pub use keeper::Keeper;
pub use worker::{Attached, attach};

options! {
    /// Worker processes.
    pub struct AttachOptions {
        /// The Unix socket through which worker processes attach; without one workers are threads of the run's process.
        attach: Option<PathBuf> = None, "", Allowed::Form(&PATH);
    }
}
