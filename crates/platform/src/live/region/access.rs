//! Every raw access to the region: copies, words and lines, each checked to be inside.
//!
//! **What is assumed.** Copies, loads and entries are plain reads of memory that another process can
//! write at the same time, if it does not keep to the rings' protocol. No language rule says what such a
//! read gives; on the machines that we run on it gives some mixture of old and new bytes, and that is what
//! is relied on: any bytes are a value of the types that are read (`Pod`), each is read once, into a
//! local value, and what is checked and used afterwards is that value and never the memory again. So a worker
//! that writes while the device reads gets what it would have got by writing nonsense before.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytemuck::Pod;
use nicforge_units::CACHE_LINE_BYTES;

use super::{Region, SHORT, WORD_BYTES};
use crate::{Addr, Atomic};

const HALF_LINE: usize = CACHE_LINE_BYTES as usize / 2;

impl Region {
    /// The address of `len` bytes at `at`, all in the mapping.
    ///
    /// # Panics
    /// Beyond the end: a broken invariant of the caller, who checks what others wrote before.
    #[inline]
    fn pointer(&self, at: Addr, len: usize) -> *mut u8 {
        // Mostly one comparison, as lengths are known where this is inlined: behind what there is lie
        // enough bytes for a short access that begins inside.
        if len as u64 > SHORT {
            self.check_long(at, len);
        } else if at.0 >= self.len {
            self.misplaced(at, len);
        }
        // SAFETY: the offset and the bytes behind it are in the mapping.
        unsafe { self.base.add(at.0 as usize) }
    }

    #[cold]
    fn check_long(&self, at: Addr, len: usize) {
        let end = at.0.checked_add(len as u64);
        if end.is_none_or(|end| end > self.len) {
            self.misplaced(at, len);
        }
    }

    #[cold]
    #[inline(never)]
    fn misplaced(&self, at: Addr, len: usize) -> ! {
        let end = self.len;
        panic!("{len} bytes at {at:?} are beyond the {end} of the region, or not aligned")
    }

    /// Where `at` is in this process, for a hint to the cache; never to be read.
    #[inline]
    pub(in crate::live) fn hint(&self, at: Addr) -> *const u8 {
        self.base.wrapping_add(at.0 as usize)
    }

    /// The words of `len` bytes at `at`, a multiple of 8.
    #[inline]
    fn aligned(&self, at: Addr, len: usize) -> *mut u64 {
        if !at.0.is_multiple_of(WORD_BYTES) {
            self.misplaced(at, len);
        }
        // The mapping begins at a page.
        self.pointer(at, len).cast()
    }

    /// A word that several agents write, at a multiple of 8.
    #[inline]
    pub fn word(&self, at: Addr) -> &AtomicU64 {
        // SAFETY: in bounds and aligned; atomics may be shared by any number of agents, also with other
        // processes, and the mapping outlives `self`.
        unsafe { &*self.aligned(at, size_of::<u64>()).cast::<AtomicU64>() }
    }

    /// Changes the word at `at`; returns what it was.
    pub fn atomic(&self, at: Addr, change: Atomic) -> u64 {
        let word = self.word(at);
        match change {
            Atomic::Or(bits) => word.fetch_or(bits, Ordering::AcqRel),
            Atomic::And(bits) => word.fetch_and(bits, Ordering::AcqRel),
            Atomic::Add(value) => word.fetch_add(value, Ordering::AcqRel),
        }
    }

    /// Looks at the words that begin in `range`, at its beginning and then `stride` bytes apart, until the
    /// lowest bit of one is not `bit`; where that is. At none if the range is not all inside, or the words
    /// are not aligned.
    #[inline]
    pub(in crate::live) fn look(&self, range: Range<Addr>, stride: u64, bit: u64) -> Addr {
        let aligned = (range.start.0 | stride).is_multiple_of(WORD_BYTES);
        let inside = aligned && stride <= SHORT && range.end.0 <= self.len;
        let end = if inside { range.end } else { Addr(0) };
        let mut at = range.start;
        while at < end {
            // SAFETY: it begins inside and is aligned, as was found above, and behind what there is lie
            // enough bytes; the rest as for `word`.
            let word = unsafe { &*self.hint(at).cast::<AtomicU64>() };
            if word.load(Ordering::Relaxed) & 1 != bit {
                break;
            }
            at = at + stride;
        }
        at
    }

