//! Where one side stands in a completion ring.

use nicforge_platform::Addr;

use super::COMPLETION_BYTES;

/// Place in a ring that both sides walk: the next entry, and the done bit of this pass.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// The next entry.
    pub at: Addr,
    /// 1 on even passes, 0 on odd ones: memory begins as zero.
    pub done: u64,
    /// The first entry, and where one after the last would be.
    pub first: Addr,
    end: Addr,
    /// From one entry to the next: what there is beyond it is for inlined headers.
    pub stride: u64,
}

impl Cursor {
    /// At the first entry.
    pub fn new(base: Addr, entries: u64, stride: u64) -> Cursor {
        let first = base + (stride - COMPLETION_BYTES);
        Cursor { at: first, done: 1, first, end: first + entries * stride, stride }
    }

    /// At the entry after this one.
    #[inline(always)]
    pub fn next(mut self) -> Cursor {
        self.advance();
        self
    }

    /// Goes to the entry after this one.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.at = self.at + self.stride;
        if self.at == self.end {
            seldom();
            self.at = self.first;
            self.done ^= 1;
        }
    }

    /// In the beginning.
    pub fn anew(&self) -> Cursor {
        Cursor { at: self.first, done: 1, ..*self }
    }

    /// Where `count` entries from here end, or the ring.
    #[inline]
    pub fn until(&self, count: u64) -> Addr {
        (self.at + count * self.stride).min(self.end)
    }

    /// Entries from here to the ring's end.
    pub fn left(&self) -> u64 {
        (self.end.0 - self.at.0) / self.stride
    }
}

/// Tells the compiler not to compute both ways.
#[cold]
fn seldom() {}

/// Where `len` inlined bytes of the entry at `at` begin: in the lines right before it.
#[inline]
pub fn inlined_before(at: Addr, len: u64) -> Addr {
    Addr(at.0 - len.next_multiple_of(COMPLETION_BYTES))
}
