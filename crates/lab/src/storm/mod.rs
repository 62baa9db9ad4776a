//! FlexStorm (FlexNIC paper, section 4): the users who write most, counted by workers on three machines, which exchange
//! tuples. Two threads of each machine share tuples out, acknowledge them and keep windows, or its NIC does
//! (examples/p4/flexnic/storm.p4).
//!
//! ```text
//!  without help:  NIC ─► Demultiplexer ─► queue ─► Worker ─► queue ─► Multiplexer ─► NIC       threads.rs, worker.rs
//!  with help:     NIC: storm.p4 ─────────► queue ─► Worker ─► transmit ring ─► NIC: storm.p4
//!  both:          Worker ─► queue ─► Worker of the same machine;  machine ─► switch ─► machine
//!  frame.rs, window.rs: DCCP as tuples use it;  queue.rs, tuple.rs: memory that threads share
//!  topology.rs, job.rs: who does what, where;  build.rs, measure.rs: the world, and what it measured
//! ```
//!
//! A receiver knows which sequence numbers came, which the paper's does not: tuples that the network doubles count once.

mod build;
mod frame;
mod job;
mod measure;
pub mod options;
mod queue;
#[cfg(test)]
mod tests;
mod threads;
mod topology;
mod tuple;
mod window;
mod worker;

pub(crate) use measure::run_point;
pub(crate) use topology::MACHINES;

/// In a name of a file it stands for the number of a machine, the first being 1.
pub(crate) const MACHINE: &str = "{machine}";
