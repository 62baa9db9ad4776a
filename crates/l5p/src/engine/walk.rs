//! In-sequence processing: from message to message through a packet's payload.

use super::{Engine, protocol_of};
use crate::context::Context;
use crate::host::HostMemory;
use crate::protocol::{Action, MessagePiece, Protocol, Verdict, Work, parse_header};

/// How far a walk through a packet came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Bytes of the payload behind which the walk ended.
    pub processed: usize,
    /// Why it ended.
    pub end: End,
    /// Bytes that were written to their destination.
    pub placed_bytes: u32,
    /// Bytes that had a destination and were not.
    pub unplaced_bytes: u32,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The packet is through, and every message that ended in it passed.
    Through,
    /// The packet is through, and a message in it failed.
    Failed,
    /// A message failed in a way that puts the rest in doubt.
    Lost,
    /// Where a message should begin there is no header.
    NotAHeader,
}

impl Engine {
    /// Processes payload whose first byte is the one at the context's `tcpsn`.
    pub(super) fn walk(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        payload: &mut [u8],
        action: Action,
    ) -> Walk {
        let mut walk = Walk { processed: 0, end: End::Through, placed_bytes: 0, unplaced_bytes: 0 };
        let Some(protocol) = protocol_of(context) else {
            walk.end = End::NotAHeader;
            return walk;
        };
        let header_bytes = protocol.properties().header_bytes;
        while walk.processed < payload.len() {
            let rest = &mut payload[walk.processed..];
            let at = context.offset as usize;
            let bytes = if at < header_bytes {
                let bytes = rest.len().min(header_bytes - at);
                context.header[at..at + bytes].copy_from_slice(&rest[..bytes]);
                bytes
            } else {
                rest.len().min(context.length as usize - at)
            };
            if at >= header_bytes {
                let piece = MessagePiece { action, at: at as u32, length: context.length, bytes: &mut rest[..bytes] };
                let mut work = self.work(context, host);
                protocol.advance(&mut work, piece);
                walk.placed_bytes += work.placed_bytes;
                walk.unplaced_bytes += work.unplaced_bytes;
            }
            context.offset += bytes as u32;
            context.tcpsn = context.tcpsn.plus(bytes);
            walk.processed += bytes;
            if at < header_bytes && !self.end_header(context, host, protocol, header_bytes, action) {
                walk.end = End::NotAHeader;
                return walk;
            }
            match self.end_message(context, host, protocol, header_bytes, action) {
                Verdict::Passed => {}
                Verdict::Failed => walk.end = End::Failed,
                Verdict::Lost => {
                    walk.end = End::Lost;
                    return walk;
                }
            }
        }
        walk
    }

    /// Reads the header if it is complete; tells whether it may be one.
    fn end_header(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        protocol: &dyn Protocol,
        header_bytes: usize,
        action: Action,
    ) -> bool {
        if (context.offset as usize) < header_bytes {
            return true;
        }
        let Some(header) = parse_header(protocol, &context.state, &context.header[..header_bytes]) else {
            return false;
        };
        context.length = header.length;
        context.flags.set_numbered(header.is_numbered);
        if action != Action::Undo {
            protocol.begin(&mut self.work(context, host), header.length);
        }
        true
    }

    /// Goes on to the next message if this one is complete.
    fn end_message(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        protocol: &dyn Protocol,
        header_bytes: usize,
        action: Action,
    ) -> Verdict {
        if (context.offset as usize) < header_bytes || context.offset < context.length {
            return Verdict::Passed;
        }
        let verdict = if action == Action::Undo {
            Verdict::Passed
        } else {
            let length = context.length;
            protocol.finish(&mut self.work(context, host), length)
        };
        if verdict == Verdict::Passed && context.flags.is_numbered() {
            context.flags.set_unproven(false);
        }
        context.number = context.number.wrapping_add(u64::from(context.flags.is_numbered()));
        context.offset = 0;
        verdict
    }

    pub(super) fn work<'a>(&'a mut self, context: &'a mut Context, host: &'a mut dyn HostMemory) -> Work<'a> {
        Work {
            context: context.id,
            direction: context.direction(),
            number: context.number,
            header: context.header,
            state: &mut context.state,
            keys: &mut self.keys,
            placements: &self.placements,
            host,
            placed_bytes: 0,
            unplaced_bytes: 0,
        }
    }
}
