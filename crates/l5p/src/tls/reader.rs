//! The driver half of TLS on receive: takes what the NIC did and does the rest.

use std::collections::VecDeque;

use super::crypto::TlsKeys;
use super::record::{ContentType, HEADER_BYTES, HeaderError, RecordHeader, TAG_BYTES};
use super::software::{BadRecordMac, SoftwareTls};
use crate::context::{ContextId, Start};
use crate::driver::{Assembler, Layer5, Message, Part, ResyncAnswer, ResyncRequests, TxMessageState};
use crate::engine::Received;
use crate::sequence::Seq;

/// Type of a handshake message that changes the sender's key (RFC 8446, 4.6.3).
const KEY_UPDATE: u8 = 24;

/// Contexts of one key that are remembered for packets that wait in TCP: the NIC may lose a context many times.
const CONTEXTS_MAX: usize = 16;

/// Keys that are kept for packets that met an old context; no packet waits in TCP through so many updates.
const PAST_KEYS_MAX: usize = 4;

/// A record's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it carries; control records never join data.
    pub content: ContentType,
    /// The content without padding.
    pub data: Vec<u8>,
    /// Its number.
    pub number: u64,
    /// Sequence number of the content's first byte.
    pub tcpsn: Seq,
    /// How the content came, for the protocol inside.
    pub parts: Vec<Part>,
    /// Whether the sender's next record is under a new key: the reader waits for [`RecordReader::rekey`].
    pub changes_key: bool,
}

/// Why reading ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// What stands where a record must begin is none.
    #[error("{bytes:02x?} at {at:?} is no header of a record, as {why}: the connection must end")]
    NotARecord {
        /// The bytes.
        bytes: [u8; HEADER_BYTES],
        /// Where they are.
        at: Seq,
        /// The reason.
        why: HeaderError,
    },
    /// A record is not authentic.
    #[error(transparent)]
    BadRecordMac(#[from] BadRecordMac),
    /// A record of TLS 1.3 holds only padding.
    #[error("record {0} has no content type")]
    NoContentType(u64),
}

/// How records came, as in Linux's `/proc/net/tls_stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounters {
    /// Records that the NIC decrypted entirely.
    pub offloaded: u64,
    /// Records that the NIC decrypted in part; software encrypted that part again.
    pub partly_offloaded: u64,
    /// Records that software decrypted.
    pub not_offloaded: u64,
    /// Bytes that software encrypted again.
    pub encrypted_again_bytes: u64,
    /// Bytes that software decrypted.
    pub decrypted_bytes: u64,
}

/// A key before an update. Until the NIC gets a new context it goes on with the old key, and counts on.
struct PastKey {
    software: SoftwareTls,
    contexts: VecDeque<ContextId>,
    number: u64,
}

/// Reads records from in-order packets.
pub struct RecordReader {
    assembler: Assembler,
    software: SoftwareTls,
    /// The NIC's contexts with the present key, the last one first.
    contexts: VecDeque<ContextId>,
    number: u64,
    past: VecDeque<PastKey>,
    awaits_key: bool,
    requests: ResyncRequests,
    answers: Vec<ResyncAnswer>,
    counters: ReaderCounters,
}

impl RecordReader {
    /// The first record has the number and place of `start`; `context` is the NIC's, if it offloads.
    pub fn new(keys: &TlsKeys, start: Start, context: ContextId) -> Self {
        Self {
            assembler: Assembler::new(start.tcpsn),
            software: SoftwareTls::new(keys),
            contexts: VecDeque::from([context]),
            number: start.number,
            past: VecDeque::new(),
            awaits_key: false,
            requests: ResyncRequests::default(),
            answers: Vec::new(),
            counters: ReaderCounters::default(),
        }
    }

    /// Payload that TCP delivers in order, with the NIC's report.
    pub fn push(&mut self, payload: &[u8], received: &Received) {
        self.assembler.push(payload, received);
    }

    /// The next record; `None` while bytes or a new key are missing. Each call returns one record, so that whoever
    /// reads data sees a control record as what it is.
    ///
    /// # Errors
    ///
    /// [`ReadError`]; the connection cannot go on.
    pub fn read(&mut self) -> Result<Option<Record>, ReadError> {
        let mut bytes = [0; HEADER_BYTES];
        if self.awaits_key || !self.assembler.peek(&mut bytes) {
            return Ok(None);
        }
        let at = self.assembler.next_tcpsn();
        let header = self.software.parse(&bytes).map_err(|why| ReadError::NotARecord { bytes, at, why })?;
        let length = HEADER_BYTES + header.payload_bytes;
        self.answers.extend(self.requests.message(at, self.number, length));
        let Some(message) = self.assembler.take(length) else {
            return Ok(None);
        };
        let state = self.software.state();
        if header.is_middlebox_ccs(state.version()) {
            let tcpsn = at.plus(HEADER_BYTES);
            let (content, data) = (header.content, message.bytes[HEADER_BYTES..].to_vec());
            return Ok(Some(Record {
                content,
                data,
                number: self.number,
                tcpsn,
                parts: Vec::new(),
                changes_key: false,
            }));
        }
        let number = self.number;
        self.number += 1;
        self.past.iter_mut().for_each(|past| past.number += 1);
        let parts = message.parts.clone();
        let bytes = self.decrypt(number, message)?;
        let mut record = self.strip(number, header, bytes)?;
        let data_at = self.software.state().shape().data_at();
        record.tcpsn = at.plus(data_at);
        record.parts = within(parts, data_at, record.data.len());
        self.awaits_key = record.changes_key;
        Ok(Some(record))
    }

