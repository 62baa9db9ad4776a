//! The driver half of NVMe/TCP over TLS.

use std::collections::VecDeque;

use super::StackedDescriptor;
use crate::context::{ContextId, Start};
use crate::driver::{Layer5, ResyncAnswer, TxMessageState};
use crate::engine::{Descriptor, Outcome, Received};
use crate::host::{HostBuffers, Piece};
use crate::nvme::connection::Connection;
use crate::sequence::Seq;
use crate::tls::reader::{ReadError, RecordReader};
use crate::tls::record::ContentType;
use crate::tls::writer::{RecordTooLong, RecordWriter};

/// Where a record's content begins in the inner stream.
struct RecordPlace {
    outer: Seq,
    inner: Seq,
}

/// Puts the output of an NVMe/TCP connection into records and drives the NIC's two contexts. Every record carries data.
pub struct StackedWriter {
    tls: RecordWriter,
    records: VecDeque<RecordPlace>,
    inner_end: Seq,
    shadow: Seq,
    dump_bytes_max: u32,
    /// Recoveries.
    pub recoveries: u64,
    /// Bytes that the NIC reads again.
    pub dump_bytes: u64,
}

impl StackedWriter {
    /// Both streams begin at a message: the records of `tls` at its boundary, the inner protocol at `inner`.
    pub fn new(tls: RecordWriter, inner: Seq, dump_bytes_max: u32) -> Self {
        let shadow = tls.boundary().tcpsn;
        let records = VecDeque::new();
        Self { tls, records, inner_end: inner, shadow, dump_bytes_max, recoveries: 0, dump_bytes: 0 }
    }

    /// Puts a piece of the inner stream into a record and returns the record's bytes for TCP.
    ///
    /// # Errors
    ///
    /// [`RecordTooLong`].
    pub fn write(&mut self, buffers: &mut dyn HostBuffers, piece: Piece) -> Result<Vec<Piece>, RecordTooLong> {
        let outer = self.tls.boundary().tcpsn;
        let pieces = self.tls.write(buffers, ContentType::DATA, piece, 0)?;
        self.records.push_back(RecordPlace { outer, inner: self.inner_end });
        self.inner_end = self.inner_end.plus(piece.bytes as usize);
        Ok(pieces)
    }

    /// TCP's peer has everything before `tcpsn`. Inner messages are kept as long as the record in which they end.
    pub fn acknowledge(&mut self, inner: &mut Connection, tcpsn: Seq) {
        self.tls.acknowledge(tcpsn);
        while self.records.get(1).is_some_and(|next| !tcpsn.is_before(next.outer)) {
            self.records.pop_front();
        }
        if let Some(first) = self.records.front() {
            inner.acknowledge(first.inner);
        }
    }

    /// The descriptors for a packet of TCP; none when its record is gone.
    pub fn send(&mut self, inner: &Connection, seq: Seq, payload: &[u8]) -> Vec<StackedDescriptor> {
        let mut descriptors = Vec::new();
        if seq != self.shadow {
            let TxMessageState::Kept { start, prefix } = self.tls.l5o_get_tx_msgstate(seq) else {
                return descriptors;
            };
            let Some(place) = self.records.iter().find(|record| record.outer == start.tcpsn) else {
                return descriptors;
            };
            let (inner_start, inner_prefix) = match inner.l5o_get_tx_msgstate(place.inner) {
                TxMessageState::Kept { start, prefix } => (start, prefix),
                TxMessageState::NotYet => (Start { tcpsn: place.inner, number: inner.sent() }, Vec::new()),
                TxMessageState::Released => return descriptors,
            };
            self.recoveries += 1;
            // The record's prefix goes through the inner context first, so that one stands at the record's content.
            descriptors.push(StackedDescriptor::Inner(Descriptor::ProgressParameters(inner_start)));
            descriptors.push(StackedDescriptor::Inner(Descriptor::Fence));
            descriptors.extend(self.dumps(&inner_prefix).into_iter().map(StackedDescriptor::Inner));
            descriptors.push(StackedDescriptor::Outer(Descriptor::ProgressParameters(start)));
            descriptors.push(StackedDescriptor::Outer(Descriptor::Fence));
            descriptors.extend(self.dumps(&prefix).into_iter().map(StackedDescriptor::Outer));
        }
        self.shadow = seq.plus(payload.len());
        descriptors.push(StackedDescriptor::Outer(Descriptor::Packet { seq, payload: payload.to_vec() }));
        descriptors
    }

