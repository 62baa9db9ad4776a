//! The driver half of TLS on transmit: frames records, leaves the tag to the NIC, and keeps the message map.

use super::crypto::{TlsKeys, TlsState};
use super::record::{ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, RecordHeader, Shape, TAG_BYTES, Version};
use crate::context::Start;
use crate::driver::{Layer5, MessageMap, TxMessageState};
use crate::host::{HostBuffers, Piece};
use crate::sequence::Seq;

/// Why a record cannot be framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record holds at most {PLAINTEXT_BYTES_MAX} bytes with padding, not {0}: write several")]
pub struct RecordTooLong(pub usize);

/// The bytes around a record's content before the NIC's work: they do not depend on keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// Header, and the nonce where it stands on the wire.
    pub head: Vec<u8>,
    /// Inner type where there is one, padding, an empty tag.
    pub tail: Vec<u8>,
}

impl Framed {
    /// The frame of record `number` with `data_bytes` of content. Padding exists in TLS 1.3 only.
    ///
    /// # Errors
    ///
    /// [`RecordTooLong`].
    pub fn new(
        shape: Shape,
        number: u64,
        content: ContentType,
        data_bytes: usize,
        padding_bytes: usize,
    ) -> Result<Self, RecordTooLong> {
        let padding_bytes = if shape.has_inner_type { padding_bytes } else { 0 };
        let plaintext = data_bytes + padding_bytes;
        if plaintext > PLAINTEXT_BYTES_MAX {
            return Err(RecordTooLong(plaintext));
        }
        let outer = if shape.has_inner_type { ContentType::DATA } else { content };
        let payload_bytes = shape.overhead_bytes() - HEADER_BYTES + plaintext;
        let mut head = RecordHeader { content: outer, payload_bytes }.to_bytes().to_vec();
        head.extend_from_slice(&number.to_be_bytes()[..shape.explicit_bytes]);
        let mut tail = if shape.has_inner_type { vec![content.0] } else { Vec::new() };
        tail.resize(tail.len() + padding_bytes + TAG_BYTES, 0);
        Ok(Self { head, tail })
    }
}

/// Frames records around data that stays where it is: nothing is copied, nothing is encrypted, and a page of the page
/// cache can be sent as it lies.
pub struct RecordWriter {
    state: TlsState,
    number: u64,
    map: MessageMap,
}

impl RecordWriter {
    /// The first record has the number and place of `start`.
    pub fn new(keys: &TlsKeys, start: Start) -> Self {
        Self { state: TlsState::new(keys), number: start.number, map: MessageMap::new(start.tcpsn) }
    }

    /// Frames a record and returns its bytes for TCP, in pieces of host memory. `data` belongs to the record until it
    /// is acknowledged. Padding exists in TLS 1.3 only.
    ///
    /// # Errors
    ///
    /// [`RecordTooLong`].
    pub fn write(
        &mut self,
        buffers: &mut dyn HostBuffers,
        content: ContentType,
        data: Piece,
        padding_bytes: usize,
    ) -> Result<Vec<Piece>, RecordTooLong> {
        let Framed { head, tail } =
            Framed::new(self.state.shape(), self.number, content, data.bytes as usize, padding_bytes)?;
        let mut pieces = vec![buffers.place(&head), data, buffers.place(&tail)];
        pieces.retain(|piece| piece.bytes > 0);
        self.map.push(self.number, pieces.clone());
        self.number += 1;
        Ok(pieces)
    }

    /// The unprotected `change_cipher_spec` of TLS 1.3, for middleboxes; nothing in TLS 1.2.
    pub fn middlebox_ccs(&mut self, buffers: &mut dyn HostBuffers) -> Option<Piece> {
        if self.state.version() != Version::Tls13 {
            return None;
        }
        let header = RecordHeader { content: ContentType::CHANGE_CIPHER_SPEC, payload_bytes: 1 };
        let piece = buffers.place(&[&header.to_bytes()[..], &[1]].concat());
        self.map.push(self.number, vec![piece]);
        Some(piece)
    }

    /// New keys from the next record on, whose number is 0 (RFC 8446, 7.2). Tells where it begins, for
    /// [`TxDriver::rekey`](crate::driver::TxDriver::rekey).
    pub fn rekey(&mut self, keys: &TlsKeys) -> Start {
        self.state = TlsState::new(keys);
        self.number = 0;
        self.boundary()
    }

    /// Where the next record begins, and its number.
    pub fn boundary(&self) -> Start {
        Start { tcpsn: self.map.end(), number: self.number }
    }

    /// TCP's peer has everything before `tcpsn`: releases the records and their data.
    pub fn acknowledge(&mut self, tcpsn: Seq) {
        self.map.acknowledge(tcpsn);
    }

    /// Where the oldest record that is kept lies in host memory.
    pub fn oldest_address(&self) -> Option<u64> {
        self.map.oldest_address()
    }

    /// Records that are kept.
    pub fn kept(&self) -> usize {
        self.map.len()
    }
}

impl Layer5 for RecordWriter {
    fn l5o_get_tx_msgstate(&self, tcpsn: Seq) -> TxMessageState {
        self.map.find(tcpsn)
    }

    // A writer has nothing to confirm.
    fn l5o_resync_rx_req(&mut self, _tcpsn: Seq) {}
}