    /// Completes what the NIC began.
    fn decrypt(&mut self, number: u64, message: Message) -> Result<Vec<u8>, BadRecordMac> {
        let is_by = |part: &Part| part.processed_by.is_some() && part.processed_by.as_ref() == self.contexts.front();
        if message.parts.iter().all(is_by) {
            self.counters.offloaded += 1;
            return Ok(message.bytes);
        }
        let is_untouched = message.is_untouched();
        let Message { mut bytes, parts, .. } = message;
        if is_untouched {
            self.counters.not_offloaded += 1;
        } else {
            self.counters.partly_offloaded += 1;
        }
        for Part { range, processed_by, .. } in parts {
            let Some(context) = processed_by else {
                continue;
            };
            self.counters.encrypted_again_bytes += range.len() as u64;
            match self.past.iter_mut().find(|past| past.contexts.contains(&context)) {
                // The NIC had an old key still.
                Some(past) => past.software.encrypt_again(past.number - 1, &mut bytes, range),
                None => self.software.encrypt_again(number, &mut bytes, range),
            }
        }
        self.software.open(number, &mut bytes)?;
        self.counters.decrypted_bytes += bytes.len() as u64;
        Ok(bytes)
    }

    /// Takes header, tag, padding and inner type off.
    fn strip(&self, number: u64, header: RecordHeader, bytes: Vec<u8>) -> Result<Record, ReadError> {
        let shape = self.software.state().shape();
        let mut data = &bytes[shape.data_at()..bytes.len() - TAG_BYTES];
        let mut content = header.content;
        if shape.has_inner_type {
            let last = data.iter().rposition(|byte| *byte != 0).ok_or(ReadError::NoContentType(number))?;
            content = ContentType(data[last]);
            data = &data[..last];
        }
        let changes_key = shape.has_inner_type && content == ContentType::HANDSHAKE && has_key_update(data);
        let (tcpsn, parts) = (Seq::default(), Vec::new());
        Ok(Record { content, data: data.to_vec(), number, tcpsn, parts, changes_key })
    }

    /// The key for the records behind a key update, and the number of the receive context that will get it. Tells
    /// where that context begins.
    pub fn rekey(&mut self, keys: &TlsKeys, context: ContextId) -> Start {
        let software = std::mem::replace(&mut self.software, SoftwareTls::new(keys));
        let contexts = std::mem::replace(&mut self.contexts, VecDeque::from([context]));
        self.past.push_back(PastKey { software, contexts, number: self.number });
        if self.past.len() > PAST_KEYS_MAX {
            self.past.pop_front();
        }
        self.number = 0;
        self.awaits_key = false;
        self.boundary()
    }

    /// The NIC has a new context with the present key, after it lost the one before. Records that the old one
    /// processed in part or whole are checked in software.
    pub fn attach(&mut self, context: ContextId) {
        self.contexts.push_front(context);
        self.contexts.truncate(CONTEXTS_MAX);
    }

    /// Where the next record begins, and its number: what `l5o_create` needs. Bytes that wait here already have passed
    /// the NIC; it finds that out and asks.
    pub fn boundary(&self) -> Start {
        Start { tcpsn: self.assembler.next_tcpsn(), number: self.number }
    }

    /// Answers for the NIC, in order.
    pub fn take_answers(&mut self) -> Vec<ResyncAnswer> {
        std::mem::take(&mut self.answers)
    }

    /// How records came.
    pub fn counters(&self) -> ReaderCounters {
        self.counters
    }
}

impl Layer5 for RecordReader {
    // A reader has sent nothing.
    fn l5o_get_tx_msgstate(&self, _tcpsn: Seq) -> TxMessageState {
        TxMessageState::NotYet
    }

    fn l5o_resync_rx_req(&mut self, tcpsn: Seq) {
        self.requests.request(tcpsn);
    }
}

/// The parts of a record as parts of its content.
fn within(parts: Vec<Part>, data_at: usize, bytes: usize) -> Vec<Part> {
    let cut = |at: usize| at.clamp(data_at, data_at + bytes) - data_at;
    let parts = parts.into_iter().map(|part| Part { range: cut(part.range.start)..cut(part.range.end), ..part });
    parts.filter(|part| !part.range.is_empty()).collect()
}

/// Whether one of a record's handshake messages is a key update.
fn has_key_update(mut messages: &[u8]) -> bool {
    while let Some(([kind, length @ ..], _)) = messages.split_first_chunk::<4>() {
        if *kind == KEY_UPDATE {
            return true;
        }
        let [high, middle, low] = length.map(usize::from);
        let Some(rest) = messages.get(4 + (high << 16 | middle << 8 | low)..) else {
            return false;
        };
        messages = rest;
    }
    false
}
