//! Where the stream of an inner protocol lies in packets of TLS records.

use std::ops::Range;

use super::Tls;
use super::crypto::TlsState;
use super::record::{ContentType, HEADER_BYTES, TAG_BYTES};
use crate::context::Context;
use crate::protocol::parse_header;

/// The inner protocol's bytes in a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerBytes {
    /// Stretches of the payload, in order.
    pub ranges: Vec<Range<usize>>,
    /// Whether these are all inner bytes and nothing else. A record of TLS 1.3 tells what it carries, and where padding
    /// begins, only at its end.
    pub is_certain: bool,
}

/// Finds the inner bytes of a packet that begins at the place of `context`, whose payload is plaintext.
pub fn find(context: &Context, payload: &[u8]) -> InnerBytes {
    let tls: &TlsState = context.state.view();
    let shape = tls.shape();
    let mut found = InnerBytes { ranges: Vec::new(), is_certain: true };
    let (mut header, mut offset, mut length) = (context.header, context.offset as usize, context.length as usize);
    let mut at = 0;
    while at < payload.len() {
        if offset < HEADER_BYTES {
            header[offset] = payload[at];
            (offset, at) = (offset + 1, at + 1);
            if offset == HEADER_BYTES {
                let Some(parsed) = parse_header(&Tls, &context.state, &header) else {
                    found.is_certain = false;
                    return found;
                };
                length = parsed.length as usize;
            }
            continue;
        }
        let bytes = (payload.len() - at).min(length - offset);
        let is_unprotected = ContentType(header[0]) == ContentType::CHANGE_CIPHER_SPEC;
        let content_end = length.saturating_sub(TAG_BYTES + usize::from(shape.has_inner_type));
        let here = offset..offset + bytes;
        let begin = here.start.max(shape.data_at());
        let end = here.end.min(content_end);
        if ContentType(header[0]) == ContentType::DATA && begin < end {
            found.ranges.push(at + begin - offset..at + end - offset);
        }
        if shape.has_inner_type && !is_unprotected && here.contains(&content_end) {
            found.is_certain &= ContentType(payload[at + content_end - offset]) == ContentType::DATA;
        }
        at += bytes;
        offset += bytes;
        if offset == length {
            offset = 0;
        }
    }
    found
}
