//! Stages without a device of ours around them: for a NIC whose own pipeline has frames before and behind the stages.

use nicforge_platform::Dma;
use nicforge_units::Time;
use nicforge_wire::parse_headers;

use super::{Chain, Fate, Frame, Leaving};
use crate::transmit::InternalQueue;
use crate::{Arriving, DropCause, PortId, RxFlags, TxOffload};

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It goes on, as it is now.
    On(Vec<u8>),
    /// It is dropped.
    Dropped(DropCause),
    /// A stage has it.
    Gone,
}

/// How long that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// On the chain's processor.
    pub work: Time,
    /// Besides: pipelines, and what a stage waited for.
    pub waits: Time,
}

/// Stages alone.
pub struct Alone<D> {
    chain: Chain<D>,
    out: InternalQueue,
}

impl<D: Dma> Alone<D> {
    /// The stages of `chain`.
    pub fn new(chain: Chain<D>) -> Alone<D> {
        Alone { chain, out: InternalQueue::default() }
    }

    /// Their counters by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.chain.counters()
    }

    /// A frame comes from the wire at the device's time. One that the parser cannot read passes no stage.
    pub fn ingress(&mut self, dma: &mut D, bytes: Vec<u8>) -> (Passed, Took) {
        self.inward(dma, bytes, 0)
    }

    fn inward(&mut self, dma: &mut D, bytes: Vec<u8>, from: usize) -> (Passed, Took) {
        let Ok(summary) = parse_headers(&bytes, bytes.len()) else { return (Passed::On(bytes), Took::default()) };
        let (began, spent) = (dma.now(), self.chain.processor().spent());
        let arriving = Arriving {
            bytes: &bytes,
            head: bytes.len(),
            headers: summary.headers_end(&bytes),
            stamp: began,
            rss_hash: 0,
            flags: RxFlags::default(),
            mark: 0,
            segment: 0,
            port: PortId(0),
            queue: 0,
        };
        let mut frame = Frame::arrived(&arriving, summary);
        let fate = self.chain.ingress(dma, &mut self.out, &mut frame, from);
        let until = if let Fate::On(ready) = fate { ready } else { dma.now() };
        let took = self.took(began, spent, until);
        let passed = match fate {
            Fate::On(_) => Passed::On(frame.take_bytes()),
            Fate::Dropped(cause) => Passed::Dropped(cause),
            Fate::Gone => Passed::Gone,
        };
        (passed, took)
    }

    /// A frame goes to the wire at the device's time; `left` is what is done to it behind the stages.
    pub fn egress(&mut self, dma: &mut D, bytes: Vec<u8>, left: TxOffload) -> (Passed, Took) {
        let (began, spent) = (dma.now(), self.chain.processor().spent());
        let (drops, port) = (self.chain.drops.clone(), PortId(0));
        let behind = self.chain.len();
        let leaving = Leaving { bytes, port, queue: None, stamp: began, mark: 0, left, ready: began, behind };
        match self.chain.egress(dma, &mut self.out, leaving) {
            Some(leaving) => {
                let took = self.took(began, spent, leaving.ready);
                (Passed::On(leaving.bytes), took)
            }
            None => {
                let cause = self.chain.drops.since(&drops).causes().first().map(|(cause, _)| DropCause(cause));
                let took = self.took(began, spent, dma.now());
                (cause.map_or(Passed::Gone, Passed::Dropped), took)
            }
        }
    }

    fn took(&self, began: Time, spent: Time, until: Time) -> Took {
        let work = self.chain.processor().spent().saturating_sub(spent);
        Took { work, waits: until.saturating_sub(began).saturating_sub(work) }
    }

    /// The next frame of a stage's own to the wire, behind the stages that it passes.
    pub fn next_sent(&mut self, dma: &mut D) -> Option<Vec<u8>> {
        while let Some(sent) = self.out.pop() {
            let (ready, left) = (dma.now(), TxOffload::default());
            let (port, stamp, behind) = (sent.port, sent.stamp, sent.behind);
            let leaving = Leaving { bytes: sent.bytes, port, queue: None, stamp, mark: 0, left, ready, behind };
            if let Some(leaving) = self.chain.egress(dma, &mut self.out, leaving) {
                return Some(leaving.bytes);
            }
        }
        None
    }

    /// The next frame of a stage's own to the host, likewise.
    pub fn next_delivered(&mut self, dma: &mut D) -> Option<Vec<u8>> {
        while let Some(inward) = self.chain.take_inward(Time::NEVER) {
            if let (Passed::On(bytes), _) = self.inward(dma, inward.bytes, inward.from) {
                return Some(bytes);
            }
        }
        None
    }
}
