//! Every raw access to the region: copies, words and lines, each checked to be inside.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytemuck::Pod;
use nicforge_units::CACHE_LINE_BYTES;

use super::{LINE_WORDS, Region, SHORT, WORD_BYTES};
use crate::Addr;

impl Region {
    /// The address of `len` bytes at `at`, all inside.
    ///
    /// # Panics
    /// Beyond the end: a broken invariant of the caller, who checks what others wrote before.
    #[inline]
    fn pointer(&self, at: Addr, len: usize) -> *mut u8 {
        // Mostly one comparison, as lengths are known where this is inlined.
        let inside = len as u64 <= SHORT && at.0 < self.short_end || self.holds(at, len as u64);
        if !inside {
            self.misplaced(at, len);
        }
        // SAFETY: the offset and the bytes behind it are in the mapping.
        unsafe { self.base.add(at.0 as usize) }
    }

    /// Whether `len` bytes at `at` are inside.
    #[inline]
    fn holds(&self, at: Addr, len: u64) -> bool {
        len <= self.len && at.0 <= self.len - len
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

    /// The address of the word at `at`, if that is a multiple of 8 and inside.
    #[inline]
    fn word_pointer(&self, at: Addr) -> Option<*const AtomicU64> {
        // Both by one comparison: the low bits of what is not aligned come out on top.
        let number = at.0.rotate_right(WORD_BYTES.trailing_zeros());
        // SAFETY: so many whole words are in the mapping.
        (number < self.words).then(|| unsafe { self.base.add(at.0 as usize).cast_const().cast() })
    }

    /// A word that several agents write, at a multiple of 8.
    #[inline]
    pub fn word(&self, at: Addr) -> &AtomicU64 {
        match self.word_pointer(at) {
            // SAFETY: in bounds and aligned (the mapping begins at a page); atomics may be shared by
            // any number of agents, also with other processes, and the mapping outlives `self`.
            Some(word) => unsafe { &*word },
            None => self.misplaced(at, size_of::<u64>()),
        }
    }

    /// `count` words, the first at `at`, each with the `stride` bytes that begin with it; none if these
    /// are not all inside, and aligned.
    #[inline]
    pub(in crate::live) fn words(
        &self,
        at: Addr,
        stride: u64,
        count: u64,
    ) -> impl Iterator<Item = &AtomicU64> {
        let end = stride
            .checked_mul(count)
            .and_then(|len| at.0.checked_add(len));
        let aligned = (at.0 | stride).is_multiple_of(WORD_BYTES);
        let inside = aligned && end.is_some_and(|end| end <= self.len);
        let first = self.hint(at);
        let all = if inside { count } else { 0 };
        (0..all).map(move |number| {
            let word = first.wrapping_add((number * stride) as usize);
            // SAFETY: in bounds and aligned, as was found above; the rest as for `word`.
            unsafe { &*word.cast::<AtomicU64>() }
        })
    }

    /// The words of the line at `at`: where an entry lies that its last word announces.
    #[inline]
    fn line(&self, at: Addr) -> *mut [u64; LINE_WORDS] {
        // As for words.
        let number = at.0.rotate_right(CACHE_LINE_BYTES.trailing_zeros());
        if number >= self.lines {
            self.misplaced(at, CACHE_LINE_BYTES as usize);
        }
        // SAFETY: so many whole lines are in the mapping.
        unsafe { self.base.add(at.0 as usize).cast() }
    }

    /// Reads the entry at `at` but for its last word, if the lowest bit of that is `bit`.
    #[inline]
    pub(in crate::live) fn entry(&self, at: Addr, bit: u64) -> Option<[u64; LINE_WORDS - 1]> {
        let line = self.line(at).cast::<u64>();
        // SAFETY: all of the line is in bounds and aligned.
        let announces = unsafe { &*line.add(LINE_WORDS - 1).cast::<AtomicU64>() };
        let there = announces.load(Ordering::Acquire) & 1 == bit;
        // SAFETY: as above; it was announced, so nobody honest writes it now.
        there.then(|| unsafe { line.cast::<[u64; LINE_WORDS - 1]>().read() })
    }

    /// Writes the entry at `at`, its last word last.
    #[inline]
    pub(in crate::live) fn announce(&self, at: Addr, words: &[u64; LINE_WORDS]) {
        let line = self.line(at).cast::<u64>();
        let [before @ .., last] = words;
        // SAFETY: all of the line is in bounds and aligned; it is the writer's turn.
        unsafe { line.cast::<[u64; LINE_WORDS - 1]>().write(*before) };
        // SAFETY: as above.
        let announces = unsafe { &*line.add(LINE_WORDS - 1).cast::<AtomicU64>() };
        announces.store(*last, Ordering::Release);
    }

    /// Half a word that several agents write, at a multiple of 4: what a futex takes.
    #[inline]
    pub fn half_word(&self, at: Addr) -> &AtomicU32 {
        assert!(at.0.is_multiple_of(4), "a word at {at:?} is not aligned");
        // SAFETY: as for `word`.
        unsafe { &*self.pointer(at, 4).cast::<AtomicU32>() }
    }

    /// Reads a value. Aligned words are read in one piece: others may write them meanwhile.
    #[inline]
    pub fn load<T: Pod>(&self, at: Addr) -> T {
        if size_of::<T>() == WORD_BYTES as usize {
            let Some(word) = self.word_pointer(at) else {
                return self.load_bytes(at);
            };
            // SAFETY: as for `word`.
            let word = unsafe { &*word }.load(Ordering::Relaxed);
            return bytemuck::pod_read_unaligned(bytemuck::bytes_of(&word));
        }
        let from = self.pointer(at, size_of::<T>());
        // SAFETY: in bounds; any bytes are a `T`, as it is `Pod`; no alignment is needed. Who
        // reads more than a word has seen it announced, so nobody honest writes it now.
        unsafe { from.cast::<T>().read_unaligned() }
    }

    #[cold]
    #[inline(never)]
    fn load_bytes<T: Pod>(&self, at: Addr) -> T {
        let mut value = T::zeroed();
        self.read(at, bytemuck::bytes_of_mut(&mut value));
        value
    }

    /// Writes a value, aligned words in one piece.
    #[inline]
    pub fn store<T: Pod>(&self, at: Addr, value: T) {
        if size_of::<T>() == WORD_BYTES as usize {
            let Some(place) = self.word_pointer(at) else {
                return self.store_bytes(at, value);
            };
            let word: u64 = bytemuck::pod_read_unaligned(bytemuck::bytes_of(&value));
            // SAFETY: as for `word`.
            return unsafe { &*place }.store(word, Ordering::Relaxed);
        }
        let to = self.pointer(at, size_of::<T>());
        // SAFETY: in bounds, no alignment needed; it is the writer's turn by the ring's protocol.
        unsafe { to.cast::<T>().write_unaligned(value) }
    }

    #[cold]
    #[inline(never)]
    fn store_bytes<T: Pod>(&self, at: Addr, value: T) {
        self.write(at, bytemuck::bytes_of(&value));
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
        // SAFETY: as for `read`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Bytes in place, for whoever owns them.
    ///
    /// # Safety
    /// No other agent writes them while the slice lives: they are a packet in the caller's hands.
    #[inline]
    pub unsafe fn slice(&self, at: Addr, len: usize) -> &[u8] {
        // SAFETY: in bounds; that nobody writes is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.pointer(at, len), len) }
    }

    /// Bytes in place, for whoever owns them.
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
