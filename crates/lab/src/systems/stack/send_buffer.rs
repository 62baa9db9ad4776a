//! The send side of a socket: bytes of the stream in modelled memory, a ring.

use nicforge_nic::Segment;
use nicforge_platform::{Addr, AddressSpace};

/// Bytes that a process wrote and the peer has not acknowledged.
#[derive(Debug)]
pub struct SendBuffer {
    base: Addr,
    size: u64,
    /// Bytes of the stream that were written so far.
    written: u64,
    /// Of these, how many TCP has sent at least once.
    sent: u64,
    /// The sequence number of the stream's first byte, once it is known.
    first: Option<u32>,
}

impl SendBuffer {
    /// Room for `size` bytes.
    pub fn new(space: &mut AddressSpace, size: u64) -> SendBuffer {
        SendBuffer { base: space.data(size, 4096), size, written: 0, sent: 0, first: None }
    }

    /// The stream's first byte has sequence number `first`.
    pub fn begin(&mut self, first: u32) {
        self.first.get_or_insert(first);
    }

    /// Bytes of the stream that were written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that were written and that TCP has not sent yet.
    pub fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Where the next `len` bytes go: how many of them in one piece, and where.
    pub fn room(&self, len: u64) -> Segment {
        let at = self.written % self.size;
        Segment { at: self.base + at, len: len.min(self.size - at) as u32 }
    }

    /// `len` bytes were written where [`room`](Self::room) said.
    pub fn wrote(&mut self, len: u64) {
        self.written += len;
    }

    /// Where the `len` bytes from sequence number `sequence` on lie, which are sent now, in up to two
    /// pieces.
    pub fn pieces(&mut self, sequence: u32, len: u32) -> [Segment; 2] {
        // What is sent lies within the buffer's size behind what was written last.
        let first = self.first.unwrap_or(sequence);
        let written = first.wrapping_add(self.written as u32);
        let offset = self.written - u64::from(written.wrapping_sub(sequence));
        self.sent = self.sent.max(offset + u64::from(len));
        let at = offset % self.size;
        let here = u64::from(len).min(self.size - at) as u32;
        [Segment { at: self.base + at, len: here }, Segment { at: self.base, len: len - here }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_where_they_were_written_also_around_both_ends() {
        let mut space = AddressSpace::default();
        let mut buffer = SendBuffer::new(&mut space, 1000);
        let base = buffer.room(1).at;
        // Sequence numbers wrap in the middle of the stream.
        buffer.begin(u32::MAX - 1500);
        buffer.wrote(900);
        assert_eq!(buffer.room(500).len, 100);
        buffer.wrote(100);
        buffer.wrote(700);
        let [first, second] = buffer.pieces((u32::MAX - 1500).wrapping_add(950), 200);
        assert_eq!((first.at, first.len), (base + 950, 50));
        assert_eq!((second.at, second.len), (base, 150));
        assert_eq!(buffer.unsent(), 550);
        let [first, second] = buffer.pieces((u32::MAX - 1500).wrapping_add(1600), 100);
        assert_eq!((first.at, first.len, second.len), (base + 600, 100, 0));
        assert_eq!(buffer.unsent(), 0);
        // What is sent again was sent before.
        buffer.pieces((u32::MAX - 1500).wrapping_add(950), 200);
        assert_eq!(buffer.unsent(), 0);
    }
}
