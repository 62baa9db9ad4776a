//! Frames that go from one virtual wire to another as their sender's stack left them: with a
//! checksum that is only begun, or as a segment that its NIC was to cut (segmentation offload). What
//! lies between need not do what the next NIC does anyway.

use crate::headers::{ETHERNET_HEADER_LEN, be16, ethertype, ip_protocol, put16};
use crate::offload::{OFFLOAD_HEADER_LEN, Offload, PartialChecksum, TCP_CHECKSUM, UDP_CHECKSUM};
use crate::{IpAddresses, checksum, parse_frame, parse_headers};

/// What is left to the NIC that sends a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxOffload {
    /// Compute the IPv4 header checksum.
    pub l3_checksum: bool,
    /// Compute the TCP or UDP checksum (whatever stands in its field).
    pub l4_checksum: bool,
    /// Cut this TCP segment into frames with as many payload bytes each; 0: it is one frame.
    pub segment: u16,
}

/// A frame that the next NIC can finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Tells that NIC what to do.
    pub header: [u8; OFFLOAD_HEADER_LEN],
    /// Bytes of the longest frame that comes out, from the IP header on.
    pub l3_len: usize,
}

impl TxOffload {
    /// What `offload` leaves to do for `frame`, if that is a checksum of TCP or UDP right behind an IP
    /// header, or the cutting of TCP as well. Anything else is to be finished before it goes on.
    pub fn left(offload: &Offload, frame: &[u8]) -> Option<TxOffload> {
        const V4_PROTOCOL: usize = ETHERNET_HEADER_LEN + 9;
        const V6_PROTOCOL: usize = ETHERNET_HEADER_LEN + 6;
        const V6_L4: usize = ETHERNET_HEADER_LEN + 40;
        let PartialChecksum { start, offset: at } = offload.checksum?;
        // The longest header that is looked into.
        let _ = frame.get(V6_L4)?;
        let (is_v4, protocol, l4) = match be16(frame, ETHERNET_HEADER_LEN - 2) {
            ethertype::IPV4 => {
                let words = usize::from(frame[ETHERNET_HEADER_LEN] & 0xf);
                (true, frame[V4_PROTOCOL], ETHERNET_HEADER_LEN + 4 * words)
            }
            ethertype::IPV6 => (false, frame[V6_PROTOCOL], V6_L4),
            _ => return None,
        };
        let expected = match protocol {
            ip_protocol::TCP => TCP_CHECKSUM,
            ip_protocol::UDP => UDP_CHECKSUM,
            _ => return None,
        };
        if (usize::from(start), usize::from(at)) != (l4, expected) {
            return None;
        }
        let cuts = match (offload.kind, is_v4, protocol) {
            (0, ..) => false,
            (Offload::TCP_V4, true, ip_protocol::TCP) | (Offload::TCP_V6, false, ip_protocol::TCP)
                if offload.segment_bytes > 0 =>
            {
                true
            }
            _ => return None,
        };
        Some(TxOffload { l3_checksum: false, l4_checksum: true, segment: if cuts { offload.segment_bytes } else { 0 } })
    }

    /// Makes the headers of a frame of `len` bytes, which all lie in `headers`, what a NIC expects that
    /// does the rest. `None` where none can: [`finish`](Self::finish) it.
    pub fn begin(&self, headers: &mut [u8], len: usize) -> Option<Begun> {
        let summary = parse_headers(headers, len).ok()?;
        let (field, is_tcp) = match summary.protocol {
            ip_protocol::TCP => (TCP_CHECKSUM, true),
            ip_protocol::UDP => (UDP_CHECKSUM, false),
            _ => return None,
        };
        let v4 = matches!(summary.addresses, IpAddresses::V4 { .. });
        let is_whole = summary.has_l4_header && !summary.is_fragment() && !summary.source_routed;
        // What follows a packet in its frame, padding, would be taken for payload.
        let no_padding = summary.l3_end == summary.frame_len;
        if !is_whole || !(is_tcp && no_padding || self.segment == 0) {
            return None;
        }
        let kind = match (self.segment, v4) {
            (0, _) => 0,
            (_, true) => Offload::TCP_V4,
            (_, false) => Offload::TCP_V6,
        };
        if !self.l4_checksum && kind == 0 {
            return None;
        }
        if self.l3_checksum || kind != 0 {
            checksum::fill(headers, &summary, true, false);
        }
        let l4 = usize::from(summary.l4_offset);
        let begun = checksum::pseudo_header(&summary.addresses, summary.protocol, summary.l4_len).sum();
        put16(headers, l4 + field, begun);
        let checksum = PartialChecksum { start: summary.l4_offset, offset: field as u16 };
        let offload = Offload { checksum: Some(checksum), kind, segment_bytes: self.segment };
        let headers_len = summary.headers_end(headers);
        let l3 = usize::from(summary.l3_offset);
        let longest = match kind {
            0 => summary.l3_end as usize,
            _ => headers_len + usize::from(self.segment),
        };
        Some(Begun { header: offload.encode(headers_len as u16), l3_len: longest - l3 })
    }

