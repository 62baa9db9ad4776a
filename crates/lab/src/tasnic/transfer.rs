//! DMA: payload, entries of context queues, frames for the slow path; and how events leave once theirs is complete.

use nicforge_platform::sim::npu::{Command, DmaKind, ThreadId};
use nicforge_platform::sim::{DmaPort, Host as SimHost, Lent, SimDma};
use nicforge_platform::{Addr, Dma};
use nicforge_tcp::fast::FlowFlags;
use nicforge_tcp::queue::ENTRY_LEN;
use nicforge_units::Time;

use super::nic::{Job, Nic};
use super::records;
use super::work::{Kind, Work};

/// An operation of the DMA engine.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Received payload of an event goes to its ring.
    Store { work: u32 },
    /// Payload comes from its ring.
    Fetch { work: u32 },
    /// An entry goes to an application.
    Entry { context: usize, at: Addr, bytes: [u8; ENTRY_LEN] },
    /// Whether the application has freed an entry, in case its doorbell was lost.
    Look { context: usize, index: u64, at: Addr, bytes: [u8; ENTRY_LEN] },
    /// An entry comes from an application; a probe looks whether there is one.
    Take { context: usize, index: u64, at: Addr, bytes: [u8; ENTRY_LEN], is_probe: bool },
    /// The entry is free again.
    Null { context: usize, at: Addr },
    /// A frame goes to the slow path.
    Exception { frame: Vec<u8> },
}

impl Operation {
    fn kind(&self) -> DmaKind {
        match self {
            Operation::Store { .. } => DmaKind::PayloadRx,
            Operation::Fetch { .. } => DmaKind::PayloadTx,
            Operation::Entry { .. } => DmaKind::Arx,
            Operation::Take { .. } | Operation::Look { .. } => DmaKind::Atx,
            Operation::Null { .. } => DmaKind::AtxNull,
            Operation::Exception { .. } => DmaKind::Slow,
        }
    }
}

impl Nic {
    /// A DMA manager gets a new operation.
    pub(super) fn issue(&mut self, operation: Operation) {
        let pool = self.pool_of(operation.kind());
        let number = self.operations.put(operation);
        let script = self.scripts.dma();
        self.npu.put(pool, 0, Job::Issue(number), script);
    }

    fn pool_of(&self, kind: DmaKind) -> usize {
        match kind {
            DmaKind::PayloadRx => self.pools.dma_rx,
            DmaKind::PayloadTx => self.pools.dma_tx,
            DmaKind::Arx => self.pools.dma_arx,
            DmaKind::Atx | DmaKind::AtxNull => self.pools.dma_atx,
            DmaKind::Slow => self.pools.slow,
        }
    }

    /// An event has passed post-processing: its payload moves, if it has any.
    pub(super) fn post_done(&mut self, number: u32) {
        match self.payload_of(number) {
            Some(operation) => self.issue(operation),
            None => self.is_complete(number),
        }
    }

    fn payload_of(&mut self, number: u32) -> Option<Operation> {
        let outcome = &self.works.get(number).filter(|work| !work.is_over)?.outcome;
        let store = outcome.store.map(|_| Operation::Store { work: number });
        store.or(outcome.fetch.map(|_| Operation::Fetch { work: number }))
    }

    /// The thread that does all of an event moves its payload and waits.
    pub(super) fn move_and_wait(&mut self, thread: ThreadId, number: u32) {
        let Some(operation) = self.payload_of(number) else { return self.npu.proceed(thread, Time::ZERO) };
        if let Some(work) = self.works.get(number) {
            work.thread = Some(thread);
        }
        let number = self.operations.put(operation);
        self.request(number);
    }

    /// An operation stands in the engine's queue.
    pub(super) fn request(&mut self, number: u32) {
        if let Some(operation) = self.operations.get(number) {
            let kind = operation.kind();
            self.dma.request(kind, number);
        }
        self.begin_operations();
    }

    fn begin_operations(&mut self) {
        while let Some((_, number, at)) = self.dma.begin(self.npu.now()) {
            self.npu.at(at, super::nic::Event::Transfer(number));
        }
    }

    /// The engine works at operation `number`.
    pub(super) fn transfer(&mut self, number: u32, host: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) {
        let now = self.npu.now();
        let Some(mut operation) = self.operations.take(number) else { return };
        let complete = match &mut operation {
            Operation::Store { work } => self.store(*work, host, port),
            Operation::Fetch { work } => self.fetch(*work, host, port),
            Operation::Take { at, bytes, .. } | Operation::Look { at, bytes, .. } => {
                SimDma::on(host, port, now).read_ahead(*at, bytes)
            }
            Operation::Entry { at, bytes, .. } => {
                let mut dma = SimDma::on(host, port, now);
                dma.publish(*at, bytes);
                dma.now() + self.dma.write_signal()
            }
            Operation::Null { at, .. } => {
                let mut dma = SimDma::on(host, port, now);
                dma.publish(*at, &[0; ENTRY_LEN]);
                dma.now() + self.dma.write_signal()
            }
            Operation::Exception { frame } => {
                let mut dma = SimDma::on(host, port, now + self.dma.moving(frame.len() as u64));
                if !self.slow.give(&mut *dma, std::mem::take(frame)) {
                    self.drops.count("slow_path_full");
                }
                dma.now() + self.dma.write_signal()
            }
        };
        // Its number is the last that became free, so it gets it back.
        let again = self.operations.put(operation);
        debug_assert_eq!(again, number);
        self.npu.at(complete, super::nic::Event::Complete(number));
    }

