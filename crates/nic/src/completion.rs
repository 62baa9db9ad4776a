//! Completion rings: the NIC only writes, software only reads (rxBisect, section 2).
//!
//! Each entry is one cache line. Its last word carries the done bit, which flips its meaning on
//! every pass through the ring, so that software need not clear it.
//!
//! | word | writer | content |
//! | --- | --- | --- |
//! | 0 | NIC | entry of the receive ring (low 32 bits), frame length (high 32) |
//! | 1 | NIC | RSS hash (low 32 bits), port (bits 40–47), receive ring (high 16) |
//! | 2 | NIC | arrival of the first bit, ps |
//! | 3 | NIC | buffer's metadata address, where the interface hands buffers over by it |
//! | 4 | NIC | bytes of the frame in the first of two buffers, where the interface splits frames (low 32 bits), payload bytes of each frame that a segment stands for (next 16) |
//! | 5 | NIC | flags (low 32 bits) |
//! | 6 | NIC | mark: a stage's word to the host |
//! | 7 | NIC | done bit |
//!
//! In a ring that inlines headers (nicmem, section 2.2.2) two lines stand in front of each entry, for
//! the frame's first bytes; they and the entry go by one write.

use nicforge_platform::{Addr, AddressSpace, Completions, Cpu, Dma, Hint, Owner, SpaceError, entry, publish_entry};
use nicforge_units::{CACHE_LINE_BYTES, Time};

use crate::{
    Arriving, DropCause, HEADROOM_BYTES, METADATA_BYTES, Packet, PortId, RxFlags, Segment, TxOffload, data_of,
};

mod cursor;

use cursor::{Cursor, inlined_before};

/// Bytes of one entry.
pub const COMPLETION_BYTES: u64 = 64;
const DONE_WORD: u64 = 56;
const STAMP_WORD: u64 = 16;
/// The number of the word that names the buffer.
const MBUF_WORD: u64 = 3;
/// The number of the word that has the flags.
const FLAGS_WORD: usize = 5;
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
    /// A stage's word to the host.
    pub mark: u64,
}

impl Completion {
    /// The port as a type.
    pub fn port_id(&self) -> PortId {
        PortId(self.port)
    }

    /// The packet in buffer `mbuf`, whose metadata is written as a driver does.
    // Always inlined, so that it is made where it will lie.
    #[inline(always)]
    pub fn packet<C: Cpu>(&self, cpu: &mut C, mbuf: Addr) -> Packet {
        cpu.hint(Hint::Fetch { at: data_of(mbuf), len: 1 });
        self.packet_at(cpu, mbuf, data_of(mbuf))
    }

    /// The same with the frame, or the first of its two parts, at `at`.
    #[inline(always)]
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
            mark: self.mark,
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
        if self.flags.contains(RxFlags::HANDED_OVER) { self.mbuf } else { noted }
    }

    /// An encoded entry that says that a frame lies in `instead_of` says from now on that it lies
    /// in `mbuf`; any other entry stays as it is. For whoever exchanges buffers instead of
    /// copying frames.
    #[inline(always)]
    pub fn hand_over(entry: &mut [u64; 8], instead_of: Addr, mbuf: Addr) {
        if entry[3] == instead_of.0 {
            entry[3] = mbuf.0;
            entry[FLAGS_WORD] |= u64::from(RxFlags::HANDED_OVER.0);
        }
    }

    /// `frame` came, and `len` bytes of it lie in `mbuf`, the buffer of `entry`.
    #[inline(always)]
    fn of(frame: &Arriving<'_>, entry: u32, len: u32, mbuf: Addr) -> Completion {
        Completion {
            entry,
            len,
            rss_hash: frame.rss_hash,
            flags: frame.flags,
            port: frame.port.0,
            ring: frame.queue,
            stamp: frame.stamp,
            mbuf,
            head: 0,
            segment: frame.segment,
            mark: frame.mark,
        }
    }

    #[inline(always)]
    fn encode(&self, done: u64) -> [u64; 8] {
        let second = u64::from(self.rss_hash) | u64::from(self.port) << 40 | u64::from(self.ring) << 48;
        [
            u64::from(self.entry) | u64::from(self.len) << 32,
            second,
            self.stamp.as_ps(),
            self.mbuf.0,
            u64::from(self.head) | u64::from(self.segment) << 32,
            self.flags.0.into(),
            self.mark,
            done,
        ]
    }

    #[inline(always)]
    fn decode(words: [u64; 7]) -> Completion {
        Completion {
            entry: words[0] as u32,
            len: (words[0] >> 32) as u32,
            rss_hash: words[1] as u32,
            flags: RxFlags(words[5] as u32),
            port: (words[1] >> 40) as u8,
            ring: (words[1] >> 48) as u16,
            stamp: Time::from_ps(words[2]),
            mbuf: Addr(words[3]),
            head: words[4] as u32,
            segment: (words[4] >> 32) as u16,
            mark: words[6],
        }
    }
}

