//! ICMP in: errors about our segments (RFC 5927, RFC 1191, RFC 8201) and echo requests.

use std::net::IpAddr;

use nicforge_units::Time;
use nicforge_wire::checksum::{Accumulator, pseudo_header};
use nicforge_wire::headers::{
    IPV4_MIN_HEADER_LEN, IPV6_HEADER_LEN, Ipv4View, Ipv6View, MacAddress, icmp_type, icmpv6_type, ip_protocol,
};

use super::frames::LowerHeaders;
use super::host::path_mss;
use super::input::Packet;
use super::{FourTuple, Stack};
use crate::conn::{ConnectionError, State};
use crate::ring::Buffers;
use crate::segment::Ecn;
use crate::seq::Seq;

const ICMPV6_UNREACHABLE: u8 = 1;
/// No path is narrower (RFC 791, RFC 8200).
const MTU_LEAST: (u16, u16) = (552, 1280);

/// What an error says about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    TooBig(u16),
    Failed(ConnectionError),
    Nothing,
}

impl<B: Buffers> Stack<B> {
    pub(super) fn receive_icmp(&mut self, packet: &Packet, now: Time) {
        let is_v4 = packet.envelope.source.is_ipv4();
        let message = packet.payload;
        let mut sum = if is_v4 {
            Accumulator::new()
        } else {
            pseudo_header(&packet.envelope.addresses(), ip_protocol::ICMPV6, message.len() as u32)
        };
        sum.add(message);
        if message.len() < 8 || sum.checksum() != 0 {
            self.counters.malformed += 1;
            return;
        }
        let kind = message[0];
        if kind == if is_v4 { icmp_type::ECHO_REQUEST } else { icmpv6_type::ECHO_REQUEST } {
            self.answer_echo(packet);
            return;
        }
        let report = if is_v4 { report_v4(message) } else { report_v6(message) };
        let quoted = quoted_segment(&message[8..], is_v4);
        match (report, quoted) {
            (Report::Nothing, _) | (_, None) => self.counters.icmp_ignored += 1,
            (report, Some((tuple, seq))) => self.report(report, &tuple, seq, now),
        }
    }

    fn report(&mut self, report: Report, tuple: &FourTuple, seq: Seq, now: Time) {
        let Some(&index) = self.table.get(tuple) else {
            self.counters.icmp_ignored += 1;
            return;
        };
        let Some(entry) = self.entry_at(index) else { return };
        match report {
            Report::TooBig(mtu) => {
                let (least_v4, least_v6) = MTU_LEAST;
                let is_v4 = tuple.remote.is_ipv4();
                let mtu = mtu.max(if is_v4 { least_v4 } else { least_v6 });
                entry.connection.on_packet_too_big(seq, path_mss(mtu, is_v4), now);
            }
            Report::Failed(error) => {
                let opening = !entry.connection.state().is_synchronized();
                entry.connection.on_icmp_error(seq, error);
                if opening && entry.connection.state() == State::Closed {
                    self.counters.icmp_ignored += 0;
                }
            }
            Report::Nothing => {}
        }
        self.after(index);
    }

    fn answer_echo(&mut self, packet: &Packet) {
        let is_v4 = packet.envelope.source.is_ipv4();
        let lower = LowerHeaders {
            medium: self.host.medium,
            from_mac: self.host.mac,
            to_mac: packet.envelope.from.unwrap_or(MacAddress([0; 6])),
            source: packet.envelope.destination,
            destination: packet.envelope.source,
            tos: 0,
            hops: 0,
            ecn: Ecn::NotCapable,
            identification: 0,
        };
        let start = lower.len();
        let mut frame = vec![0; start + packet.payload.len()];
        let protocol = if is_v4 { ip_protocol::ICMP } else { ip_protocol::ICMPV6 };
        if frame.len() > usize::from(self.host.mtu) + 14
            || lower.write(&mut frame, packet.payload.len(), protocol).is_none()
        {
            return;
        }
        let message = &mut frame[start..];
        message.copy_from_slice(packet.payload);
        message[0] = if is_v4 { icmp_type::ECHO_REPLY } else { icmpv6_type::ECHO_REPLY };
        message[2..4].fill(0);
        let mut sum =
            if is_v4 { Accumulator::new() } else { pseudo_header(&lower.addresses(), protocol, message.len() as u32) };
        sum.add(message);
        let sum = sum.checksum().to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        self.queue_answer(frame);
    }
}

fn report_v4(message: &[u8]) -> Report {
    if message[0] != icmp_type::UNREACHABLE {
        return Report::Nothing;
    }
    match message[1] {
        4 => Report::TooBig(u16::from_be_bytes([message[6], message[7]])),
        2 => Report::Failed(ConnectionError::ProtocolUnreachable),
        3 => Report::Failed(ConnectionError::Refused),
        0 | 6 | 11 => Report::Failed(ConnectionError::NetworkUnreachable),
        1 | 5 | 7..=10 | 12 | 13 => Report::Failed(ConnectionError::HostUnreachable),
        _ => Report::Nothing,
    }
}

fn report_v6(message: &[u8]) -> Report {
    match (message[0], message[1]) {
        (icmpv6_type::PACKET_TOO_BIG, _) => {
            let mtu = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
            Report::TooBig(mtu.min(u32::from(u16::MAX)) as u16)
        }
        (ICMPV6_UNREACHABLE, 0) => Report::Failed(ConnectionError::NetworkUnreachable),
        (ICMPV6_UNREACHABLE, 4) => Report::Failed(ConnectionError::Refused),
        (ICMPV6_UNREACHABLE, _) => Report::Failed(ConnectionError::HostUnreachable),
        _ => Report::Nothing,
    }
}

/// The connection and sequence number of a quoted segment of ours.
fn quoted_segment(quote: &[u8], is_v4: bool) -> Option<(FourTuple, Seq)> {
    let (local, remote, protocol, start): (IpAddr, IpAddr, u8, usize) = if is_v4 {
        let view = Ipv4View::new(quote).ok()?;
        (view.source().into(), view.destination().into(), view.protocol(), view.header_len().max(IPV4_MIN_HEADER_LEN))
    } else {
        let view = Ipv6View::new(quote).ok()?;
        (view.source().into(), view.destination().into(), view.next_header(), IPV6_HEADER_LEN)
    };
    let segment = quote.get(start..start + 8).filter(|_| protocol == ip_protocol::TCP)?;
    let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    let seq = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
    let tuple = FourTuple { local, remote, local_port: port(0), remote_port: port(2) };
    Some((tuple, Seq(seq)))
}
