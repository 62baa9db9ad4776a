//! Completion rings: the NIC only writes, software only reads (rxBisect, section 2).
//!
//! Each entry is one cache line. Its last word carries the done bit, which flips its meaning on
//! every pass through the ring, so that nobody has to clear it.
//!
//! | word | writer | content |
//! | --- | --- | --- |
//! | 0 | NIC | entry of the receive ring (low 32 bits), frame length (high 32) |
//! | 1 | NIC | RSS hash (low 32 bits), flags (next 8), port (next 8), receive ring (high 16) |
//! | 2 | NIC | arrival of the first bit, ps |
//! | 3 | NIC | buffer's metadata address, where the interface hands buffers over by it |
//! | 4 | NIC | bytes of the frame in the first of two buffers, where the interface splits frames (low 32 bits), payload bytes of each frame that a segment stands for (next 16) |
//! | 5–6 | – | zero |
//! | 7 | NIC | done bit |
//!
//! In a ring that inlines headers (nicmem, section 2.2.2) two lines stand in front of each entry, for
//! the frame's first bytes; they and the entry go by one write.

use nicforge_platform::{Addr, AddressSpace, Cpu, Dma, Owner, SpaceError};
use nicforge_units::Time;

use crate::{
    Arriving, DropCause, METADATA_BYTES, Packet, PortId, RxFlags, Segment, TxOffload, data_of,
};

/// Bytes of one entry.
pub const COMPLETION_BYTES: u64 = 64;
const DONE_WORD: u64 = 56;
const STAMP_WORD: u64 = 16;
/// Entries that go by one write, at most: 256 bytes, the smallest of usual PCIe payload limits
/// on servers.
const ADJACENT_MAX: usize = 4;

/// Bytes of a frame that stand in front of a completion, at most.
pub const RX_INLINE_BYTES: usize = 128;

/// What a completion says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Which entry of the receive ring holds the frame.
    pub entry: u32,
    /// Frame length in bytes.
    pub len: u32,
    /// RSS hash.
    pub rss_hash: u32,
    /// What the NIC verified.
    pub flags: RxFlags,
    /// Port that the frame came in on.
    pub port: u8,
    /// Which receive ring the entry belongs to.
    pub ring: u16,
    /// When the first bit came in.
    pub stamp: Time,
    /// The buffer, for interfaces that hand it over here.
    pub mbuf: Addr,
    /// Of a frame that was split: bytes in front.
    pub head: u32,
    /// Of a segment that stands for several frames: payload bytes of each; else 0.
    pub segment: u16,
}

impl Completion {
    /// The port as a type.
    pub fn port_id(&self) -> PortId {
        PortId(self.port)
    }

    /// The packet in buffer `mbuf`, whose metadata is written as a driver does.
    pub fn packet<C: Cpu>(&self, cpu: &mut C, mbuf: Addr) -> Packet {
        cpu.prefetch(data_of(mbuf), 1);
        self.packet_at(cpu, mbuf, data_of(mbuf))
    }

    /// The same with the frame, or the first of its two parts, at `at`.
    pub fn packet_at<C: Cpu>(&self, cpu: &mut C, mbuf: Addr, at: Addr) -> Packet {
        cpu.store(mbuf, [u64::from(self.len), self.rss_hash.into()]);
        cpu.store(mbuf + METADATA_BYTES / 2, self.stamp.as_ps());
        Packet {
            mbuf,
            tail: Addr(0),
            references: Addr(0),
            head: Segment { at, len: self.len },
            rest: Segment::default(),
            port: self.port_id(),
            rss_hash: self.rss_hash,
            flags: self.flags.without(RxFlags::HANDED_OVER),
            // What came unfinished goes out so, and is for the NIC that sends it.
            offload: TxOffload {
                l3_checksum: false,
                l4_checksum: self.flags.contains(RxFlags::L4_BEGUN),
                segment: self.segment,
            },
            stamp: self.stamp,
        }
    }

    /// The buffer that the frame lies in: what software noted at `note` for the entry, unless
    /// another was handed over.
    #[inline]
    pub fn buffer<C: Cpu>(&self, cpu: &mut C, note: Addr) -> Addr {
        let noted = Addr(cpu.load::<u64>(note));
        match self.flags.contains(RxFlags::HANDED_OVER) {
            true => self.mbuf,
            false => noted,
        }
    }

    /// An encoded entry that says that a frame lies in `instead_of` says from now on that it lies
    /// in `mbuf`; any other entry stays as it is. For whoever exchanges buffers instead of
    /// copying frames.
    pub fn hand_over(entry: &mut [u64; 8], instead_of: Addr, mbuf: Addr) {
        if entry[3] == instead_of.0 {
            entry[3] = mbuf.0;
            entry[1] |= u64::from(RxFlags::HANDED_OVER.0) << 32;
        }
    }