    fn store(&mut self, number: u32, host: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) -> Time {
        let now = self.npu.now();
        let Some(work) = self.works.get(number) else { return now };
        let Some(store) = work.outcome.store else { return now };
        let ring = self.flows[work.flow as usize].rings.receive;
        let from = (work.payload_at + store.skip) as usize;
        let payload = &work.frame[from..from + store.len as usize];
        let pieces = ring.pieces(store.at, store.len).into_iter().filter(|piece| piece.len > 0);
        let (places, taken) = match &self.pages {
            None => (pieces.collect(), 0),
            Some(pages) => pieces.fold((Vec::new(), 0), |(mut places, taken), piece| {
                let (more, took) = pages.borrow_mut().write(piece);
                places.extend(more);
                (places, taken + took)
            }),
        };
        // Free pages are a list in internal memory.
        let mut begins = now + self.dma.moving(store.len.into());
        for _ in 0..taken {
            begins += self.npu.units.access(Command::Imem, 0, now);
        }
        let mut dma = SimDma::on(host, port, begins);
        let mut done = 0;
        for place in places {
            dma.write(place.at, &payload[done..done + place.len as usize]);
            done += place.len as usize;
        }
        let again = work.outcome.again;
        if again > 0 {
            // They came before what was missing; now the NIC can decrypt them.
            self.counters.read_again += u64::from(again);
            records::rewrite(ring.pieces((store.at + store.len) % ring.len, again), &mut dma);
        }
        dma.now() + self.dma.write_signal()
    }

    fn fetch(&mut self, number: u32, host: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) -> Time {
        let now = self.npu.now();
        let Some(work) = self.works.get(number) else { return now };
        let Some((at, len)) = work.outcome.fetch else { return now };
        let ring = self.flows[work.flow as usize].rings.transmit;
        let mut dma = SimDma::on(host, port, now);
        let mut here = now;
        let again = work.outcome.again;
        self.counters.read_again += u64::from(again);
        for piece in ring.pieces((at + ring.len - again) % ring.len, again).into_iter().filter(|piece| piece.len > 0) {
            here = here.max(dma.read_ahead(piece.at, &mut vec![0; piece.len as usize]));
        }
        for piece in ring.pieces(at, len).into_iter().filter(|piece| piece.len > 0) {
            let begin = work.out.len();
            work.out.resize(begin + piece.len as usize, 0);
            here = here.max(dma.read_ahead(piece.at, &mut work.out[begin..]));
        }
        here + self.dma.moving(u64::from(len) + u64::from(again))
    }

    /// Operation `number` is complete: who waits for it hears of it.
    pub(super) fn complete(&mut self, number: u32) {
        let Some(operation) = self.operations.get(number).map(|operation| operation.clone()) else { return };
        let kind = operation.kind();
        self.dma.complete(kind);
        self.begin_operations();
        if let Operation::Store { work } = operation
            && let Some(work) = self.works.get(work)
            && let Some(store) = work.outcome.store
        {
            self.witness.stored(work.flow, work.summary.seq.wrapping_add(store.skip), store.len);
        }
        let waits = match operation {
            Operation::Store { work } | Operation::Fetch { work } => self.works.get(work).and_then(|work| work.thread),
            _ => None,
        };
        if let Some(thread) = waits {
            self.operations.take(number);
            return self.npu.proceed(thread, Time::ZERO);
        }
        let script = self.scripts.dma_done();
        self.npu.put(self.pool_of(kind), 1, Job::Finished(number), script);
    }

    /// The DMA manager has heard that operation `number` is complete.
    pub(super) fn finished(&mut self, number: u32) {
        match self.operations.take(number) {
            Some(Operation::Store { work } | Operation::Fetch { work }) => self.is_complete(work),
            Some(Operation::Take { context, index, at, bytes, is_probe }) => {
                self.took(context, index, at, &bytes, is_probe);
            }
            Some(Operation::Look { context, index, bytes, .. }) => self.looked(context, index, &bytes),
            Some(Operation::Entry { context, .. }) => self.placed(context),
            Some(Operation::Null { context, .. }) => self.nulled(context),
            Some(Operation::Exception { .. }) | None => {}
        }
    }

    /// All of an event is done. What follows from it leaves in the protocol stage's order: no acknowledgment and no
    /// notification before the payload that it speaks of.
    pub(super) fn is_complete(&mut self, number: u32) {
        let Some(work) = self.works.get(number) else { return };
        if work.is_over {
            return self.except(number);
        }
        let (order, group) = (work.order, self.flows[work.flow as usize].group);
        self.groups[group].out.put(order, number);
        while let Some(number) = self.groups[group].out.take() {
            if let Some(work) = self.works.take(number) {
                self.leave(work);
            }
        }
    }

    fn leave(&mut self, work: Work) {
        let state = &self.flows[work.flow as usize].state;
        self.witness.leaves(&work, state.has(FlowFlags::PEER_CLOSED));
        self.release(work.flow);
        if let Some(notify) = work.outcome.notify {
            let context = usize::from(self.flows[work.flow as usize].state.post.context);
            self.notify(context, &notify);
        }
        if work.kind == Kind::Ac {
            self.descriptor_is_free();
        }
        if work.out.is_empty() {
            self.buffer_is_free(work.kind);
        } else {
            self.send(work.out, Some(work.kind));
        }
    }
}
