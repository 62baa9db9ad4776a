//! Records between messages and TCP, worked on by a core, by the NIC below a TCP that it does not know (autonomous
//! offload), or by a NIC that runs TCP (dependent offload, `tasnic/records.rs`).
//!
//! ```text
//!  app.rs: messages ── RecordFlow ── a connection's rings ── service.rs: TCP ── NIC with stage `l5p`
//!                       │ tls.rs, nvme.rs: framing            │ offload.rs: marks, commands, reports, answers
//!                       └ message map, reports, questions
//! ```
//!
//! Bytes are really encrypted or digested, by the NIC's engine or by the same code on the core; keys follow from ports,
//! as there are no handshakes. A core's time for it is set by options, the NIC's by the stage.

mod nvme;
pub mod offload;
pub mod options;
mod plan;
mod stacked;
#[cfg(test)]
mod tests;
mod tls;

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_l5p::context::{ContextId, FlowKey, Start};
use nicforge_l5p::counters::Counters;
use nicforge_l5p::driver::{Layer5, MessageMap, ResyncAnswer, TxDriver, TxMessageState};
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::Piece;
use nicforge_l5p::port::Reports;
use nicforge_l5p::sequence::Seq;
use nicforge_nic::Segment;
use nicforge_platform::Cpu;
use nicforge_platform::sim::SimCpu;
use nicforge_stages::l5p::Command;
use nicforge_units::Cycles;

use super::service::STORAGE_PORT;
use super::source::MessagePlace;
pub use nvme::Buffers;
use nvme::NvmeLayer;
use options::{LayerFive, RecordsBy};
use plan::cycles;
pub use plan::{RecordCosts, RecordCounts, RecordPlan};
use stacked::StackedLayer;
use tls::TlsLayer;

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;
/// An MTU: no dump makes the NIC read more.
const DUMP_BYTES_MAX: u32 = 1500;

/// A connection's records as its kernel and its application share them.
pub type SharedRecords = Rc<RefCell<RecordFlow>>;

/// A record that is not what its sender wrote: the connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// Where a connection's streams begin, and which contexts of the NIC they have.
#[derive(Clone, Copy, Debug)]
struct Beginning {
    /// From this end to the other.
    outward: FlowKey,
    transmit: Start,
    receive: Start,
    transmit_context: ContextId,
    receive_context: ContextId,
    /// Of what comes within TLS.
    within: ContextId,
}

enum Layer {
    Tls(Box<TlsLayer>),
    Nvme(Box<NvmeLayer>),
    Stacked(Box<StackedLayer>),
}

/// The records of one end of a connection.
pub struct RecordFlow {
    plan: RecordPlan,
    beginning: Beginning,
    layer: Layer,
    written: u64,
    placed_bytes: u64,
    sent: SentRecords,
    driver: TxDriver,
    reports: Reports,
    /// Commands that the NIC must have before what was written leaves.
    commands: Vec<Command>,
}

/// Records that may have to be sent again.
struct SentRecords(MessageMap);

impl Layer5 for SentRecords {
    fn l5o_get_tx_msgstate(&self, tcpsn: Seq) -> TxMessageState {
        self.0.find(tcpsn)
    }

    // Nothing comes in here that could be asked about.
    fn l5o_resync_rx_req(&mut self, _tcpsn: Seq) {}
}

impl RecordPlan {
    /// Whether a NIC works on them that knows nothing of TCP.
    fn is_autonomous(&self) -> bool {
        self.on_wire().is_nic() && !self.is_dependent
    }

    /// The records of connection `flow`, of which this end sends on `outward`, and whose streams begin there.
    pub fn begin(self, flow: usize, outward: FlowKey, [transmit, receive]: [Seq; 2]) -> RecordFlow {
        let first = self.first_context + 2 * flow as u32;
        let start = |tcpsn| Start { tcpsn, number: 0 };
        let beginning = Beginning {
            outward,
            transmit: start(transmit),
            receive: start(receive),
            transmit_context: ContextId(first),
            receive_context: ContextId(first + 1),
            within: ContextId(self.first_within + flow as u32),
        };
        RecordFlow::new(self, flow, beginning)
    }
}