    #[inline]
    fn encode(&self, done: u64) -> [u64; 8] {
        let second = u64::from(self.rss_hash)
            | u64::from(self.flags.0) << 32
            | u64::from(self.port) << 40
            | u64::from(self.ring) << 48;
        [
            u64::from(self.entry) | u64::from(self.len) << 32,
            second,
            self.stamp.as_ps(),
            self.mbuf.0,
            u64::from(self.head) | u64::from(self.segment) << 32,
            0,
            0,
            done,
        ]
    }

    fn decode(words: [u64; 5]) -> Completion {
        Completion {
            entry: words[0] as u32,
            len: (words[0] >> 32) as u32,
            rss_hash: words[1] as u32,
            flags: RxFlags((words[1] >> 32) as u8),
            port: (words[1] >> 40) as u8,
            ring: (words[1] >> 48) as u16,
            stamp: Time::from_ps(words[2]),
            mbuf: Addr(words[3]),
            head: words[4] as u32,
            segment: (words[4] >> 32) as u16,
        }
    }
}

/// Position in a ring that both sides walk: address and done bit of each pass.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    base: Addr,
    entries: u64,
    position: u64,
    first: u64,
    /// From one entry to the next: what there is beyond it is for inlined headers.
    stride: u64,
}

impl Cursor {
    fn address(&self) -> Addr {
        let end = (self.position & (self.entries - 1)) * self.stride + self.stride;
        self.base + (end - COMPLETION_BYTES)
    }

    /// Where `len` inlined bytes of the current entry begin: in the lines right before it.
    fn inlined(&self, len: u64) -> Addr {
        Addr(self.address().0 - len.next_multiple_of(COMPLETION_BYTES))
    }

    /// 1 on even passes, 0 on odd ones: memory begins as zero.
    fn done(&self) -> u64 {
        !(self.position >> self.entries.trailing_zeros()) & 1
    }
}

/// The NIC's side of a completion ring.
#[derive(Debug)]
pub struct CompletionWriter {
    cursor: Cursor,
}

/// Software's side of a completion ring.
#[derive(Debug)]
pub struct CompletionReader {
    cursor: Cursor,
}

/// Both sides of a new completion ring of `entries` (a power of two), watched by `owner`, whose
/// positions count from `first`: a multiple of `2 * entries`, as memory begins with the done bit
/// of an odd pass.
pub fn completion_ring(
    space: &mut AddressSpace,
    entries: usize,
    first: u64,
    owner: Owner,
) -> Result<(CompletionWriter, CompletionReader), SpaceError> {
    inlining_completion_ring(space, entries, first, owner, false)
}

/// The same with room for headers in front of each completion, if it `inlines`.
pub fn inlining_completion_ring(
    space: &mut AddressSpace,
    entries: usize,
    first: u64,
    owner: Owner,
    inlines: bool,
) -> Result<(CompletionWriter, CompletionReader), SpaceError> {
    let entries = entries as u64;
    let room = if inlines { RX_INLINE_BYTES as u64 } else { 0 };
    let stride = COMPLETION_BYTES + room;
    assert!(
        first & (2 * entries - 1) == 0,
        "a completion ring of {entries} cannot count from {first}"
    );
    let cursor = Cursor {
        base: space.control(entries * stride, owner)?,
        entries,
        position: first,
        first,
        stride,
    };
    Ok((CompletionWriter { cursor }, CompletionReader { cursor }))
}

impl CompletionWriter {
    /// Begins again: all entries are zero, and the next to be written is the first. Software that
    /// read them has stopped.
    pub fn begin_anew<D: Dma>(&mut self, dma: &mut D) {
        for entry in 0..self.cursor.entries {
            let end = self.cursor.base + (entry + 1) * self.cursor.stride;
            let at = Addr(end.0 - COMPLETION_BYTES);
            dma.write(at, &[0; COMPLETION_BYTES as usize]);
        }
        self.cursor.position = self.cursor.first;
    }

    /// Publishes the next entry. The caller knows that software has read what stood there.
    #[inline]
    pub fn publish<D: Dma>(&mut self, dma: &mut D, completion: &Completion) {
        let words = completion.encode(self.cursor.done());
        dma.publish(self.cursor.address(), bytemuck::bytes_of(&words));
        self.cursor.position += 1;
    }

    /// Publishes the next entry with `headers`, at most [`RX_INLINE_BYTES`], in front of it, by one
    /// write. The ring must inline headers.
    pub fn publish_inline<D: Dma>(&mut self, dma: &mut D, completion: &Completion, headers: &[u8]) {
        const LINE: usize = COMPLETION_BYTES as usize;
        let mut bytes = [0u8; RX_INLINE_BYTES + LINE];
        let lines = headers.len().next_multiple_of(LINE);
        bytes[..headers.len()].copy_from_slice(headers);
        let words = completion.encode(self.cursor.done());
        bytes[lines..lines + LINE].copy_from_slice(bytemuck::bytes_of(&words));
        let to = self.cursor.inlined(headers.len() as u64);
        dma.publish(to, &bytes[..lines + LINE]);
        self.cursor.position += 1;
    }

