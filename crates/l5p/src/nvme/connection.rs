//! What host and target share: PDUs out with digests left to the NIC, PDUs in with digests checked where the NIC did
//! not.

use std::collections::VecDeque;

use super::pdu::{COMMON_BYTES, CommonHeader, DIGEST_BYTES, Digests, PduType, flags};
use super::wire::Status;
use crate::context::Start;
use crate::crc;
use crate::driver::{Assembler, Layer5, MessageMap, Part, ResyncAnswer, ResyncRequests, TxMessageState};
use crate::engine::Received;
use crate::host::{HostBuffers, HostFault, HostMemory, Piece};
use crate::placement::{RrState, RrStateId};
use crate::sequence::Seq;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// What stands where a PDU must begin is none: fatal error status 1, invalid header field.
    #[error("{bytes:02x?} at {at:?} is no PDU header: the connection must end")]
    NotAPdu {
        /// The bytes.
        bytes: [u8; COMMON_BYTES],
        /// Where they are.
        at: Seq,
    },
    /// A header digest is wrong.
    #[error("the header digest of the {kind:?} at {at:?} is wrong: the connection must end")]
    HeaderDigest {
        /// Type of the PDU.
        kind: PduType,
        /// Where it is.
        at: Seq,
    },
    /// The PDU has no business here.
    #[error("{0:?} is not expected now: the connection must end")]
    Unexpected(PduType),
    /// The peer transfers more, less or elsewhere than was agreed.
    #[error("{0:?} transfers data outside of what command {1} asked for: the connection must end")]
    Transfer(PduType, u16),
    /// The target does not take the host.
    #[error("the target refuses `connect` with status {:#x}: look at the subsystem's name", .0.0)]
    Refused(Status),
    /// The peer ended the connection.
    #[error("the peer ended the connection with status {0}")]
    Terminated(u16),
    /// A buffer is not in memory.
    #[error(transparent)]
    Memory(#[from] HostFault),
}

/// An action of the driver on the NIC, before the driver hands more bytes to TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NicAction {
    /// Digests are agreed: create a transmit and a receive context.
    Offload {
        /// Where transmitted PDUs are offloaded from.
        transmit: Start,
        /// Where received PDUs are offloaded from.
        receive: Start,
        /// The digests.
        digests: Digests,
    },
    /// `l5o_add_rr_state`.
    Add(RrStateId, RrState),
    /// `l5o_del_rr_state`.
    Delete(RrStateId),
}

/// A PDU whose header is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// The common header.
    pub common: CommonHeader,
    /// All bytes.
    pub bytes: Vec<u8>,
    /// How they came.
    pub parts: Vec<Part>,
    /// Whether the data digest is right, or there is none.
    pub is_data_good: bool,
}

impl Pdu {
    /// The header behind the common part.
    pub fn header(&self) -> &[u8] {
        &self.bytes[COMMON_BYTES..self.common.header_bytes()]
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.common.data()]
    }

    /// Calls `copy` with each stretch of data that the NIC has not placed, and its offset in the data. Where the NIC
    /// has, source and destination are the same, and there is nothing to copy.
    ///
    /// # Errors
    ///
    /// The first error of `copy`.
    pub fn unplaced(&self, mut copy: impl FnMut(u32, &[u8]) -> Result<(), HostFault>) -> Result<u32, HostFault> {
        let data = self.common.data();
        let mut copied = 0;
        for part in self.parts.iter().filter(|part| !part.is_placed) {
            let (begin, end) = (part.range.start.max(data.start), part.range.end.min(data.end));
            if begin < end {
                copy((begin - data.start) as u32, &self.bytes[begin..end])?;
                copied += (end - begin) as u32;
            }
        }
        Ok(copied)
    }
}

/// How PDUs came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// PDUs whose digests the NIC checked.
    pub digests_offloaded: u64,
    /// PDUs whose digests software checked.
    pub digests_in_software: u64,
    /// PDUs with a wrong data digest.
    pub data_digest_errors: u64,
    /// Bytes of data that software copied.
    pub copied_bytes: u64,
}

/// Both directions of a connection.
pub struct Connection {
    digests: Digests,
    /// Whether the NIC fills digests in.
    fills_digests: bool,
    map: MessageMap,
    sent: u64,
    output: VecDeque<Piece>,
    assembler: Assembler,
    received: u64,
    requests: ResyncRequests,
    answers: Vec<ResyncAnswer>,
    /// How PDUs came.
    pub counters: ConnectionCounters,
}

impl Connection {
    /// A connection without digests yet, whose first bytes have these sequence numbers.
    pub fn new(outward: Seq, inward: Seq) -> Self {
        Self {
            digests: Digests::default(),
            fills_digests: false,
            map: MessageMap::new(outward),
            sent: 0,
            output: VecDeque::new(),
            assembler: Assembler::new(inward),
            received: 0,
            requests: ResyncRequests::default(),
            answers: Vec::new(),
            counters: ConnectionCounters::default(),
        }
    }

    /// The agreed digests hold from the next PDU on, both ways.
    pub fn set_digests(&mut self, digests: Digests) {
        self.digests = digests;
    }

    /// The NIC fills digests in from the next PDU on; tells where the transmit context begins.
    pub fn offload_transmit(&mut self) -> Start {
        self.fills_digests = true;
        Start { tcpsn: self.map.end(), number: self.sent }
    }

