//! The network block interface: frames in and out, their buffers, and the port's rate.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::TxOffload;
use nicforge_platform::sim::NicConfig;
use nicforge_units::{BitRate, Bytes, Time};

use super::nic::{Event, Nic};
use super::options::Layout;
use super::work::{Kind, Work};

/// Frames are padded to this length, in bytes without FCS.
const FRAME_LEAST: usize = 60;

/// The port and its buffers.
#[derive(Debug)]
pub struct Mac {
    rate: BitRate,
    overhead: Bytes,
    rx_pipeline: Time,
    tx_pipeline: Time,
    fifo_most: usize,
    /// Frames that came, each with the time from which it can be read.
    fifo: VecDeque<(Time, Vec<u8>)>,
    fifo_bytes: usize,
    /// Free CTM buffers for received frames.
    buffers: usize,
    /// The port is sending until then.
    sends_until: Time,
}

impl Mac {
    /// A port as `config` has it, with `buffers` for received frames.
    pub fn new(config: &NicConfig, buffers: usize) -> Mac {
        Mac {
            rate: config.port,
            overhead: config.wire_overhead,
            rx_pipeline: config.rx_pipeline,
            tx_pipeline: config.tx_pipeline,
            fifo_most: config.rx_fifo.0 as usize,
            fifo: VecDeque::new(),
            fifo_bytes: 0,
            buffers,
            sends_until: Time::ZERO,
        }
    }

    /// Frames that wait for a buffer.
    pub fn waiting(&self) -> usize {
        self.fifo.len()
    }
}

impl Nic {
    /// A frame's last bit arrives at `at`.
    pub fn arrive(&mut self, frame: &Frame, at: Time) {
        let len = frame.len();
        self.counters.arrived.0 += 1;
        self.counters.arrived.1 += len as u64;
        let verdict = frame.findings().verdict;
        if verdict.l3 == Some(false) || verdict.l4 == Some(false) {
            return self.refuse("bad_checksum");
        }
        if self.mac.fifo_bytes + len > self.mac.fifo_most {
            return self.refuse("fifo_full");
        }
        let readable = at + self.mac.rx_pipeline;
        self.mac.fifo_bytes += len;
        self.mac.fifo.push_back((readable, frame.bytes().to_vec()));
        self.npu.at(readable, Event::Arrived);
    }

    fn refuse(&mut self, cause: &'static str) {
        self.arrival_drops += 1;
        self.drops.count(cause);
    }

    /// Frames get buffers in the order in which they came, and become RX events.
    pub(super) fn admit(&mut self) {
        let now = self.npu.now();
        while self.mac.buffers > 0 && self.mac.fifo.front().is_some_and(|(readable, _)| *readable <= now) {
            let Some((_, frame)) = self.mac.fifo.pop_front() else { return };
            self.mac.fifo_bytes -= frame.len();
            self.mac.buffers -= 1;
            self.receive(frame);
        }
    }

    /// A frame that was the slow path's waits for a buffer once more.
    pub(super) fn mac_takes_again(&mut self, frame: Vec<u8>) {
        self.mac.fifo_bytes += frame.len();
        self.mac.fifo.push_back((self.npu.now(), frame));
        self.admit();
    }

    /// A frame enters the pipeline.
    fn receive(&mut self, frame: Vec<u8>) {
        let arrival = self.arrivals.number();
        if let Some(frame) = self.stages_take(frame, arrival) {
            self.begin(Work { kind: Kind::Rx, frame, arrival, ..Work::default() });
        }
    }

    /// Frame number `arrival` has gone before it became an event: those behind it do not wait for it.
    pub(super) fn never_comes(&mut self, arrival: u64) {
        if self.options.tasnic_layout == Layout::RunToCompletion {
            return self.buffer_is_free(Kind::Rx);
        }
        let nothing = self.works.put(Work { kind: Kind::Rx, is_over: true, ..Work::default() });
        self.arrivals.put(arrival, nothing);
        self.npu.at(self.reordered, Event::Reordered);
    }

    /// A frame is another's, or nobody's: it goes to the slow path, and its buffer is free.
    pub(super) fn except(&mut self, number: u32) {
        if let Some(work) = self.works.take(number) {
            self.buffer_is_free(work.kind);
            if !work.frame.is_empty() {
                self.counters.exceptions += 1;
                self.hand_to_slow_path(work.frame);
            }
        }
    }

    /// The buffer of an event of this kind is free.
    pub(super) fn buffer_is_free(&mut self, kind: Kind) {
        match kind {
            Kind::Rx => {
                self.mac.buffers += 1;
                self.admit();
            }
            Kind::Tx => {
                self.queue.give_back();
                self.let_depart();
            }
            Kind::Ac | Kind::Retx => {}
        }
    }

    /// A frame leaves by the stages and the port. `buffer` says whose buffer it is in.
    pub(super) fn send(&mut self, bytes: Vec<u8>, buffer: Option<Kind>) {
        if let Some(bytes) = self.stages_send(bytes, buffer) {
            self.put_on_wire(bytes, buffer);
        }
    }

    pub(super) fn put_on_wire(&mut self, bytes: Vec<u8>, buffer: Option<Kind>) {
        let mut frame = Frame::from(bytes);
        frame.complete(TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() });
        let on_wire = Bytes(frame.len().max(FRAME_LEAST) as u64) + self.mac.overhead;
        let begins = self.mac.sends_until.max(self.npu.now() + self.mac.tx_pipeline);
        self.mac.sends_until = begins + self.mac.rate.time_for(on_wire);
        self.counters.sent.0 += 1;
        self.counters.sent.1 += frame.len() as u64;
        self.sent.push_back((self.mac.sends_until, frame));
        if let Some(kind) = buffer {
            self.npu.at(self.mac.sends_until, Event::Left(kind));
        }
    }

    /// Flows whose turn it is send segments, as far as there are buffers.
    pub(super) fn let_depart(&mut self) {
        let now = self.npu.now();
        while let Some(flow) = self.queue.depart(now) {
            let script = self.scripts.depart();
            self.hold(flow);
            self.npu.put(self.pools.queue, 1, super::nic::Job::Depart(flow), script);
        }
        if let Some(at) = self.queue.ask(now) {
            self.npu.at(at, Event::Wheel);
        }
    }
}
