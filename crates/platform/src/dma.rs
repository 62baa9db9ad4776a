//! What a device can do to its host.

use std::ops::Range;

use nicforge_units::Time;

use crate::Addr;

/// An interrupt vector; one per core queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector(pub u16);

/// A run of host memory: where it begins, and its bytes.
pub type Run = (Addr, usize);

/// The contract of a device with its host: reads, posted writes, publishes, interrupts.
///
/// Posted writes stay in order; a publish makes all earlier ones visible with it. A call
/// carries its own time cursor, so the number of dependent round trips of a design comes out
/// of its code.
pub trait Dma {
    /// Whether nothing that it does takes any of its own time: the cursor stands.
    const INSTANT: bool = false;

    /// Reads host memory: a round trip; what follows waits for it.
    fn read(&mut self, from: Addr, into: &mut [u8]);

    /// Reads host memory ahead of need; returns when the bytes are there. Nothing waits.
    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time;

    /// Reads runs of host memory ahead of need, where nobody changes them, to send them behind
    /// `front`: what comes back, in order, may be host memory itself, if that is safe, or a copy of
    /// all in `scratch`; and when the last of it is here.
    fn view_ahead<'a>(
        &'a mut self,
        front: &'a [u8],
        runs: [Run; 2],
        scratch: &'a mut Vec<u8>,
    ) -> ([&'a [u8]; 3], Time) {
        let here = self.gather_ahead(front, runs, scratch);
        ([scratch, &[], &[]], here)
    }

    /// The same as one run of bytes in `into`.
    fn gather_ahead(&mut self, front: &[u8], runs: [Run; 2], into: &mut Vec<u8>) -> Time {
        into.clear();
        into.extend_from_slice(front);
        let mut here = self.now();
        for (at, len) in runs.into_iter().filter(|&(_, len)| len > 0) {
            let begin = into.len();
            into.resize(begin + len, 0);
            here = here.max(self.read_ahead(at, &mut into[begin..]));
        }
        here
    }

    /// Writes host memory: posted, nobody waits.
    fn write(&mut self, to: Addr, bytes: &[u8]);

    /// Says that the device will write the line at `to` soon; nothing else happens. Any address may
    /// be said.
    #[inline]
    fn expect_write(&mut self, _to: Addr) {}

    /// How many frames of `len` bytes before its time a write is best [expected](Self::expect_frame).
    #[inline]
    fn frames_ahead(_len: usize) -> usize {
        8
    }

    /// Says that the device will write a frame of about `len` bytes at `to` soon, as
    /// [`expect_write`](Self::expect_write) does.
    #[inline]
    fn expect_frame(&mut self, to: Addr, _len: usize) {
        self.expect_write(to);
    }

    /// Says that the next frame of its ring, of about `len` bytes, will be written at `to`. That was
    /// [expected](Self::expect_frame) some frames ago, and may lead to more that will be needed. Any address
    /// may be said.
    #[inline(always)]
    fn expect_next_frame(&mut self, _to: Addr, _len: usize) {}

    /// Says that the device will read `len` bytes at `from` soon, which nobody changes any more; nothing
    /// else happens. Any address may be said.
    #[inline]
    fn expect_read(&mut self, _from: Addr, _len: usize) {}

    /// Says that the device will bring `len` bytes at `from` together with others soon; nothing else
    /// happens. Any address may be said.
    #[inline]
    fn expect_gather(&mut self, _from: Addr, _len: usize) {}

    /// Says that the device will look at `table[index]`, which is its own, soon; nothing else happens. Any index
    /// may be said.
    #[inline]
    fn expect_own<T>(&self, _table: &[T], _index: usize) {}

    /// Writes host memory as [`write`](Self::write) does; from `head` on all of `bytes` are zero.
    #[inline(always)]
    fn write_padded(&mut self, to: Addr, bytes: &[u8], _head: usize) {
        self.write(to, bytes);
    }

    /// Writes a frame as [`write_padded`](Self::write_padded) does, and says where a `later` one of about the
    /// same length will be written, as [`expect_frame`](Self::expect_frame) does.
    #[inline(always)]
    fn write_frame(&mut self, to: Addr, bytes: &[u8], head: usize, later: Option<Addr>) {
        self.write_padded(to, bytes, head);
        if let Some(later) = later {
            self.expect_frame(later, bytes.len());
        }
    }

    /// Writes an entry whose last 8 bytes (`to + 56`, for a 64-byte entry) announce it: one
    /// posted write, seen whole or not at all. `bytes` must lie in one cache line of control
    /// memory and its length be a multiple of 8; or be several adjacent entries of a whole line
    /// each, which go by one posted write and of which each announces itself.
    fn publish(&mut self, to: Addr, bytes: &[u8]);

    /// Publishes an entry of `WORDS` words, at most a line.
    #[inline]
    fn publish_entry<const WORDS: usize>(&mut self, to: Addr, words: [u64; WORDS]) {
        self.publish(to, bytemuck::cast_slice(&words));
    }

    /// Whether it is software of `queues` that has the packet buffer at `mbuf`, as far as that is written
    /// down somewhere.
    #[inline]
    fn is_from(&mut self, _mbuf: Addr, _queues: &Range<u16>) -> bool {
        true
    }

    /// Raises an interrupt after all earlier writes.
    fn interrupt(&mut self, vector: Vector);

    /// Moves the cursor to `time` if it is later: the device waits for something it started.
    fn wait_until(&mut self, time: Time);

    /// The cursor's time.
    fn now(&self) -> Time;
}
