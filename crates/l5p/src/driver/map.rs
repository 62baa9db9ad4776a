//! The message map: which message holds a byte that was sent and is not yet acknowledged.

use std::collections::VecDeque;

use crate::context::Start;
use crate::host::Piece;
use crate::sequence::Seq;

/// What the layer-5 protocol knows of a byte to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxMessageState {
    /// Its message is kept.
    Kept {
        /// Where the message begins, and its number.
        start: Start,
        /// The message's bytes before the one asked for, where they lie in host memory.
        prefix: Vec<Piece>,
    },
    /// Its message was acknowledged and is gone. The next message's number would give it a wrong nonce.
    Released,
    /// No message reaches so far.
    NotYet,
}

struct Sent {
    begin: u64,
    bytes: u32,
    number: u64,
    pieces: Vec<Piece>,
}

/// Messages from the first that is not wholly acknowledged to the last. It holds references to host memory, not copies:
/// the pieces of a message must stay as they are until it is acknowledged.
pub struct MessageMap {
    messages: VecDeque<Sent>,
    /// Stream offset and sequence number behind the last message; both move together, so wrap-around does not matter.
    end: u64,
    end_tcpsn: Seq,
}

impl MessageMap {
    /// An empty map of a stream whose first message begins at `tcpsn`.
    pub fn new(tcpsn: Seq) -> Self {
        Self { messages: VecDeque::new(), end: 0, end_tcpsn: tcpsn }
    }

    /// Where the next message begins.
    pub fn end(&self) -> Seq {
        self.end_tcpsn
    }

    /// Appends a message.
    pub fn push(&mut self, number: u64, pieces: Vec<Piece>) {
        let bytes: u32 = pieces.iter().map(|piece| piece.bytes).sum();
        self.messages.push_back(Sent { begin: self.end, bytes, number, pieces });
        self.end += u64::from(bytes);
        self.end_tcpsn = self.end_tcpsn.plus(bytes as usize);
    }

    /// Releases messages whose last byte lies before `tcpsn`. An acknowledgement that claims more than was sent is
    /// cut to what was.
    pub fn acknowledge(&mut self, tcpsn: Seq) {
        let Some(acknowledged) = self.offset(tcpsn) else {
            return;
        };
        while self.messages.front().is_some_and(|sent| sent.begin + u64::from(sent.bytes) <= acknowledged) {
            self.messages.pop_front();
        }
    }

    /// The message that holds the byte at `tcpsn`.
    pub fn find(&self, tcpsn: Seq) -> TxMessageState {
        let Some(offset) = self.offset(tcpsn) else {
            return TxMessageState::Released;
        };
        let after = self.messages.partition_point(|sent| sent.begin <= offset);
        let Some(sent) = after.checked_sub(1).map(|place| &self.messages[place]) else {
            return if offset < self.end { TxMessageState::Released } else { TxMessageState::NotYet };
        };
        let within = offset - sent.begin;
        if within >= u64::from(sent.bytes) {
            return TxMessageState::NotYet;
        }
        let back = (self.end - sent.begin) as u32;
        TxMessageState::Kept {
            start: Start { tcpsn: Seq(self.end_tcpsn.0.wrapping_sub(back)), number: sent.number },
            prefix: prefix(&sent.pieces, within as u32),
        }
    }

    /// The lowest address of the oldest message that is kept. Where memory is handed out in the order of messages, what
    /// lies below is free.
    pub fn oldest_address(&self) -> Option<u64> {
        self.messages.front()?.pieces.iter().map(|piece| piece.address).min()
    }

    /// Messages that are kept.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether no message is kept.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Stream offset of a sequence number near the stream's end; `None` before the stream's beginning.
    fn offset(&self, tcpsn: Seq) -> Option<u64> {
        self.end.checked_add_signed(i64::from(tcpsn.since(self.end_tcpsn)))
    }
}

/// The first `bytes` bytes of `pieces`.
fn prefix(pieces: &[Piece], bytes: u32) -> Vec<Piece> {
    let mut left = bytes;
    let mut prefix = Vec::new();
    for piece in pieces {
        if left == 0 {
            break;
        }
        let bytes = piece.bytes.min(left);
        prefix.push(Piece { address: piece.address, bytes });
        left -= bytes;
    }
    prefix
}
