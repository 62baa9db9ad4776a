//! The driver half of the toy protocol: frames messages with an empty check, and completes what the NIC left undone.

use super::{CHECK_BYTES, HEADER_BYTES, Toy, ToyState, prepare, seal, stream};
use crate::context::{Start, State};
use crate::driver::{Assembler, Layer5, MessageMap, ResyncAnswer, ResyncRequests, TxMessageState};
use crate::engine::Received;
use crate::host::{HostBuffers, Piece};
use crate::protocol::Protocol;
use crate::sequence::Seq;

/// Sends messages.
pub struct ToyWriter {
    number: u64,
    map: MessageMap,
}

impl ToyWriter {
    /// The first message has the number and place of `start`.
    pub fn new(start: Start) -> Self {
        Self { number: start.number, map: MessageMap::new(start.tcpsn) }
    }

    /// Frames a message.
    pub fn write(&mut self, buffers: &mut dyn HostBuffers, data: &[u8]) -> Piece {
        let piece = buffers.place(&prepare(data));
        self.map.push(self.number, vec![piece]);
        self.number += 1;
        piece
    }

    /// TCP's peer has everything before `tcpsn`.
    pub fn acknowledge(&mut self, tcpsn: Seq) {
        self.map.acknowledge(tcpsn);
    }
}

impl Layer5 for ToyWriter {
    fn l5o_get_tx_msgstate(&self, tcpsn: Seq) -> TxMessageState {
        self.map.find(tcpsn)
    }

    fn l5o_resync_rx_req(&mut self, _tcpsn: Seq) {}
}

/// A stream that does not follow the protocol, or a check that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToyError {
    /// No header where one must be.
    #[error("no message begins at {0:?}")]
    NotAMessage(Seq),
    /// The check does not fit.
    #[error("the check of message {0} is wrong")]
    Check(u64),
}

/// Receives messages.
pub struct ToyReader {
    key: u64,
    state: State,
    number: u64,
    assembler: Assembler,
    requests: ResyncRequests,
    answers: Vec<ResyncAnswer>,
    /// Messages that the NIC processed entirely.
    pub offloaded: u64,
}

impl ToyReader {
    /// The first message has the number and place of `start`.
    pub fn new(key: u64, start: Start) -> Self {
        Self {
            key,
            state: ToyState::state(key),
            number: start.number,
            assembler: Assembler::new(start.tcpsn),
            requests: ResyncRequests::default(),
            answers: Vec::new(),
            offloaded: 0,
        }
    }

    /// Payload that TCP delivers in order, with the NIC's report.
    pub fn push(&mut self, payload: &[u8], received: &Received) {
        self.assembler.push(payload, received);
    }

    /// The next message's data; `None` while bytes are missing.
    ///
    /// # Errors
    ///
    /// [`ToyError`].
    pub fn read(&mut self) -> Result<Option<Vec<u8>>, ToyError> {
        let mut header = [0; HEADER_BYTES];
        if !self.assembler.peek(&mut header) {
            return Ok(None);
        }
        let at = self.assembler.next_tcpsn();
        let length = Toy.parse(&self.state, &header).ok_or(ToyError::NotAMessage(at))?.length as usize;
        self.answers.extend(self.requests.message(at, self.number, length));
        let Some(message) = self.assembler.take(length) else {
            return Ok(None);
        };
        let number = self.number;
        self.number += 1;
        let data = HEADER_BYTES..length - CHECK_BYTES;
        if message.is_processed() {
            self.offloaded += 1;
            return Ok(Some(message.bytes[data].to_vec()));
        }
        let mut bytes = message.bytes;
        for part in message.parts.iter().filter(|part| part.processed_by.is_none()) {
            let begin = part.range.start.max(data.start);
            let range = begin..part.range.end.min(data.end).max(begin);
            let places = (begin - HEADER_BYTES) as u32..;
            bytes[range].iter_mut().zip(places).for_each(|(byte, place)| *byte ^= stream(self.key, number, place));
        }
        let plain = bytes[data].to_vec();
        let mut again = prepare(&plain);
        seal(self.key, number, &mut again);
        if again[length - CHECK_BYTES..] != bytes[length - CHECK_BYTES..] {
            return Err(ToyError::Check(number));
        }
        Ok(Some(plain))
    }

    /// Answers for the NIC, in order.
    pub fn take_answers(&mut self) -> Vec<ResyncAnswer> {
        std::mem::take(&mut self.answers)
    }
}

impl Layer5 for ToyReader {
    fn l5o_get_tx_msgstate(&self, _tcpsn: Seq) -> TxMessageState {
        TxMessageState::NotYet
    }

    fn l5o_resync_rx_req(&mut self, tcpsn: Seq) {
        self.requests.request(tcpsn);
    }
}
