//! The stages on a NIC's path.

use nicforge_platform::Dma;
use nicforge_units::{Frequency, Time};
use nicforge_wire::FrameSummary;

use super::Nic;
use crate::Arriving;
use crate::stage::{Frame, Injector, Services, Stage, Verdict};
use crate::transmit::{Departure, Egress};
use crate::{PortId, TxOffload};

/// Registers of each stage.
const REGISTERS: u32 = 256;

/// A frame that left the engine, before stages have seen it.
struct Left {
    bytes: Vec<u8>,
    port: PortId,
    queue: Option<u16>,
    left: TxOffload,
    stamp: Time,
    last_bit: Time,
}

/// Keeps frames that leave the engine.
struct Kept(Vec<Left>);

impl Egress for Kept {
    fn depart(&mut self, departure: Departure<'_>) {
        let Departure { port, queue, pieces, left, stamp, last_bit } = departure;
        self.0.push(Left { bytes: pieces.concat(), port, queue, left, stamp, last_bit });
    }
}

impl<D: Dma> Nic<D> {
    /// The same with `stage` behind those that there are, counted from the wire.
    pub fn with_stage(mut self, stage: impl Stage<D>) -> Nic<D> {
        self.stages.push(Box::new(stage));
        self
    }

    /// The same, whose stages compute with this clock.
    pub fn with_processor(mut self, processor: Frequency) -> Nic<D> {
        self.cost.processor = processor;
        self
    }

    /// The stage of type `S`, if it has one.
    pub fn stage<S: Stage<D>>(&self) -> Option<&S> {
        let mut stages = self.stages.iter().map(|stage| -> &dyn std::any::Any { &**stage });
        stages.find_map(|stage| stage.downcast_ref())
    }

    /// What all stages counted, by name.
    pub fn stage_counters(&self) -> Vec<(&'static str, u64)> {
        self.stages.iter().flat_map(|stage| stage.counters()).collect()
    }

    /// Time that stages have spent computing.
    pub fn stage_time(&self) -> Time {
        self.cost.spent
    }

    /// A frame passes the stages from the wire to the host.
    pub(super) fn pass_stages(&mut self, dma: &mut D, arriving: &Arriving<'_>, summary: &FrameSummary, parsed: Time) {
        let mut frame = Frame::arrived(arriving, *summary);
        for stage in &mut self.stages {
            let mut services =
                Services { dma: &mut *dma, injector: Injector(&mut self.transmit), cost: &mut self.cost };
            match stage.ingress(&mut services, &mut frame) {
                Verdict::Pass => {}
                Verdict::Drop(cause) => return self.unsteered.count(cause.0),
                Verdict::Consume => return,
                Verdict::Send(_) => {
                    let (stamp, now) = (frame.arrival, dma.now());
                    return self.transmit.push_internal(frame.into_bytes(), stamp, now);
                }
            }
        }
        let arriving = frame.arriving();
        match self.queues.get(usize::from(arriving.queue)) {
            Some(queue) if !queue.closed => self.deliver_to_host(dma, &arriving, parsed),
            Some(_) => self.unsteered.count("queue_closed"),
            None => self.unsteered.count("no_such_queue"),
        }
    }

    /// The engine and the stages do what is due; returns when to call again.
    pub(super) fn advance_stages<E: Egress>(&mut self, dma: &mut D, egress: &mut E) -> Time {
        for stage in &mut self.stages {
            let mut services =
                Services { dma: &mut *dma, injector: Injector(&mut self.transmit), cost: &mut self.cost };
            if stage.due() <= services.now() {
                stage.advance(&mut services);
            }
        }
        let mut kept = Kept(Vec::new());
        let next = self.transmit.advance(dma, &mut kept);
        for left in kept.0 {
            self.leave(dma, left, egress);
        }
        self.stages.iter().map(|stage| stage.due()).fold(next, Time::min)
    }

    /// A frame passes the stages from the host to the wire. Frames that stages sent have passed them already.
    fn leave<E: Egress>(&mut self, dma: &mut D, left: Left, egress: &mut E) {
        let Left { bytes, mut port, queue, left, stamp, mut last_bit } = left;
        let began = dma.now();
        let bytes = match queue.map(|queue| Frame::leaving(bytes.clone(), port, queue, stamp)) {
            Some(Ok(mut frame)) => {
                for stage in self.stages.iter_mut().rev() {
                    let mut services =
                        Services { dma: &mut *dma, injector: Injector(&mut self.transmit), cost: &mut self.cost };
                    match stage.egress(&mut services, &mut frame) {
                        Verdict::Pass => {}
                        Verdict::Drop(cause) => return self.unsteered.count(cause.0),
                        Verdict::Consume => return,
                        Verdict::Send(to) => {
                            port = to;
                            break;
                        }
                            }
                }
                last_bit += dma.now() - began;
                frame.into_bytes()
            }
            // What the parser cannot read no stage knows; it goes out as it is.
            Some(Err(_)) | None => bytes,
        };
        egress.depart(Departure { port, queue, pieces: &[&bytes, &[], &[]], left, stamp, last_bit });
    }

    /// A core wrote register `index` of the stages.
    pub(super) fn write_stage_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let Some(stage) = self.stages.get_mut((index / REGISTERS) as usize) else {
            return false;
        };
        let mut services = Services { dma, injector: Injector(&mut self.transmit), cost: &mut self.cost };
        stage.write_register(&mut services, index % REGISTERS, value)
    }

    /// The value of register `index` of stage `number`, if there is such a register.
    pub fn read_stage_register(&mut self, dma: &mut D, number: usize, index: u32) -> Option<u64> {
        let stage = self.stages.get_mut(number)?;
        let mut services = Services { dma, injector: Injector(&mut self.transmit), cost: &mut self.cost };
        stage.read_register(&mut services, index)
    }
}
