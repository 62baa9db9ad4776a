//! What an ICMP error of IPv4 quotes: the beginning of the packet that caused it (RFC 792).
//!
//! ```text
//!  ICMP header │ quoted IPv4 header │ first bytes of what it carried …
//!  0             l3_offset            l4_offset
//! ```
//!
//! The quoted packet went the other way, and is as its sender saw it.

use crate::headers::{ICMP_HEADER_LEN, Ipv4View, be16, icmp_type, ip_protocol};

/// Bytes behind the quoted IP header that RFC 792 asks for; with fewer, nothing is read there.
const CARRIED_LEAST: usize = 8;

/// A quoted packet: where it is, and between whom it went. Offsets in bytes from the first of the ICMP
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Beginning of its IP header.
    pub l3_offset: usize,
    /// Beginning of what follows its IP header.
    pub l4_offset: usize,
    /// Its IP protocol.
    pub protocol: u8,
    /// Address of who sent it.
    pub source: u32,
    /// Address of whom it was for.
    pub destination: u32,
    /// Ports of source and destination. An echo's identifier is the port of the end that asked, and the
    /// other end's is 0. `None` of anything else, of a later fragment, and where too little is
    /// quoted.
    pub ports: Option<(u16, u16)>,
}

impl Quoted {
    /// What `message` quotes, which begins with an ICMP type; `None` if it is no error, or quotes no
    /// IPv4 header.
    pub fn read(message: &[u8]) -> Option<Quoted> {
        if !icmp_type::is_error(*message.first()?) {
            return None;
        }
        let l3_offset = ICMP_HEADER_LEN;
        let ip = Ipv4View::new(message.get(l3_offset..)?).ok()?;
        let l4_offset = l3_offset + ip.header_len();
        let carried = message.get(l4_offset..l4_offset + CARRIED_LEAST);
        let carried = carried.filter(|_| ip.fragment_offset() == 0);
        Some(Quoted {
            l3_offset,
            l4_offset,
            protocol: ip.protocol(),
            source: ip.source().to_bits(),
            destination: ip.destination().to_bits(),
            ports: carried.and_then(|carried| ports(ip.protocol(), carried)),
        })
    }

    /// Whether it was TCP or UDP, and its ports are known.
    pub fn has_ports(&self) -> bool {
        self.ports.is_some() && matches!(self.protocol, ip_protocol::TCP | ip_protocol::UDP)
    }
}

fn ports(protocol: u8, carried: &[u8]) -> Option<(u16, u16)> {
    match (protocol, carried[0]) {
        (ip_protocol::TCP | ip_protocol::UDP, _) => Some((be16(carried, 0), be16(carried, 2))),
        (ip_protocol::ICMP, query) if icmp_type::is_query(query) => Some((be16(carried, 4), 0)),
        (ip_protocol::ICMP, answer) if icmp_type::is_answer(answer) => Some((0, be16(carried, 4))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error about a packet of `protocol` from 10.0.0.1 to 10.0.0.2 with `options` words of them.
    fn error(protocol: u8, options: u8, carried: &[u8]) -> Vec<u8> {
        let mut message = vec![icmp_type::TIME_EXCEEDED, 0, 0, 0, 0, 0, 0, 0];
        message.extend([0x45 + options, 0, 0, 60, 0, 7, 0, 0, 64, protocol, 0, 0]);
        message.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        message.extend(vec![1; usize::from(options) * 4]);
        message.extend(carried);
        message
    }

    const CARRIED: [u8; 8] = [8, 0, 1, 2, 3, 4, 5, 6];

    #[test]
    fn ports_and_identifiers_are_those_of_the_quoted_packet() {
        let reply = [0, 0, 1, 2, 3, 4, 5, 6];
        for (protocol, carried, ports) in [
            (ip_protocol::TCP, CARRIED, Some((0x0800, 0x0102))),
            (ip_protocol::UDP, CARRIED, Some((0x0800, 0x0102))),
            (ip_protocol::ICMP, CARRIED, Some((0x0304, 0))),
            (ip_protocol::ICMP, reply, Some((0, 0x0304))),
            (ip_protocol::ICMP, [9; 8], None),
            (47, CARRIED, None),
        ] {
            for options in [0, 3] {
                let quoted = Quoted::read(&error(protocol, options, &carried)).unwrap();
                assert_eq!(quoted.ports, ports, "protocol {protocol}");
                assert_eq!(quoted.protocol, protocol);
                assert_eq!(quoted.l4_offset, 28 + 4 * usize::from(options));
                assert_eq!((quoted.source, quoted.destination), (0x0a00_0001, 0x0a00_0002));
                let is_flow = [ip_protocol::TCP, ip_protocol::UDP].contains(&protocol);
                assert_eq!(quoted.has_ports(), is_flow);
            }
        }
    }

    #[test]
    fn fragments_have_ports_in_the_first_one_only() {
        for (flags, has_ports) in [([0x20, 0], true), ([0x20, 1], false), ([0, 1], false)] {
            let mut message = error(ip_protocol::UDP, 0, &CARRIED);
            message[14..16].copy_from_slice(&flags);
            assert_eq!(Quoted::read(&message).unwrap().has_ports(), has_ports);
        }
    }

    #[test]
    fn what_is_cut_short_or_no_error_gives_what_there_is() {
        let whole = error(ip_protocol::TCP, 1, &CARRIED);
        for len in 0..whole.len() {
            let quoted = Quoted::read(&whole[..len]);
            assert_eq!(quoted.is_some(), len >= 32, "{len} bytes");
            assert!(quoted.is_none_or(|quoted| quoted.ports.is_none()), "{len} bytes");
        }
        let mut other = whole;
        other[0] = icmp_type::ECHO_REQUEST;
        assert_eq!(Quoted::read(&other), None);
    }
}
