//! From a received frame to a request, or the cause of its drop.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::FrameSummary;
use nicforge_wire::headers::{
    KVS_HEADER_LEN, KVS_PORT, KVS_VERSION, KvsOperation, KvsView, UDP_HEADER_LEN, ip_protocol,
};

use crate::headers;
use crate::{FRAGMENT, NOT_THE_SERVICE};

/// A request for this store, whole and well formed.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Where everything is in the frame.
    pub summary: FrameSummary,
    /// What is asked for.
    pub operation: KvsOperation,
    /// The key's hash, as the client says.
    pub hash: u64,
    /// Where the protocol's header begins in the frame; it lies in the packet's first part.
    pub at: u32,
    /// Bytes of key, at least 1.
    pub key_len: u16,
    /// Bytes of value; 0 except in a PUT.
    pub value_len: u16,
}

impl Request {
    /// Where the protocol's header ends: the key begins here, and the value of a reply.
    pub fn key_at(&self) -> u32 {
        self.at + KVS_HEADER_LEN as u32
    }

    /// Where the value begins.
    pub fn value_at(&self) -> u32 {
        self.key_at() + u32::from(self.key_len)
    }

    /// Where the value ends.
    pub fn end(&self) -> u32 {
        self.value_at() + u32::from(self.value_len)
    }
}

/// Reads the headers of a packet in buffers that hold frames of `buffer_room` bytes. An error is the
/// name of a drop.
#[inline]
pub fn parse<C: Cpu>(cpu: &mut C, packet: &mut Packet, buffer_room: u32) -> Result<Request, &'static str> {
    // A pair must not be stored damaged.
    if packet.flags.is_checksum_bad() {
        return Err("bad_checksum");
    }
    let summary = headers::read(cpu, packet)?.summary;
    // One whose source route goes on is another host's (RFC 1122, section 3.2.1.8).
    if !summary.has_ports() || summary.protocol != ip_protocol::UDP || summary.source_routed {
        return Err("not_a_request");
    }
    if summary.is_fragment() {
        return Err(FRAGMENT);
    }
    if summary.destination_port != KVS_PORT {
        return Err(NOT_THE_SERVICE);
    }
    let at = u32::from(summary.l4_offset) + UDP_HEADER_LEN as u32;
    let data = summary.l4_len - UDP_HEADER_LEN as u32;
    let header = KVS_HEADER_LEN as u32;
    if at + header > packet.head.len {
        pull_up(cpu, packet, at + header, buffer_room);
    }
    if data < header || at + header > packet.head.len {
        return Err("bad_request");
    }
    let bytes = cpu.bytes(packet.head.at + u64::from(at), KVS_HEADER_LEN);
    let request = well_formed(bytes, summary, at).ok_or("bad_request")?;
    if request.end() == at + data { Ok(request) } else { Err("bad_request") }
}

/// Moves what the first part of a split frame lacks of `until` bytes there, where there is room: a NIC
/// that splits behind the headers that it knows has this protocol's in the second part.
#[inline]
fn pull_up<C: Cpu>(cpu: &mut C, packet: &mut Packet, until: u32, buffer_room: u32) {
    let missing = until - packet.head.len;
    if missing > packet.rest.len || until > buffer_room {
        return;
    }
    let bytes = cpu.bytes(packet.rest.at, missing as usize).to_vec();
    let to = packet.head.at + u64::from(packet.head.len);
    cpu.bytes_mut(to, bytes.len()).copy_from_slice(&bytes);
    packet.head.len += missing;
    packet.rest.at = packet.rest.at + u64::from(missing);
    packet.rest.len -= missing;
}

/// The request that the protocol's header says, if it makes sense.
#[inline]
fn well_formed(bytes: &[u8], summary: FrameSummary, at: u32) -> Option<Request> {
    let view = KvsView::new(bytes).ok()?;
    let request = Request {
        summary,
        operation: view.operation()?,
        hash: view.hash(),
        at,
        key_len: view.key_len(),
        value_len: view.value_len(),
    };
    let has_value = request.operation == KvsOperation::Put;
    let sensible = view.version() == KVS_VERSION
        && bytes[2..4] == [0, 0]
        && request.key_len > 0
        && (has_value || request.value_len == 0);
    sensible.then_some(request)
}
