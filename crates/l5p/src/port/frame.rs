//! A TCP segment in an Ethernet frame, as the NIC sees it.

use std::ops::Range;

use nicforge_wire::checksum::{self, ChecksumVerdict};
use nicforge_wire::headers::{TcpFlags, TcpView, ip_protocol};
use nicforge_wire::{FrameSummary, IpAddresses, parse_frame};

use crate::context::FlowKey;
use crate::sequence::Seq;

/// Where a frame carries a piece of a TCP stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The flow, from the frame's sender to its receiver.
    pub flow: FlowKey,
    /// Sequence number of the payload's first byte.
    pub seq: Seq,
    /// The payload's bytes in the frame.
    pub payload: Range<usize>,
    summary: FrameSummary,
}

impl Segment {
    /// Finds a segment with payload; `None` for everything else: other protocols, fragments, pure acknowledgments.
    pub fn find(frame: &[u8]) -> Option<Self> {
        Self::of(frame, parse_frame(frame).ok()?)
    }

    /// The same of a frame that was parsed.
    pub fn of(frame: &[u8], summary: FrameSummary) -> Option<Self> {
        let is_tcp = summary.has_l4_header && summary.protocol == ip_protocol::TCP && !summary.is_fragment();
        if !is_tcp {
            return None;
        }
        let l4 = usize::from(summary.l4_offset);
        let view = TcpView::new(frame.get(l4..)?).ok()?;
        let payload = l4 + view.header_len()..(l4 + summary.l4_len as usize).min(frame.len());
        let has_numbers = !view.flags().contains(TcpFlags::SYN);
        let seq = Seq(view.sequence());
        let segment = Self { flow: flow_of(&summary)?, seq, payload, summary };
        (has_numbers && !segment.payload.is_empty()).then_some(segment)
    }

    /// Whether the checksums are right. A NIC offloads nothing in a frame that is damaged.
    pub fn is_intact(&self, frame: &[u8]) -> bool {
        let ChecksumVerdict { l3, l4 } = checksum::verify(frame, &self.summary);
        l3 != Some(false) && l4 == Some(true)
    }

    /// Makes the TCP checksum right again after the payload was changed in place.
    pub fn close(&self, frame: &mut [u8]) {
        checksum::fill(frame, &self.summary, false, true);
    }

    /// A frame with the same headers and a part of the payload, which begins at `seq`. What ends the segment (FIN, PSH)
    /// stays with the last part.
    pub fn part(&self, frame: &[u8], seq: Seq, payload: &[u8], is_last: bool) -> Vec<u8> {
        let mut part = frame[..self.payload.start].to_vec();
        part.extend_from_slice(payload);
        let (l3, l4) = (usize::from(self.summary.l3_offset), usize::from(self.summary.l4_offset));
        let l3_bytes = part.len() - l3;
        match self.summary.addresses {
            IpAddresses::V4 { .. } => part[l3 + 2..l3 + 4].copy_from_slice(&(l3_bytes as u16).to_be_bytes()),
            _ => part[l3 + 4..l3 + 6].copy_from_slice(&((l3_bytes - IPV6_BYTES) as u16).to_be_bytes()),
        }
        if let Ok(mut view) = TcpView::new(&mut part[l4..]) {
            view.set_sequence(seq.0);
            if !is_last {
                let flags = view.flags();
                view.set_flags(TcpFlags(flags.0 & !(TcpFlags::FIN.0 | TcpFlags::PSH.0)));
            }
        }
        if let Ok(summary) = parse_frame(&part) {
            checksum::fill(&mut part, &summary, true, true);
        }
        part
    }
}

/// What a TCP header says, with or without payload behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// The flow, from the frame's sender to its receiver.
    pub flow: FlowKey,
    /// Sequence number.
    pub seq: Seq,
    /// Sequence numbers that it takes: payload bytes, SYN and FIN.
    pub len: usize,
    /// The sender has everything before this.
    pub acknowledges: Option<Seq>,
    /// SYN.
    pub begins: bool,
    /// RST.
    pub resets: bool,
}

impl TcpHeader {
    /// Finds a whole TCP header.
    pub fn find(frame: &[u8]) -> Option<Self> {
        let summary = parse_frame(frame).ok()?;
        if !summary.has_l4_header || summary.protocol != ip_protocol::TCP || summary.is_fragment() {
            return None;
        }
        let view = TcpView::new(frame.get(usize::from(summary.l4_offset)..)?).ok()?;
        let flags = view.flags();
        let payload = (summary.l4_len as usize).saturating_sub(view.header_len());
        let [begins, ends, resets, acknowledges] =
            [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST, TcpFlags::ACK].map(|flag| flags.contains(flag));
        Some(Self {
            flow: flow_of(&summary)?,
            seq: Seq(view.sequence()),
            len: payload + usize::from(begins) + usize::from(ends),
            acknowledges: acknowledges.then(|| Seq(view.acknowledgment())),
            begins,
            resets,
        })
    }
}

/// Bytes of an IPv6 header, which its length field leaves out.
const IPV6_BYTES: usize = 40;

fn flow_of(summary: &FrameSummary) -> Option<FlowKey> {
    let addresses = match summary.addresses {
        IpAddresses::V4 { source, destination } => [source, destination].map(|address| address.to_ipv6_mapped()),
        IpAddresses::V6 { source, destination } => [source, destination],
        IpAddresses::None => return None,
    };
    let addresses = addresses.map(|address| address.octets());
    Some(FlowKey { addresses, ports: [summary.source_port, summary.destination_port] })
}

impl FlowKey {
    /// The flow between two ends, from the first to the second.
    pub fn between(from: std::net::SocketAddr, to: std::net::SocketAddr) -> Self {
        let octets = |end: std::net::SocketAddr| match end.ip() {
            std::net::IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            std::net::IpAddr::V6(address) => address.octets(),
        };
        Self { addresses: [octets(from), octets(to)], ports: [from.port(), to.port()] }
    }

    /// The other direction.
    pub fn reverse(self) -> Self {
        let ([from, to], [source, destination]) = (self.addresses, self.ports);
        Self { addresses: [to, from], ports: [destination, source] }
    }
}
