//! TCP as a service on cores of its own (TAS): fast-path cores between a NIC and context queues, applications on other
//! cores.
//!
//! ```text
//!  NIC ══ rings ══ service.rs: driver, TCP, payload to and from each flow's rings ══ context queues ══ app.rs: RPCs
//!   RSS            a flow-group each; crew.rs: how many cores serve them      queue.rs            other cores
//!  build.rs: two such hosts on a link      measure.rs: RPCs per second and their latency
//! ```
//!
//! The protocol is `nicforge-tcp`, headers in and out; rings, queues and flow state lie in modelled memory, so what they
//! cost follows from the machine. Slow path and fast path share cores. Neighbours need no resolution, and
//! connections are announced by an entry without bytes instead of a queue of the slow path's own.

pub(crate) mod app;
mod app_records;
pub(crate) mod build;
mod crew;
mod drive;
mod entries;
mod flow;
pub(crate) mod frame;
mod linux;
mod measure;
pub(crate) mod message;
pub(crate) mod opening;
pub mod options;
pub(crate) mod pages;
mod plan;
pub(crate) mod program;
pub(crate) mod queue;
pub mod records;
pub(crate) mod rings;
mod run;
mod send;
mod service;
mod software;
pub(crate) mod source;
#[cfg(test)]
mod tests;

pub(crate) use linux::LinuxOptions;
pub(crate) use measure::run_point;
