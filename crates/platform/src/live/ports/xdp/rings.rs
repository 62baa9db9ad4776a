//! The memory that an AF_XDP socket shares with the kernel (Documentation/networking/af_xdp.rst of
//! Linux): chunks for frames, and rings that say whose turn each chunk is.
//!
//! | ring | producer | entries |
//! | --- | --- | --- |
//! | fill | we | chunks that frames may be received into |
//! | receive | kernel | frames, in such chunks |
//! | transmit | we | frames to be sent |
//! | completion | kernel | chunks of frames that are sent |

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Result;
use rustix::net::xdp::XdpRingOffset;

use super::super::mapping::Mapping;

/// Bytes of a chunk: a page, the most that the kernel allows.
pub const CHUNK: usize = 4096;

/// The chunks.
#[derive(Debug)]
pub struct Chunks(Mapping);

impl Chunks {
    /// `count` chunks.
    pub fn new(count: u32) -> Result<Chunks> {
        Mapping::anonymous(count as usize * CHUNK).map(Chunks)
    }

    /// Where they begin in this process.
    pub fn address(&self) -> u64 {
        self.0.base as u64
    }

    /// How many bytes they have together.
    pub fn len(&self) -> u64 {
        self.0.len as u64
    }

    /// `len` bytes at `at`.
    ///
    /// # Safety
    /// The chunk that they lie in is not the kernel's: it came out of the receive or the completion
    /// ring, or was never in another, and did not go into one since.
    pub unsafe fn bytes(&mut self, at: u64, len: usize) -> &mut [u8] {
        // SAFETY: in bounds; the kernel does not touch them by the caller's promise, nobody else
        // has the mapping, and `self` is borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.0.pointer(at, len), len) }
    }
}

/// One ring, from our side of it.
#[derive(Debug)]
pub struct Ring<T> {
    memory: Mapping,
    offsets: XdpRingOffset,
    entries: u32,
    /// What we produced or consumed, published or not.
    own: u32,
    entry: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// The ring of `entries` that `socket` has at `place`.
    pub fn new(socket: BorrowedFd<'_>, place: u64, offsets: XdpRingOffset, entries: u32) -> Result<Ring<T>> {
        let len = offsets.desc as usize + entries as usize * size_of::<T>();
        let memory = Mapping::of(socket, len, place)?;
        Ok(Ring::over(memory, offsets, entries))
    }

    fn over(memory: Mapping, offsets: XdpRingOffset, entries: u32) -> Ring<T> {
        Ring { memory, offsets, entries, own: 0, entry: PhantomData }
    }

    fn word(&self, at: u64) -> &AtomicU32 {
        let word = self.memory.pointer(at, 4).cast::<AtomicU32>();
        assert!(word.is_aligned(), "the kernel lays its words out aligned");
        // SAFETY: in bounds and aligned; atomics may be shared with the kernel.
        unsafe { &*word }
    }

    fn entry(&self, number: u32) -> *mut T {
        let at = u64::from(number % self.entries) * size_of::<T>() as u64;
        let pointer = self.memory.pointer(self.offsets.desc + at, size_of::<T>());
        pointer.cast()
    }

    /// As producer: how many entries can be put.
    pub fn room(&self) -> u32 {
        let consumed = self.word(self.offsets.consumer).load(Ordering::Acquire);
        self.entries - self.own.wrapping_sub(consumed)
    }

    /// As producer: how many entries were consumed since the ring was made, wrapping.
    pub fn consumed(&self) -> u32 {
        self.word(self.offsets.consumer).load(Ordering::Acquire)
    }

    /// As producer: how many entries were put since the ring was made, wrapping.
    pub fn put_so_far(&self) -> u32 {
        self.own
    }

    /// As producer: puts an entry, for which there is room; the kernel sees it when
    /// [published](Self::publish).
    pub fn put(&mut self, entry: T) {
        // SAFETY: in bounds; the entry is ours, as the kernel consumed what stood there.
        unsafe { self.entry(self.own).write_unaligned(entry) }
        self.own = self.own.wrapping_add(1);
    }

