//! What filters and traces see of a frame.

use std::net::IpAddr;

use nicforge_wire::headers::{ETHERNET_HEADER_LEN, EthernetView, Ipv4View, Ipv6View, ethertype, ip_protocol};

use crate::segment::{Flags, Header};
use crate::stack::FourTuple;

/// A frame's headers, as far as they could be read.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The frame.
    pub bytes: &'a [u8],
    /// Type of the Ethernet payload; 0 where the frame is too short.
    pub ethertype: u16,
    /// Source and destination.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// Protocol above IP.
    pub protocol: Option<u8>,
    /// Ports of TCP and UDP.
    pub ports: Option<(u16, u16)>,
    /// TCP's header.
    pub tcp: Option<Header>,
}

impl<'a> Seen<'a> {
    /// Reads headers; what is cut off or wrong is absent.
    pub fn parse(bytes: &'a [u8]) -> Seen<'a> {
        let mut seen = Seen { bytes, ethertype: 0, addresses: None, protocol: None, ports: None, tcp: None };
        let Ok(ethernet) = EthernetView::new(bytes) else { return seen };
        seen.ethertype = ethernet.ethertype();
        let packet = &bytes[ETHERNET_HEADER_LEN..];
        let payload = match seen.ethertype {
            ethertype::IPV4 => seen.read_v4(packet),
            ethertype::IPV6 => seen.read_v6(packet),
            _ => None,
        };
        if let Some(payload) = payload {
            seen.read_payload(payload);
        }
        seen
    }

    fn read_v4<'p>(&mut self, packet: &'p [u8]) -> Option<&'p [u8]> {
        let view = Ipv4View::new(packet).ok()?;
        self.addresses = Some((view.source().into(), view.destination().into()));
        self.protocol = Some(view.protocol());
        let len = usize::from(view.total_len()).min(packet.len());
        // Later fragments have no ports.
        (view.fragment_offset() == 0).then(|| packet.get(view.header_len()..len)).flatten()
    }

    fn read_v6<'p>(&mut self, packet: &'p [u8]) -> Option<&'p [u8]> {
        let view = Ipv6View::new(packet).ok()?;
        self.addresses = Some((view.source().into(), view.destination().into()));
        self.protocol = Some(view.next_header());
        let end = (IPV6_HEADER + usize::from(view.payload_len())).min(packet.len());
        packet.get(IPV6_HEADER..end)
    }

    fn read_payload(&mut self, payload: &[u8]) {
        if !matches!(self.protocol, Some(ip_protocol::TCP | ip_protocol::UDP)) {
            return;
        }
        if let [a, b, c, d, ..] = *payload {
            self.ports = Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
        }
        if self.protocol == Some(ip_protocol::TCP) {
            self.tcp = Header::parse(payload).ok();
        }
    }

    /// Addresses and ports of a TCP segment that comes in.
    pub fn incoming(&self) -> Option<FourTuple> {
        let (source, destination) = self.addresses?;
        let header = self.tcp?;
        let (local_port, remote_port) = (header.destination_port, header.source_port);
        Some(FourTuple { local: destination, remote: source, local_port, remote_port })
    }

    /// Addresses and ports of a TCP segment that goes out.
    pub fn outgoing(&self) -> Option<FourTuple> {
        let (source, destination) = self.addresses?;
        let header = self.tcp?;
        let (local_port, remote_port) = (header.source_port, header.destination_port);
        Some(FourTuple { local: source, remote: destination, local_port, remote_port })
    }

    /// One line about the frame, as tcpdump has it.
    pub fn line(&self) -> String {
        let Some((source, destination)) = self.addresses else {
            return match self.ethertype {
                ethertype::ARP => format!("ARP, length {}", self.bytes.len()),
                other => format!("ethertype 0x{other:04x}, length {}", self.bytes.len()),
            };
        };
        let family = if source.is_ipv4() { "IP" } else { "IP6" };
        let (Some(header), Some((from, to))) = (self.tcp, self.ports) else {
            let protocol = match self.protocol {
                Some(ip_protocol::ICMP | ip_protocol::ICMPV6) => "ICMP".into(),
                Some(ip_protocol::UDP) => "UDP".into(),
                other => format!("protocol {}", other.unwrap_or(0)),
            };
            return format!("{family} {source} > {destination}: {protocol}, length {}", self.bytes.len());
        };
        let mut line = format!("{family} {source}.{from} > {destination}.{to}: Flags [{}]", letters(header.flags));
        if header.seq_len() > 0 {
            line.push_str(&format!(", seq {}:{}", header.seq.0, header.end().0));
        }
        if header.flags.has(Flags::ACK) {
            line.push_str(&format!(", ack {}", header.ack.0));
        }
        line.push_str(&format!(", win {}", header.window));
        for block in header.options.sack.as_slice() {
            line.push_str(&format!(", sack {}:{}", block.start.0, block.end.0));
        }
        line.push_str(&format!(", length {}", header.payload_len));
        line
    }
}

const IPV6_HEADER: usize = 40;

fn letters(flags: Flags) -> String {
    let named = [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::PSH, 'P'), (Flags::RST, 'R'), (Flags::URG, 'U')];
    let named = named.into_iter().chain([(Flags::ECE, 'E'), (Flags::CWR, 'W'), (Flags::ACK, '.')]);
    named.filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| letter).collect()
}