    fn dumps(&mut self, prefix: &[Piece]) -> Vec<Descriptor> {
        let mut dumps = Vec::new();
        for piece in prefix {
            self.dump_bytes += u64::from(piece.bytes);
            for done in (0..piece.bytes).step_by(self.dump_bytes_max as usize) {
                let bytes = (piece.bytes - done).min(self.dump_bytes_max);
                dumps.push(Descriptor::Dump(Piece { address: piece.address + u64::from(done), bytes }));
            }
        }
        dumps
    }
}

/// Takes records apart and hands the inner stream on, with what the NIC did for it.
pub struct StackedReader {
    /// The records.
    pub tls: RecordReader,
    inner_next: Seq,
    request: Option<Seq>,
    asked: Option<(Seq, Seq)>,
    answers: Vec<ResyncAnswer>,
}

impl StackedReader {
    /// The inner stream begins at `inner` with the next record.
    pub fn new(tls: RecordReader, inner: Seq) -> Self {
        Self { tls, inner_next: inner, request: None, asked: None, answers: Vec::new() }
    }

    /// The NIC believes that an inner message begins at the byte with this TCP sequence number.
    pub fn inner_resync_request(&mut self, tcpsn: Seq) {
        self.request = Some(tcpsn);
    }

    /// Payload that TCP delivers in order, with the NIC's report.
    pub fn push(&mut self, payload: &[u8], received: &Received) {
        self.tls.push(payload, received);
    }

    /// Moves what records carry into the inner connection.
    ///
    /// # Errors
    ///
    /// [`ReadError`]; the connection cannot go on.
    pub fn work(&mut self, inner: &mut Connection) -> Result<(), ReadError> {
        while let Some(record) = self.tls.read()? {
            if record.content != ContentType::DATA {
                continue;
            }
            self.translate(inner, record.tcpsn, record.data.len());
            for part in record.parts {
                let mut received = Received::without_context();
                if part.processed_by.is_some() && part.inner.is_processed {
                    received.outcome = Outcome::Offloaded;
                    received.context = part.processed_by.unwrap_or(ContextId::default());
                }
                received.is_placed = part.processed_by.is_some() && part.inner.is_placed;
                inner.push(&record.data[part.range], &received);
            }
            self.inner_next = self.inner_next.plus(record.data.len());
        }
        Ok(())
    }

    /// Asks the inner connection about a place of this record; a place before it holds no message any more.
    fn translate(&mut self, inner: &mut Connection, tcpsn: Seq, bytes: usize) {
        let Some(request) = self.request.filter(|request| request.is_before(tcpsn.plus(bytes))) else {
            return;
        };
        self.request = None;
        if request.is_before(tcpsn) {
            self.answers.push(ResyncAnswer { tcpsn: request, number: None });
            return;
        }
        let place = self.inner_next.plus(request.since(tcpsn) as usize);
        self.asked = Some((request, place));
        inner.l5o_resync_rx_req(place);
    }

    /// Answers for the NIC's inner context, in order.
    pub fn take_inner_answers(&mut self, inner: &mut Connection) -> Vec<ResyncAnswer> {
        for answer in inner.take_answers() {
            if let Some((outer, _)) = self.asked.filter(|(_, place)| *place == answer.tcpsn) {
                self.answers.push(ResyncAnswer { tcpsn: outer, number: answer.number });
            }
        }
        std::mem::take(&mut self.answers)
    }
}
