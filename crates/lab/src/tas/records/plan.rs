//! What a host's records are like, what they cost a core, and what is counted of them.

use nicforge_l5p::context::{FlowKey, State};
use nicforge_l5p::nvme::NvmeState;
use nicforge_units::Cycles;

use super::super::app::Role;
use super::nvme::{self, Buffers};
use super::options::{LayerFive, RecordsBy};
use super::tls;

/// What records cost a core.
#[derive(Clone, Copy, Debug)]
pub struct RecordCosts {
    /// Each record, or each PDU.
    pub record: Cycles,
    /// Each record of TLS around PDUs.
    pub around: Cycles,
    /// Each byte that a core encrypts, in cycles.
    pub encrypt: f64,
    /// Each byte that a core decrypts, in cycles.
    pub decrypt: f64,
    /// Each page of data that comes.
    pub page: Cycles,
    /// A digest that a core computes, beside its bytes.
    pub digest: Cycles,
    /// Each byte of a digest, in cycles.
    pub digest_byte: f64,
    /// A special descriptor for the NIC, or an answer to it.
    pub command: Cycles,
    /// A buffer that the NIC is told of.
    pub buffer: Cycles,
}

/// What a host's records are like.
#[derive(Clone, Copy, Debug)]
pub struct RecordPlan {
    /// Their protocol.
    pub layer: LayerFive,
    /// Which end of connections this is.
    pub role: Role,
    /// Who works on them; on PDUs where these are in records of TLS.
    pub by: RecordsBy,
    /// Who works on records of TLS around PDUs.
    pub around_by: RecordsBy,
    /// The NIC runs TCP, too: it gets and gives plaintext, and keeps no context beside its connection. The bytes are made
    /// here all the same; the time is the NIC's.
    pub is_dependent: bool,
    /// Content of a record at most, in bytes.
    pub content_max: u32,
    /// The number of the first context on the NIC; each connection has two.
    pub first_context: u32,
    /// The number of the first context within TLS; each connection has one.
    pub first_within: u32,
    /// Bytes of PDUs in a record of TLS at most.
    pub around_max: u32,
    /// Buffers of answers.
    pub buffers: Buffers,
    /// What they cost a core.
    pub costs: RecordCosts,
}

/// How records came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Records that were written.
    pub sent: u64,
    /// Records on which the NIC did all the work.
    pub offloaded: u64,
    /// Records on which it did a part; software did that part again.
    pub partly_offloaded: u64,
    /// Records on which software did the work.
    pub not_offloaded: u64,
    /// Bytes that software encrypted again.
    pub encrypted_again_bytes: u64,
    /// Bytes that the NIC put where they belong, so that no core copied them.
    pub placed_bytes: u64,
    /// Records of TLS around PDUs: those on which the NIC did all, a part, none of the work.
    pub around: [u64; 3],
}

impl RecordCosts {
    pub(super) fn digest_of(&self, bytes: u64) -> Cycles {
        Cycles(self.digest.0 + cycles(self.digest_byte, bytes).0)
    }
}

impl RecordPlan {
    /// Who works on what TCP carries.
    pub(super) fn on_wire(&self) -> RecordsBy {
        if self.layer == LayerFive::NvmeTls { self.around_by } else { self.by }
    }

    /// The state that a context of `flow` begins with.
    pub(super) fn state_of(&self, flow: &FlowKey) -> State {
        if self.layer == LayerFive::Nvme { NvmeState::state(nvme::DIGESTS) } else { tls::state_of(flow) }
    }

    /// The protocol's name in the registry.
    pub(super) fn protocol(&self) -> &'static str {
        if self.layer == LayerFive::Nvme { "nvme_tcp" } else { "tls" }
    }
}

/// A core's time for so many bytes.
pub(super) fn cycles(each: f64, bytes: u64) -> Cycles {
    Cycles((each * bytes as f64).round() as u64)
}