    /// Where the receive context begins.
    pub fn offload_receive(&self) -> Start {
        Start { tcpsn: self.assembler.next_tcpsn(), number: self.received }
    }

    /// Sends a PDU. `header` follows the common header; `data` stays where it is until it is acknowledged.
    ///
    /// # Errors
    ///
    /// [`HostFault`] when software has to read the data for a digest and it is not there.
    pub fn send<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        kind: PduType,
        extra_flags: u8,
        header: &[u8],
        data: Option<Piece>,
    ) -> Result<(), HostFault> {
        let digests = if kind.has_digests() { self.digests } else { Digests::default() };
        let has_data_digest = digests.data && data.is_some() && kind.may_have_data();
        let flags = extra_flags
            | if digests.header { flags::HEADER_DIGEST } else { 0 }
            | if has_data_digest { flags::DATA_DIGEST } else { 0 };
        let head_bytes = kind.header_bytes() + if digests.header { DIGEST_BYTES } else { 0 };
        let data_at = if data.is_some() { head_bytes as u8 } else { 0 };
        let data_bytes = data.map_or(0, |data| data.bytes as usize);
        let length = (head_bytes + data_bytes + if has_data_digest { DIGEST_BYTES } else { 0 }) as u32;
        let mut head = CommonHeader { kind, flags, data_at, length }.to_bytes().to_vec();
        head.extend_from_slice(header);
        head.resize(kind.header_bytes(), 0);
        if digests.header {
            let digest = if self.fills_digests { [0; 4] } else { crc::digest(&head) };
            head.extend_from_slice(&digest);
        }
        let mut pieces = vec![memory.place(&head)];
        pieces.extend(data);
        if let Some(data) = data.filter(|_| has_data_digest) {
            let mut digest = [0; 4];
            if !self.fills_digests {
                let mut bytes = vec![0; data.bytes as usize];
                memory.read(data.address, &mut bytes)?;
                digest = crc::digest(&bytes);
            }
            pieces.push(memory.place(&digest));
        }
        self.output.extend(&pieces);
        self.map.push(self.sent, pieces);
        self.sent += 1;
        Ok(())
    }

    /// The next piece for TCP.
    pub fn next_output(&mut self) -> Option<Piece> {
        self.output.pop_front()
    }

    /// TCP's peer has everything before `tcpsn`.
    pub fn acknowledge(&mut self, tcpsn: Seq) {
        self.map.acknowledge(tcpsn);
    }

    /// Where the oldest PDU that is kept lies in host memory.
    pub fn oldest_address(&self) -> Option<u64> {
        self.map.oldest_address()
    }

    /// Payload that TCP delivers in order, with the NIC's report.
    pub fn push(&mut self, payload: &[u8], received: &Received) {
        self.assembler.push(payload, received);
    }

    /// The next PDU; `None` while bytes are missing.
    ///
    /// # Errors
    ///
    /// [`ConnectionError`] when framing or header digest are wrong.
    pub fn read(&mut self) -> Result<Option<Pdu>, ConnectionError> {
        let mut bytes = [0; COMMON_BYTES];
        if !self.assembler.peek(&mut bytes) {
            return Ok(None);
        }
        let at = self.assembler.next_tcpsn();
        let common = CommonHeader::parse(self.digests, &bytes).ok_or(ConnectionError::NotAPdu { bytes, at })?;
        let length = common.length as usize;
        self.answers.extend(self.requests.message(at, self.received, length));
        let Some(message) = self.assembler.take(length) else {
            return Ok(None);
        };
        self.received += 1;
        let mut pdu = Pdu { common, bytes: message.bytes, parts: message.parts, is_data_good: true };
        if common.header_digest_bytes() + common.data_digest_bytes() > 0 {
            self.check_digests(&mut pdu, at)?;
        }
        Ok(Some(pdu))
    }

    /// Checks digests unless every packet of the PDU says that the NIC did.
    fn check_digests(&mut self, pdu: &mut Pdu, at: Seq) -> Result<(), ConnectionError> {
        if pdu.parts.iter().all(|part| part.processed_by.is_some()) {
            self.counters.digests_offloaded += 1;
            return Ok(());
        }
        self.counters.digests_in_software += 1;
        let common = pdu.common;
        let (header, rest) = pdu.bytes.split_at(common.header_bytes());
        if common.header_digest_bytes() > 0 && rest[..DIGEST_BYTES] != crc::digest(header) {
            return Err(ConnectionError::HeaderDigest { kind: common.kind, at });
        }
        let data = common.data();
        if common.data_digest_bytes() > 0 && pdu.bytes[data.end..] != crc::digest(&pdu.bytes[data]) {
            pdu.is_data_good = false;
            self.counters.data_digest_errors += 1;
        }
        Ok(())
    }

    /// Answers for the NIC, in order.
    pub fn take_answers(&mut self) -> Vec<ResyncAnswer> {
        std::mem::take(&mut self.answers)
    }

    /// PDUs sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

impl Layer5 for Connection {
    fn l5o_get_tx_msgstate(&self, tcpsn: Seq) -> TxMessageState {
        self.map.find(tcpsn)
    }

    fn l5o_resync_rx_req(&mut self, tcpsn: Seq) {
        self.requests.request(tcpsn);
    }
}
