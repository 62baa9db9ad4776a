//! What a sender's stack left to its NIC: checksums, and the cutting of large segments.
//!
//! Frames that never saw a wire (from a virtual interface of the same machine) still lack it. The
//! header in front of them is virtio's (Virtual I/O Device specification 1.2, section 5.1.6), in
//! the byte order of the machine, as Linux has it on packet sockets and TAP devices:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 | flags: bit 0, the checksum is only begun |
//! | 1 | segmentation: 0 none, 1 TCP over IPv4, 4 TCP over IPv6, 5 UDP; bit 7 ECN |
//! | 2–3 | length of all headers, a hint |
//! | 4–5 | payload bytes of each frame to be |
//! | 6–7, 8–9 | where the checksum's range begins, and where in it the checksum stands |

use thiserror::Error;

use crate::checksum;
use crate::headers::{Ipv4View, Ipv6View, TcpFlags, TcpView, UdpView, be16, ip_protocol, put16};
use crate::{FrameSummary, IpAddresses, parse_frame};

/// Bytes of the header.
pub const OFFLOAD_HEADER_LEN: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const ECN: u8 = 0x80;
/// Where headers have their checksums.
pub(crate) const TCP_CHECKSUM: usize = 16;
pub(crate) const UDP_CHECKSUM: usize = 6;
/// Congestion window reduced: said once, by the first segment (RFC 3168, section 6.1.2).
const CWR: u8 = 0x80;

/// Why a frame cannot be finished; each is a drop counter by [`OffloadError::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OffloadError {
    /// The checksum's place is not in the frame.
    #[error("the checksum to be finished is not in the frame")]
    ChecksumOutside,
    /// A kind of segmentation that we do not know, or of something that is none of it.
    #[error("the frame cannot be cut as it asks for")]
    Segmentation,
}

impl OffloadError {
    /// The drop counter's name.
    pub const fn name(self) -> &'static str {
        match self {
            OffloadError::ChecksumOutside => "offload_bad_checksum",
            OffloadError::Segmentation => "offload_bad_segmentation",
        }
    }
}

/// A checksum that covers the pseudo header only, as virtio describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Where the covered range begins, bytes into the frame.
    pub start: u16,
    /// Where the checksum stands, bytes into that range.
    pub offset: u16,
}

/// What is left to do for a frame, as the header says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum that the sender left to its NIC.
    pub checksum: Option<PartialChecksum>,
    /// Segmentation by virtio's number; 0: none.
    pub kind: u8,
    /// Payload bytes of each frame to be.
    pub segment_bytes: u16,
}

impl Offload {
    /// TCP over IPv4.
    pub const TCP_V4: u8 = 1;
    /// TCP over IPv6.
    pub const TCP_V6: u8 = 4;
    const UDP: u8 = 5;

    /// From a header; any bytes are one.
    pub fn decode(header: &[u8; OFFLOAD_HEADER_LEN]) -> Offload {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        Offload {
            checksum: (header[0] & NEEDS_CHECKSUM != 0).then(|| PartialChecksum { start: word(6), offset: word(8) }),
            kind: header[1] & !ECN,
            segment_bytes: word(4),
        }
    }

