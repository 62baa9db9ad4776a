//! A TCP without I/O: segments and calls in, segments and events out; time is an argument.
//!
//! What is not here: sockets of an operating system, clocks, threads, and memory that the caller does not provide.
//! Split as the TAS and TASNIC papers split it: [`fast`] is the common case on a compact state per connection,
//! [`conn`] everything that the RFCs ask for besides, [`queue`] the context queues between applications and the fast
//! path, [`congestion`] the algorithms behind a small trait, [`rate`] the control loop and wheel for flows that only the fast
//! path serves, [`scale`] how many cores the fast path needs. [`stack`] joins connections and listeners to a host with
//! frames in and frames out; [`socket`] gives that host the calls and errors that programs know.
//!
//! `docs/tcp.md` says which RFC is held and by which test.

pub mod config;
pub mod congestion;
pub mod conn;
pub mod fast;
pub mod options;
pub mod queue;
pub mod rate;
pub mod ring;
pub mod scale;
pub mod segment;
pub mod seq;
pub mod socket;
pub mod stack;
pub mod sysctl;
pub mod watch;

pub use config::Config;
pub use seq::{Seq, Span};