    /// As producer: the kernel may have what was put.
    pub fn publish(&self) {
        self.word(self.offsets.producer).store(self.own, Ordering::Release);
    }

    /// As consumer: the next entry, if there is one; it is the kernel's again when
    /// [released](Self::release).
    pub fn take(&mut self) -> Option<T> {
        let produced = self.word(self.offsets.producer).load(Ordering::Acquire);
        if produced == self.own {
            return None;
        }
        // SAFETY: in bounds; the kernel published it and does not write it before it is released.
        // The two types of entries are plain numbers.
        let entry = unsafe { self.entry(self.own).read_unaligned() };
        self.own = self.own.wrapping_add(1);
        Some(entry)
    }

    /// As consumer: the kernel may have the places of what was taken.
    pub fn release(&self) {
        self.word(self.offsets.consumer).store(self.own, Ordering::Release);
    }

    /// Whether the kernel wants a wake-up when the ring has entries.
    pub fn needs_wakeup(&self) -> bool {
        let flags = self.offsets.flags;
        flags.is_none_or(|flags| self.word(flags).load(Ordering::Relaxed) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const OFFSETS: XdpRingOffset = XdpRingOffset { producer: 0, consumer: 64, desc: 192, flags: Some(128) };

    fn ring() -> Ring<u64> {
        Ring::over(Mapping::anonymous(4096).unwrap(), OFFSETS, 4)
    }

    /// The other side's word.
    fn set(ring: &Ring<u64>, at: u64, value: u32) {
        ring.word(at).store(value, Ordering::Release);
    }

    #[test]
    fn a_producer_stays_within_its_ring() {
        let mut ring = ring();
        for round in 0..10u32 {
            assert_eq!(ring.room(), 4, "round {round}");
            (0..4).for_each(|number| ring.put(u64::from(round * 4 + number)));
            assert_eq!(ring.room(), 0);
            assert_eq!(ring.word(OFFSETS.producer).load(Ordering::Relaxed), round * 4);
            ring.publish();
            assert_eq!(ring.word(OFFSETS.producer).load(Ordering::Relaxed), round * 4 + 4);
            // SAFETY: within the ring.
            let first = unsafe { ring.entry(0).read() };
            assert_eq!(first, u64::from(round * 4));
            set(&ring, OFFSETS.consumer, round * 4 + 4);
        }
    }

    #[test]
    fn a_consumer_takes_what_was_published_and_no_more() {
        let mut ring = ring();
        // SAFETY: within the ring.
        (0..4).for_each(|number| unsafe { ring.entry(number).write(u64::from(number) + 7) });
        assert_eq!(ring.take(), None);
        set(&ring, OFFSETS.producer, 3);
        let taken: Vec<u64> = std::iter::from_fn(|| ring.take()).collect();
        assert_eq!(taken, [7, 8, 9]);
        assert_eq!(ring.word(OFFSETS.consumer).load(Ordering::Relaxed), 0);
        ring.release();
        assert_eq!(ring.word(OFFSETS.consumer).load(Ordering::Relaxed), 3);
        set(&ring, OFFSETS.producer, 5);
        assert_eq!([ring.take(), ring.take(), ring.take()], [Some(10), Some(7), None]);
        assert!(!ring.needs_wakeup());
        set(&ring, OFFSETS.flags.unwrap(), 1);
        assert!(ring.needs_wakeup());
    }

    #[test]
    fn nothing_beyond_the_chunks_is_touched() {
        let mut chunks = Chunks::new(2).unwrap();
        let last = chunks.len() - 1;
        // SAFETY: no kernel has the chunks.
        unsafe {
            chunks.bytes(last, 1)[0] = 1;
            assert_eq!(chunks.bytes(last - 1, 2), [0, 1]);
        }
        for (at, len) in [(last, 2), (last + 1, 1), (u64::MAX, 1), (0, 2 * CHUNK + 1)] {
            let outside = catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: as above.
                unsafe { chunks.bytes(at, len) }.len()
            }));
            assert!(outside.is_err(), "{at} {len}");
        }
    }
}