    /// As a header; `headers` is the length of all headers.
    pub fn encode(&self, headers: u16) -> [u8; OFFLOAD_HEADER_LEN] {
        let mut header = [0; OFFLOAD_HEADER_LEN];
        let mut put = |at: usize, word: u16| header[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        put(2, headers);
        put(4, self.segment_bytes);
        if let Some(PartialChecksum { start, offset }) = self.checksum {
            put(6, start);
            put(8, offset);
            header[0] = NEEDS_CHECKSUM;
        }
        header[1] = self.kind;
        header
    }

    /// Hands the finished frames to `each`, in order; `scratch` is room for one that is cut out.
    /// Returns how many there were.
    ///
    /// # Errors
    /// When the frame cannot be finished; then `each` was not called.
    pub fn finish(
        &self,
        frame: &mut [u8],
        scratch: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, OffloadError> {
        if self.kind != 0 {
            return self.cut(frame, scratch, each);
        }
        if let Some(PartialChecksum { start, offset }) = self.checksum {
            finish_checksum(frame, start.into(), offset.into())?;
        }
        each(frame);
        Ok(1)
    }

    fn cut(&self, frame: &[u8], scratch: &mut Vec<u8>, each: &mut dyn FnMut(&[u8])) -> Result<usize, OffloadError> {
        let wrong = OffloadError::Segmentation;
        let summary = parse_frame(frame).map_err(|_| wrong)?;
        let v4 = matches!(summary.addresses, IpAddresses::V4 { .. });
        let expected = match self.kind {
            Offload::TCP_V4 if v4 => ip_protocol::TCP,
            Offload::TCP_V6 if !v4 => ip_protocol::TCP,
            Offload::UDP => ip_protocol::UDP,
            _ => return Err(wrong),
        };
        if summary.protocol != expected || !summary.has_l4_header || summary.is_fragment() {
            return Err(wrong);
        }
        let l4 = usize::from(summary.l4_offset);
        let headers = match expected {
            ip_protocol::TCP => l4 + TcpView::new(&frame[l4..]).map_err(|_| wrong)?.header_len(),
            _ => l4 + crate::headers::UDP_HEADER_LEN,
        };
        let payload = frame
            .get(headers..summary.l3_end as usize)
            .filter(|payload| !payload.is_empty() && self.segment_bytes > 0)
            .ok_or(wrong)?;
        let pieces = payload.chunks(self.segment_bytes.into());
        let count = pieces.len();
        for (number, piece) in pieces.enumerate() {
            scratch.clear();
            scratch.extend_from_slice(&frame[..headers]);
            scratch.extend_from_slice(piece);
            let done = number * usize::from(self.segment_bytes);
            amend(scratch, &summary, number, done, number + 1 == count);
            // A piece of a well-formed frame is one.
            let summary = parse_frame(scratch).map_err(|_| wrong)?;
            checksum::fill(scratch, &summary, true, true);
            each(scratch);
        }
        Ok(count)
    }
}

/// Makes headers that were copied from the whole say what piece `number` is, checksums apart.
/// `done` payload bytes lie before it.
fn amend(frame: &mut [u8], whole: &FrameSummary, number: usize, done: usize, last: bool) {
    let (l3, l4) = (usize::from(whole.l3_offset), usize::from(whole.l4_offset));
    let l3_len = (frame.len() - l3) as u16;
    let l4_len = (frame.len() - l4) as u16;
    if let Ok(mut ip) = Ipv4View::new(&mut frame[l3..]) {
        ip.set_total_len(l3_len);
        ip.set_identification(ip.identification().wrapping_add(number as u16));
    } else if let Ok(mut ip) = Ipv6View::new(&mut frame[l3..]) {
        ip.set_payload_len(l3_len - crate::headers::IPV6_HEADER_LEN as u16);
    }
    if whole.protocol == ip_protocol::UDP {
        if let Ok(mut udp) = UdpView::new(&mut frame[l4..]) {
            udp.set_length(l4_len);
        }
    } else if let Ok(mut tcp) = TcpView::new(&mut frame[l4..]) {
        tcp.set_sequence(tcp.sequence().wrapping_add(done as u32));
        let mut flags = tcp.flags().0;
        if number > 0 {
            flags &= !CWR;
        }
        if !last {
            flags &= !(TcpFlags::FIN.0 | TcpFlags::PSH.0);
        }
        tcp.set_flags(TcpFlags(flags));
    }
}

/// Finishes a checksum that so far holds the sum of the pseudo-header.
fn finish_checksum(frame: &mut [u8], start: usize, offset: usize) -> Result<(), OffloadError> {
    let at = start + offset;
    if at + 2 > frame.len() {
        return Err(OffloadError::ChecksumOutside);
    }
    // The same bits as 0 for TCP, and the only right ones for UDP.
    let checksum = checksum::nonzero(checksum::checksum(&frame[start..]));
    put16(frame, at, checksum);
    Ok(())
}

/// Finishes the TCP or UDP checksum of `frame` if it is only begun, where nothing beside the frame
/// says so (as in XDP): a begun checksum is the sum of the pseudo-header. A frame that was spoilt on its
/// way looks like that once in 65,536 times, so this is for frames that were on no wire. Whether it was so.
pub fn finish_begun(frame: &mut [u8]) -> bool {
    let Ok(summary) = parse_frame(frame) else {
        return false;
    };
    let at = match summary.protocol {
        ip_protocol::TCP => TCP_CHECKSUM,
        ip_protocol::UDP => UDP_CHECKSUM,
        _ => return false,
    };
    let l4 = usize::from(summary.l4_offset);
    if !summary.has_l4_header || summary.is_fragment() {
        return false;
    }
    // Where it is the right one all the same, it is made again; the rest of the frame need not be read.
    let begun = checksum::pseudo_header(&summary.addresses, summary.protocol, summary.l4_len).sum();
    let is_begun = be16(frame, l4 + at) == begun;
    if is_begun {
        checksum::fill(frame, &summary, false, true);
    }
    is_begun
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    /// A TCP frame with `payload` bytes, FIN, PSH and CWR set, and nothing right about its checksums.
    fn tcp(payload: usize, v6: bool) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let builder =
            if v6 { ethernet.ipv6([1; 16], [2; 16], 64) } else { ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64) };
        let data: Vec<u8> = (0..payload).map(|i| i as u8).collect();
        let mut frame = Vec::new();
        let tcp = builder.tcp(1000, 2000, u32::MAX - 500, 100).fin().psh();
        tcp.write(&mut frame, &data).unwrap();
        let l4 = usize::from(parse_frame(&frame).unwrap().l4_offset);
        frame[l4 + 13] |= CWR;
        frame[l4 + 16] ^= 0x55;
        frame
    }

