//! Messages out of a stream of packets that the NIC processed, or did not, or in part.

use std::collections::VecDeque;
use std::ops::Range;

use crate::context::ContextId;
use crate::engine::{InnerReport, Outcome, Received};
use crate::sequence::Seq;

/// A stretch of a message that came in one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Bytes of the message.
    pub range: Range<usize>,
    /// The context by which the NIC processed them, if it did.
    pub processed_by: Option<ContextId>,
    /// Whether the NIC wrote their payload to its destination.
    pub is_placed: bool,
    /// What the NIC did for the protocol inside.
    pub inner: InnerReport,
}

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Sequence number of its first byte.
    pub start: Seq,
    /// Its bytes; those of processed parts are as the NIC left them.
    pub bytes: Vec<u8>,
    /// The parts in order; together they are the message.
    pub parts: Vec<Part>,
}

impl Message {
    /// Whether the NIC processed every byte.
    pub fn is_processed(&self) -> bool {
        self.parts.iter().all(|part| part.processed_by.is_some())
    }

    /// Whether the NIC processed no byte.
    pub fn is_untouched(&self) -> bool {
        !self.parts.iter().any(|part| part.processed_by.is_some())
    }
}

struct Chunk {
    bytes: Vec<u8>,
    used: usize,
    processed_by: Option<ContextId>,
    is_placed: bool,
    inner: InnerReport,
}

/// Bytes that TCP delivered in order and that no message has taken yet.
pub struct Assembler {
    chunks: VecDeque<Chunk>,
    next: Seq,
    bytes: usize,
}

impl Assembler {
    /// Nothing yet; the next message begins at `tcpsn`.
    pub fn new(tcpsn: Seq) -> Self {
        Self { chunks: VecDeque::new(), next: tcpsn, bytes: 0 }
    }

    /// Appends payload that TCP delivers, with the NIC's report of its packet.
    pub fn push(&mut self, payload: &[u8], received: &Received) {
        if payload.is_empty() {
            return;
        }
        self.bytes += payload.len();
        self.chunks.push_back(Chunk {
            bytes: payload.to_vec(),
            used: 0,
            processed_by: (received.outcome == Outcome::Offloaded).then_some(received.context),
            is_placed: received.is_placed,
            inner: received.inner,
        });
    }

    /// Bytes that no message has taken.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where the next message begins.
    pub fn next_tcpsn(&self) -> Seq {
        self.next
    }

    /// The first `into.len()` bytes, without taking them; tells whether there are so many.
    pub fn peek(&self, into: &mut [u8]) -> bool {
        if self.bytes < into.len() {
            return false;
        }
        let bytes = self.chunks.iter().flat_map(|chunk| &chunk.bytes[chunk.used..]);
        into.iter_mut().zip(bytes).for_each(|(into, byte)| *into = *byte);
        true
    }

    /// Takes a message of `length` bytes; `None` while some are missing.
    pub fn take(&mut self, length: usize) -> Option<Message> {
        if self.bytes < length {
            return None;
        }
        let mut message = Message { start: self.next, bytes: Vec::with_capacity(length), parts: Vec::new() };
        while message.bytes.len() < length {
            let chunk = self.chunks.front_mut()?;
            let begin = message.bytes.len();
            let bytes = (chunk.bytes.len() - chunk.used).min(length - begin);
            message.bytes.extend_from_slice(&chunk.bytes[chunk.used..chunk.used + bytes]);
            chunk.used += bytes;
            message.parts.push(Part {
                range: begin..begin + bytes,
                processed_by: chunk.processed_by,
                is_placed: chunk.is_placed,
                inner: chunk.inner,
            });
            if chunk.used == chunk.bytes.len() {
                self.chunks.pop_front();
            }
        }
        self.bytes -= length;
        self.next = self.next.plus(length);
        Some(message)
    }
}
