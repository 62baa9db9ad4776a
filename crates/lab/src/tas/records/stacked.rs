//! PDUs of NVMe/TCP in records of TLS. What is sent, a core has digested before the NIC encrypts it: hosts that read send
//! commands, which have no digest. What comes, the NIC decrypts, checks and places by two contexts that are tied.

use nicforge_l5p::context::{ContextId, FlowKey, Start};
use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::Piece;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::stack::driver::StackedReader;
use nicforge_l5p::tls::reader::{ReaderCounters, RecordReader};
use nicforge_nic::Segment;
use nicforge_platform::Cpu;
use nicforge_platform::sim::SimCpu;
use nicforge_stages::l5p::Command;
use nicforge_units::Cycles;

use super::super::source::MessagePlace;
use super::nvme::{Answer, NvmeLayer};
use super::tls::{TlsLayer, keys_of};
use super::{Damaged, Layer, RecordCosts, RecordFlow, cycles};

/// Both directions of a connection.
pub struct StackedLayer {
    sealing: TlsLayer,
    reader: StackedReader,
    /// What is in the records.
    pub pdus: NvmeLayer,
}

impl StackedLayer {
    /// From this end to the other go records of `outward`; those that come begin at `receive`, and so do their PDUs.
    pub fn new(outward: &FlowKey, receive: Start, context: ContextId, pdus: NvmeLayer) -> StackedLayer {
        let records = RecordReader::new(&keys_of(&outward.reverse()), receive, context);
        StackedLayer {
            sealing: TlsLayer::new(outward, receive, context),
            reader: StackedReader::new(records, receive.tcpsn),
            pdus,
        }
    }

    /// Bytes that TCP delivers, with the NIC's report.
    pub fn push(&mut self, bytes: &[u8], received: &Received) {
        self.reader.push(bytes, received);
    }

    /// The content of the next PDU that is whole, and the command that it ends.
    pub fn read(&mut self, cpu: &mut SimCpu, costs: &RecordCosts) -> Result<Option<Answer>, Damaged> {
        let before = self.counters();
        self.reader.work(self.pdus.connection()).map_err(|_| Damaged)?;
        let after = self.counters();
        let records =
            |counters: &ReaderCounters| counters.offloaded + counters.partly_offloaded + counters.not_offloaded;
        cpu.work(Cycles(costs.around.0 * (records(&after) - records(&before))));
        cpu.work(cycles(costs.encrypt, after.encrypted_again_bytes - before.encrypted_again_bytes));
        cpu.work(cycles(costs.decrypt, after.decrypted_bytes - before.decrypted_bytes));
        self.pdus.read(cpu, costs)
    }

    /// How records came.
    pub fn counters(&self) -> ReaderCounters {
        self.reader.tls.counters()
    }

    /// The NIC asks whether a record begins there.
    pub fn asked(&mut self, tcpsn: Seq) {
        self.reader.tls.l5o_resync_rx_req(tcpsn);
    }

    /// The NIC asks whether a PDU begins there.
    pub fn asked_within(&mut self, tcpsn: Seq) {
        self.reader.inner_resync_request(tcpsn);
    }

    /// Answers for the NIC, about records and about PDUs.
    pub fn take_answers(&mut self) -> [Vec<ResyncAnswer>; 2] {
        [self.reader.tls.take_answers(), self.reader.take_inner_answers(self.pdus.connection())]
    }
}

impl RecordFlow {
    /// Puts a PDU into records, which will lie in `pieces` of the ring.
    pub(super) fn write_stacked(
        &mut self,
        cpu: &mut SimCpu,
        mut pdu: Vec<u8>,
        place: MessagePlace,
        mut pieces: [Segment; 2],
    ) -> Vec<u8> {
        let Layer::Stacked(layer) = &mut self.layer else { return pdu };
        let (plan, costs) = (&self.plan, &self.plan.costs);
        cpu.work(costs.record);
        layer.pdus.seal(cpu, costs, &mut pdu);
        if let (Some((id, state)), true) = (layer.pdus.placement(place), plan.by.is_nic()) {
            cpu.work(costs.buffer);
            self.commands.push(Command::Add(self.beginning.within, id, state));
        }
        let mut all = Vec::new();
        for part in pdu.chunks(plan.around_max as usize) {
            let mut record = TlsLayer::frame(part.len() as u32, |room| room.copy_from_slice(part));
            cpu.work(costs.around);
            if plan.on_wire().is_nic() {
                self.sent.0.push(self.written, take(&mut pieces, record.len() as u32));
            } else {
                layer.sealing.seal(cpu, costs, self.written, &mut record);
            }
            self.written += 1;
            all.append(&mut record);
        }
        all
    }
}

/// The first `bytes` of pieces of a ring, which go on behind them.
fn take(pieces: &mut [Segment; 2], mut bytes: u32) -> Vec<Piece> {
    let mut taken = Vec::new();
    for piece in pieces {
        let here = piece.len.min(bytes);
        if here > 0 {
            taken.push(Piece { address: piece.at.0, bytes: here });
            *piece = Segment { at: piece.at + u64::from(here), len: piece.len - here };
            bytes -= here;
        }
    }
    taken
}
