//! Reads and judges captures without the project's own reader, parser or checksums:
//! pcap-file reads, etherparse decodes.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};

/// Longer frames fit no port: the replay skips them (the largest jumbo frame, as switches have it).
const LONGEST_FRAME: u32 = 9216;

/// The frames that a replay sends: those that fit a port, with zeros for what was not captured.
pub fn frames(path: &Path) -> Vec<Vec<u8>> {
    let records = if path.extension().is_some_and(|ending| ending == "pcapng") { pcapng(path) } else { pcap(path) };
    let fitting = records.into_iter().filter(|(length, bytes)| *length <= LONGEST_FRAME && !bytes.is_empty());
    fitting
        .map(|(length, mut bytes)| {
            bytes.resize(length as usize, 0);
            bytes
        })
        .collect()
}

fn pcap(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut records = Vec::new();
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.unwrap();
        records.push((packet.orig_len, packet.data.into_owned()));
    }
    records
}

fn pcapng(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let mut reader = PcapNgReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut records = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            records.push((packet.original_len, packet.data.into_owned()));
        }
    }
    records
}

/// An address with a port.
pub type End = (Ipv4Addr, u16);

/// An unfragmented TCP or UDP packet over IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// TCP 6, UDP 17.
    pub protocol: u8,
    /// Where it says it comes from.
    pub source: End,
    /// Where it goes to.
    pub destination: End,
    /// Whether the IPv4 header checksum is right.
    pub l3_right: bool,
    /// Whether the TCP or UDP checksum is right; `None`: UDP without one.
    pub l4_right: Option<bool>,
    /// Hops that it has left.
    pub hops: u8,
    /// The frame with zeros for what a source NAT may change: Ethernet addresses, hops, source
    /// address, source port, both checksums, and the identification of what may be in fragments.
    pub rest: Vec<u8>,
}

/// Decodes `frame`; `None` for anything but a whole TCP or UDP packet over IPv4.
pub fn decode(frame: &[u8]) -> Option<Decoded> {
    let sliced = SlicedPacket::from_ethernet(frame).ok()?;
    let Some(NetSlice::Ipv4(net)) = &sliced.net else {
        return None;
    };
    let header = net.header();
    if header.is_fragmenting_payload() {
        return None;
    }
    let fields = header.to_header();
    let (source_port, destination_port, l4_right, checksum_at) = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let right = tcp.calc_checksum_ipv4(fields.source, fields.destination);
            let right = right.unwrap() == tcp.checksum();
            (tcp.source_port(), tcp.destination_port(), Some(right), 16)
        }
        Some(TransportSlice::Udp(udp)) => {
            let right = udp.to_header().calc_checksum_ipv4(&fields, udp.payload());
            let right = (udp.checksum() != 0).then(|| right.unwrap() == udp.checksum());
            (udp.source_port(), udp.destination_port(), right, 6)
        }
        _ => return None,
    };
    let mut rest = frame.to_vec();
    let at = |slice: &[u8]| slice.as_ptr() as usize - frame.as_ptr() as usize;
    let l3 = at(header.slice());
    let l4 = l3 + header.slice().len();
    let mut mask = |from: usize, len: usize| rest[from..from + len].fill(0);
    mask(0, 12);
    if !fields.dont_fragment {
        mask(l3 + 4, 2);
    }
    mask(l3 + 8, 1);
    mask(l3 + 10, 6);
    mask(l4, 2);
    mask(l4 + checksum_at, 2);
    Some(Decoded {
        protocol: header.protocol().0,
        source: (header.source_addr(), source_port),
        destination: (header.destination_addr(), destination_port),
        l3_right: fields.header_checksum == fields.calc_header_checksum(),
        l4_right,
        hops: fields.time_to_live,
        rest,
    })
}

/// A flow: protocol, source, destination.
pub type Flow = (u8, End, End);
/// What is left of a packet, its hops, and whether its checksums are right: IPv4, then TCP or UDP.
pub type Content = (Vec<u8>, u8, bool, Option<bool>);

/// The packets of each flow in their order; what [`decode`] does not take is left out.
pub fn flows<'a>(frames: impl Iterator<Item = &'a Vec<u8>>) -> BTreeMap<Flow, Vec<Content>> {
    let mut flows: BTreeMap<Flow, Vec<Content>> = BTreeMap::new();
    for packet in frames.filter_map(|frame| decode(frame)) {
        let flow = (packet.protocol, packet.source, packet.destination);
        let content = (packet.rest, packet.hops, packet.l3_right, packet.l4_right);
        flows.entry(flow).or_default().push(content);
    }
    flows
}