    /// Does what is left to do for `frame`, and hands what becomes of it to `each`; returns how many
    /// frames. What cannot be parsed, or not be cut, stays as it is.
    pub fn finish(&self, frame: &[u8], each: &mut dyn FnMut(&[u8])) -> usize {
        let mut frame = frame.to_vec();
        let Ok(summary) = parse_frame(&frame) else {
            each(&frame);
            return 1;
        };
        if self.segment > 0 {
            let v4 = matches!(summary.addresses, IpAddresses::V4 { .. });
            let offload = Offload {
                checksum: None,
                kind: if v4 { Offload::TCP_V4 } else { Offload::TCP_V6 },
                segment_bytes: self.segment,
            };
            if let Ok(frames) = offload.finish(&mut frame, &mut Vec::new(), each) {
                return frames;
            }
        }
        checksum::fill(&mut frame, &summary, self.l3_checksum, self.l4_checksum);
        each(&frame);
        1
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    /// A segment as a stack leaves it to its NIC, and what it says of it.
    fn segment(v6: bool, payload: usize) -> (Offload, Vec<u8>) {
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let builder =
            if v6 { ethernet.ipv6([1; 16], [2; 16], 64) } else { ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64) };
        let data: Vec<u8> = (0..payload).map(|i| i as u8).collect();
        let mut frame = Vec::new();
        let tcp = builder.tcp(1000, 2000, 7, 100).ack(9);
        tcp.write(&mut frame, &data).unwrap();
        let left = TxOffload { l4_checksum: true, segment: 1400, ..TxOffload::default() };
        let len = frame.len();
        let begun = left.begin(&mut frame, len).unwrap();
        (Offload::decode(&begun.header), frame)
    }

    fn frames(finish: impl FnOnce(&mut dyn FnMut(&[u8])) -> usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let count = finish(&mut |frame| frames.push(frame.to_vec()));
        assert_eq!(count, frames.len());
        frames
    }

    /// Addresses change on the way, as NAT does it; then one NIC finishes, or the next one does.
    #[test]
    fn what_is_left_can_be_done_later_or_elsewhere() {
        for v6 in [false, true] {
            let (offload, mut frame) = segment(v6, 5000);
            let left = TxOffload::left(&offload, &frame).unwrap();
            assert_eq!((left.l4_checksum, left.segment), (true, 1400));
            frame[if v6 { 40 } else { 29 }] ^= 0x55;
            let summary = parse_frame(&frame).unwrap();
            checksum::fill(&mut frame, &summary, true, false);
            let here = frames(|each| left.finish(&frame, each));
            let len = frame.len();
            let begun = left.begin(&mut frame[..100], len).unwrap();
            let ip = if v6 { 40 } else { 20 };
            assert_eq!(begun.l3_len, ip + 20 + 1400);
            let next = Offload::decode(&begun.header);
            let there = frames(|each| next.finish(&mut frame, &mut Vec::new(), each).unwrap());
            assert_eq!(here, there);
            assert_eq!(here.len(), 4);
            for frame in &here {
                let verdict = checksum::verify(frame, &parse_frame(frame).unwrap());
                assert_eq!(verdict.l4, Some(true));
                assert_ne!(verdict.l3, Some(false));
            }
        }
    }

    #[test]
    fn only_what_every_nic_can_do_is_left() {
        let (offload, frame) = segment(false, 3000);
        let none = |offload: Offload, frame: &[u8]| {
            assert_eq!(TxOffload::left(&offload, frame), None, "{offload:?}");
        };
        let (checksum, segment_bytes) = (None, 0);
        none(Offload { checksum, ..offload }, &frame);
        none(Offload { kind: 4, ..offload }, &frame);
        none(Offload { kind: 5, ..offload }, &frame);
        none(Offload { segment_bytes, ..offload }, &frame);
        let checksum = Some(PartialChecksum { start: 33, offset: 16 });
        none(Offload { checksum, ..offload }, &frame);
        for len in [0, 13, 14, 54] {
            none(offload, &frame[..len]);
        }
        let mut tagged = frame.clone();
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        none(offload, &tagged);
    }

    #[test]
    fn what_cannot_be_done_stays_as_it_is() {
        let (_, frame) = segment(false, 100);
        let left = TxOffload { l3_checksum: true, l4_checksum: true, segment: 1000 };
        for len in [0, 13, 33] {
            let mut short = frame[..len].to_vec();
            assert_eq!(left.begin(&mut short, len), None);
            let whole = frames(|each| left.finish(&short, each));
            assert_eq!(whole, [short]);
        }
        let mut fragment = frame.clone();
        fragment[20] |= 0x20;
        let len = fragment.len();
        assert_eq!(left.begin(&mut fragment, len), None);
        assert_eq!(frames(|each| left.finish(&fragment, each)).len(), 1);
    }
}
