//! Whole systems that talk TCP to each other: cores, caches, memory, NICs, kernels and processes
//! on one schedule (integrated_nic).
//!
//! ```text
//!   attachment.rs: placement ─► caches, links       build.rs: machine + settings ─► World
//!   system.rs: a host whose cores run stack/ and process/
//!   measure.rs: counters ─► Metrics                 standstill.rs: why nothing moves
//! ```
//!
//! They are hosts of the same [world](crate::world) as the one server of [`crate::run`].

pub mod attachment;
mod build;
mod measure;
pub mod options;
mod process;
pub mod stack;
mod standstill;
pub(crate) mod system;
#[cfg(test)]
mod tests;

pub(crate) use measure::run_point;
