//! Replies, made in the buffers of their requests.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::headers::{MEMCACHED_HEADER_LEN, MemcachedStatus, MemcachedView};

use super::request::{Operation, Request};
use super::{FlexKvs, Outcome};

impl FlexKvs {
    /// Makes the packet the reply; `None` if the request wants none.
    pub(super) fn reply<C: Cpu>(
        &mut self,
        cpu: &mut C,
        packet: &mut Packet,
        request: &Request,
        outcome: Outcome,
    ) -> Option<()> {
        let is_get = matches!(request.operation, Operation::Get { .. });
        let with_key = request.operation == (Operation::Get { with_key: true });
        let silent = match outcome {
            Outcome::Failed(MemcachedStatus::NotFound) => is_get,
            Outcome::Failed(_) | Outcome::Value => false,
            Outcome::Done | Outcome::Version => true,
        };
        if request.quiet && silent {
            return None;
        }
        let (status, extras): (_, &[u8]) = match outcome {
            Outcome::Value => (MemcachedStatus::Done, &self.flags),
            Outcome::Failed(status) => (status, &[]),
            Outcome::Done | Outcome::Version => (MemcachedStatus::Done, &[]),
        };
        let returns_key = with_key && matches!(outcome, Outcome::Value | Outcome::Failed(MemcachedStatus::NotFound));
        let key: &[u8] = if returns_key { &self.key } else { &[] };
        let value: &[u8] = match outcome {
            Outcome::Value => &self.value,
            Outcome::Failed(MemcachedStatus::NotFound) if with_key => &[],
            Outcome::Failed(status) => text(status).as_bytes(),
            Outcome::Version => env!("CARGO_PKG_VERSION").as_bytes(),
            Outcome::Done => &[],
        };
        let body = extras.len() + key.len() + value.len();
        let len = (MEMCACHED_HEADER_LEN + body) as u32;
        if len > request.datagram.room(self.buffer_room) {
            return self.reply(cpu, packet, request, Outcome::Failed(MemcachedStatus::TooLarge));
        }
        let data = request.datagram.turn(cpu, packet, len, len);
        if let Ok(mut header) = MemcachedView::new(&mut *data) {
            header.answer(status, extras.len() as u8, key.len() as u16, body as u32, 0);
        }
        let mut at = MEMCACHED_HEADER_LEN;
        for part in [extras, key, value] {
            data[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        packet.head.len = request.datagram.at + len;
        packet.rest.len = 0;
        Some(())
    }
}

/// The text that memcached sends with an error status (memcached, doc/protocol-binary.txt).
fn text(status: MemcachedStatus) -> &'static str {
    match status {
        MemcachedStatus::Done => "",
        MemcachedStatus::NotFound => "Not found",
        MemcachedStatus::Exists => "Data exists for key.",
        MemcachedStatus::TooLarge => "Too large.",
        MemcachedStatus::Invalid => "Invalid arguments",
        MemcachedStatus::NotStored => "Not stored.",
        MemcachedStatus::UnknownCommand => "Unknown command",
        MemcachedStatus::OutOfMemory => "Out of memory",
    }
}
