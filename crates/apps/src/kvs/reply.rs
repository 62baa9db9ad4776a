//! A reply, built in the frame of its request: addresses and ports exchanged, new lengths, and the
//! value where the key was. The NIC computes the checksums.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::IpAddresses;
use nicforge_wire::headers::{EthernetView, IPV6_HEADER_LEN, Ipv4View, Ipv6View, KvsStatus, KvsView, UdpView};

use super::hot::Lent;
use super::request::Request;

/// Hops that a reply may take: what RFC 1700 recommends, like any host's own packets.
const HOPS: u8 = 64;

/// The longest value that a reply to `request` can carry in the request's buffer, which holds frames of
/// `buffer_room` bytes, and in one IP packet.
pub fn value_room(request: &Request, buffer_room: u32) -> u32 {
    let of_ip = u32::from(request.summary.l3_offset) + u32::from(u16::MAX);
    buffer_room.min(of_ip).saturating_sub(request.key_at())
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
    packet.offload.l3_checksum = true;
    packet.offload.l4_checksum = true;
}

/// The same with a value that is sent from where it lies.
#[inline]
pub fn lend<C: Cpu>(cpu: &mut C, packet: &mut Packet, request: &Request, lent: Lent) {
    headers(cpu, packet, request, KvsStatus::Done, lent.value.len);
    packet.head.len = request.key_at();
    packet.rest = lent.value;
    packet.references = lent.references;
    packet.offload.l3_checksum = true;
    packet.offload.l4_checksum = true;
}

/// Rewrites all headers for a reply with a value of `value_len` bytes.
#[inline]
pub fn headers<C: Cpu>(cpu: &mut C, packet: &Packet, request: &Request, status: KvsStatus, value_len: u32) {
    let end = request.key_at() + value_len;
    let (l3, l4) = (request.summary.l3_offset, request.summary.l4_offset);
    let frame = cpu.bytes_mut(packet.head.at, request.key_at() as usize);
    // The request was parsed, so every header is there; a view that were not would be left alone.
    if let Ok(mut ethernet) = EthernetView::new(&mut *frame) {
        let (source, destination) = (ethernet.source(), ethernet.destination());
        ethernet.set_source(destination);
        ethernet.set_destination(source);
    }
    let (before, datagram) = frame.split_at_mut(usize::from(l4));
    let ip = &mut before[usize::from(l3)..];
    let l3_bytes = end - u32::from(l3);
    match request.summary.addresses {
        IpAddresses::V4 { source, destination } => {
            if let Ok(mut ip) = Ipv4View::new(ip) {
                ip.set_source(destination);
                ip.set_destination(source);
                ip.set_time_to_live(HOPS);
                ip.set_total_len(l3_bytes as u16);
            }
        }
        IpAddresses::V6 { source, destination } => {
            if let Ok(mut ip) = Ipv6View::new(ip) {
                ip.set_source(destination);
                ip.set_destination(source);
                ip.set_hop_limit(HOPS);
                ip.set_payload_len((l3_bytes - IPV6_HEADER_LEN as u32) as u16);
            }
        }
        IpAddresses::None => {}
    }
    if let Ok(mut udp) = UdpView::new(&mut *datagram) {
        udp.set_source_port(request.summary.destination_port);
        udp.set_destination_port(request.summary.source_port);
        udp.set_length((end - u32::from(l4)) as u16);
    }
    let header = &mut datagram[(request.at - u32::from(l4)) as usize..];
    if let Ok(mut reply) = KvsView::new(header) {
        reply.set_status(status);
        reply.set_lengths(0, value_len as u16);
    }
}
