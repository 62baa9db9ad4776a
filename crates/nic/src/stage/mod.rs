//! Stages: steps on a device's packet path, both ways, and what the device offers them.
//!
//! ```text
//!  parsed, steered frame ─► stage ─► stage ─► interface's NIC half
//!        wire ◄─ stage ◄─ stage ◄─ transmit engine          (egress: in reverse order)
//!                  contexts.rs, timers.rs: state of flows, time;  Services: DMA, own frames, cost
//! ```

mod contexts;
mod frame;
#[cfg(test)]
mod tests;
mod timers;

use std::any::Any;

use nicforge_platform::Dma;
use nicforge_units::{Cycles, Frequency, Time};

use crate::transmit::TransmitEngine;
use crate::{DropCause, PortId};

pub use contexts::{ContextCounters, Contexts, FlowState, Place};
pub use frame::Frame;
pub use timers::{TimerId, Timers};

/// What a stage decides about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to the next stage.
    Pass,
    /// It is dropped, and counted under this cause.
    Drop(DropCause),
    /// The stage keeps it, answers it or sends it itself, and counts it.
    Consume,
    /// It goes out of this port as it is now, past the other stages.
    Send(PortId),
}

/// What the instructions of a device's stages cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostAccount {
    /// The clock of the device's processor.
    pub processor: Frequency,
    /// Time that stages have spent so far.
    pub spent: Time,
}

impl Default for CostAccount {
    /// Instructions take no time.
    fn default() -> CostAccount {
        CostAccount { processor: Frequency::INFINITE, spent: Time::ZERO }
    }
}

/// What a device offers a stage.
pub struct Services<'a, D> {
    /// The way to host memory. Its cursor is the device's time.
    pub dma: &'a mut D,
    /// Sends frames of the stage's own.
    pub injector: Injector<'a>,
    /// What the stages' instructions cost.
    pub cost: &'a mut CostAccount,
}

impl<D: Dma> Services<'_, D> {
    /// The device's time.
    pub fn now(&self) -> Time {
        self.dma.now()
    }

    /// The stage computes for so many cycles of the device's processor.
    pub fn work(&mut self, cycles: Cycles) {
        self.take(self.cost.processor.time_for(cycles));
    }

    /// The stage takes a fixed time.
    pub fn take(&mut self, time: Time) {
        self.cost.spent += time;
        let until = self.dma.now() + time;
        self.dma.wait_until(until);
    }
}

/// Sends frames that never were in host memory. They leave in the order in which they were given.
pub struct Injector<'a>(pub(crate) &'a mut TransmitEngine);

impl Injector<'_> {
    /// `bytes` go out, at `ready` at the earliest; `stamp` is carried to the wire for measurement.
    pub fn send(&mut self, bytes: Vec<u8>, stamp: Time, ready: Time) {
        self.0.push_internal(bytes, stamp, ready);
    }

    /// Frames that wait for the wire.
    pub fn waiting(&self) -> u64 {
        self.0.internal_inside()
    }
}

/// A step on a device's packet path.
pub trait Stage<D: Dma>: Any + Send {
    /// A frame comes from the wire; it may be edited.
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        let _ = (nic, frame);
        Verdict::Pass
    }

    /// A frame of host software goes to the wire; it may be edited. Time that the stage takes delays the frame.
    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        let _ = (nic, frame);
        Verdict::Pass
    }

    /// A core wrote register `index` of this stage; `false` if there is no such register or the value is impossible.
    fn write_register(&mut self, nic: &mut Services<'_, D>, index: u32, value: u64) -> bool {
        let _ = (nic, index, value);
        false
    }

    /// The value of register `index` of this stage, if there is such a register.
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

    /// What it counted, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
