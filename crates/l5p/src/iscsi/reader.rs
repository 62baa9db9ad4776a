//! The driver half of iSCSI on receive: PDUs out of packets, digests where the NIC did not check them, answers for it.

use super::{Digests, IscsiState, LEAD_BYTES, Lead, Sender};
use crate::context::{Start, State};
use crate::crc;
use crate::driver::{Assembler, Layer5, Message, ResyncAnswer, ResyncRequests, TxMessageState};
use crate::engine::Received;
use crate::sequence::Seq;

/// Why reading ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IscsiError {
    /// What stands where a PDU must begin is none.
    #[error("{bytes:02x?} at {at:?} is no PDU: the connection must end")]
    NotAPdu {
        /// The bytes.
        bytes: [u8; LEAD_BYTES],
        /// Where they are.
        at: Seq,
    },
    /// A header digest is wrong.
    #[error("the header digest of the PDU at {0:?} is wrong: the connection must end")]
    HeaderDigest(Seq),
}

/// A PDU whose header is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Opcode and lengths.
    pub lead: Lead,
    /// Bytes, and how they came.
    pub message: Message,
    /// Whether the data digest is right, or there is none.
    pub is_data_good: bool,
}

/// Reads PDUs from in-order packets.
pub struct PduReader {
    sender: Sender,
    digests: Digests,
    assembler: Assembler,
    number: u64,
    requests: ResyncRequests,
    answers: Vec<ResyncAnswer>,
}

impl PduReader {
    /// The first PDU has the number and place of `start`.
    pub fn new(sender: Sender, digests: Digests, start: Start) -> Self {
        Self {
            sender,
            digests,
            assembler: Assembler::new(start.tcpsn),
            number: start.number,
            requests: ResyncRequests::default(),
            answers: Vec::new(),
        }
    }

    /// What a receive context gets at `l5o_create`.
    pub fn state(&self) -> State {
        IscsiState::state(self.sender, self.digests)
    }

    /// Payload that TCP delivers in order, with the NIC's report.
    pub fn push(&mut self, payload: &[u8], received: &Received) {
        self.assembler.push(payload, received);
    }

    /// The next PDU; `None` while bytes are missing.
    ///
    /// # Errors
    ///
    /// [`IscsiError`]; the connection cannot go on.
    pub fn read(&mut self) -> Result<Option<Pdu>, IscsiError> {
        let mut bytes = [0; LEAD_BYTES];
        if !self.assembler.peek(&mut bytes) {
            return Ok(None);
        }
        let at = self.assembler.next_tcpsn();
        let lead = Lead::parse(self.sender, self.digests, &bytes).ok_or(IscsiError::NotAPdu { bytes, at })?;
        self.answers.extend(self.requests.message(at, self.number, lead.length()));
        let Some(message) = self.assembler.take(lead.length()) else {
            return Ok(None);
        };
        self.number += 1;
        let mut is_data_good = true;
        if !message.is_processed() {
            let (header, data) = (&message.bytes[..lead.header_bytes], lead.data_at()..lead.padded_end());
            if self.digests.header && message.bytes[lead.header_bytes..data.start] != crc::digest(header) {
                return Err(IscsiError::HeaderDigest(at));
            }
            let digest = &message.bytes[data.end..];
            is_data_good = digest.is_empty() || digest == crc::digest(&message.bytes[data]);
        }
        Ok(Some(Pdu { lead, message, is_data_good }))
    }

    /// Answers for the NIC, in order.
    pub fn take_answers(&mut self) -> Vec<ResyncAnswer> {
        std::mem::take(&mut self.answers)
    }
}

impl Layer5 for PduReader {
    fn l5o_get_tx_msgstate(&self, _tcpsn: Seq) -> TxMessageState {
        TxMessageState::NotYet
    }

    fn l5o_resync_rx_req(&mut self, tcpsn: Seq) {
        self.requests.request(tcpsn);
    }
}
