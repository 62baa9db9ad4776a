//! The stages on a device's path.

use std::any::Any;
use std::collections::VecDeque;

use nicforge_platform::Dma;
use nicforge_units::Time;

use super::{Frame, Injector, Inward, Processor, Services, Stage, Verdict};
use crate::transmit::{Internal, InternalQueue};
use crate::{DropCause, DropCounters, PortId, TxOffload};

/// Registers that each stage has room for.
pub const STAGE_REGISTERS: u32 = 256;

/// The stages of a device, counted from the wire.
pub struct Chain<D> {
    stages: Vec<Box<dyn Stage<D>>>,
    /// The last one is the interface's own.
    has_own: bool,
    port: PortId,
    processor: Processor,
    /// Frames that stages send to the host.
    inward: VecDeque<Inward>,
    /// When frames that left before had passed: they leave in order.
    out_until: Time,
    /// Frames dropped on their way out, by cause.
    pub(crate) drops: DropCounters,
    consumed: u64,
    injected: u64,
}

/// How a frame left the ingress path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes on to the host, once it is ready.
    On(Time),
    /// It is dropped.
    Dropped(DropCause),
    /// A stage has it.
    Gone,
}

/// A frame on its way to the wire.
pub(crate) struct Leaving {
    pub bytes: Vec<u8>,
    pub port: PortId,
    /// The transmit queue that it comes from; `None` for a stage's own.
    pub queue: Option<u16>,
    pub stamp: Time,
    pub mark: u64,
    pub left: TxOffload,
    pub ready: Time,
    /// It passes the stages before this one.
    pub behind: usize,
}

impl<D: Dma> Chain<D> {
    /// No stages yet, on the path of `port`.
    pub fn new(port: PortId) -> Chain<D> {
        Chain {
            stages: Vec::new(),
            has_own: false,
            port,
            processor: Processor::default(),
            inward: VecDeque::new(),
            out_until: Time::ZERO,
            drops: DropCounters::default(),
            consumed: 0,
            injected: 0,
        }
    }

    /// Adds `stage` behind the others, next to the host, where only the interface's own comes later.
    pub fn push(&mut self, stage: Box<dyn Stage<D>>) {
        let at = self.stages.len() - usize::from(self.has_own);
        self.stages.insert(at, stage);
    }

    /// Adds the interface's own stage, behind all others that there are and that will be.
    pub(crate) fn push_own(&mut self, stage: Box<dyn Stage<D>>) {
        self.stages.push(stage);
        self.has_own = true;
    }

    /// Takes the interface's own stage.
    pub(crate) fn take_own(&mut self) -> Option<Box<dyn Stage<D>>> {
        if !std::mem::take(&mut self.has_own) {
            return None;
        }
        self.stages.pop()
    }

    /// Behind the stages the interface answered a frame.
    pub(crate) fn count_answered(&mut self) {
        self.consumed += 1;
    }

    /// Adds `stage` in front of the others, next to the wire. Registers of the others move.
    pub fn push_first(&mut self, stage: Box<dyn Stage<D>>) {
        self.stages.insert(0, stage);
    }

    /// Stages compute on `processor` from now on.
    pub fn set_processor(&mut self, processor: Processor) {
        self.processor = processor;
    }

    /// The NIC processor that stages compute on.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// The first stage of type `S`.
    pub fn get<S: Stage<D>>(&self) -> Option<&S> {
        let mut stages = self.stages.iter().map(|stage| -> &dyn Any { &**stage });
        stages.find_map(|stage| stage.downcast_ref())
    }

    /// The same, to change it.
    pub fn get_mut<S: Stage<D>>(&mut self) -> Option<&mut S> {
        let mut stages = self.stages.iter_mut().map(|stage| -> &mut dyn Any { &mut **stage });
        stages.find_map(|stage| stage.downcast_mut())
    }

