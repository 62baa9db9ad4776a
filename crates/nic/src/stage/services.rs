//! What a device offers its stages.

use std::collections::VecDeque;

use nicforge_platform::Dma;
use nicforge_units::{Cycles, Frequency, Time};

use crate::PortId;
use crate::transmit::{Internal, InternalQueue};

/// The processor that a device's stages compute on: some cores of one clock, each of which handles a frame at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    clock: Frequency,
    /// When each core is free.
    cores: Vec<Time>,
    /// Time that cores have worked so far.
    spent: Time,
}

impl Default for Processor {
    /// One on which instructions take no time.
    fn default() -> Processor {
        Processor::new(Frequency::INFINITE, 1)
    }
}

impl Processor {
    /// `cores` (at least 1) that run at `clock`.
    pub fn new(clock: Frequency, cores: usize) -> Processor {
        Processor { clock, cores: vec![Time::ZERO; cores.max(1)], spent: Time::ZERO }
    }

    /// Time that cores have worked so far.
    pub fn spent(&self) -> Time {
        self.spent
    }

    /// When a core is free.
    pub(crate) fn free(&self) -> Time {
        self.cores.iter().copied().min().unwrap_or(Time::ZERO)
    }

    /// The core that is free first works for so many `cycles` from `ready` on at the earliest; returns until when.
    fn work(&mut self, ready: Time, cycles: Cycles) -> Time {
        let time = self.clock.time_for(cycles);
        if time == Time::ZERO {
            return ready;
        }
        self.spent += time;
        let Some(core) = self.cores.iter_mut().min() else {
            return ready;
        };
        *core = ready.max(*core) + time;
        *core
    }
}

/// The services that a device offers a stage.
pub struct Services<'a, D> {
    /// The way to host memory. Its cursor is the device's time; a read holds up all frames behind this one.
    pub dma: &'a mut D,
    /// Sends frames of the stage's own.
    pub injector: Injector<'a>,
    pub(crate) processor: &'a mut Processor,
    /// When the frame, or the work that is due, is through what stages did to it so far.
    pub(crate) ready: Time,
}

impl<D: Dma> Services<'_, D> {
    /// The device's time.
    pub fn now(&self) -> Time {
        self.dma.now()
    }

    /// When the frame can go on: the device's time, or later after [`work`](Self::work), [`delay`](Self::delay) and
    /// [`wait_until`](Self::wait_until).
    pub fn ready(&self) -> Time {
        self.ready
    }

    /// A core of the device's processor works on the frame. While all are at work, frames wait.
    pub fn work(&mut self, cycles: Cycles) {
        self.ready = self.processor.work(self.ready, cycles);
    }

    /// The frame takes a fixed time, as through a pipeline; others may follow at once.
    pub fn delay(&mut self, time: Time) {
        self.ready += time;
    }

    /// The frame waits until `time`, when something that it needs is here; others may follow at once.
    pub fn wait_until(&mut self, time: Time) {
        self.ready = self.ready.max(time);
    }
}

/// A frame that a stage sends to the host.
pub(crate) struct Inward {
    pub bytes: Vec<u8>,
    pub stamp: Time,
    pub ready: Time,
    /// The stage that it passes first.
    pub from: usize,
}

/// Sends frames of a stage's own, any number of them.
pub struct Injector<'a> {
    pub(crate) out: &'a mut InternalQueue,
    pub(crate) inward: &'a mut VecDeque<Inward>,
    /// Frames injected so far.
    pub(crate) count: &'a mut u64,
    /// The stage, and the device's port.
    pub(crate) stage: usize,
    pub(crate) port: PortId,
}

impl Injector<'_> {
    /// `bytes` leave by `port`, at `ready` at the earliest, through the stages between this one and the wire, and in the
    /// order in which frames were given. `stamp` is carried to the wire for measurement.
    pub fn send_by(&mut self, port: PortId, bytes: Vec<u8>, stamp: Time, ready: Time) {
        *self.count += 1;
        self.out.push(Internal { port, behind: self.stage, ready, stamp, bytes });
    }

    /// The same by the device's own port.
    pub fn send(&mut self, bytes: Vec<u8>, stamp: Time, ready: Time) {
        self.send_by(self.port, bytes, stamp, ready);
    }

    /// `bytes` come in behind this stage, at `ready` at the earliest: they pass the stages between it and the host.
    pub fn deliver(&mut self, bytes: Vec<u8>, stamp: Time, ready: Time) {
        *self.count += 1;
        self.inward.push_back(Inward { bytes, stamp, ready, from: self.stage + 1 });
    }

    /// Frames that wait for the wire.
    pub fn waiting(&self) -> u64 {
        self.out.waiting()
    }
}
