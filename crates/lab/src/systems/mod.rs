//! Whole systems that talk TCP to each other: cores, caches, memory, NICs, kernels and processes
//! on one schedule (integrated_nic).
//!
//! ```text
//!   attachment.rs: placement ─► caches, links       build.rs: machine + settings ─► World
//!   system.rs: core + caches + nic_slot.rs + stack/ + process/      wire::link: links
//!   world.rs, net.rs: earliest actor first          measure.rs: counters ─► Metrics
//!   standstill.rs: why nothing moves
//! ```
//!
//! It is a world of its own beside [`crate::run`], which is one server at which frames are sent;
//! both are made of the same caches, memory, links and cores.

pub mod attachment;
mod build;
mod measure;
mod net;
mod nic_slot;
pub mod options;
mod process;
pub mod stack;
mod standstill;
mod system;
mod world;

pub(crate) use measure::run_point;