    /// Publishes several entries, adjacent ones by one write. As for [`publish`](Self::publish),
    /// the caller knows that there is room.
    pub fn publish_all<D: Dma>(&mut self, dma: &mut D, completions: &[Completion]) {
        let mut rest = completions;
        while !rest.is_empty() {
            let to_end = self.cursor.entries - (self.cursor.position & (self.cursor.entries - 1));
            let count = rest.len().min(ADJACENT_MAX).min(to_end as usize);
            let (now, later) = rest.split_at(count);
            let mut words = [[0u64; 8]; ADJACENT_MAX];
            // A run does not wrap, so all its entries are of one pass.
            let done = self.cursor.done();
            for (words, completion) in words.iter_mut().zip(now) {
                *words = completion.encode(done);
            }
            dma.publish(self.cursor.address(), bytemuck::cast_slice(&words[..count]));
            self.cursor.position += count as u64;
            rest = later;
        }
    }

    /// Writes `frame` into the buffer of `entry` and announces it. Where the descriptor named no
    /// buffer (`mbuf` is `None`) the entry is used up all the same: software learns of it by a
    /// completion of length 0, so that it can give a new buffer.
    #[inline]
    pub fn deliver<D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &Arriving<'_>,
        entry: u32,
        mbuf: Option<Addr>,
    ) -> Result<(), DropCause> {
        let mut completion = Completion {
            entry,
            len: frame.bytes.len() as u32,
            rss_hash: frame.rss_hash,
            flags: frame.flags,
            port: frame.port.0,
            ring: frame.queue,
            stamp: frame.stamp,
            mbuf: mbuf.unwrap_or_default(),
            head: 0,
            segment: frame.segment,
        };
        match mbuf {
            Some(mbuf) => frame.write(dma, data_of(mbuf)),
            None => completion.len = 0,
        }
        self.publish(dma, &completion);
        mbuf.map(|_| ()).ok_or(DropCause::BAD_DESCRIPTOR)
    }
}

impl CompletionReader {
    /// Up to `max` completions will be looked at now, if that many have come.
    #[inline]
    pub fn look_ahead<C: Cpu>(&self, cpu: &mut C, max: usize) {
        let Cursor { entries, .. } = self.cursor;
        let to_end = entries - (self.cursor.position & (entries - 1));
        let (at, done) = (self.cursor.address() + DONE_WORD, self.cursor.done());
        cpu.look_ahead(at, self.cursor.stride, to_end.min(max as u64), done);
    }

    /// The next completion, if there is one; it stays the next until [`advance`](Self::advance).
    #[inline]
    pub fn peek<C: Cpu>(&mut self, cpu: &mut C) -> Option<Completion> {
        let at = self.cursor.address();
        if cpu.acquire(at + DONE_WORD) & 1 != self.cursor.done() {
            return None;
        }
        let words = cpu.load::<[u64; 5]>(at);
        // Completions come in bursts: the next one is fetched while this one is dealt with.
        let mut next = self.cursor;
        next.position += 1;
        cpu.prefetch(next.address(), 8);
        if next.stride > COMPLETION_BYTES {
            cpu.prefetch(next.inlined(1), 8);
        }
        Some(Completion::decode(words))
    }

    /// Copies what stands in front of `completion`, the next one, to `to`.
    pub fn copy_inlined<C: Cpu>(&self, cpu: &mut C, completion: &Completion, to: Addr) {
        let mut headers = [0u8; RX_INLINE_BYTES];
        let len = (completion.head as usize).min(RX_INLINE_BYTES);
        let from = self.cursor.inlined(len as u64);
        headers[..len].copy_from_slice(cpu.bytes(from, len));
        cpu.bytes_mut(to, len).copy_from_slice(&headers[..len]);
    }

    /// How many completions, at most `max`, have come and were stamped no later than `stamp`.
    pub fn count_until<C: Cpu>(&self, cpu: &mut C, stamp: Time, max: usize) -> usize {
        let mut cursor = self.cursor;
        for count in 0..max {
            let at = cursor.address();
            if cpu.acquire(at + DONE_WORD) & 1 != cursor.done() {
                return count;
            }
            cursor.position += 1;
            cpu.prefetch(cursor.address(), 8);
            if cpu.load::<u64>(at + STAMP_WORD) > stamp.as_ps() {
                return count;
            }
        }
        max
    }

    /// The stamp of the next completion, if there is one.
    pub fn next_stamp<C: Cpu>(&self, cpu: &mut C) -> Option<Time> {
        let at = self.cursor.address();
        let came = cpu.acquire(at + DONE_WORD) & 1 == self.cursor.done();
        came.then(|| Time::from_ps(cpu.load::<u64>(at + STAMP_WORD)))
    }

    /// The next completion was dealt with.
    pub fn advance(&mut self) {
        self.cursor.position += 1;
    }
}

#[cfg(test)]
mod tests;