    /// The counters of all stages, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stages.iter().flat_map(|stage| stage.counters()).collect()
    }

    /// The gauges of all stages, by name.
    pub fn gauges(&self) -> Vec<(&'static str, u64)> {
        self.stages.iter().flat_map(|stage| stage.gauges()).collect()
    }

    /// Takes the stages' messages for the operator since the last call.
    pub fn take_events(&mut self) -> Vec<String> {
        self.stages.iter_mut().flat_map(|stage| stage.take_events()).collect()
    }

    /// Frames that stages kept or took to themselves so far.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Frames that stages sent so far, in either direction.
    pub fn injected(&self) -> u64 {
        self.injected
    }

    /// Frames that stages sent to the host and that are not there yet.
    pub fn inward(&self) -> u64 {
        self.inward.len() as u64
    }

    /// When a stage has something to do, or a frame of its own can go on to the host.
    pub(crate) fn due(&self) -> Time {
        let inward = self.inward.front().map_or(Time::NEVER, |frame| frame.ready);
        self.stages.iter().map(|stage| stage.due()).fold(inward, Time::min)
    }

    /// Whether frames that leave pass a stage.
    #[inline]
    pub(crate) fn sees_egress(&self) -> bool {
        self.stages.iter().any(|stage| stage.sees_egress())
    }

    /// Registers of each stage.
    pub fn registers(&self) -> impl Iterator<Item = u32> {
        self.stages.iter().map(|stage| stage.registers().min(STAGE_REGISTERS))
    }

    /// When the processor takes the next frame.
    pub(crate) fn processor_free(&self) -> Time {
        self.processor.free()
    }

    /// Calls stage `number`; returns what it says and when that is done.
    fn call<T>(
        &mut self,
        dma: &mut D,
        out: &mut InternalQueue,
        number: usize,
        ready: Time,
        work: impl FnOnce(&mut dyn Stage<D>, &mut Services<'_, D>) -> T,
    ) -> (T, Time) {
        let Chain { stages, port, processor, inward, injected, .. } = self;
        let injector = Injector { out, inward, count: injected, stage: number, port: *port };
        let mut services = Services { dma, injector, processor, ready };
        let answer = work(&mut *stages[number], &mut services);
        let ready = services.ready;
        (answer, ready.max(services.dma.now()))
    }

    /// A frame passes the stages from number `from` on towards the host.
    pub(crate) fn ingress(&mut self, dma: &mut D, out: &mut InternalQueue, frame: &mut Frame<'_>, from: usize) -> Fate {
        let mut ready = dma.now();
        for number in from..self.stages.len() {
            let (verdict, until) = self.call(dma, out, number, ready, |stage, services| stage.ingress(services, frame));
            ready = until;
            match verdict {
                Verdict::Pass => {}
                Verdict::Drop(cause) => return Fate::Dropped(cause),
                Verdict::Consume => {
                    self.consumed += 1;
                    return Fate::Gone;
                }
                Verdict::Send(port) => {
                    out.push(Internal { port, behind: number, ready, stamp: frame.arrival, bytes: frame.take_bytes() });
                    return Fate::Gone;
                }
            }
        }
        Fate::On(ready)
    }

    /// A frame passes the stages towards the wire; `None` if it does not come through.
    pub(crate) fn egress(&mut self, dma: &mut D, out: &mut InternalQueue, leaving: Leaving) -> Option<Leaving> {
        let behind = leaving.behind.min(self.stages.len());
        let (queue, mut ready) = (leaving.queue, leaving.ready);
        let mut frame = match Frame::leaving(leaving) {
            Ok(frame) => frame,
            // What the parser cannot read no stage knows.
            Err(leaving) => return Some(*leaving),
        };
        for number in (0..behind).rev() {
            dma.wait_until(ready);
            if !self.stages[number].sees_egress() {
                continue;
            }
            let (verdict, until) =
                self.call(dma, out, number, ready, |stage, services| stage.egress(services, &mut frame));
            ready = until;
            match verdict {
                Verdict::Pass => {}
                Verdict::Drop(cause) => {
                    self.drops.count(cause.0);
                    return None;
                }
                Verdict::Consume => {
                    self.consumed += 1;
                    return None;
                }
                Verdict::Send(port) => frame.port = port,
            }
        }
        self.out_until = self.out_until.max(ready);
        Some(frame.behind_stages(queue, self.out_until))
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, dma: &mut D, out: &mut InternalQueue) {
        let now = dma.now();
        for number in 0..self.stages.len() {
            if self.stages[number].due() <= now {
                self.call(dma, out, number, now, |stage, services| stage.advance(services));
            }
        }
    }

    /// The next frame that a stage sent to the host, if it can go on.
    pub(crate) fn take_inward(&mut self, now: Time) -> Option<Inward> {
        self.inward.front().filter(|frame| frame.ready <= now)?;
        self.inward.pop_front()
    }

    /// A core wrote register `index`, counted over all stages.
    pub(crate) fn write_register(&mut self, dma: &mut D, out: &mut InternalQueue, index: u32, value: u64) -> bool {
        let (number, index) = ((index / STAGE_REGISTERS) as usize, index % STAGE_REGISTERS);
        let now = dma.now();
        number < self.stages.len()
            && self.call(dma, out, number, now, |stage, services| stage.write_register(services, index, value)).0
    }

    /// The value of register `index`, counted over all stages, and when it is known.
    pub(crate) fn read_register(&mut self, dma: &mut D, out: &mut InternalQueue, index: u32) -> Option<(u64, Time)> {
        let (number, index) = ((index / STAGE_REGISTERS) as usize, index % STAGE_REGISTERS);
        let now = dma.now();
        if number >= self.stages.len() {
            return None;
        }
        let (value, ready) = self.call(dma, out, number, now, |stage, services| stage.read_register(services, index));
        value.map(|value| (value, ready))
    }
}