impl RecordFlow {
    fn new(plan: RecordPlan, flow: usize, beginning: Beginning) -> RecordFlow {
        let Beginning { outward, transmit, receive, receive_context, .. } = beginning;
        let nvme = || NvmeLayer::new(plan.role, transmit.tcpsn, receive.tcpsn, plan.buffers.of(flow));
        let layer = match plan.layer {
            LayerFive::Nvme => Layer::Nvme(Box::new(nvme())),
            LayerFive::NvmeTls => {
                Layer::Stacked(Box::new(StackedLayer::new(&outward, receive, receive_context, nvme())))
            }
            _ => Layer::Tls(Box::new(TlsLayer::new(&outward, receive, receive_context))),
        };
        RecordFlow {
            plan,
            beginning,
            layer,
            written: 0,
            placed_bytes: 0,
            sent: SentRecords(MessageMap::new(transmit.tcpsn)),
            driver: TxDriver::new(transmit, plan.state_of(&outward), DUMP_BYTES_MAX),
            reports: Reports::new(receive.tcpsn),
            commands: Vec::new(),
        }
    }

    /// Who works on what TCP carries.
    pub fn by(&self) -> RecordsBy {
        self.plan.on_wire()
    }

    /// Whether no core copies payload, as if a NIC had put it where it belongs.
    pub fn leaves_copies_out(&self) -> bool {
        self.plan.layer == LayerFive::Nvme && self.plan.by == RecordsBy::Emulated
    }

    /// Whether a server reads them from a target.
    pub fn is_storage(&self) -> bool {
        self.beginning.outward.ports[1] == STORAGE_PORT
    }

    /// The content of the next record, of `left` bytes that shall go.
    pub fn content(&self, left: u32) -> u32 {
        left.min(self.plan.content_max)
    }

    /// Bytes of a record that are not content, of which it has so many.
    pub fn overhead(&self, content: u32) -> u32 {
        let of_pdu = NvmeLayer::overhead(self.plan.role);
        match &self.layer {
            Layer::Tls(_) => tls::OVERHEAD_BYTES,
            Layer::Nvme(_) => of_pdu,
            Layer::Stacked(_) => of_pdu + (content + of_pdu).div_ceil(self.plan.around_max) * tls::OVERHEAD_BYTES,
        }
    }

    /// Writes the record of `content` bytes that `fill` writes, from `place` on. It will lie in `pieces` of the ring.
    pub fn write(
        &mut self,
        cpu: &mut SimCpu,
        content: u32,
        place: MessagePlace,
        pieces: [Segment; 2],
        fill: impl FnOnce(&mut [u8]),
    ) -> Vec<u8> {
        let mut record = match &self.layer {
            Layer::Tls(_) => TlsLayer::frame(content, fill),
            Layer::Nvme(layer) => layer.frame(content, place, fill),
            Layer::Stacked(layer) => {
                let pdu = layer.pdus.frame(content, place, fill);
                return self.write_stacked(cpu, pdu, place, pieces);
            }
        };
        let costs = &self.plan.costs;
        cpu.work(costs.record);
        if self.plan.by.is_nic() {
            let pieces = pieces.into_iter().filter(|piece| piece.len > 0);
            let pieces = pieces.map(|piece| Piece { address: piece.at.0, bytes: piece.len });
            self.sent.0.push(self.written, pieces.collect());
            if let Layer::Nvme(layer) = &self.layer
                && self.plan.is_autonomous()
                && let Some((id, state)) = layer.placement(place)
            {
                cpu.work(costs.buffer);
                self.commands.push(Command::Add(self.beginning.receive_context, id, state));
            }
        }
        if !self.plan.is_autonomous() {
            match &mut self.layer {
                Layer::Tls(layer) => layer.seal(cpu, costs, self.written, &mut record),
                Layer::Nvme(layer) => layer.seal(cpu, costs, &mut record),
                Layer::Stacked(_) => {}
            }
        }
        self.written += 1;
        record
    }

