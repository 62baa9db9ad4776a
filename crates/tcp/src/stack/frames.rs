//! Building frames around segments.

use std::net::IpAddr;

use nicforge_wire::IpAddresses;
use nicforge_wire::checksum::{checksum, pseudo_header};
use nicforge_wire::headers::{
    ETHERNET_HEADER_LEN, EthernetView, IPV4_MIN_HEADER_LEN, IPV6_HEADER_LEN, Ipv4View, Ipv6View, MacAddress, ethertype,
    ip_protocol,
};

use super::Medium;
use crate::segment::{Ecn, Header};

const HOPS: u8 = 64;

/// What the headers below TCP say.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowerHeaders {
    pub medium: Medium,
    pub from_mac: MacAddress,
    pub to_mac: MacAddress,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub tos: u8,
    pub hops: u8,
    pub ecn: Ecn,
    pub identification: u16,
}

impl LowerHeaders {
    fn link_len(&self) -> usize {
        if self.medium == Medium::Ethernet { ETHERNET_HEADER_LEN } else { 0 }
    }

    fn ip_len(&self) -> usize {
        if self.source.is_ipv4() { IPV4_MIN_HEADER_LEN } else { IPV6_HEADER_LEN }
    }

    /// Bytes in front of the segment.
    pub fn len(&self) -> usize {
        self.link_len() + self.ip_len()
    }

    /// Writes link and IP header in front of `payload_len` bytes of `protocol`.
    pub fn write(&self, out: &mut [u8], payload_len: usize, protocol: u8) -> Option<()> {
        let (link, ip) = out.split_at_mut(self.link_len());
        if self.medium == Medium::Ethernet {
            let mut view = EthernetView::new(link).ok()?;
            view.set_destination(self.to_mac);
            view.set_source(self.from_mac);
            view.set_ethertype(if self.source.is_ipv4() { ethertype::IPV4 } else { ethertype::IPV6 });
        }
        let tos = self.tos & !3 | self.ecn as u8;
        let hops = if self.hops == 0 { HOPS } else { self.hops };
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = &mut ip[..IPV4_MIN_HEADER_LEN];
                let mut view = Ipv4View::init(&mut *header, IPV4_MIN_HEADER_LEN).ok()?;
                view.set_type_of_service(tos);
                view.set_total_len((IPV4_MIN_HEADER_LEN + payload_len) as u16);
                view.set_identification(self.identification);
                view.set_fragment(true, false, 0);
                view.set_time_to_live(hops);
                view.set_protocol(protocol);
                view.set_source(source);
                view.set_destination(destination);
                let sum = checksum(view.header());
                view.set_checksum(sum);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut view = Ipv6View::init(&mut ip[..IPV6_HEADER_LEN]).ok()?;
                view.set_class_and_label(tos, 0);
                view.set_payload_len(payload_len as u16);
                view.set_next_header(protocol);
                view.set_hop_limit(hops);
                view.set_source(source);
                view.set_destination(destination);
            }
            _ => return None,
        }
        Some(())
    }

    pub fn addresses(&self) -> IpAddresses {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => IpAddresses::V4 { source, destination },
            (IpAddr::V6(source), IpAddr::V6(destination)) => IpAddresses::V6 { source, destination },
            _ => IpAddresses::None,
        }
    }
}

/// Writes a whole frame: headers, the payload that `fill` writes, checksums. Returns its length in bytes, or nothing
/// when `out` is too short.
pub(super) fn write_segment(
    out: &mut [u8],
    lower: &LowerHeaders,
    header: &Header,
    fill: impl FnOnce(&mut [u8]),
) -> Option<usize> {
    let start = lower.len();
    let header_len = header.emitted_len();
    let segment_len = header_len + header.payload_len as usize;
    let frame = out.get_mut(..start + segment_len)?;
    lower.write(frame, segment_len, ip_protocol::TCP)?;
    let segment = &mut frame[start..];
    header.emit(segment).ok()?;
    fill(&mut segment[header_len..]);
    let mut sum = pseudo_header(&lower.addresses(), ip_protocol::TCP, segment_len as u32);
    sum.add(segment);
    segment[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
    Some(start + segment_len)
}