/// The NIC's side of a completion ring.
#[derive(Debug)]
pub struct CompletionWriter {
    cursor: Cursor,
}

/// Software's side of a completion ring.
#[derive(Clone, Copy, Debug)]
pub struct CompletionReader {
    cursor: Cursor,
}

/// Both sides of a new completion ring of `entries`, watched by `owner`.
pub fn completion_ring(
    space: &mut AddressSpace,
    entries: usize,
    owner: Owner,
) -> Result<(CompletionWriter, CompletionReader), SpaceError> {
    inlining_completion_ring(space, entries, owner, false)
}

/// The same with room for headers in front of each completion, if it `inlines`.
pub fn inlining_completion_ring(
    space: &mut AddressSpace,
    entries: usize,
    owner: Owner,
    inlines: bool,
) -> Result<(CompletionWriter, CompletionReader), SpaceError> {
    let entries = entries as u64;
    let room = if inlines { RX_INLINE_BYTES as u64 } else { 0 };
    let stride = COMPLETION_BYTES + room;
    let cursor = Cursor::new(space.control(entries * stride, owner)?, entries, stride);
    Ok((CompletionWriter { cursor }, CompletionReader { cursor }))
}

impl CompletionWriter {
    /// Begins again: all entries are zero, and the next to be written is the first. Software that
    /// read them has stopped.
    pub fn restart<D: Dma + ?Sized>(&mut self, dma: &mut D) {
        self.cursor = self.cursor.anew();
        for entry in 0..self.cursor.left() {
            let at = self.cursor.first + entry * self.cursor.stride;
            dma.write(at, &[0; COMPLETION_BYTES as usize]);
        }
    }

    /// Publishes the next entry. The caller knows that software has read what stood there.
    #[inline(always)]
    pub fn publish<D: Dma>(&mut self, dma: &mut D, completion: &Completion) {
        publish_entry(dma, self.cursor.at, completion.encode(self.cursor.done));
        self.cursor.advance();
    }

    /// Publishes the next entry with `headers`, at most [`RX_INLINE_BYTES`], in front of it, by one
    /// write. The ring must inline headers.
    pub fn publish_inline<D: Dma>(&mut self, dma: &mut D, completion: &Completion, headers: &[u8]) {
        const LINE: usize = COMPLETION_BYTES as usize;
        let mut bytes = [0u8; RX_INLINE_BYTES + LINE];
        let lines = headers.len().next_multiple_of(LINE);
        bytes[..headers.len()].copy_from_slice(headers);
        let words = completion.encode(self.cursor.done);
        bytes[lines..lines + LINE].copy_from_slice(bytemuck::bytes_of(&words));
        let to = inlined_before(self.cursor.at, headers.len() as u64);
        dma.publish(to, &bytes[..lines + LINE]);
        self.cursor = self.cursor.next();
    }

    /// Publishes several entries, adjacent ones by one write. As for [`publish`](Self::publish),
    /// the caller knows that there is room.
    pub fn publish_all<D: Dma>(&mut self, dma: &mut D, completions: &[Completion]) {
        let mut rest = completions;
        while !rest.is_empty() {
            let count = rest.len().min(ADJACENT_MAX);
            let count = count.min(self.cursor.left() as usize);
            let (now, later) = rest.split_at(count);
            let mut words = [[0u64; 8]; ADJACENT_MAX];
            // A run does not wrap, so all its entries are of one pass.
            let Cursor { at, done, .. } = self.cursor;
            for (words, completion) in words.iter_mut().zip(now) {
                *words = completion.encode(done);
                self.cursor = self.cursor.next();
            }
            dma.publish(at, bytemuck::cast_slice(&words[..count]));
            rest = later;
        }
    }

    /// Announces `frame`, which was written into the buffer of `entry`, `mbuf`.
    #[inline(always)]
    pub fn announce<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>, entry: u32, mbuf: Addr) {
        let len = frame.bytes.len() as u32;
        self.publish(dma, &Completion::of(frame, entry, len, mbuf));
    }

    /// The descriptor of `entry` named no buffer, so that `frame` is dropped. The entry is used up
    /// all the same: software learns of it by a completion of length 0, and can give a new buffer.
    #[cold]
    pub fn refuse<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>, entry: u32) -> Result<(), DropCause> {
        self.publish(dma, &Completion::of(frame, entry, 0, Addr(0)));
        Err(DropCause::BAD_DESCRIPTOR)
    }
}

