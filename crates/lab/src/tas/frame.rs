//! Frames of segments: headers of Ethernet, IPv4 and TCP.

use std::net::{IpAddr, Ipv4Addr};

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_tcp::segment::{Ecn, Header};
use nicforge_tcp::stack::{Envelope, FourTuple};
use nicforge_wire::headers::{
    ETHERNET_HEADER_LEN, EthernetView, IPV4_MIN_HEADER_LEN, Ipv4View, MacAddress, ethertype, ip_protocol,
};

/// Ethernet, IPv4 and TCP headers at their longest, in bytes.
const HEADERS_MAX: usize = ETHERNET_HEADER_LEN + 120;
/// Hops of what the service sends (RFC 1700).
const HOPS: u8 = 64;

/// The headers of a received segment.
pub struct Parsed {
    /// Both ends, ours first.
    pub tuple: FourTuple,
    /// The IP header's part.
    pub envelope: Envelope,
    /// The TCP header, with the length of the payload.
    pub header: Header,
    /// Where in the frame the payload begins, in bytes.
    pub payload_at: u32,
}

/// Reads a packet's headers. An error is the name of a drop.
pub fn parse<C: Cpu>(cpu: &mut C, packet: &Packet) -> Result<Parsed, &'static str> {
    let bytes = cpu.bytes(packet.head.at, (packet.head.len as usize).min(HEADERS_MAX));
    parse_headers(bytes, packet.len() as usize)
}

/// Reads a whole frame's headers, likewise.
pub fn parse_bytes(frame: &[u8]) -> Result<Parsed, &'static str> {
    parse_headers(&frame[..frame.len().min(HEADERS_MAX)], frame.len())
}

/// Reads headers that `bytes` begins with, of a frame of `len` bytes.
fn parse_headers(bytes: &[u8], len: usize) -> Result<Parsed, &'static str> {
    const MALFORMED: &str = "malformed";
    let ip = Ipv4View::new(bytes.get(ETHERNET_HEADER_LEN..).ok_or(MALFORMED)?).map_err(|_| "not_ipv4")?;
    if ip.protocol() != ip_protocol::TCP || ip.is_fragment() {
        return Err("not_tcp");
    }
    let total = usize::from(ip.total_len());
    let tcp_at = ETHERNET_HEADER_LEN + ip.header_len();
    let data_offset = bytes.get(tcp_at + 12).ok_or(MALFORMED)?;
    let payload_at = tcp_at + usize::from(data_offset >> 4) * 4;
    let frame = ETHERNET_HEADER_LEN + total;
    if payload_at > frame || frame > len {
        return Err(MALFORMED);
    }
    let header = Header::parse(bytes.get(tcp_at..payload_at).ok_or(MALFORMED)?).map_err(|_| MALFORMED)?;
    let header = Header { payload_len: (frame - payload_at) as u32, ..header };
    let envelope = Envelope {
        source: ip.source().into(),
        destination: ip.destination().into(),
        ecn: Ecn::from_tos(ip.type_of_service()),
        from: None,
    };
    let tuple = FourTuple {
        local: envelope.destination,
        remote: envelope.source,
        local_port: header.destination_port,
        remote_port: header.source_port,
    };
    Ok(Parsed { tuple, envelope, header, payload_at: payload_at as u32 })
}

/// Writes Ethernet, IPv4 and TCP headers of a segment; `out` has their length. The NIC computes checksums.
pub fn write_headers(out: &mut [u8], tuple: &FourTuple, header: &Header, ecn: Ecn, identification: u16) {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (tuple.local, tuple.remote) else {
        return;
    };
    write_ethernet(out, source, destination);
    let packet = &mut out[ETHERNET_HEADER_LEN..];
    let (ip, tcp) = packet.split_at_mut(IPV4_MIN_HEADER_LEN);
    let total = ip.len() + tcp.len() + header.payload_len as usize;
    // The buffer is as long as the headers.
    if let (Ok(mut view), Ok(_)) = (Ipv4View::init(ip, IPV4_MIN_HEADER_LEN), header.emit(tcp)) {
        view.set_type_of_service(ecn as u8);
        view.set_total_len(total as u16);
        view.set_identification(identification);
        view.set_fragment(true, false, 0);
        view.set_time_to_live(HOPS);
        view.set_protocol(ip_protocol::TCP);
        view.set_source(source);
        view.set_destination(destination);
    }
}

/// The hardware address of a host: no address resolution is modelled.
fn hardware_address(address: Ipv4Addr) -> MacAddress {
    let [a, b, c, d] = address.octets();
    MacAddress([2, 0, a, b, c, d])
}

/// Writes the Ethernet header of a packet between two hosts.
pub fn write_ethernet(frame: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) {
    // The frame is long enough for the header.
    if let Ok(mut view) = EthernetView::new(frame) {
        view.set_destination(hardware_address(to));
        view.set_source(hardware_address(from));
        view.set_ethertype(ethertype::IPV4);
    }
}
