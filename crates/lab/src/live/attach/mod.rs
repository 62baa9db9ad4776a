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
//! | socket.rs | the socket: its path, and who may call |
//! | place.rs | one worker's place: who works there, and what was counted |
//! | worker.rs | the other side: a worker's process |

mod keeper;
mod message;
mod place;
mod socket;
mod worker;

use std::path::PathBuf;

use nicforge_options::{Allowed, NAME, PATH, SECONDS_MAX, choice, options};

use socket::MODE;

pub use keeper::Keeper;
pub use worker::{Attached, attach};

choice! {
    /// What becomes of flows whose worker is not there.
    pub enum AbsentFlows {
        /// Their frames are dropped until it is.
        Drop = "drop",
        /// They are spread over the other workers. Flows that such a worker has state of break when the absent one comes.
        Others = "others",
    }
}

options! {
    /// Worker processes.
    pub struct AttachOptions {
        /// The Unix socket through which worker processes attach; without one workers are threads of the run's process.
        attach: Option<PathBuf> = None, "", Allowed::Form(&PATH);
        /// The group that the socket belongs to, by name or number; its members may attach.
        attach_group: Option<String> = None, "", Allowed::Form(&NAME), default "that of the run's process";
        /// Who may attach, as octal digits of a file's mode.
        attach_mode: Option<String> = None, "", Allowed::Form(&MODE), default "0600, and 0660 with `attach_group`";
        /// How long a worker may take from its call until its queues are up.
        attach_within_s: f64 = 20.0, "s", Allowed::Number(0.001, SECONDS_MAX);
        /// How long a worker process may say nothing before it is ended; workers speak twenty times a second.
        worker_silence_s: Option<f64> = None, "s", Allowed::Number(0.001, SECONDS_MAX),
            default "3 where workers share rings, which one that is stopped holds up; else any time";
        /// What becomes of flows whose worker is not there: their frames are dropped, or spread over the other workers.
        absent_flows: AbsentFlows = AbsentFlows::Drop, "", AbsentFlows::ALLOWED;
    }
}
