//! Data to records to TCP: copies of the data are held until their records are acknowledged.

use std::collections::VecDeque;

use super::crypto::TlsKeys;
use super::record::ContentType;
use super::writer::{RecordTooLong, RecordWriter};
use crate::context::Start;
use crate::driver::Layer5;
use crate::host::{HostBuffers, HostMemory, Piece};
use crate::port::StreamMemory;
use crate::sequence::Seq;

/// The sending end of a connection with its memory. Where data may stay where it is, [`RecordWriter`] alone suffices.
pub struct RecordSender {
    writer: RecordWriter,
    memory: StreamMemory,
    unsent: VecDeque<Piece>,
    unsent_bytes: usize,
    scratch: Vec<u8>,
}

impl RecordSender {
    /// The first record has the number and place of `start`.
    pub fn new(keys: &TlsKeys, start: Start) -> Self {
        Self {
            writer: RecordWriter::new(keys, start),
            memory: StreamMemory::default(),
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// Takes a record's content.
    ///
    /// # Errors
    ///
    /// [`RecordTooLong`].
    pub fn write(&mut self, content: ContentType, data: &[u8], padding_bytes: usize) -> Result<(), RecordTooLong> {
        let data = self.memory.place(data);
        let pieces = self.writer.write(&mut self.memory, content, data, padding_bytes)?;
        self.queue(&pieces);
        Ok(())
    }

    /// The unprotected `change_cipher_spec` of TLS 1.3.
    pub fn middlebox_ccs(&mut self) {
        let piece = self.writer.middlebox_ccs(&mut self.memory);
        self.queue(piece.as_slice());
    }

    fn queue(&mut self, pieces: &[Piece]) {
        self.unsent_bytes += pieces.iter().map(|piece| piece.bytes as usize).sum::<usize>();
        self.unsent.extend(pieces);
    }

    /// New keys from the next record on.
    pub fn rekey(&mut self, keys: &TlsKeys) -> Start {
        self.writer.rekey(keys)
    }

    /// Hands bytes to TCP, which takes as many as it has room for and tells how many.
    pub fn hand_over(&mut self, mut take: impl FnMut(&[u8]) -> usize) {
        while let Some(piece) = self.unsent.front_mut() {
            self.scratch.resize(piece.bytes as usize, 0);
            if self.memory.view(*piece, &mut self.scratch).is_err() {
                // Nobody releases what was not sent; without its bytes the stream cannot go on.
                return;
            }
            let taken = take(&self.scratch).min(self.scratch.len());
            self.unsent_bytes -= taken;
            piece.address += taken as u64;
            piece.bytes -= taken as u32;
            if piece.bytes > 0 {
                return;
            }
            self.unsent.pop_front();
        }
    }

    /// TCP's peer has everything before `tcpsn`.
    pub fn acknowledge(&mut self, tcpsn: Seq) {
        self.writer.acknowledge(tcpsn);
        match self.writer.oldest_address() {
            Some(address) => self.memory.release(address),
            None => self.memory.release_all(),
        }
    }

    /// Where the next record begins, and its number.
    pub fn boundary(&self) -> Start {
        self.writer.boundary()
    }

    /// Bytes of records that TCP has not taken.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Bytes that are held because they may be sent again.
    pub fn held_bytes(&self) -> usize {
        self.memory.len()
    }

    /// Whether every record was acknowledged.
    pub fn is_idle(&self) -> bool {
        self.writer.kept() == 0
    }

    /// The protocol and the memory that its messages lie in, for the driver.
    pub fn parts(&mut self) -> (&dyn Layer5, &mut dyn HostMemory) {
        (&self.writer, &mut self.memory)
    }
}
