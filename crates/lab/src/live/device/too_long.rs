//! Packets that are too long for the port that they shall leave by: their sender is told (RFC 1191, section 4;
//! RFC 4443, section 3.2).
//!
//! The error comes back in by the same port, as from a router behind it, so that applications translate and
//! steer it as any other. It comes in the name of whom the packet was for: that one's errors every
//! application knows the way of, and a port has no IPv6 address of its own.

use std::net::IpAddr;

use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;
use nicforge_wire::icmp_error::{Sender, Undelivered, icmp_error};
use nicforge_wire::{IpAddresses, parse_headers};

/// Errors in the long run, and how many at once, as Linux has them for a whole host.
const EVERY: Time = Time::from_ms(1);
const AT_ONCE: u64 = 50;
/// More of a frame than an error quotes (RFC 4443, section 3.2: it has 1280 bytes itself).
const QUOTED_MAX: usize = 1500;
/// Place and bit of "don't fragment" in an IPv4 header.
const FLAGS: usize = 6;
const DONT_FRAGMENT: u8 = 0x40;

/// What one port says about frames that are too long for it.
#[derive(Debug)]
pub struct TooLong {
    mac: MacAddress,
    /// When all errors so far would have come at the pace of the long run.
    paid_until: Time,
    /// Errors to come in by the port.
    errors: Vec<Vec<u8>>,
}

impl TooLong {
    /// For the port with hardware address `mac`.
    pub fn new(mac: MacAddress) -> TooLong {
        TooLong { mac, paid_until: Time::ZERO, errors: Vec::new() }
    }

    /// `frame`, about to leave at `now`, is too long for a link of `mtu` bytes.
    #[cold]
    pub fn is_too_long(&mut self, frame: &[u8], mtu: usize, now: Time) {
        let paid_until = self.paid_until.max(now);
        if paid_until >= now + EVERY * AT_ONCE {
            return;
        }
        // Workers may still write it: what is decided and what is quoted come from one copy.
        let quoted = frame[..frame.len().min(QUOTED_MAX)].to_vec();
        if let Some(error) = self.error_about(&quoted, frame.len(), mtu) {
            self.paid_until = paid_until + EVERY;
            self.errors.push(error);
        }
    }

    /// The error about the frame of `len` bytes that begins with `frame`.
    /// `None` for what may be cut on its way, which we do not do, and for what nobody is told about.
    fn error_about(&self, frame: &[u8], len: usize, mtu: usize) -> Option<Vec<u8>> {
        let summary = parse_headers(frame, len).ok()?;
        let flags = frame.get(usize::from(summary.l3_offset) + FLAGS)?;
        let ip: IpAddr = match summary.addresses {
            IpAddresses::V4 { destination, .. } if flags & DONT_FRAGMENT != 0 => destination.into(),
            IpAddresses::V6 { destination, .. } => destination.into(),
            _ => return None,
        };
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        let why = Undelivered::TooBig { mtu };
        icmp_error(frame, len, why, Sender { mac: self.mac, ip }, len)
    }

    /// Errors that are still to come in.
    pub fn take_errors(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.errors)
    }
}

/// What to know of ports with links of these MTUs, by port number, when a run begins.
pub fn note_of_mtus(mtus: &[(usize, usize)]) -> Option<String> {
    let (_, first) = mtus.first()?;
    if mtus.iter().all(|(_, mtu)| mtu == first) {
        return None;
    }
    let each = mtus.iter().map(|(port, mtu)| format!("port {port} {mtu}"));
    let each: Vec<String> = each.collect();
    Some(format!(
        "MTUs differ ({}): packets that are too long for their way out are dropped (above_mtu); senders of IPv6 \
         and of IPv4 that may not be cut are told so by ICMP",
        each.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use nicforge_wire::headers::{ETHERNET_HEADER_LEN, Ipv4View};

    use super::*;

    const US: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const BEFORE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    /// A datagram of so many bytes for somebody behind the port.
    fn datagram(payload: usize, may_be_cut: bool) -> Vec<u8> {
        let mut frame = Vec::new();
        etherparse::PacketBuilder::ethernet2(US.0, BEFORE.0)
            .ipv4(OURS.octets(), [192, 0, 2, 1], 9)
            .udp(1, 2)
            .write(&mut frame, &vec![7; payload])
            .unwrap();
        frame[20] = if may_be_cut { 0 } else { 0x40 };
        frame
    }

    #[test]
    fn senders_of_what_is_too_long_are_told_within_bounds() {
        let mut port = TooLong::new(US);
        port.is_too_long(&datagram(1400, true), 1200, Time::ZERO);
        assert!(port.take_errors().is_empty(), "it may be cut");
        for _ in 0..100 {
            port.is_too_long(&datagram(1400, false), 1200, Time::ZERO);
        }
        let errors = port.take_errors();
        assert_eq!(errors.len(), 50);
        let ip = Ipv4View::new(&errors[0][ETHERNET_HEADER_LEN..]).unwrap();
        // As from whom it was for, to its sender.
        assert_eq!(ip.source(), Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(ip.destination(), OURS);
        let icmp = ip.payload();
        assert_eq!((icmp[0], icmp[1]), (3, 4), "fragmentation needed");
        assert_eq!(u16::from_be_bytes([icmp[6], icmp[7]]), 1200);
        port.is_too_long(&datagram(1400, false), 1200, Time::from_ms(2));
        assert_eq!(port.take_errors().len(), 1);
    }

    #[test]
    fn ports_of_one_mtu_need_no_note() {
        assert_eq!(note_of_mtus(&[]), None);
        assert_eq!(note_of_mtus(&[(0, 1500), (1, 1500)]), None);
        let note = note_of_mtus(&[(0, 1500), (1, 1200)]).unwrap();
        assert!(note.starts_with("MTUs differ (port 0 1500, port 1 1200)"), "{note}");
    }
}