impl CompletionReader {
    /// Up to `max` completions will be looked at now, if that many have come.
    #[inline]
    pub fn look_ahead<C: Cpu>(&self, cpu: &mut C, max: usize) {
        let until = self.cursor.until(max as u64);
        let Cursor { at, done, stride, .. } = self.cursor;
        cpu.hint(Hint::Words { from: at + DONE_WORD, until, stride, bit: done });
    }

    /// The next completion, if there is one, and the reader as it is when that was dealt with.
    // Always inlined: it returns more than fits into registers, and few look at all of it.
    #[inline(always)]
    pub fn peek<C: Cpu>(&self, cpu: &mut C) -> Option<(Completion, CompletionReader)> {
        let (completion, after) = self.peek_last(cpu)?;
        // Completions come in bursts: the next one is fetched while this one is dealt with.
        cpu.hint(Hint::Fetch { at: after.cursor.at, len: 8 });
        Some((completion, after))
    }

    /// The reader as it is when the next completion was dealt with.
    #[inline]
    pub fn after(&self) -> CompletionReader {
        let cursor = self.cursor.next();
        CompletionReader { cursor }
    }

    /// The same as [`peek`](Self::peek) for callers that know of no completion behind it.
    #[inline(always)]
    pub fn peek_last<C: Cpu>(&self, cpu: &mut C) -> Option<(Completion, CompletionReader)> {
        let words = entry(cpu, self.cursor.at, self.cursor.done)?;
        Some((Completion::decode(words), self.after()))
    }

    /// The completions from this one on will be looked at, and their buffers.
    #[inline(always)]
    pub fn expect_buffers<C: Cpu>(&self, cpu: &mut C) {
        const FRAME: u64 = (METADATA_BYTES + HEADROOM_BYTES) / CACHE_LINE_BYTES;
        // The last is the one that an L2 brings along.
        const LINES: [u64; 4] = [0, METADATA_BYTES / 2 / CACHE_LINE_BYTES, FRAME, FRAME + 1];
        let (first, second) = (self.cursor, self.cursor.next());
        let cursors = [first, second, second.next()];
        cpu.hint(Hint::Completions(Completions {
            at: cursors.map(|cursor| cursor.at),
            bit: cursors.map(|cursor| cursor.done),
            names: MBUF_WORD,
            lines: LINES,
        }));
    }

    /// The next completion comes soon: what stands in front of it is fetched as well, in a ring that
    /// inlines headers.
    #[inline]
    pub fn prefetch_inlined<C: Cpu>(&self, cpu: &mut C) {
        if self.cursor.stride > COMPLETION_BYTES {
            cpu.hint(Hint::Fetch { at: inlined_before(self.cursor.at, 1), len: 8 });
        }
    }

    /// Copies what stands in front of `completion`, the next one, to `to`.
    pub fn copy_inlined<C: Cpu>(&self, cpu: &mut C, completion: &Completion, to: Addr) {
        let mut headers = [0u8; RX_INLINE_BYTES];
        let len = (completion.head as usize).min(RX_INLINE_BYTES);
        let from = inlined_before(self.cursor.at, len as u64);
        headers[..len].copy_from_slice(cpu.bytes(from, len));
        cpu.bytes_mut(to, len).copy_from_slice(&headers[..len]);
    }

    /// How many completions, at most `max`, have come and were stamped no later than `stamp`.
    pub fn count_until<C: Cpu>(&self, cpu: &mut C, stamp: Time, max: usize) -> usize {
        let mut cursor = self.cursor;
        for count in 0..max {
            let at = cursor.at;
            if cpu.acquire(at + DONE_WORD) & 1 != cursor.done {
                return count;
            }
            cursor = cursor.next();
            cpu.hint(Hint::Fetch { at: cursor.at, len: 8 });
            if cpu.load::<u64>(at + STAMP_WORD) > stamp.as_ps() {
                return count;
            }
        }
        max
    }

    /// The stamp of the next completion, if there is one.
    pub fn next_stamp<C: Cpu>(&self, cpu: &mut C) -> Option<Time> {
        let Cursor { at, done, .. } = self.cursor;
        let came = cpu.acquire(at + DONE_WORD) & 1 == done;
        came.then(|| Time::from_ps(cpu.load::<u64>(at + STAMP_WORD)))
    }
}

#[cfg(test)]
mod tests;
