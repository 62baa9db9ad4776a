//! The send side of a socket: bytes of the stream in packet buffers of a segment each, with room for headers in front.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::SlabCache;
use nicforge_nic::{Segment, data_of};
use nicforge_platform::{Addr, Cpu};

/// Room for headers in a packet buffer, in whole lines: Linux's `MAX_TCP_HEADER` is more than two.
const HEADER_ROOM: u64 = 192;

/// Bytes that a process wrote and the peer has not acknowledged.
#[derive(Debug)]
pub struct SendBuffer {
    /// Oldest first.
    parts: VecDeque<Part>,
    /// Bytes of a part, at most.
    most: u64,
    /// Bytes of the stream that were written so far.
    written: u64,
    /// Of these, how many TCP has sent at least once.
    sent: u64,
    /// The sequence number of the stream's first byte, once it is known.
    first: Option<u32>,
}

/// A packet buffer with bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The buffer.
    pub mbuf: Addr,
    /// The place of its first byte in the stream.
    begin: u64,
    len: u64,
}

impl Part {
    /// Where its bytes begin, behind the room for headers.
    pub fn at(&self) -> Addr {
        data_of(self.mbuf) + HEADER_ROOM
    }

    fn end(&self) -> u64 {
        self.begin + self.len
    }
}

impl SendBuffer {
    /// One whose segments have `most` bytes at most.
    pub fn new(most: u64) -> SendBuffer {
        SendBuffer { parts: VecDeque::new(), most, written: 0, sent: 0, first: None }
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

    /// Packet buffers that it has.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Where the next `len` bytes go: how many of them, and where. None, when there is no packet buffer.
    pub fn room<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache, len: u64) -> Segment {
        if len == 0 {
            return Segment::default();
        }
        // What was sent is not added to.
        let (most, sent) = (self.most, self.sent);
        if self.parts.back().is_none_or(|last| last.len == most || sent > last.begin) {
            let Some(mbuf) = pool.take(cpu) else {
                return Segment::default();
            };
            self.parts.push_back(Part { mbuf, begin: self.written, len: 0 });
        }
        let last = self.parts.back();
        last.map_or(Segment::default(), |last| Segment {
            at: last.at() + last.len,
            len: len.min(most - last.len) as u32,
        })
    }

    /// `len` bytes were written where [`room`](Self::room) said.
    pub fn wrote(&mut self, len: u64) {
        self.written += len;
        if let Some(last) = self.parts.back_mut() {
            last.len += len;
        }
    }

    /// All but `unacknowledged` bytes of what was written were acknowledged: their buffers go back.
    pub fn release<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache, unacknowledged: u64) {
        let acknowledged = self.written.saturating_sub(unacknowledged);
        while let Some(part) = self.parts.front()
            && part.len > 0
            && part.end() <= acknowledged
        {
            pool.give(cpu, part.mbuf);
            self.parts.pop_front();
        }
    }

    /// The place in the stream of sequence number `sequence`, from which on `len` bytes are sent now.
    pub fn send(&mut self, sequence: u32, len: u32) -> u64 {
        // What is sent lies less than half the sequence numbers behind what was written last.
        let first = self.first.unwrap_or(sequence);
        let written = first.wrapping_add(self.written as u32);
        let place = self.written - u64::from(written.wrapping_sub(sequence));
        self.sent = self.sent.max(place + u64::from(len));
        place
    }

    /// The part that begins at `place` and has `len` bytes or more: nearly always, as TCP sends what fits one.
    pub fn whole(&self, place: u64, len: u32) -> Option<Part> {
        let part = *self.parts.get(self.parts_until(place).checked_sub(1)?)?;
        (part.begin == place && u64::from(len) <= part.len).then_some(part)
    }

    /// Parts that begin at `place` or before.
    fn parts_until(&self, place: u64) -> usize {
        self.parts.partition_point(|part| part.begin <= place)
    }

    /// Where the `len` bytes from `place` on lie, in as many pieces as they have.
    pub fn pieces(&self, place: u64, len: u32) -> impl Iterator<Item = Segment> {
        let end = place + u64::from(len);
        let from = self.parts_until(place).saturating_sub(1);
        let parts = self.parts.range(from..).take_while(move |part| part.begin < end);
        parts.map(move |part| {
            let begin = part.begin.max(place);
            Segment { at: part.at() + (begin - part.begin), len: part.end().min(end).saturating_sub(begin) as u32 }
        })
    }
}

