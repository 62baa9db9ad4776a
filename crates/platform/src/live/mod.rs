//! The live ground: one region of shared memory, real threads or processes, real frames.
//!
//! ```text
//!   worker (thread or process)                         device thread
//!   LiveCpu ── loads, stores ──► region ◄── copies ── LiveDma ── ports/ ── kernel, files
//!           ── register words (doorbells) ──────────► polls them; sleeps on an eventfd
//!           ◄──────── completions, last word released; a futex wakes who sleeps ──
//! ```
//!
//! | file | what it says |
//! | --- | --- |
//! | region.rs, region/ | the memory: memfd, huge pages, bounds; every raw access |
//! | control.rs | behind it: register words, who sleeps, the origin of time |
//! | cpu.rs, dma.rs | the two contracts over it |
//! | held.rs | entries that the device publishes, until they are written |
//! | device_cpu.rs | the device's thread where it plays a core |
//! | ports/ | where frames come from and go to |
//! | affinity.rs | which core a thread stands on |
//! | bell.rs | how the device sleeps and is woken |
//! | hints.rs | prefetches of lines, large pages |
//! | handover.rs | how another process gets it, and whether that process is still there |
//! | stock.rs | which worker the device gave which buffer |
//! | recorder.rs | what a thread notes of the packets that a run follows |
//! | clock.rs | the wall clock as [`Time`](nicforge_units::Time) |
//!
//! `unsafe` is allowed here and nowhere else; each block says why it is sound. What is shared
//! with other processes is only touched by raw copies and atomics where the other side may
//! write at any time (the device's side), so nothing that a worker writes can do more than
//! give the device wrong values, which it checks.

#![allow(unsafe_code)]

mod affinity;
mod bell;
mod clock;
mod control;
mod cpu;
mod device_cpu;
mod dma;
pub mod handover;
mod held;
pub mod hints;
pub mod ports;
mod recorder;
mod region;
mod stock;
#[cfg(test)]
mod tests;

use std::io;

pub use affinity::{allowed as allowed_cores, stand_on};
pub use bell::Bell;
pub use clock::Clock;
pub use control::{Control, Shape, WakeEvent};
pub use cpu::LiveCpu;
pub use device_cpu::DeviceCpu;
pub use dma::LiveDma;
pub use recorder::{Recorder, Sample, followed};
pub use region::{Pages, Region};
pub use stock::Stock;

/// Why the live ground cannot be set up or go on.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The system refused something.
    #[error("{what}: {cause}{}", hint(cause))]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        cause: io::Error,
    },
    /// An interface cannot be used in the way that is wanted.
    #[error("interface {name}: {problem}; {remedy}")]
    Interface {
        /// Which.
        name: String,
        /// What is wrong.
        problem: String,
        /// What helps.
        remedy: String,
    },
    /// A shared region is not what it should be.
    #[error("the shared region {0}: attach with the same version and configuration")]
    Region(String),
}

impl LiveError {
    /// Makes an error of what the system says about `what`.
    pub fn of<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> LiveError {
        let what = what.into();
        move |cause| LiveError::System { what, cause: cause.into() }
    }
}

fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; it needs root or CAP_NET_ADMIN and CAP_NET_RAW",
        _ => "",
    }
}
