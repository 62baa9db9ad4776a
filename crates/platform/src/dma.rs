//! What a device can do to its host.

use std::ops::Range;

use nicforge_units::Time;

use crate::{Addr, Atomic, Hint};

/// An interrupt vector; one per core queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector(pub u16);

/// A run of host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Where it begins.
    pub at: Addr,
    /// How many bytes it has.
    pub len: usize,
}

/// Bytes that a device has brought together.
#[derive(Clone, Copy, Debug)]
pub struct Gathered<'a> {
    /// All of them, in order.
    pub pieces: [&'a [u8]; 3],
    /// When the last of them is here.
    pub here: Time,
}

/// The contract of a device with its host: reads, posted writes, publishes, interrupts.
///
/// Posted writes stay in order; a publish makes all earlier ones visible with it. A call
/// carries its own time cursor, so the number of dependent round trips of a design comes out
/// of its code.
pub trait Dma: 'static {
    /// Reads host memory: a round trip; what follows waits for it.
    fn read(&mut self, from: Addr, into: &mut [u8]);

    /// Reads host memory ahead of need; returns when the bytes are there. Nothing waits.
    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time;

    /// Reads runs of host memory ahead of need, where no agent changes them, to send them behind `front`. What it
    /// returns may be host memory itself, if that is safe, or a copy of all in `scratch`.
    fn gather<'a>(&'a mut self, front: &'a [u8], runs: [Run; 2], scratch: &'a mut Vec<u8>) -> Gathered<'a> {
        let here = copy_ahead(self, front, runs, scratch);
        Gathered { pieces: [scratch, &[], &[]], here }
    }

    /// Writes host memory: posted, nothing waits.
    fn write(&mut self, to: Addr, bytes: &[u8]);

    /// Writes host memory as [`write`](Self::write) does; from `head` on all of `bytes` are zero, as in synthetic
    /// payload.
    #[inline(always)]
    fn write_padded(&mut self, to: Addr, bytes: &[u8], _head: usize) {
        self.write(to, bytes);
    }

    /// Changes the word at `at` as a PCIe atomic operation does, so that no other agent can come between: a round trip.
    /// Returns the word before.
    fn atomic(&mut self, at: Addr, change: Atomic) -> u64 {
        // Where agents take turns nobody comes between.
        let mut word = [0; 8];
        self.read(at, &mut word);
        let before = u64::from_ne_bytes(word);
        self.write(at, &change.apply(before).to_ne_bytes());
        before
    }

    /// Writes an entry whose last 8 bytes (`to + 56`, for a 64-byte entry) announce it: one
    /// posted write, seen whole or not at all. `bytes` must lie in one cache line of control
    /// memory and its length be a multiple of 8; or be several adjacent entries of a whole line
    /// each, which go by one posted write and of which each announces itself.
    fn publish(&mut self, to: Addr, bytes: &[u8]);

    /// Whether software of `queues` owns the packet buffer at `mbuf`, as far as a ledger says.
    #[inline]
    fn is_from(&mut self, _mbuf: Addr, _queues: &Range<u16>) -> bool {
        true
    }

    /// Raises an interrupt after all earlier writes.
    fn interrupt(&mut self, vector: Vector);

    /// Waits until all that was written before is in memory, and the answer to it is here: for a device that counts a
    /// write as done no earlier. Where memory does not answer, nothing is waited for.
    fn settle(&mut self) {}

    /// Moves the cursor to `time` if it is later: the device waits for something it started.
    fn wait_until(&mut self, time: Time);

    /// The cursor's time.
    fn now(&self) -> Time;

    /// Says what the device is about to do.
    #[inline]
    fn hint(&mut self, _hint: Hint) {}
}

/// Copies `front` and, behind it, runs of host memory into `into`; returns when all of it is here.
pub fn copy_ahead<D: Dma + ?Sized>(dma: &mut D, front: &[u8], runs: [Run; 2], into: &mut Vec<u8>) -> Time {
    into.clear();
    into.extend_from_slice(front);
    let mut here = dma.now();
    for run in runs.into_iter().filter(|run| run.len > 0) {
        let begin = into.len();
        into.resize(begin + run.len, 0);
        here = here.max(dma.read_ahead(run.at, &mut into[begin..]));
    }
    here
}

/// Publishes an entry of `WORDS` words, at most a line.
#[inline(always)]
pub fn publish_entry<D: Dma, const WORDS: usize>(dma: &mut D, to: Addr, words: [u64; WORDS]) {
    dma.publish(to, bytemuck::cast_slice(&words));
}
