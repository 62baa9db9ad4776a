//! A NIC: port, MAC FIFO, parser, checksum verification, steering, an interface's receive half
//! and the transmit engine.

use std::mem::take;

use nicforge_platform::{Addr, Dma, Hint, Moment, PacketKey};
use nicforge_units::{BitRate, Bytes, Time};
use nicforge_wire::FrameSummary;
use nicforge_wire::rss::{RssKey, Toeplitz};

use crate::stage::{Chain, STAGE_REGISTERS, Stage};
use crate::transmit::{Egress, TransmitEngine, TxRing};
use crate::{Arriving, DropCause, DropCounters, KeyTable, MacFifo, PortId, ReceiveHalf, Steering};

mod arrival;
mod held;
mod path;
mod queues;
#[cfg(test)]
mod tests;

use held::HeldFrames;
pub use queues::QueueState;

/// The register map of a NIC.
pub mod registers {
    /// Receive registers: `RECEIVE + i` is register `i` of the interface's receive half.
    pub const RECEIVE: u32 = 0x0000;
    /// Stages: `STAGES + 256 * s + i` is register `i` of stage `s`, counted from the wire. There are up to 16.
    pub const STAGES: u32 = 0x6000;
    /// Steering: `STEERING` selects the set of queues in use, `STEERING + 1 + 128 * set + entry`
    /// names the queue of an entry of its indirection table.
    pub const STEERING: u32 = 0x7000;
    /// Transmit doorbells: `TRANSMIT + queue`.
    pub const TRANSMIT: u32 = 0x8000;
}

const _: () = assert!(registers::STAGES + 16 * STAGE_REGISTERS == registers::STEERING);

/// What a NIC is apart from its interface. The numbers come from a machine file.
#[derive(Clone, Debug, PartialEq)]
pub struct NicSpec {
    /// Its port.
    pub port: PortId,
    /// The port's rate.
    pub rate: BitRate,
    /// Preamble, delimiter, FCS and gap of a frame.
    pub wire_overhead: Bytes,
    /// MAC receive FIFO.
    pub rx_fifo: Bytes,
    /// Latency of parsing and steering.
    pub rx_pipeline: Time,
    /// Latency from gathered payload to the wire.
    pub tx_pipeline: Time,
    /// Internal transmit buffer.
    pub tx_buffer: Bytes,
    /// Room that other rings wait for after one filled the buffer.
    pub tx_resume_room: Bytes,
    /// Pause of a ring that filled it, in read latencies.
    pub tx_deschedule_reads: f64,
    /// Bytes of descriptors fetched by one read.
    pub descriptor_read: Bytes,
}

/// What a NIC counted since its run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NicCounters {
    /// Frames that came in.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames delivered to the host.
    pub delivered: u64,
    /// From last bit in to completion sent, summed over delivered frames, in picoseconds.
    pub receive_ps: u64,
    /// Register writes that meant nothing; ignored.
    pub bad_register_writes: u64,
}

/// How far the receive path may run ahead of the other agents. A frame whose turn comes later
/// waits in the FIFO until then: what is done ahead of time would take cache and link from others
/// before it does.
const RUN_AHEAD: Time = Time::from_us(1);

/// A NIC with the receive half of an interface.
pub struct Nic<D: Dma> {
    spec: NicSpec,
    fifo: MacFifo,
    rss: Toeplitz,
    /// Steps on the path between the wire and the interface.
    pub stages: Chain<D>,
    /// When the frame before was through the stages.
    passed_until: Time,
    /// Which queue a frame goes to.
    pub steering: Steering,
    /// The interface.
    pub receive: Box<dyn ReceiveHalf<D>>,
    queues: Vec<QueueState>,
    /// The transmit side.
    pub transmit: TransmitEngine,
    /// When the receive path is done with the frame before.
    receive_free: Time,
    /// Frames whose turn is later, oldest first.
    held: HeldFrames,
    /// Frames dropped before they had a queue, by cause; each queue counts its own.
    unsteered: DropCounters,
    /// Everything else that is counted.
    pub counters: NicCounters,
}

impl<D: Dma> Nic<D> {
    /// A NIC whose frames are spread over the queues of `receive`, or of its first set.
    pub fn new(spec: &NicSpec, mut receive: Box<dyn ReceiveHalf<D>>, tx_rings: &[TxRing], memory_end: Addr) -> Nic<D> {
        let mut stages = Chain::new(spec.port);
        if let Some(own) = receive.stage() {
            stages.push_own(own);
        }
        Nic {
            fifo: MacFifo::new(spec.rx_fifo),
            rss: Toeplitz::default(),
            stages,
            passed_until: Time::ZERO,
            steering: Steering::new(receive.queues(), receive.sets().len() as u16),
            queues: vec![QueueState::default(); usize::from(receive.queues())],
            receive,
            transmit: TransmitEngine::new(spec, tx_rings, memory_end),
            receive_free: Time::ZERO,
            held: HeldFrames::default(),
            unsteered: DropCounters::default(),
            counters: NicCounters::default(),
            spec: spec.clone(),
        }
    }

    /// The same with memory that it gives to software: transmit descriptors may name it, as `keys`
    /// has it.
    pub fn with_nicmem(mut self, keys: KeyTable) -> Nic<D> {
        self.transmit.set_keys(keys);
        self
    }

    /// The same, which hashes by `key`.
    pub fn with_rss_key(mut self, key: &RssKey) -> Nic<D> {
        self.set_rss_key(key);
        self
    }

