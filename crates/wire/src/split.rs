//! Where a NIC may cut a frame into headers and payload.

use crate::FrameSummary;
use crate::headers::ip_protocol;

impl FrameSummary {
    /// Where what the parser understood ends in `frame`, of which this is the summary: behind the TCP
    /// or UDP header with its options, or the IP header. A frame that is not IP is header as a whole,
    /// and so is ICMP, whose messages quote others' headers.
    #[inline]
    pub fn headers_end(&self, frame: &[u8]) -> usize {
        let l4 = usize::from(self.l4_offset);
        let end = match (self.is_ip(), self.has_l4_header, self.protocol) {
            (true, false, _) => l4,
            (true, true, ip_protocol::UDP) => l4 + 8,
            (true, true, ip_protocol::TCP) => {
                let words = frame.get(l4 + 12).map_or(5, |byte| byte >> 4);
                l4 + 4 * usize::from(words)
            }
            _ => return self.frame_len as usize,
        };
        end.min(self.frame_len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_frame;

    /// An Ethernet and IPv4 header before `l4`, for `protocol`.
    fn frame(protocol: u8, l4: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0u8; 14 + 20];
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        bytes[14] = 0x45;
        bytes[16..18].copy_from_slice(&(20 + l4.len() as u16).to_be_bytes());
        bytes[23] = protocol;
        bytes.extend_from_slice(l4);
        bytes
    }

    fn end(frame: &[u8]) -> usize {
        parse_frame(frame).expect("a frame").headers_end(frame)
    }

    #[test]
    fn headers_end_behind_udp_and_behind_the_options_of_tcp() {
        let mut udp = [0u8; 108];
        udp[4..6].copy_from_slice(&108u16.to_be_bytes());
        assert_eq!(end(&frame(ip_protocol::UDP, &udp)), 34 + 8);
        let mut tcp = [0u8; 100];
        tcp[12] = 8 << 4;
        assert_eq!(end(&frame(ip_protocol::TCP, &tcp)), 34 + 32);
    }

    #[test]
    fn icmp_and_what_is_no_ip_is_not_cut() {
        let icmp = frame(ip_protocol::ICMP, &[0u8; 60]);
        assert_eq!(end(&icmp), icmp.len());
        let mut arp = vec![0u8; 60];
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(end(&arp), 60);
    }
}
