//! What servers of UDP have in common: a request is one datagram, and its reply is built in the same buffer.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::headers::{EthernetView, IPV6_HEADER_LEN, Ipv4View, Ipv6View, UDP_HEADER_LEN, UdpView, ip_protocol};
use nicforge_wire::{FrameSummary, IpAddresses};

use crate::{FRAGMENT, NOT_THE_SERVICE, headers};

/// Hops that a reply may take: what RFC 1700 recommends, like any host's own packets.
const HOPS: u8 = 64;

/// A whole datagram for the service, with a sound checksum.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Where everything is in the frame.
    pub summary: FrameSummary,
    /// Where its data begins in the frame; the protocol's header lies in the packet's first part.
    pub at: u32,
    /// Bytes of data.
    pub len: u32,
}

impl Datagram {
    /// Reads the headers of a packet in buffers that hold frames of `buffer_room` bytes: a datagram to `port` whose data has
    /// at least `header` bytes. An error is the name of a drop.
    #[inline]
    pub fn read<C: Cpu>(
        cpu: &mut C,
        packet: &mut Packet,
        port: u16,
        header: usize,
        buffer_room: u32,
    ) -> Result<Datagram, &'static str> {
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
        if summary.destination_port != port {
            return Err(NOT_THE_SERVICE);
        }
        let at = u32::from(summary.l4_offset) + UDP_HEADER_LEN as u32;
        let (len, header) = (summary.l4_len - UDP_HEADER_LEN as u32, header as u32);
        if at + header > packet.head.len {
            pull_up(cpu, packet, at + header, buffer_room);
        }
        if len < header || at + header > packet.head.len {
            Err("bad_request")
        } else {
            Ok(Datagram { summary, at, len })
        }
    }

    /// The longest data that a reply can carry in the request's buffer, which holds frames of `buffer_room` bytes, and in
    /// one IP packet.
    pub fn room(&self, buffer_room: u32) -> u32 {
        let of_ip = u32::from(self.summary.l3_offset) + u32::from(u16::MAX);
        buffer_room.min(of_ip).saturating_sub(self.at)
    }

    /// Makes the headers those of a reply with `len` bytes of data, of which `held` bytes lie in the packet's first part;
    /// returns the data in that part. The NIC computes the checksums.
    #[inline]
    pub fn turn<'c, C: Cpu>(&self, cpu: &'c mut C, packet: &mut Packet, len: u32, held: u32) -> &'c mut [u8] {
        packet.offload.l3_checksum = true;
        packet.offload.l4_checksum = true;
        let end = self.at + len;
        let (l3, l4) = (self.summary.l3_offset, self.summary.l4_offset);
        let frame = cpu.bytes_mut(packet.head.at, (self.at + held) as usize);
        // The request was parsed, so every header is there; a view that were not would be left alone.
        if let Ok(mut ethernet) = EthernetView::new(&mut *frame) {
            ethernet.swap_addresses();
        }
        let (before, datagram) = frame.split_at_mut(usize::from(l4));
        let ip = &mut before[usize::from(l3)..];
        let l3_bytes = end - u32::from(l3);
        match self.summary.addresses {
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
            udp.set_source_port(self.summary.destination_port);
            udp.set_destination_port(self.summary.source_port);
            udp.set_length((end - u32::from(l4)) as u16);
        }
        &mut datagram[UDP_HEADER_LEN..]
    }
}

/// Moves what the first part of a split frame lacks of `until` bytes there, where there is room: a NIC
/// that splits behind the headers that it knows has the service's in the second part.
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