    /// Writes an entry of `WORDS` words at `at`, its last word last.
    #[inline]
    pub(in crate::live) fn announce<const WORDS: usize>(&self, at: Addr, words: &[u64; WORDS]) {
        let Some((last, before)) = words.split_last() else {
            return;
        };
        let entry = self.aligned(at, size_of::<[u64; WORDS]>());
        // SAFETY: all of the entry is in bounds and aligned; it is the writer's turn; `words` is no part of
        // the mapping, as for `read`.
        unsafe { std::ptr::copy_nonoverlapping(before.as_ptr(), entry, before.len()) };
        // SAFETY: as above.
        let announces = unsafe { &*entry.add(WORDS - 1).cast::<AtomicU64>() };
        announces.store(*last, Ordering::Release);
    }

    /// Half a word that several agents write, at a multiple of 4: what a futex takes.
    #[inline]
    pub fn half_word(&self, at: Addr) -> &AtomicU32 {
        assert!(at.0.is_multiple_of(4), "a word at {at:?} is not aligned");
        // SAFETY: as for `word`.
        unsafe { &*self.pointer(at, 4).cast::<AtomicU32>() }
    }

    /// Reads a value without concurrent writers.
    #[inline]
    pub fn load<T: Pod>(&self, at: Addr) -> T {
        let from = self.pointer(at, size_of::<T>());
        // SAFETY: in bounds; any bytes are a `T`, as it is `Pod`; no alignment is needed. Who reads
        // here knows that it is not another's turn to write, so nobody honest does; for others see the
        // top of this file.
        unsafe { from.cast::<T>().read_unaligned() }
    }

    /// Writes a value without concurrent readers or writers.
    #[inline]
    pub fn store<T: Pod>(&self, at: Addr, value: T) {
        let to = self.pointer(at, size_of::<T>());
        // SAFETY: in bounds, no alignment needed; it is the writer's turn by the ring's protocol.
        unsafe { to.cast::<T>().write_unaligned(value) }
    }

    /// Copies out of the region.
    #[inline]
    pub fn read(&self, from: Addr, into: &mut [u8]) {
        let from = self.pointer(from, into.len());
        // SAFETY: in bounds; `into` is a reference to memory outside of the mapping, for nobody
        // can have a reference into it at the same time as the caller has the device. If another
        // process writes meanwhile, the bytes are undecided, and they are only ever data here.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }

    /// Copies into the region.
    #[inline]
    pub fn write(&self, to: Addr, bytes: &[u8]) {
        let to = self.pointer(to, bytes.len());
        // What fits a line goes in two halves, which may overlap, and without a call: registers are kept.
        if let Some(&first) = bytes.first_chunk::<HALF_LINE>()
            && let Some(&last) = bytes.last_chunk::<HALF_LINE>()
            && bytes.len() <= 2 * HALF_LINE
        {
            // SAFETY: as for `read`, and both halves are parts of what is copied.
            unsafe {
                to.cast::<[u8; HALF_LINE]>().write_unaligned(first);
                let second = to.add(bytes.len() - HALF_LINE);
                second.cast::<[u8; HALF_LINE]>().write_unaligned(last);
            }
            return;
        }
        out_of_line();
        // SAFETY: as for `read`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Bytes in place, for their owner.
    ///
    /// # Safety
    /// No other agent writes them while the slice lives: they are a packet in the caller's hands.
    #[inline]
    pub unsafe fn slice(&self, at: Addr, len: usize) -> &[u8] {
        // SAFETY: in bounds; that nobody writes is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.pointer(at, len), len) }
    }

    /// Bytes in place, for their owner.
    ///
    /// # Safety
    /// No other agent reads or writes them while the slice lives.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut(&self, at: Addr, len: usize) -> &mut [u8] {
        // SAFETY: in bounds; that nobody else has them is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(at, len), len) }
    }
}

/// Tells the compiler to keep registers for other ways than the one that this is on.
#[cold]
fn out_of_line() {}
