//! Stages: steps on a device's packet path, in both directions, and what the device offers them.
//!
//! ```text
//!  parsed, steered frame ─► stage 0 ─► stage 1 ─► interface's NIC half
//!                   wire ◄─ stage 0 ◄─ stage 1 ◄─ transmit engine
//!  chain.rs: the path; alone.rs: without a device of ours;  frame.rs: what passes;  services.rs: DMA, frames of a stage's own, cost
//!  contexts.rs, timers.rs: state of flows in NIC memory, device time
//! ```
//!
//! docs/stages.md says how to write one.

mod alone;
mod chain;
mod contexts;
mod frame;
mod services;
#[cfg(test)]
mod tests;
mod timers;

use std::any::Any;

use nicforge_platform::Dma;
use nicforge_units::Time;

use crate::{DropCause, PortId};

pub use alone::{Alone, Passed, Took};
pub use chain::{Chain, STAGE_REGISTERS};
pub(crate) use chain::{Fate, Leaving};
pub use contexts::{ContextCounters, Contexts, FlowState, Place};
pub use frame::Frame;
pub(crate) use services::Inward;
pub use services::{Injector, Processor, Services};
pub use timers::{TimerId, Timers};

/// A stage's decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to the next stage.
    Pass,
    /// It is dropped, and counted under this cause.
    Drop(DropCause),
    /// The stage keeps it, answers it or sends it itself, and counts it.
    Consume,
    /// It leaves by this port, through the stages between this one and the wire.
    Send(PortId),
}

/// A step on a device's packet path.
pub trait Stage<D: Dma>: Any + Send {
    /// A frame comes from the wire.
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        let _ = (nic, frame);
        Verdict::Pass
    }

    /// A frame goes to the wire.
    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        let _ = (nic, frame);
        Verdict::Pass
    }

    /// Whether frames that leave pass this stage now. Where no stage wants them, the device sends them without a copy.
    fn sees_egress(&self) -> bool {
        true
    }

    /// Registers that cores may write, at most [`STAGE_REGISTERS`].
    fn registers(&self) -> u32 {
        0
    }

    /// A core wrote register `index` of this stage; `false` if there is no such register or the value is impossible.
    fn write_register(&mut self, nic: &mut Services<'_, D>, index: u32, value: u64) -> bool {
        let _ = (nic, index, value);
        false
    }

    /// The value of register `index` of this stage, if cores can read it.
    fn read_register(&mut self, nic: &mut Services<'_, D>, index: u32) -> Option<u64> {
        let _ = (nic, index);
        None
    }

    /// When the stage has work of its own to do.
    fn due(&self) -> Time {
        Time::NEVER
    }

    /// Does what is due at the device's time.
    fn advance(&mut self, nic: &mut Services<'_, D>) {
        let _ = nic;
    }

    /// Its counters by name, for reports and metrics.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Its gauges by name: values of now, which neither add up over NICs nor over time.
    fn gauges(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Takes the stage's messages for the operator of a live run since the last call.
    fn take_events(&mut self) -> Vec<String> {
        Vec::new()
    }
}
