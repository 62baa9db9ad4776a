//! The path of a NIC that has stages.

use nicforge_platform::{Dma, Moment};
use nicforge_units::Time;
use nicforge_wire::FrameSummary;

use super::Nic;
use crate::stage::{Fate, Frame, Inward};
use crate::{Arriving, DropCause};

impl<D: Dma> Nic<D> {
    /// A frame passes the stages from the wire to the host.
    #[inline(never)]
    pub(super) fn pass_stages(&mut self, dma: &mut D, arriving: &Arriving<'_>, summary: &FrameSummary, parsed: Time) {
        self.pass(dma, Frame::arrived(arriving, *summary), 0, parsed);
    }

    /// `frame` passes the stages from number `from` on, and goes to the host.
    fn pass(&mut self, dma: &mut D, mut frame: Frame<'_>, from: usize, parsed: Time) {
        let fate = self.stages.ingress(dma, self.transmit.internal(), &mut frame, from);
        // The next frame enters the first stage while this one is on its way through the others.
        let entered = dma.now();
        let mut delivered = Time::ZERO;
        match fate {
            Fate::On(ready) => {
                self.passed_until = self.passed_until.max(ready);
                dma.wait_until(self.passed_until);
                let ready = dma.now();
                self.deliver_steered(dma, &mut frame, parsed);
                delivered = dma.now() - ready;
            }
            Fate::Dropped(cause) => self.drop_steered(dma, &frame, cause),
            Fate::Gone => self.note(dma, frame.arrival, Moment::Diverted),
        }
        self.receive_free = entered.max(self.stages.processor_free()) + delivered;
    }

    /// A frame behind the stages goes to its queue, which follows from what they made of it.
    fn deliver_steered(&mut self, dma: &mut D, frame: &mut Frame<'_>, parsed: Time) {
        if frame.wants_queue() {
            let hash = self.rss.hash(frame.summary());
            let queue = self.steering.queue_of(dma, frame.bytes(), frame.summary(), &self.rss, hash);
            frame.steered(hash, queue);
        }
        match self.queues.get(usize::from(frame.queue())) {
            Some(queue) if !queue.closed => self.deliver_to_host(dma, &frame.arriving(), parsed),
            Some(_) => self.drop_steered(dma, frame, DropCause("queue_closed")),
            None => self.drop_steered(dma, frame, DropCause("no_such_queue")),
        }
    }

    fn drop_steered(&mut self, dma: &mut D, frame: &Frame<'_>, cause: DropCause) {
        self.note(dma, frame.arrival, Moment::Dropped(cause.0));
        match self.queues.get_mut(usize::from(frame.queue())) {
            Some(state) => state.drops.count(cause.0),
            None => self.unsteered.count(cause.0),
        }
    }

    /// The stages do what is due, and what they sent to the host goes there.
    pub(super) fn advance_stages(&mut self, dma: &mut D) {
        self.stages.advance(dma, self.transmit.internal());
        while let Some(Inward { bytes, stamp, from, .. }) = self.stages.take_inward(dma.now()) {
            match self.frame_of(dma, &bytes, stamp) {
                Ok(frame) => self.pass(dma, frame, from, dma.now() + self.spec.rx_pipeline),
                Err(error) => self.unsteered.count(error.name()),
            }
        }
    }

    /// The value of register `index` of the stages, and when it is known.
    pub fn read_register(&mut self, dma: &mut D, index: u32) -> Option<(u64, Time)> {
        let index = index.checked_sub(super::registers::STAGES)?;
        self.stages.read_register(dma, self.transmit.internal(), index)
    }

    /// A frame that a stage sent out of another port finds none of that number.
    pub fn has_no_port(&mut self) {
        self.unsteered.count("no_such_port");
    }
}
