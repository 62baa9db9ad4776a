//! A reply, built in the frame of its request: addresses and ports exchanged, new lengths, and the
//! value where the key was.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::headers::{KVS_HEADER_LEN, KvsStatus, KvsView};

use super::hot::Lent;
use super::request::Request;

/// The longest value that a reply to `request` can carry in the request's buffer, which holds frames of
/// `buffer_room` bytes, and in one IP packet.
pub fn value_room(request: &Request, buffer_room: u32) -> u32 {
    request.datagram.room(buffer_room).saturating_sub(KVS_HEADER_LEN as u32)
}

/// Turns the packet of `request` into its reply. `value` is empty, or as long as there is room.
#[inline]
pub fn build<C: Cpu>(cpu: &mut C, packet: &mut Packet, request: &Request, status: KvsStatus, value: &[u8]) {
    let value_len = value.len() as u32;
    headers(cpu, packet, request, status, value_len);
    // The value lies where the payload of the request lay: after the header, or apart from it.
    let apart = packet.rest.len > 0 && value_len > 0;
    let to = if apart { packet.rest.at } else { packet.head.at + u64::from(request.key_at()) };
    packet.head.len = request.key_at();
    packet.rest.len = 0;
    if apart {
        packet.rest.len = value_len
    } else {
        packet.head.len += value_len
    }
    if value_len > 0 {
        cpu.bytes_mut(to, value.len()).copy_from_slice(value);
    }
}

/// The same with a value that is sent from where it lies.
#[inline]
pub fn lend<C: Cpu>(cpu: &mut C, packet: &mut Packet, request: &Request, lent: Lent) {
    headers(cpu, packet, request, KvsStatus::Done, lent.value.len);
    packet.head.len = request.key_at();
    packet.rest = lent.value;
    packet.references = lent.references;
}

/// Rewrites all headers for a reply with a value of `value_len` bytes.
#[inline]
fn headers<C: Cpu>(cpu: &mut C, packet: &mut Packet, request: &Request, status: KvsStatus, value_len: u32) {
    let held = KVS_HEADER_LEN as u32;
    let header = request.datagram.turn(cpu, packet, held + value_len, held);
    if let Ok(mut reply) = KvsView::new(header) {
        reply.set_status(status);
        reply.set_lengths(0, value_len as u16);
    }
}
