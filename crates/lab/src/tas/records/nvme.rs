//! PDUs of NVMe/TCP with data digests: the client is a host that reads, the server a target.
//!
//! A request is a command capsule, which carries its stamp where a command has addresses of its own; an answer is
//! data with SUCCESS, so no response follows. Commands are not those of a disk: there are no blocks behind them.

use nicforge_l5p::crc;
use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::Piece;
use nicforge_l5p::nvme::command_state;
use nicforge_l5p::nvme::connection::{Connection, Pdu};
use nicforge_l5p::nvme::pdu::{COMMON_BYTES, CommonHeader, DIGEST_BYTES, Digests, PduType, flags};
use nicforge_l5p::placement::{RrState, RrStateId};
use nicforge_l5p::sequence::Seq;
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Addr, Cpu};

use super::super::app::Role;
use super::super::message::STAMP_BYTES;
use super::super::source::MessagePlace;
use super::{Damaged, RecordCosts};

/// Digests of both directions: of data only, as in the paper's set-up.
pub const DIGESTS: Digests = Digests { header: false, data: true };
/// Where a capsule's header has the command's number and, in fields that only a disk reads, its stamp.
const COMMAND_AT: usize = COMMON_BYTES + 2;
const STAMP_AT: usize = COMMON_BYTES + 16;
/// Where a data PDU's header has number, offset and length.
const DATA_COMMAND_AT: usize = COMMON_BYTES;
const DATA_OFFSET_AT: usize = COMMON_BYTES + 4;
const DATA_LENGTH_AT: usize = COMMON_BYTES + 8;

/// Where a host's answers belong.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// The first buffer of the first connection.
    pub at: Addr,
    /// Bytes of each.
    pub each: u32,
    /// How many a connection has.
    pub count: u32,
    /// All connections have the same.
    pub is_shared: bool,
}

impl Buffers {
    /// Nothing is put anywhere.
    pub const NONE: Buffers = Buffers { at: Addr(0), each: 0, count: 0, is_shared: true };

    /// Those of connection `flow`.
    pub fn of(self, flow: usize) -> Buffers {
        let before = if self.is_shared { 0 } else { flow as u64 * u64::from(self.count) * u64::from(self.each) };
        Buffers { at: self.at + before, ..self }
    }
}

/// Both directions of a connection.
pub struct NvmeLayer {
    role: Role,
    connection: Connection,
    buffers: Buffers,
}

impl NvmeLayer {
    /// This end of a connection whose bytes begin there.
    pub fn new(role: Role, outward: Seq, inward: Seq, buffers: Buffers) -> NvmeLayer {
        let mut connection = Connection::new(outward, inward);
        connection.set_digests(DIGESTS);
        NvmeLayer { role, connection, buffers }
    }

    /// Bytes of a PDU that are not content.
    pub fn overhead(role: Role) -> u32 {
        match role {
            Role::Client => PduType::CapsuleCmd.header_bytes() as u32 - STAMP_BYTES,
            Role::Server => (PduType::C2hData.header_bytes() + DIGEST_BYTES) as u32,
        }
    }

    /// A PDU around the `content` bytes that `fill` writes, which belong at `place`; its digest is empty.
    pub fn frame(&self, content: u32, place: MessagePlace, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let command = (place.number as u16).to_le_bytes();
        if self.role == Role::Client {
            let kind = PduType::CapsuleCmd;
            let length = kind.header_bytes() as u32;
            let mut pdu = CommonHeader { kind, flags: 0, data_at: 0, length }.to_bytes().to_vec();
            pdu.resize(length as usize, 0);
            pdu[COMMAND_AT..COMMAND_AT + 2].copy_from_slice(&command);
            fill(&mut pdu[STAMP_AT..STAMP_AT + STAMP_BYTES as usize]);
            return pdu;
        }
        let kind = PduType::C2hData;
        let data_at = kind.header_bytes();
        let length = (data_at + content as usize + DIGEST_BYTES) as u32;
        let flags = flags::DATA_DIGEST | flags::LAST | flags::SUCCESS;
        let mut pdu = CommonHeader { kind, flags, data_at: data_at as u8, length }.to_bytes().to_vec();
        pdu.resize(length as usize, 0);
        pdu[DATA_COMMAND_AT..DATA_COMMAND_AT + 2].copy_from_slice(&command);
        pdu[DATA_OFFSET_AT..DATA_OFFSET_AT + 4].copy_from_slice(&place.done.to_le_bytes());
        pdu[DATA_LENGTH_AT..DATA_LENGTH_AT + 4].copy_from_slice(&content.to_le_bytes());
        fill(&mut pdu[data_at..data_at + content as usize]);
        pdu
    }