#[cfg(test)]
mod tests {
    use nicforge_interfaces::kernel::Slabs;
    use nicforge_nic::Pool;
    use nicforge_platform::{AddressSpace, FlatCpu};
    use nicforge_units::Cycles;

    use super::*;

    struct Bench {
        cpu: FlatCpu,
        pool: SlabCache,
        slabs: Slabs,
        buffer: SendBuffer,
    }

    fn bench() -> Bench {
        let mut space = AddressSpace::default();
        let slabs = {
            let pool = Pool::new(&mut space, 100);
            Slabs::new(&mut space, pool, 1)
        };
        let pool = SlabCache::new(&mut space, &slabs, Cycles(1));
        Bench { cpu: FlatCpu::new(space.end()), pool, slabs, buffer: SendBuffer::new(1000) }
    }

    impl Bench {
        /// Writes `len` bytes; returns where each piece of them lies.
        fn write(&mut self, mut len: u64) -> Vec<Segment> {
            let mut pieces = Vec::new();
            while len > 0 {
                let piece = self.buffer.room(&mut self.cpu, &mut self.pool, len);
                self.buffer.wrote(piece.len.into());
                len -= u64::from(piece.len);
                pieces.push(piece);
            }
            pieces
        }

        fn held(&self) -> u64 {
            self.slabs.count() - self.slabs.free() - self.pool.len() as u64
        }
    }

    #[test]
    fn a_segment_of_what_was_written_lies_in_one_buffer() {
        let mut b = bench();
        // Sequence numbers wrap in the middle of the stream.
        let first = u32::MAX - 1500;
        b.buffer.begin(first);
        let written = b.write(2500);
        assert_eq!(written.iter().map(|piece| piece.len).collect::<Vec<_>>(), [1000, 1000, 500]);
        let place = b.buffer.send(first.wrapping_add(1000), 1000);
        assert_eq!((place, b.buffer.unsent()), (1000, 500));
        assert_eq!(b.buffer.whole(place, 1000).unwrap().at(), written[1].at);
        // The last part was not sent: more goes into it.
        let more = b.write(100);
        assert_eq!((more[0].at, b.buffer.len()), (written[2].at + 500, 3));
        // Now it was.
        let place = b.buffer.send(first.wrapping_add(2000), 600);
        assert_eq!(b.buffer.whole(place, 600).unwrap().at(), written[2].at);
        b.write(1);
        assert_eq!((b.buffer.len(), b.buffer.unsent()), (4, 1));
        // What is sent again was sent before.
        b.buffer.send(first, 1000);
        assert_eq!(b.buffer.unsent(), 1);
    }

    #[test]
    fn what_begins_in_the_middle_is_found_piece_by_piece() {
        let mut b = bench();
        b.buffer.begin(0);
        let written = b.write(2500);
        assert_eq!(b.buffer.whole(500, 1000), None);
        assert_eq!(b.buffer.whole(0, 1001), None);
        let pieces: Vec<Segment> = b.buffer.pieces(500, 1600).collect();
        let expected = [(written[0].at + 500, 500), (written[1].at, 1000), (written[2].at, 100)];
        assert_eq!(pieces.iter().map(|piece| (piece.at, piece.len)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn acknowledged_buffers_go_back_whole() {
        let mut b = bench();
        b.buffer.begin(0);
        b.write(2500);
        for (unacknowledged, held) in [(2500, 3), (1501, 3), (1500, 2), (1, 1), (0, 0)] {
            b.buffer.release(&mut b.cpu, &mut b.pool, unacknowledged);
            assert_eq!(b.held(), held, "{unacknowledged}");
        }
        b.write(10);
        assert_eq!((b.buffer.written(), b.held()), (2510, 1));
    }
}
