//! Frames in: link, IP, TCP, then the connection, the half-open connection or the listener that it belongs to.

use std::net::IpAddr;

use nicforge_units::Time;
use nicforge_wire::IpAddresses;
use nicforge_wire::checksum::{checksum, pseudo_header};
use nicforge_wire::headers::{
    ETHERNET_HEADER_LEN, EthernetView, Ipv4View, Ipv6View, MacAddress, ethertype, ip_protocol,
};

use super::{ConnectionId, FourTuple, Medium, Stack};
use crate::conn::Placement;
use crate::ring::{Buffers, ByteRing};
use crate::segment::{Ecn, Header};

/// What the headers below TCP say of a segment that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// The sender's address.
    pub source: IpAddr,
    /// The address that it was sent to.
    pub destination: IpAddr,
    /// The ECN field.
    pub ecn: Ecn,
    /// The hardware address that it came from, where the medium has one.
    pub from: Option<MacAddress>,
}

/// A segment that a connection took, whose payload belongs into the receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The connection.
    pub connection: ConnectionId,
    /// Which part of the payload, and where it belongs.
    pub placement: Placement,
}

/// An IP packet whose header was judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub envelope: Envelope,
    pub protocol: u8,
    pub payload: &'a [u8],
}

impl Envelope {
    pub(super) fn addresses(&self) -> IpAddresses {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => IpAddresses::V4 { source, destination },
            (IpAddr::V6(source), IpAddr::V6(destination)) => IpAddresses::V6 { source, destination },
            _ => IpAddresses::None,
        }
    }
}

impl<B: Buffers> Stack<B> {
    /// Takes a frame (or a packet, where the medium has no frames).
    pub fn receive(&mut self, frame: &[u8], now: Time) {
        self.counters.frames_in += 1;
        self.arrived = None;
        if self.host.medium == Medium::Ip {
            self.receive_packet(frame, None, now);
            return;
        }
        let Ok(ethernet) = EthernetView::new(frame) else {
            self.counters.malformed += 1;
            return;
        };
        let to = ethernet.destination();
        if to != self.host.mac && to.0[0] & 1 == 0 {
            self.counters.not_ours += 1;
            return;
        }
        let from = ethernet.source();
        match ethernet.ethertype() {
            ethertype::ARP => self.receive_arp(&frame[ETHERNET_HEADER_LEN..], now),
            ethertype::IPV4 | ethertype::IPV6 => {
                if !self.receive_neighbour(frame, from, now) {
                    self.receive_packet(&frame[ETHERNET_HEADER_LEN..], Some(from), now);
                }
            }
            _ => self.counters.not_ours += 1,
        }
    }

    /// Takes a frame whose TCP checksum its sender left to its NIC: one of the same machine, which was on no wire. It may
    /// be a segment that was left uncut, too.
    pub fn receive_begun(&mut self, frame: &[u8], now: Time) {
        self.is_begun = true;
        self.receive(frame, now);
        self.is_begun = false;
    }

    fn receive_packet(&mut self, bytes: &[u8], from: Option<MacAddress>, now: Time) {
        let Some(packet) = self.judge_packet(bytes, from) else { return };
        if !self.host.owns(packet.envelope.destination) {
            self.counters.not_ours += 1;
            return;
        }
        match packet.protocol {
            ip_protocol::TCP => self.receive_segment(&packet, now),
            ip_protocol::ICMP | ip_protocol::ICMPV6 => self.receive_icmp(&packet, now),
            _ => self.counters.not_ours += 1,
        }
    }

