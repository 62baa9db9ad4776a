//! Joining TCP frames of one flow into a segment that the receiver's NIC, or the stack on its behalf,
//! cuts again: the reverse of [`crate::offload`], for ports where each frame costs a system call.
//!
//! Only what cutting gives back bit by bit is joined: data of one flow in order, equal headers, the
//! same size except the last, no flags but ACK and a PSH at the end, and right checksums, as the
//! joined segment's is made anew.

use crate::checksum;
use crate::headers::{ETHERNET_HEADER_LEN, Ipv4View, TcpFlags, TcpView, ip_protocol, put16};
use crate::offload::{OFFLOAD_HEADER_LEN, Offload, PartialChecksum};
use crate::{FrameSummary, IpAddresses, parse_frame, parse_headers};

/// Longest joined IP packet.
const PACKET_MAX: usize = 65_535;
/// Where a TCP header has its checksum.
const TCP_CHECKSUM: u16 = 16;
/// The headers of what is joined have so much at most: no tag, and all the options of IPv4 and TCP.
const HEADERS_MAX: usize = ETHERNET_HEADER_LEN + 60 + 60;

/// A frame that others may be joined to, at the end of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// Where its offload header begins in the buffer.
    begin: usize,
    l3: usize,
    l4: usize,
    /// Length of all headers.
    headers: usize,
    /// Payload bytes of each frame but the last.
    segment: usize,
    next_sequence: u32,
    frames: u32,
    /// Whether the last frame allows no further one.
    closed: bool,
}

/// What joining needs to know of a frame.
struct Part {
    summary: FrameSummary,
    headers: usize,
    sequence: u32,
    pushes: bool,
}

impl Part {
    /// What a frame of `frame_len` bytes is that begins with `start`, whose headers all are in it;
    /// checksums apart.
    fn of(start: &[u8], frame_len: usize) -> Option<Part> {
        let summary = parse_headers(start, frame_len).ok()?;
        let plain = summary.protocol == ip_protocol::TCP
            && matches!(summary.addresses, IpAddresses::V4 { .. })
            && summary.has_l4_header
            && summary.vlan_tags == 0
            && !summary.is_fragment()
            && summary.l3_end == summary.frame_len;
        if !plain {
            return None;
        }
        let l4 = usize::from(summary.l4_offset);
        let ip = Ipv4View::new(&start[usize::from(summary.l3_offset)..]).ok()?;
        let tcp = TcpView::new(&start[l4..]).ok()?;
        let flags = tcp.flags().0 & !TcpFlags::PSH.0;
        let headers = l4 + tcp.header_len();
        let data = flags == TcpFlags::ACK.0 && headers < frame_len && ip.dont_fragment();
        (data && headers <= start.len()).then(|| Part {
            headers,
            sequence: tcp.sequence(),
            pushes: tcp.flags().contains(TcpFlags::PSH),
            summary,
        })
    }

    /// Whether both checksums are right, of the headers that the frame begins with and its payload.
    fn is_right(&self, headers: &[u8], payload: &[u8]) -> bool {
        let summary = &self.summary;
        let mut sum = checksum::pseudo_header(&summary.addresses, summary.protocol, summary.l4_len);
        // Whole words: the payload begins at an even place.
        sum.add(&headers[usize::from(summary.l4_offset)..self.headers]);
        sum.add(payload);
        checksum::verify_l3(headers, summary) == Some(true) && sum.checksum() == 0
    }
}

impl Joined {
    /// The frame that stands in `buffer` from `begin` on, behind room for its offload header, if
    /// others may be joined to it.
    pub fn first(buffer: &[u8], begin: usize) -> Option<Joined> {
        let frame = &buffer[begin + OFFLOAD_HEADER_LEN..];
        let part = Part::of(frame, frame.len())?;
        let (headers, payload) = frame.split_at(part.headers);
        if !part.is_right(headers, payload) {
            return None;
        }
        let segment = payload.len();
        Some(Joined {
            begin,
            l3: part.summary.l3_offset.into(),
            l4: part.summary.l4_offset.into(),
            headers: part.headers,
            segment,
            next_sequence: part.sequence.wrapping_add(segment as u32),
            frames: 1,
            closed: part.pushes,
        })
    }

    /// Appends the payload of `frame` to the end of `buffer`, if it is what follows; whether it was.
    ///
    /// `frame` may lie in memory that somebody else writes meanwhile: it is copied once, and what was
    /// copied is what counts.
    pub fn join(&mut self, buffer: &mut Vec<u8>, frame: &[u8]) -> bool {
        if self.closed {
            return false;
        }
        let mut start = [0; HEADERS_MAX];
        let start = &mut start[..frame.len().min(HEADERS_MAX)];
        start.copy_from_slice(&frame[..start.len()]);
        let Some(part) = Part::of(start, frame.len()) else {
            return false;
        };
        let payload = frame.len() - part.headers;
        let (at, end) = (self.begin + OFFLOAD_HEADER_LEN, buffer.len());
        let follows = part.headers == self.headers
            && part.sequence == self.next_sequence
            && payload <= self.segment
            && end - at - self.l3 + payload <= PACKET_MAX
            && self.same_headers(&buffer[at..], start);
        if !follows {
            return false;
        }
        buffer.extend_from_slice(&frame[part.headers..]);
        if !part.is_right(start, &buffer[end..]) {
            buffer.truncate(end);
            return false;
        }
        self.next_sequence = self.next_sequence.wrapping_add(payload as u32);
        self.frames += 1;
        self.closed = part.pushes || payload < self.segment;
        if part.pushes {
            buffer[at + self.l4 + 13] |= TcpFlags::PSH.0;
        }
        true
    }