    /// Takes the next bytes of the receive ring.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut done = 0;
        for stretch in self.reports.take(bytes.len()) {
            let here = &bytes[done..done + stretch.bytes];
            match &mut self.layer {
                Layer::Tls(layer) => layer.push(here, &stretch.received),
                Layer::Nvme(layer) => layer.push(here, &stretch.received),
                Layer::Stacked(layer) => layer.push(here, &stretch.received),
            }
            done += stretch.bytes;
        }
    }

    /// The content of the next record, if it is whole.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn read(&mut self, cpu: &mut SimCpu) -> Result<Option<Vec<u8>>, Damaged> {
        let costs = &self.plan.costs;
        let content = match &mut self.layer {
            Layer::Tls(layer) => layer.read(cpu, costs)?,
            Layer::Nvme(layer) => layer.read(cpu, costs)?.map(|answer| {
                if let (Some(id), true) = (answer.ends, self.plan.is_autonomous()) {
                    self.commands.push(Command::Delete(self.beginning.receive_context, id));
                }
                answer.content
            }),
            Layer::Stacked(layer) => layer.read(cpu, costs)?.map(|answer| {
                if let (Some(id), true) = (answer.ends, self.plan.by.is_nic()) {
                    self.commands.push(Command::Delete(self.beginning.within, id));
                }
                answer.content
            }),
        };
        if let Some(content) = &content {
            cpu.work(costs.record);
            cpu.work(Cycles(costs.page.0 * (content.len() / PAGE_BYTES) as u64));
        }
        Ok(content)
    }

    /// Bytes of the record at `tcpsn` before it: a NIC that goes on there has to read them again.
    pub fn prefix_bytes(&self, tcpsn: Seq) -> u32 {
        match self.sent.0.find(tcpsn) {
            TxMessageState::Kept { prefix, .. } => prefix.iter().map(|piece| piece.bytes).sum(),
            TxMessageState::Released | TxMessageState::NotYet => 0,
        }
    }

    /// How records came.
    pub fn counts(&self) -> RecordCounts {
        let mut counts = self.counts_of_layer();
        if self.plan.by.is_nic() && self.plan.is_dependent {
            (counts.offloaded, counts.not_offloaded) = (counts.not_offloaded, 0);
        }
        counts
    }

    fn counts_of_layer(&self) -> RecordCounts {
        let counts = RecordCounts { sent: self.written, placed_bytes: self.placed_bytes, ..RecordCounts::default() };
        match &self.layer {
            Layer::Tls(layer) => {
                let read = layer.counters();
                RecordCounts {
                    offloaded: read.offloaded,
                    partly_offloaded: read.partly_offloaded,
                    not_offloaded: read.not_offloaded,
                    encrypted_again_bytes: read.encrypted_again_bytes,
                    ..counts
                }
            }
            Layer::Nvme(layer) => {
                let [offloaded, not_offloaded] = layer.checked();
                RecordCounts { offloaded, not_offloaded, ..counts }
            }
            Layer::Stacked(layer) => {
                let ([offloaded, not_offloaded], read) = (layer.pdus.checked(), layer.counters());
                let around = [read.offloaded, read.partly_offloaded, read.not_offloaded];
                let encrypted_again_bytes = read.encrypted_again_bytes;
                RecordCounts { offloaded, not_offloaded, around, encrypted_again_bytes, ..counts }
            }
        }
    }

    /// What the driver counted of recoveries.
    pub fn driver_counters(&self) -> Counters {
        self.driver.counters()
    }

    /// Notes what the NIC said of bytes that came. Tells whether they already are where they belong.
    fn note(&mut self, seq: Seq, bytes: usize, received: &Received) -> bool {
        self.reports.note(seq, bytes, received);
        if let Some(tcpsn) = received.resync {
            match &mut self.layer {
                Layer::Tls(layer) => layer.asked(tcpsn),
                Layer::Nvme(layer) => layer.asked(tcpsn),
                Layer::Stacked(layer) => layer.asked(tcpsn),
            }
        }
        if let (Some(tcpsn), Layer::Stacked(layer)) = (received.inner.resync, &mut self.layer) {
            layer.asked_within(tcpsn);
        }
        let is_placed = received.is_placed || received.inner.is_placed || self.leaves_copies_out();
        if is_placed {
            self.placed_bytes += bytes as u64;
        }
        is_placed
    }

    /// The peer has everything before `tcpsn`.
    pub fn acknowledge(&mut self, tcpsn: Seq) {
        self.sent.0.acknowledge(tcpsn);
        self.driver.acknowledge(tcpsn);
    }

    fn take_answers(&mut self) -> Vec<(ContextId, ResyncAnswer)> {
        let Beginning { receive_context, within, .. } = self.beginning;
        let of = |context, answers: Vec<ResyncAnswer>| answers.into_iter().map(move |answer| (context, answer));
        match &mut self.layer {
            Layer::Tls(layer) => of(receive_context, layer.take_answers()).collect(),
            Layer::Nvme(layer) => of(receive_context, layer.take_answers()).collect(),
            Layer::Stacked(layer) => {
                let [around, inner] = layer.take_answers();
                of(receive_context, around).chain(of(within, inner)).collect()
            }
        }
    }
}

impl std::fmt::Debug for RecordFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordFlow").field("plan", &self.plan).field("written", &self.written).finish_non_exhaustive()
    }
}