    fn judge_packet<'a>(&mut self, bytes: &'a [u8], from: Option<MacAddress>) -> Option<Packet<'a>> {
        let packet = match bytes.first().map(|byte| byte >> 4) {
            Some(4) => judge_v4(bytes, from),
            Some(6) => judge_v6(bytes, from),
            _ => Err(Refusal::Malformed),
        };
        match packet {
            Ok(packet) => Some(packet),
            Err(Refusal::Malformed) => {
                self.counters.malformed += 1;
                None
            }
            Err(Refusal::Fragment) => {
                self.counters.fragments += 1;
                None
            }
        }
    }

    fn receive_segment(&mut self, packet: &Packet, now: Time) {
        let segment = packet.payload;
        let is_right = self.is_begun || {
            let mut sum = pseudo_header(&packet.envelope.addresses(), ip_protocol::TCP, segment.len() as u32);
            sum.add(segment);
            sum.checksum() == 0
        };
        let header = Header::parse(segment).ok().filter(|_| is_right);
        let Some(header) = header else {
            self.counters.malformed += 1;
            return;
        };
        let payload = &segment[segment.len() - header.payload_len as usize..];
        if let Some(Arrival { connection, placement }) = self.receive_header(&packet.envelope, &header, now)
            && let Some(ring) = self.entry_mut(connection).and_then(|entry| entry.rx.as_mut())
        {
            let skip = placement.skip as usize;
            ring.write(placement.at, &payload[skip..skip + placement.len as usize]);
            self.arrived = Some(Arrival { connection, placement });
        }
    }

    /// Takes a segment by its headers alone, whose addresses and checksum the caller or a device has verified. The
    /// caller puts the payload where the arrival says before it lets the application read.
    pub fn receive_header(&mut self, envelope: &Envelope, header: &Header, now: Time) -> Option<Arrival> {
        let tuple = FourTuple {
            local: envelope.destination,
            remote: envelope.source,
            local_port: header.destination_port,
            remote_port: header.source_port,
        };
        if is_to_many(envelope.destination) || is_to_many(envelope.source) {
            self.counters.not_ours += 1;
            return None;
        }
        if let Some(&index) = self.table.get(&tuple) {
            if !self.replaces(index, header) {
                return self.deliver_to(index, header, envelope.ecn, now);
            }
            self.retire(index);
        }
        self.learn_peer(&tuple, envelope.from, now);
        self.deliver_to_listener(envelope, &tuple, header, now)
    }

    fn replaces(&mut self, index: u32, header: &Header) -> bool {
        self.entry_at(index).is_some_and(|entry| entry.connection.may_be_reopened_by(header))
    }

    /// Ends a connection in TIME-WAIT for a new one with the same addresses and ports.
    fn retire(&mut self, index: u32) {
        if let Some(entry) = self.entry_at(index) {
            entry.connection.abort();
            self.collect(index);
        }
    }

    pub(super) fn deliver_to(&mut self, index: u32, header: &Header, ecn: Ecn, now: Time) -> Option<Arrival> {
        let entry = self.entry_at(index)?;
        let placement = entry.connection.on_segment(header, ecn, now);
        let placement = placement.filter(|_| entry.rx.is_some());
        self.after(index);
        placement.map(|placement| Arrival { connection: self.id_of(index), placement })
    }

    /// Where the payload of the frame went that came last, if a connection took some of it. A device's report of the
    /// frame holds for these bytes of the ring, and for no copy of them that came earlier.
    pub fn arrival(&self) -> Option<Arrival> {
        self.arrived
    }
}

enum Refusal {
    Malformed,
    Fragment,
}

fn judge_v4(bytes: &[u8], from: Option<MacAddress>) -> Result<Packet<'_>, Refusal> {
    let view = Ipv4View::new(bytes).map_err(|_| Refusal::Malformed)?;
    let total = usize::from(view.total_len());
    if total < view.header_len() || total > bytes.len() || checksum(view.header()) != 0 {
        return Err(Refusal::Malformed);
    }
    if view.is_fragment() {
        return Err(Refusal::Fragment);
    }
    Ok(Packet {
        envelope: Envelope {
            source: view.source().into(),
            destination: view.destination().into(),
            ecn: Ecn::from_tos(view.type_of_service()),
            from,
        },
        protocol: view.protocol(),
        payload: &bytes[view.header_len()..total],
    })
}

fn judge_v6(bytes: &[u8], from: Option<MacAddress>) -> Result<Packet<'_>, Refusal> {
    let view = Ipv6View::new(bytes).map_err(|_| Refusal::Malformed)?;
    let header = nicforge_wire::headers::IPV6_HEADER_LEN;
    let end = header + usize::from(view.payload_len());
    if end > bytes.len() {
        return Err(Refusal::Malformed);
    }
    let mut headers = view.extension_headers();
    for extension in headers.by_ref() {
        if extension.fragment().is_some() {
            return Err(Refusal::Fragment);
        }
    }
    let start = header + headers.consumed();
    if headers.is_cut_off() || start > end {
        return Err(Refusal::Malformed);
    }
    Ok(Packet {
        envelope: Envelope {
            source: view.source().into(),
            destination: view.destination().into(),
            ecn: Ecn::from_tos(view.traffic_class()),
            from,
        },
        protocol: headers.next_header(),
        payload: &bytes[start..end],
    })
}

/// No connection is with a group (RFC 9293 section 3.9.2.3).
fn is_to_many(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_multicast() || ip.is_unspecified(),
    }
}
