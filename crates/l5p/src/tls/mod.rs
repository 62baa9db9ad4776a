//! TLS 1.2 and 1.3 records: encrypted and authenticated by the NIC on the way out, decrypted and checked on the way in.
//!
//! Linux: `tls_dev_add`, `tls_dev_del`, `tls_dev_resync`. Handshakes, alerts and key updates stay in software; the NIC
//! processes their records like any other. In TLS 1.3 the unprotected `change_cipher_spec` passes and takes no number.

pub mod chacha;
mod crypto;
pub mod gcm;
pub mod inner;
pub mod poly1305;
pub mod reader;
pub mod record;
pub mod sender;
pub mod software;
pub mod writer;

pub use crypto::{TlsKeys, TlsState};

use crate::context::State;
use crate::keys::KeyCache;
use crate::protocol::{Action, Direction, Header, MessagePiece, Properties, Protocol, Verdict, Work};
use record::{HEADER_BYTES, RecordHeader, TAG_BYTES};

/// The protocol.
pub struct Tls;

impl TlsKeys {
    /// What a context gets at `l5o_create`.
    pub fn state(&self) -> State {
        State::of(TlsState::new(self))
    }
}

impl Protocol for Tls {
    fn name(&self) -> &'static str {
        "tls"
    }

    fn properties(&self) -> Properties {
        Properties {
            size_preserving: true,
            incremental: true,
            state_bytes: size_of::<TlsState>(),
            header_bytes: HEADER_BYTES,
            // At least 5 bits of type (20 to 24), the version, and the length's first bit.
            magic_bits: 22,
        }
    }

    fn parse(&self, state: &State, bytes: &[u8]) -> Option<Header> {
        let tls: &TlsState = state.view();
        let header = RecordHeader::parse(tls.version(), tls.cipher(), bytes).ok()?;
        let length = (HEADER_BYTES + header.payload_bytes) as u32;
        Some(Header { length, is_numbered: !header.is_middlebox_ccs(tls.version()) })
    }

    fn begin(&self, work: &mut Work<'_>, length: u32) {
        if is_unprotected(work, length) {
            return;
        }
        let (header, _) = work.header.split_first_chunk().expect("a context keeps 8 bytes of header");
        let tls: &mut TlsState = work.state.view_mut();
        tls.begin(work.keys, work.number, header, length as usize);
    }

    fn advance(&self, work: &mut Work<'_>, piece: MessagePiece<'_>) {
        if is_unprotected(work, piece.length) {
            return;
        }
        let Work { state, keys, number, direction, .. } = work;
        let tls: &mut TlsState = state.view_mut();
        let data_at = tls.shape().data_at();
        let tag_at = piece.length as usize - TAG_BYTES;
        let (mut at, mut bytes) = (piece.at as usize, piece.bytes);
        while !bytes.is_empty() {
            // The hash is complete exactly when the tag begins, also in a record without content.
            if at == tag_at && piece.action != Action::Undo {
                tls.make_tag(keys, *number, piece.length as usize);
            }
            let end = if at < data_at {
                data_at
            } else if at < tag_at {
                tag_at
            } else {
                piece.length as usize
            };
            let (here, rest) = bytes.split_at_mut(bytes.len().min(end - at));
            if at < data_at {
                tls.set_explicit(at - HEADER_BYTES, here);
            } else if at < tag_at {
                data(tls, keys, *number, *direction, piece.action, (at - data_at) as u32, here);
            } else if piece.action != Action::Undo {
                if *direction == Direction::Transmit {
                    tls.write_tag(at - tag_at, here);
                } else {
                    tls.check_tag(at - tag_at, here);
                }
            }
            at += here.len();
            bytes = rest;
        }
    }

    fn finish(&self, work: &mut Work<'_>, length: u32) -> Verdict {
        let tls: &TlsState = work.state.view();
        if is_unprotected(work, length) || work.direction == Direction::Transmit || tls.is_authentic() {
            Verdict::Passed
        } else {
            // A wrong tag may mean a wrong key or number, so nothing that follows can be trusted.
            Verdict::Lost
        }
    }

    fn forget(&self, state: &State, keys: &mut KeyCache) {
        let tls: &TlsState = state.view();
        keys.forget(tls.key());
    }
}

/// Encrypts or decrypts data in the order that the direction wants: the hash is over ciphertext.
fn data(
    tls: &mut TlsState,
    keys: &mut KeyCache,
    number: u64,
    direction: Direction,
    action: Action,
    at: u32,
    bytes: &mut [u8],
) {
    match (action, direction) {
        (Action::Transform, Direction::Transmit) => tls.encrypt(keys, number, at, bytes),
        (Action::Transform, Direction::Receive) => tls.decrypt(keys, number, at, bytes),
        (Action::Absorb, _) => tls.absorb(keys, at, bytes),
        (Action::Undo, _) => tls.apply_keystream(keys, number, at, bytes),
    }
}

/// Whether the current record passes as it is: TLS 1.3's `change_cipher_spec` of one byte.
fn is_unprotected(work: &Work<'_>, length: u32) -> bool {
    let tls: &TlsState = work.state.view();
    let content = record::ContentType(work.header[0]);
    let header = RecordHeader { content, payload_bytes: length as usize - HEADER_BYTES };
    header.is_middlebox_ccs(tls.version())
}