    fn finished(offload: &Offload, frame: &mut [u8]) -> Result<Vec<Vec<u8>>, OffloadError> {
        let mut frames = Vec::new();
        let mut each = |frame: &[u8]| frames.push(frame.to_vec());
        let count = offload.finish(frame, &mut Vec::new(), &mut each)?;
        assert_eq!(count, frames.len());
        Ok(frames)
    }

    #[test]
    fn a_large_segment_becomes_frames_that_say_the_same() {
        for (v6, kind) in [(false, Offload::TCP_V4), (true, Offload::TCP_V6)] {
            let offload = Offload { kind, segment_bytes: 1400, ..Offload::default() };
            let mut whole = tcp(3000, v6);
            let frames = finished(&offload, &mut whole).unwrap();
            let mut payload = Vec::new();
            for (number, frame) in frames.iter().enumerate() {
                let summary = parse_frame(frame).unwrap();
                let verdict = checksum::verify(frame, &summary);
                assert_eq!(verdict.l4, Some(true), "frame {number}");
                assert_ne!(verdict.l3, Some(false), "frame {number}");
                let tcp = TcpView::new(&frame[summary.l4_offset.into()..]).unwrap();
                let sequence = (u32::MAX - 500).wrapping_add(1400 * number as u32);
                assert_eq!(tcp.sequence(), sequence);
                let ends = TcpFlags::FIN.0 | TcpFlags::PSH.0;
                assert_eq!(tcp.flags().0 & ends, if number == 2 { ends } else { 0 });
                assert_eq!(tcp.flags().0 & CWR != 0, number == 0);
                payload.extend_from_slice(tcp.payload());
            }
            assert_eq!(frames.len(), 3);
            assert_eq!(payload, whole[whole.len() - 3000..]);
        }
    }

    #[test]
    fn datagrams_are_cut_too() {
        let mut whole = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
        builder.udp(5, 6).write(&mut whole, &[7; 2500]).unwrap();
        let offload = Offload { kind: Offload::UDP, segment_bytes: 1200, ..Offload::default() };
        let frames = finished(&offload, &mut whole).unwrap();
        let lengths: Vec<u32> = frames
            .iter()
            .map(|frame| {
                let summary = parse_frame(frame).unwrap();
                assert_eq!(checksum::verify(frame, &summary).l4, Some(true));
                summary.l4_len - 8
            })
            .collect();
        assert_eq!(lengths, [1200, 1200, 100]);
    }

    #[test]
    fn a_begun_checksum_is_finished() {
        let mut frame = tcp(33, false);
        let summary = parse_frame(&frame).unwrap();
        let start = summary.l4_offset;
        let sum = checksum::pseudo_header(&summary.addresses, 6, summary.l4_len).sum();
        put16(&mut frame, usize::from(start) + 16, sum);
        let mut header = [0; OFFLOAD_HEADER_LEN];
        header[0] = NEEDS_CHECKSUM;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let frames = finished(&Offload::decode(&header), &mut frame).unwrap();
        assert_eq!(checksum::verify(&frames[0], &summary).l4, Some(true));
    }

    #[test]
    fn a_begun_checksum_is_known_without_being_told() {
        for (v6, payload) in [(false, 0), (false, 33), (true, 1400)] {
            let mut frame = tcp(payload, v6);
            let summary = parse_frame(&frame).unwrap();
            let at = usize::from(summary.l4_offset) + TCP_CHECKSUM;
            let spoilt = frame.clone();
            assert!(!finish_begun(&mut frame), "wrong and not begun");
            assert_eq!(frame, spoilt);
            let sum = checksum::pseudo_header(&summary.addresses, 6, summary.l4_len).sum();
            put16(&mut frame, at, sum);
            assert!(finish_begun(&mut frame));
            assert_eq!(checksum::verify(&frame, &summary).l4, Some(true));
            let right = frame.clone();
            assert!(!finish_begun(&mut frame), "it is finished");
            assert_eq!(frame, right);
        }
        for len in [0, 13, 14, 20, 60] {
            assert!(!finish_begun(&mut tcp(100, false)[..len]));
        }
    }

    #[test]
    fn what_cannot_be_finished_is_refused() {
        let cut = |kind, segment_bytes| Offload { kind, segment_bytes, checksum: None };
        let mut frame = tcp(3000, false);
        for offload in [cut(Offload::TCP_V6, 1400), cut(Offload::UDP, 1400), cut(Offload::TCP_V4, 0), cut(3, 1400)] {
            let refused = finished(&offload, &mut frame);
            assert_eq!(refused, Err(OffloadError::Segmentation), "{offload:?}");
        }
        let outside =
            Offload { checksum: Some(PartialChecksum { start: u16::MAX, offset: u16::MAX }), ..Offload::default() };
        assert_eq!(finished(&outside, &mut frame), Err(OffloadError::ChecksumOutside));
        for len in [0, 13, 14, 20, 60] {
            let refused = finished(&cut(Offload::TCP_V4, 1400), &mut frame[..len]);
            assert_eq!(refused, Err(OffloadError::Segmentation), "{len} bytes");
        }
    }
}