    /// Whether the headers are equal except what differs between the frames of a segment: IP length,
    /// identification and checksum, TCP sequence number, PSH and checksum.
    fn same_headers(&self, one: &[u8], other: &[u8]) -> bool {
        let (l3, l4) = (self.l3, self.l4);
        let same = |from: usize, to: usize| one[from..to] == other[from..to];
        same(0, l3 + 2)
            && same(l3 + 6, l3 + 10)
            && same(l3 + 12, l4 + 4)
            && same(l4 + 8, l4 + 13)
            && same(l4 + 14, l4 + 16)
            && same(l4 + 18, self.headers)
    }

    /// Frames that are in it.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Makes headers and offload header say what became of it; what is one frame stays as it is.
    pub fn seal(&self, buffer: &mut [u8]) {
        if self.frames == 1 {
            return;
        }
        let (header, frame) = buffer[self.begin..].split_at_mut(OFFLOAD_HEADER_LEN);
        let length = (frame.len() - self.l3) as u16;
        if let Ok(mut ip) = Ipv4View::new(&mut frame[self.l3..]) {
            ip.set_total_len(length);
        }
        // Whole, as its parts were.
        if let Ok(summary) = parse_frame(frame) {
            checksum::fill(frame, &summary, true, false);
            let l4_len = (frame.len() - self.l4) as u32;
            let begun = checksum::pseudo_header(&summary.addresses, summary.protocol, l4_len);
            put16(frame, self.l4 + usize::from(TCP_CHECKSUM), begun.sum());
        }
        let offload = Offload {
            checksum: Some(PartialChecksum { start: self.l4 as u16, offset: TCP_CHECKSUM }),
            kind: Offload::TCP_V4,
            segment_bytes: self.segment as u16,
        };
        header.copy_from_slice(&offload.encode(self.headers as u16));
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    fn frame(sequence: u32, payload: &[u8], pushes: bool) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(1000, 2000, sequence, 100)
            .ack(7);
        let builder = if pushes { builder.psh() } else { builder };
        let mut frame = Vec::new();
        builder.write(&mut frame, payload).unwrap();
        let summary = parse_frame(&frame).unwrap();
        frame[20] |= 0x40;
        checksum::fill(&mut frame, &summary, true, true);
        frame
    }

    /// The first of `frames` with as many of the others as join, and how many that are.
    fn joined(frames: &[Vec<u8>]) -> (Vec<u8>, u32) {
        let mut buffer = vec![0xee; 33];
        buffer.extend([0; OFFLOAD_HEADER_LEN]);
        buffer.extend(&frames[0]);
        let mut first = Joined::first(&buffer, 33).expect("data");
        for frame in &frames[1..] {
            if !first.join(&mut buffer, frame) {
                break;
            }
        }
        first.seal(&mut buffer);
        (buffer[33..].to_vec(), first.frames())
    }

    #[test]
    fn what_is_joined_is_cut_into_the_same_frames() {
        let data: Vec<u8> = (0..3500).map(|i| i as u8).collect();
        let chunks = data.chunks(1000).enumerate();
        let frames: Vec<Vec<u8>> = chunks
            .map(|(i, chunk)| {
                let mut frame = frame((u32::MAX - 1500).wrapping_add(1000 * i as u32), chunk, i == 3);
                // Cutting counts identifications on, as senders do.
                frame[19] = i as u8;
                let summary = parse_frame(&frame).unwrap();
                checksum::fill(&mut frame, &summary, true, false);
                frame
            })
            .collect();
        let (mut whole, count) = joined(&frames);
        assert_eq!(count, 4);
        let (header, whole) = whole.split_first_chunk_mut().unwrap();
        let mut cut = Vec::new();
        let mut each = |frame: &[u8]| cut.push(frame.to_vec());
        let offload = Offload::decode(header);
        offload.finish(whole, &mut Vec::new(), &mut each).unwrap();
        assert_eq!(cut, frames);
    }

    #[test]
    fn what_cutting_would_not_give_back_stays_apart() {
        let first = || frame(0, &[1; 100], false);
        let next = || frame(100, &[2; 100], false);
        assert_eq!(joined(&[first(), next()]).1, 2);
        let changed = |at: usize, value: u8, right: bool| {
            let mut frame = next();
            frame[at] ^= value;
            if right {
                let summary = parse_frame(&frame).unwrap();
                checksum::fill(&mut frame, &summary, true, true);
            }
            frame
        };
        for (what, other) in [
            ("a gap", frame(101, &[2; 100], false)),
            ("a larger one", frame(100, &[2; 101], false)),
            ("another type of service", changed(15, 4, true)),
            ("another source", changed(29, 1, true)),
            ("another port", changed(35, 1, true)),
            ("another window", changed(48, 1, true)),
            ("FIN", changed(47, 1, true)),
            ("a wrong checksum", changed(60, 1, false)),
            ("another receiver", changed(0, 2, true)),
        ] {
            let (whole, count) = joined(&[first(), other]);
            assert_eq!(count, 1, "{what}");
            // And nothing of the other is left behind.
            assert_eq!(whole[OFFLOAD_HEADER_LEN..], first()[..], "{what}");
        }
        let short = frame(100, &[2; 50], false);
        let after = frame(150, &[3; 50], false);
        assert_eq!(joined(&[first(), short, after]).1, 2, "nothing after a short one");
        assert_eq!(joined(&[frame(0, &[1; 100], true), next()]).1, 1, "after PSH");
        let (alone, _) = joined(&[first()]);
        assert_eq!(alone[OFFLOAD_HEADER_LEN..], first()[..]);
        assert_eq!(alone[..OFFLOAD_HEADER_LEN], [0; OFFLOAD_HEADER_LEN]);
    }
}
