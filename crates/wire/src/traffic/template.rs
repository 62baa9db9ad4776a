//! A ready-made frame of one size, of which each packet changes some header bytes only.

use crate::checksum::{self, nonzero};
use crate::headers::{
    ETHERNET_HEADER_LEN, EthernetView, IPV4_MIN_HEADER_LEN, Ipv4View, MacAddress, UDP_HEADER_LEN, UdpView, WireError,
    ethertype, ip_protocol, ipv4, put16, udp,
};

use super::flows::FlowTuple;

const L3: usize = ETHERNET_HEADER_LEN;
const L4: usize = L3 + IPV4_MIN_HEADER_LEN;
const ADDRESSES: usize = L3 + 12;
/// Where the UDP payload begins.
pub(super) const PAYLOAD: usize = L4 + UDP_HEADER_LEN;
const TIME_TO_LIVE: u8 = 64;

/// An Ethernet, IPv4 and UDP frame, in which some 8-byte words of the payload change.
#[derive(Clone, Debug)]
pub(super) struct Template {
    bytes: Box<[u8]>,
    /// Sum of the IPv4 header without addresses and checksum.
    ip_sum: u64,
    /// Sum of UDP header, payload and pseudo-header without addresses, ports, changing words
    /// and checksum.
    udp_sum: u64,
}

impl Template {
    /// A frame of `frame_bytes`, at least the Ethernet minimum and at most a jumbo frame. The first
    /// word of its payload changes, such as for a sequence number; the rest counts up or is zero.
    pub(super) fn new(
        frame_bytes: u32,
        zero_payload: bool,
        source: MacAddress,
        destination: MacAddress,
    ) -> Result<Template, WireError> {
        let mut payload = vec![0u8; (frame_bytes as usize).saturating_sub(PAYLOAD)];
        if !zero_payload {
            for (index, byte) in payload.iter_mut().enumerate().skip(8) {
                *byte = (index - 8) as u8;
            }
        }
        Template::with_payload(&payload, source, destination)
    }

    /// A frame with this payload; words of it that will change are zero.
    pub(super) fn with_payload(
        payload: &[u8],
        source: MacAddress,
        destination: MacAddress,
    ) -> Result<Template, WireError> {
        let mut bytes = vec![0u8; PAYLOAD + payload.len()].into_boxed_slice();
        bytes[PAYLOAD..].copy_from_slice(payload);
        let mut ethernet = EthernetView::new(&mut bytes[..])?;
        ethernet.set_source(source);
        ethernet.set_destination(destination);
        ethernet.set_ethertype(ethertype::IPV4);
        let packet = ethernet.payload_mut();
        let total_len = packet.len() as u16;
        let mut ip = Ipv4View::init(packet, IPV4_MIN_HEADER_LEN)?;
        ip.set_total_len(total_len);
        ip.set_fragment(true, false, 0);
        ip.set_time_to_live(TIME_TO_LIVE);
        ip.set_protocol(ip_protocol::UDP);
        let ip_sum = u64::from(checksum::sum(ip.header()));
        let udp_len = total_len - IPV4_MIN_HEADER_LEN as u16;
        let mut datagram = UdpView::new(ip.payload_mut())?;
        datagram.set_length(udp_len);
        let pseudo = u64::from(ip_protocol::UDP) + u64::from(udp_len);
        let udp_sum = u64::from(checksum::sum(&bytes[L4..])) + pseudo;
        Ok(Template { bytes, ip_sum, udp_sum })
    }

    /// Length of the frame.
    pub(super) fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Makes it the frame of this flow with these words: each with its place in the payload.
    #[inline(always)]
    pub(super) fn patch(&mut self, flow: &FlowTuple, words: &[(usize, u64)]) -> &[u8] {
        let source = u32::from(flow.source);
        let destination = u32::from(flow.destination);
        let addresses = halves(source) + halves(destination);
        let ports = u64::from(flow.source_port) + u64::from(flow.destination_port);
        let changing: u64 = words.iter().map(|&(at, word)| sum_at(at, word)).sum();
        let udp_checksum = nonzero(!fold(self.udp_sum + addresses + ports + changing));
        let bytes = &mut self.bytes;
        put16(bytes, L3 + ipv4::CHECKSUM, !fold(self.ip_sum + addresses));
        bytes[ADDRESSES..ADDRESSES + 4].copy_from_slice(&source.to_be_bytes());
        bytes[ADDRESSES + 4..ADDRESSES + 8].copy_from_slice(&destination.to_be_bytes());
        put16(bytes, L4, flow.source_port);
        put16(bytes, L4 + 2, flow.destination_port);
        put16(bytes, L4 + udp::CHECKSUM, udp_checksum);
        for (at, word) in words {
            bytes[PAYLOAD + at..PAYLOAD + at + 8].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

fn halves(word: u32) -> u64 {
    u64::from(word >> 16) + u64::from(word & 0xffff)
}

/// What a word adds to the sum; at an odd place the halves of its 16-bit words are exchanged.
fn sum_at(at: usize, word: u64) -> u64 {
    let sum = halves((word >> 32) as u32) + halves(word as u32);
    if at.is_multiple_of(2) { sum } else { u64::from(fold(sum).swap_bytes()) }
}

/// Folds a sum of a few dozen 16-bit words.
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
