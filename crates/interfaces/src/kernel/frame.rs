//! A frame with what is known of it.

use nicforge_nic::TxOffload;
use nicforge_wire::checksum::{self, ChecksumVerdict};
use nicforge_wire::link::Carried;
use nicforge_wire::{FrameSummary, parse_frame};

/// What a NIC that looks at a frame finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// It is an IP packet.
    pub is_ip: bool,
    /// The protocol above IP, where its header is there: not in later fragments.
    pub protocol: Option<u8>,
    /// What its checksums say.
    pub verdict: ChecksumVerdict,
}

impl Findings {
    /// What a look at `frame` finds; nothing, if it cannot be read.
    fn of(frame: &[u8]) -> Findings {
        parse_frame(frame)
            .map_or(Findings::default(), |summary| Findings::with(&summary, checksum::verify(frame, &summary)))
    }

    /// What is found in a frame that was read, and whose checksums are known.
    fn with(summary: &FrameSummary, verdict: ChecksumVerdict) -> Findings {
        Findings {
            is_ip: summary.is_ip(),
            protocol: (!summary.is_fragment() && summary.has_l4_header).then_some(summary.protocol),
            verdict,
        }
    }
}

/// A frame on its way. The NIC that has computed its checksums knows what the one that verifies them
/// will find, if nobody changes the bytes in between: that is then not found out again.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    known: Option<Findings>,
}

impl Frame {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the bytes out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether it has no memory either.
    pub fn is_nothing(&self) -> bool {
        self.bytes.capacity() == 0
    }

    /// Throws its bytes away; the memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.known = None;
    }

    /// Appends `more`.
    pub fn extend(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        self.known = None;
    }

    /// Appends `len` bytes, to be written.
    pub fn grow(&mut self, len: usize) -> &mut [u8] {
        let before = self.bytes.len();
        self.bytes.resize(before + len, 0);
        self.known = None;
        &mut self.bytes[before..]
    }

    /// Computes the checksums that `offload` asks for. What cannot be read is left as it is; returns
    /// whether it could.
    pub fn complete(&mut self, offload: TxOffload) -> bool {
        let (l3, l4) = (offload.l3_checksum, offload.l4_checksum);
        let Ok(summary) = parse_frame(&self.bytes) else {
            return false;
        };
        let verdict = checksum::fill(&mut self.bytes, &summary, l3, l4);
        self.known = (l3 && l4).then(|| Findings::with(&summary, verdict));
        true
    }

    /// What a NIC that looks at it finds.
    pub fn findings(&self) -> Findings {
        self.known.unwrap_or_else(|| Findings::of(&self.bytes))
    }
}

impl Carried for Frame {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.known = None;
        &mut self.bytes
    }
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Frame {
        Frame { bytes, known: None }
    }
}

#[cfg(test)]
mod tests {
    use nicforge_wire::headers::ip_protocol;

    use super::*;

    /// Ethernet, IPv4 and `l4` above it.
    fn packet(protocol: u8, l4: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((20 + l4.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(l4);
        frame
    }

    #[test]
    fn a_frames_summary_agrees_with_its_bytes() {
        let mut tcp = [7u8; 101];
        tcp[12] = 5 << 4;
        let mut udp = [9u8; 60];
        udp[4..6].copy_from_slice(&60u16.to_be_bytes());
        let packets =
            [packet(ip_protocol::TCP, &tcp), packet(ip_protocol::UDP, &udp), packet(99, &[1; 40]), vec![3; 60]];
        let both = TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() };
        for (number, bytes) in packets.into_iter().enumerate() {
            let mut frame = Frame::from(bytes);
            frame.complete(both);
            let looked_at = Findings::of(frame.bytes());
            assert_eq!(frame.findings(), looked_at, "packet {number}");
            assert_eq!(looked_at.verdict.l3, (number < 3).then_some(true));
            assert_eq!(looked_at.verdict.l4, (number < 2).then_some(true));
            // What is appended is not what was looked at.
            frame.extend(&[1]);
            assert_eq!(frame.findings(), Findings::of(frame.bytes()));
        }
    }

    #[test]
    fn a_frame_without_checksums_is_looked_at() {
        let mut tcp = [7u8; 100];
        tcp[12] = 5 << 4;
        let mut frame = Frame::from(packet(ip_protocol::TCP, &tcp));
        assert!(frame.complete(TxOffload::default()));
        assert_eq!(frame.findings().verdict.l3, Some(false));
        assert_eq!(frame.findings().verdict.l4, Some(false));
    }
}