    /// It hashes by `key` from now on.
    pub fn set_rss_key(&mut self, key: &RssKey) {
        self.rss = Toeplitz::new(key);
    }

    /// The same with these stages.
    pub fn with_stages(mut self, mut stages: Chain<D>) -> Nic<D> {
        if let Some(own) = self.stages.take_own() {
            stages.push_own(own);
        }
        Nic { stages, ..self }
    }

    /// The same with `stage` behind those that there are, counted from the wire.
    pub fn with_stage(mut self, stage: impl Stage<D>) -> Nic<D> {
        self.stages.push(Box::new(stage));
        self
    }

    /// A frame whose turn has come goes to the host, through the stages if there are any: they need its `summary`.
    #[inline(always)]
    fn deliver(&mut self, dma: &mut D, arriving: &Arriving<'_>, summary: Option<&FrameSummary>, parsed: Time) {
        dma.wait_until(parsed.max(self.receive_free));
        self.note(dma, arriving.stamp, Moment::Turn);
        match summary {
            Some(summary) if !self.stages.is_empty() => self.pass_stages(dma, arriving, summary, parsed),
            _ => {
                self.deliver_to_host(dma, arriving, parsed);
                self.receive_free = dma.now();
            }
        }
    }

    /// The frame goes to the host, or is dropped.
    #[inline(always)]
    fn deliver_to_host(&mut self, dma: &mut D, arriving: &Arriving<'_>, parsed: Time) {
        self.note(dma, arriving.stamp, Moment::Delivery);
        match self.receive.receive(dma, arriving) {
            Ok(()) => {
                self.note(dma, arriving.stamp, Moment::Delivered);
                self.counters.delivered += 1;
                self.queues[usize::from(arriving.queue)].delivered += 1;
                let came = parsed - self.spec.rx_pipeline;
                self.counters.receive_ps += (dma.now() - came).as_ps();
            }
            Err(DropCause::ANSWERED) => {
                self.note(dma, arriving.stamp, Moment::Diverted);
                self.stages.count_answered();
            }
            Err(cause) => {
                self.note(dma, arriving.stamp, Moment::Dropped(cause.0));
                self.queues[usize::from(arriving.queue)].drops.count(cause.0);
                if cause == DropCause::BAD_DESCRIPTOR {
                    let blamed = self.blamed(arriving.queue);
                    self.blame(blamed);
                }
            }
        }
    }

    /// The frame that came in at `stamp` has come to this moment.
    #[inline(always)]
    fn note(&self, dma: &mut D, stamp: Time, moment: Moment) {
        dma.hint(Hint::Packet(PacketKey { stamp, port: self.spec.port.0 }, moment));
    }

    /// When the next of the frames that wait in the FIFO has its turn.
    pub fn held_due(&self) -> Time {
        match self.held.len() == 0 {
            true => Time::NEVER,
            false => self.receive_free,
        }
    }

    /// Frames that wait in the FIFO.
    pub fn held(&self) -> u64 {
        self.held.len() as u64
    }

    /// Delivers the frames whose turn has come.
    #[inline(always)]
    pub fn receive_held(&mut self, dma: &mut D) {
        let now = dma.now();
        while self.receive_free <= now
            && let Some(held) = self.held.oldest()
        {
            let bytes = take(&mut held.bytes);
            let parsed = held.parsed;
            let arriving = held.arriving(&bytes, self.spec.port);
            let summary = if self.stages.is_empty() { None } else { Some(held.summary) };
            self.held.expect_next();
            self.deliver(dma, &arriving, summary.as_ref(), parsed);
            self.fifo.drain_next(dma.now());
            self.held.pop(bytes);
        }
    }

    /// A core's register write arrived; `false` if there is no such register, or it cannot have that value.
    pub fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let known = if self.receive.is_whole() {
            self.receive.write_register(dma, index, value)
        } else if index >= registers::TRANSMIT {
            let queue = (index - registers::TRANSMIT) as usize;
            self.transmit.doorbell(dma, queue, value)
        } else if (registers::STAGES..registers::STEERING).contains(&index) {
            self.stages.write_register(dma, self.transmit.internal(), index - registers::STAGES, value)
        } else if index >= registers::STEERING {
            self.steering.write_register(index - registers::STEERING, value)
        } else {
            self.receive.write_register(dma, index - registers::RECEIVE, value)
        };
        self.counters.bad_register_writes += u64::from(!known);
        known
    }

    /// Does what the NIC does on its own; returns when to call again.
    pub fn advance<E: Egress>(&mut self, dma: &mut D, egress: &mut E) -> Time {
        if self.receive.due() <= dma.now() {
            self.receive.advance(dma);
        }
        if !self.stages.is_empty() {
            self.advance_stages(dma);
        }
        let next = self.transmit.advance(dma, egress, &mut self.stages);
        next.min(self.receive.due()).min(self.stages.due())
    }

    /// When it has something to do of its own, or a frame's turn comes.
    pub fn due(&self) -> Time {
        let receives = self.receive.due().min(self.held_due());
        receives.min(self.transmit.internal_due()).min(self.stages.due())
    }

    /// The name of the set of queues in use.
    pub fn active_set(&self) -> &'static str {
        self.receive.sets()[usize::from(self.steering.active())]
    }

    /// Its port.
    pub fn port(&self) -> PortId {
        self.spec.port
    }
}
