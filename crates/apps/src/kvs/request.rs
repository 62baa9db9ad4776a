//! From a received frame to a request, or the cause of its drop.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::headers::{KVS_HEADER_LEN, KVS_PORT, KVS_VERSION, KvsOperation, KvsView};

use crate::udp_service::Datagram;

/// A request for this store, whole and well formed.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The datagram that it came in.
    pub datagram: Datagram,
    /// What is asked for.
    pub operation: KvsOperation,
    /// The key's hash, as the client says.
    pub hash: u64,
    /// Bytes of key, at least 1.
    pub key_len: u16,
    /// Bytes of value; 0 except in a PUT.
    pub value_len: u16,
}

impl Request {
    /// Where the protocol's header ends: the key begins here, and the value of a reply.
    pub fn key_at(&self) -> u32 {
        self.datagram.at + KVS_HEADER_LEN as u32
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
    let datagram = Datagram::read(cpu, packet, KVS_PORT, KVS_HEADER_LEN, buffer_room)?;
    let bytes = cpu.bytes(packet.head.at + u64::from(datagram.at), KVS_HEADER_LEN);
    let request = well_formed(bytes, datagram).ok_or("bad_request")?;
    if request.end() == datagram.at + datagram.len { Ok(request) } else { Err("bad_request") }
}

/// The request that the protocol's header says, if it makes sense.
#[inline]
fn well_formed(bytes: &[u8], datagram: Datagram) -> Option<Request> {
    let view = KvsView::new(bytes).ok()?;
    let request = Request {
        datagram,
        operation: view.operation()?,
        hash: view.hash(),
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