    /// The core computes the digest of a PDU's data.
    pub fn seal(&self, cpu: &mut SimCpu, costs: &RecordCosts, pdu: &mut [u8]) {
        if self.role == Role::Server {
            let end = pdu.len() - DIGEST_BYTES;
            let digest = crc::digest(&pdu[PduType::C2hData.header_bytes()..end]);
            pdu[end..].copy_from_slice(&digest);
            cpu.work(costs.digest_of(end as u64));
        }
    }

    /// What the NIC has to know before a request leaves: where its answer belongs.
    pub fn placement(&self, place: MessagePlace) -> Option<(RrStateId, RrState)> {
        let Buffers { at, each, count, .. } = self.buffers;
        let slot = place.number % u64::from(count.max(1));
        let piece = Piece { address: at.0 + slot * u64::from(each), bytes: each };
        (self.role == Role::Client).then(|| (command_state(place.number as u16), RrState { pieces: vec![piece] }))
    }

    /// Bytes that TCP delivers, with the NIC's report.
    pub fn push(&mut self, bytes: &[u8], received: &Received) {
        self.connection.push(bytes, received);
    }

    /// The content of the next PDU that is whole, and the command that it ends.
    pub fn read(&mut self, cpu: &mut SimCpu, costs: &RecordCosts) -> Result<Option<Answer>, Damaged> {
        let before = self.connection.counters.digests_in_software;
        let Some(pdu) = self.connection.read().map_err(|_| Damaged)? else { return Ok(None) };
        if self.connection.counters.digests_in_software > before {
            cpu.work(costs.digest_of(pdu.data().len() as u64));
        }
        if !pdu.is_data_good {
            return Err(Damaged);
        }
        let content = match pdu.common.kind {
            PduType::CapsuleCmd => pdu.bytes[STAMP_AT..STAMP_AT + STAMP_BYTES as usize].to_vec(),
            PduType::C2hData => pdu.data().to_vec(),
            _ => return Err(Damaged),
        };
        Ok(Some(Answer { content, ends: ended(&pdu) }))
    }

    /// The connection, for who feeds it.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// PDUs whose digests the NIC checked, and software.
    pub fn checked(&self) -> [u64; 2] {
        let counters = &self.connection.counters;
        [counters.digests_offloaded, counters.digests_in_software]
    }

    /// The NIC asks whether a PDU begins there.
    pub fn asked(&mut self, tcpsn: Seq) {
        self.connection.l5o_resync_rx_req(tcpsn);
    }

    /// Answers for the NIC.
    pub fn take_answers(&mut self) -> Vec<ResyncAnswer> {
        self.connection.take_answers()
    }
}

/// What a PDU brings.
pub struct Answer {
    /// Bytes of messages.
    pub content: Vec<u8>,
    /// The state whose command it ends.
    pub ends: Option<RrStateId>,
}

/// The command that is over with a PDU.
fn ended(pdu: &Pdu) -> Option<RrStateId> {
    let is_last = pdu.common.kind == PduType::C2hData && pdu.common.flags & flags::LAST != 0;
    let command = u16::from_le_bytes([pdu.bytes[DATA_COMMAND_AT], pdu.bytes[DATA_COMMAND_AT + 1]]);
    is_last.then(|| command_state(command))
}
