//! Link types of captures, and how frames of other links become Ethernet frames.

use crate::headers::{ETHERNET_HEADER_LEN, be16, ethertype};

/// Link types that we read (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// 1: Ethernet, as it is.
    Ethernet,
    /// 0 and 108: BSD loopback, four bytes of address family, then an IP packet.
    Loopback,
    /// 12, 14, 101, 228, 229: an IP packet and nothing before it.
    RawIp,
    /// 113: Linux cooked, 16 bytes, the last two an EtherType.
    LinuxCooked,
    /// 276: Linux cooked version 2, 20 bytes, the first two an EtherType.
    LinuxCooked2,
}

/// Made-up addresses of converted frames; the second bit says locally administered.
const MADE_UP_DESTINATION: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
const MADE_UP_SOURCE: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

impl LinkType {
    /// From the number in a file; `None` when we do not read it.
    pub fn from_number(number: i32) -> Option<LinkType> {
        match number {
            0 | 108 => Some(LinkType::Loopback),
            1 => Some(LinkType::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(LinkType::RawIp),
            113 => Some(LinkType::LinuxCooked),
            276 => Some(LinkType::LinuxCooked2),
            _ => None,
        }
    }

    /// Bytes that stand before the network packet.
    fn header_len(self) -> usize {
        match self {
            LinkType::Ethernet => ETHERNET_HEADER_LEN,
            LinkType::Loopback => 4,
            LinkType::RawIp => 0,
            LinkType::LinuxCooked => 16,
            LinkType::LinuxCooked2 => 20,
        }
    }

    /// What a length on this link becomes when the frame is an Ethernet frame.
    pub(super) fn ethernet_len(self, len: u32) -> u32 {
        match self {
            LinkType::Ethernet => len,
            _ => len.saturating_sub(self.header_len() as u32).saturating_add(ETHERNET_HEADER_LEN as u32),
        }
    }

    /// Writes the Ethernet form of `captured` into `frame`; false when there is none.
    pub(super) fn to_ethernet(self, captured: &[u8], frame: &mut Vec<u8>) -> bool {
        frame.clear();
        if self == LinkType::Ethernet {
            frame.extend_from_slice(captured);
            return true;
        }
        let Some((header, packet)) = captured.split_at_checked(self.header_len()) else {
            return false;
        };
        let protocol = match self {
            LinkType::LinuxCooked => be16(header, 14),
            LinkType::LinuxCooked2 => be16(header, 0),
            _ => match packet.first().map(|byte| byte >> 4) {
                Some(4) => ethertype::IPV4,
                Some(6) => ethertype::IPV6,
                _ => return false,
            },
        };
        // Below 0x600 these are not EtherTypes but 802.2 and the like.
        if protocol < 0x600 {
            return false;
        }
        frame.extend_from_slice(&MADE_UP_DESTINATION);
        frame.extend_from_slice(&MADE_UP_SOURCE);
        frame.extend_from_slice(&protocol.to_be_bytes());
        frame.extend_from_slice(packet);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_cooked_become_ethernet() {
        let mut frame = Vec::new();
        assert!(LinkType::Loopback.to_ethernet(&[2, 0, 0, 0, 0x45, 1], &mut frame));
        assert_eq!(frame[12..], [8, 0, 0x45, 1]);
        let mut cooked = [0u8; 18];
        cooked[14..].copy_from_slice(&[0x86, 0xdd, 0x60, 9]);
        assert!(LinkType::LinuxCooked.to_ethernet(&cooked, &mut frame));
        assert_eq!(frame[12..], [0x86, 0xdd, 0x60, 9]);
        assert_eq!(LinkType::LinuxCooked.ethernet_len(18), 16);
    }

    #[test]
    fn what_is_no_ip_packet_has_no_ethernet_form() {
        let mut frame = Vec::new();
        assert!(!LinkType::RawIp.to_ethernet(&[0x15], &mut frame));
        assert!(!LinkType::Loopback.to_ethernet(&[2, 0], &mut frame));
        assert!(!LinkType::LinuxCooked2.to_ethernet(&[0; 30], &mut frame));
    }
}
