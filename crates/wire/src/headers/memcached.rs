//! memcached's binary protocol over UDP (memcached, doc/protocol.txt and doc/protocol-binary.txt): a frame header, then one
//! request or response.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0–1 | request id, repeated in the response |
//! | 2–3 | number of this datagram |
//! | 4–5 | datagrams of the message |
//! | 6–7 | zero |
//! | 8 | magic: [`MAGIC_REQUEST`] or [`MAGIC_RESPONSE`] |
//! | 9 | opcode |
//! | 10–11 | length of the key |
//! | 12 | length of the extras |
//! | 13 | data type: 0 |
//! | 14–15 | request: virtual bucket; response: status |
//! | 16–19 | length of extras, key and value |
//! | 20–23 | opaque, repeated in the response |
//! | 24–31 | CAS |
//! | 32– | extras, key, value |

use super::{WireError, array, be16, put16, require};

/// Length of both headers in bytes.
pub const MEMCACHED_HEADER_LEN: usize = 32;
/// The UDP port.
pub const MEMCACHED_PORT: u16 = 11_211;
/// The first byte of a request.
pub const MAGIC_REQUEST: u8 = 0x80;
/// The first byte of a response.
pub const MAGIC_RESPONSE: u8 = 0x81;

/// Opcodes that we act on.
pub mod memcached_opcode {
    /// Returns a value.
    pub const GET: u8 = 0x00;
    /// Stores a pair.
    pub const SET: u8 = 0x01;
    /// Stores a pair whose key is not there.
    pub const ADD: u8 = 0x02;
    /// Stores a pair whose key is there.
    pub const REPLACE: u8 = 0x03;
    /// Removes a pair.
    pub const DELETE: u8 = 0x04;
    /// As GET, silent about a missing key.
    pub const GET_QUIET: u8 = 0x09;
    /// Nothing.
    pub const NOOP: u8 = 0x0a;
    /// Returns the server's version.
    pub const VERSION: u8 = 0x0b;
    /// As GET, and returns the key.
    pub const GET_KEY: u8 = 0x0c;
    /// As GET_KEY, silent about a missing key.
    pub const GET_KEY_QUIET: u8 = 0x0d;
    /// As SET, silent about success.
    pub const SET_QUIET: u8 = 0x11;
    /// As ADD, silent about success.
    pub const ADD_QUIET: u8 = 0x12;
    /// As REPLACE, silent about success.
    pub const REPLACE_QUIET: u8 = 0x13;
    /// As DELETE, silent about success.
    pub const DELETE_QUIET: u8 = 0x14;
}

/// Statuses of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum MemcachedStatus {
    /// Done.
    Done = 0x00,
    /// There is no such key.
    NotFound = 0x01,
    /// The key is there already, or has another CAS.
    Exists = 0x02,
    /// The value is longer than the server stores.
    TooLarge = 0x03,
    /// Lengths that do not fit the opcode.
    Invalid = 0x04,
    /// The pair was not stored.
    NotStored = 0x05,
    /// The server does not know the opcode.
    UnknownCommand = 0x81,
    /// The server has no memory left.
    OutOfMemory = 0x82,
}

/// A view of both headers.
#[derive(Clone, Copy, Debug)]
pub struct MemcachedView<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> MemcachedView<B> {
    /// Views `bytes`, which begin with the request id.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        require("memcached", bytes.as_ref(), MEMCACHED_HEADER_LEN)?;
        Ok(MemcachedView { bytes })
    }

    /// Number of this datagram, and how many the message has.
    pub fn datagram(&self) -> (u16, u16) {
        (be16(self.bytes.as_ref(), 2), be16(self.bytes.as_ref(), 4))
    }

    /// The magic.
    pub fn magic(&self) -> u8 {
        self.bytes.as_ref()[8]
    }

    /// The opcode.
    pub fn opcode(&self) -> u8 {
        self.bytes.as_ref()[9]
    }

    /// Bytes of key.
    pub fn key_len(&self) -> u16 {
        be16(self.bytes.as_ref(), 10)
    }

    /// Bytes of extras.
    pub fn extras_len(&self) -> u8 {
        self.bytes.as_ref()[12]
    }

    /// The data type.
    pub fn data_type(&self) -> u8 {
        self.bytes.as_ref()[13]
    }

    /// The status of a response.
    pub fn status(&self) -> u16 {
        be16(self.bytes.as_ref(), 14)
    }

    /// Bytes of extras, key and value.
    pub fn body_len(&self) -> u32 {
        u32::from_be_bytes(array(self.bytes.as_ref(), 16))
    }

    /// The CAS.
    pub fn cas(&self) -> u64 {
        u64::from_be_bytes(array(self.bytes.as_ref(), 24))
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> MemcachedView<B> {
    /// Makes a request a response: magic, status, lengths and CAS are set; request id, opcode and opaque stay.
    pub fn answer(&mut self, status: MemcachedStatus, extras: u8, key: u16, body: u32, cas: u64) {
        let bytes = self.bytes.as_mut();
        put16(bytes, 2, 0);
        put16(bytes, 4, 1);
        put16(bytes, 6, 0);
        bytes[8] = MAGIC_RESPONSE;
        put16(bytes, 10, key);
        bytes[12] = extras;
        bytes[13] = 0;
        put16(bytes, 14, status as u16);
        bytes[16..20].copy_from_slice(&body.to_be_bytes());
        bytes[24..32].copy_from_slice(&cas.to_be_bytes());
    }
}
