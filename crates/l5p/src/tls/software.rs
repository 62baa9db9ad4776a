//! TLS records in software: what the host does when the NIC did not, or did it in part.

use std::ops::Range;

use super::crypto::{TlsKeys, TlsState};
use super::record::{HEADER_BYTES, HeaderError, RecordHeader, TAG_BYTES};
use crate::keys::KeyCache;

/// A record whose tag is wrong: `bad_record_mac` (RFC 8446, 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {number} is not authentic")]
pub struct BadRecordMac {
    /// Its number.
    pub number: u64,
}

/// The cipher of one direction on a core.
pub struct SoftwareTls {
    state: TlsState,
    keys: KeyCache,
}

impl SoftwareTls {
    /// With these keys.
    pub fn new(keys: &TlsKeys) -> Self {
        Self { state: TlsState::new(keys), keys: KeyCache::default() }
    }

    /// The state, for shape, version and cipher.
    pub fn state(&self) -> &TlsState {
        &self.state
    }

    /// Encrypts a prepared record: header, explicit nonce if any, plaintext, and 16 bytes for the tag.
    pub fn seal(&mut self, number: u64, record: &mut [u8]) {
        let data = self.begin(number, record);
        self.state.apply_keystream(&mut self.keys, number, 0, &mut record[data.clone()]);
        self.state.absorb(&mut self.keys, 0, &record[data.clone()]);
        self.state.make_tag(&mut self.keys, number, record.len());
        self.state.write_tag(0, &mut record[data.end..]);
    }

    /// Decrypts a record in place and checks it.
    ///
    /// # Errors
    ///
    /// [`BadRecordMac`]; then the record is as it was.
    pub fn open(&mut self, number: u64, record: &mut [u8]) -> Result<(), BadRecordMac> {
        let data = self.begin(number, record);
        self.state.absorb(&mut self.keys, 0, &record[data.clone()]);
        self.state.make_tag(&mut self.keys, number, record.len());
        self.state.check_tag(0, &record[data.end..]);
        if !self.state.is_authentic() {
            return Err(BadRecordMac { number });
        }
        self.state.apply_keystream(&mut self.keys, number, 0, &mut record[data]);
        Ok(())
    }

    /// Gives bytes that the NIC decrypted their ciphertext back, because the tag is over ciphertext.
    pub fn encrypt_again(&mut self, number: u64, record: &mut [u8], range: Range<usize>) {
        let data = self.begin(number, record);
        let (begin, end) = (range.start.max(data.start), range.end.min(data.end));
        if begin < end {
            let at = (begin - data.start) as u32;
            self.state.apply_keystream(&mut self.keys, number, at, &mut record[begin..end]);
        }
    }

    /// Begins a record and tells where its encrypted data is.
    fn begin(&mut self, number: u64, record: &[u8]) -> Range<usize> {
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&record[..HEADER_BYTES]);
        let data_at = self.state.shape().data_at();
        self.state.set_explicit(0, &record[HEADER_BYTES..data_at]);
        self.state.begin(&mut self.keys, number, &header, record.len());
        data_at..record.len() - TAG_BYTES
    }

    /// The header of a record.
    ///
    /// # Errors
    ///
    /// [`HeaderError`]: it cannot be one under these keys.
    pub fn parse(&self, bytes: &[u8]) -> Result<RecordHeader, HeaderError> {
        RecordHeader::parse(self.state.version(), self.state.cipher(), bytes)
    }
}
