//! Which lines of packet buffers are known to hold zeros only.
//!
//! One bit a line, a word for each 4 KiB. Nearly all that is written lies elsewhere, and learns so from the
//! bounds.

use std::ops::Range;

use nicforge_units::CACHE_LINE_BYTES;

use super::ahead::expect;
use crate::Addr;

/// Lines of one word of bits.
const BITS: u64 = 64;
/// Bytes whose lines are in one word.
const PAGE_BYTES: u64 = BITS * CACHE_LINE_BYTES;

/// Lines that hold zeros only.
pub struct ZeroLines {
    lines: Vec<u64>,
    /// Lines are known in these pages only: `watched` of them from `first` on.
    first: u64,
    watched: u64,
}

impl ZeroLines {
    /// Nothing is known of `bytes` of memory.
    pub fn new(bytes: u64) -> ZeroLines {
        ZeroLines { lines: vec![0; bytes.div_ceil(PAGE_BYTES) as usize], first: 0, watched: 0 }
    }

    /// What is zero among `len` bytes at `at` is worth knowing, from now on: there, where it was said before, and
    /// between. Returns the pages that lie wholly there.
    pub fn watch(&mut self, at: Addr, len: u64) -> Range<u64> {
        let pages = at.0.div_ceil(PAGE_BYTES)..(at.0 + len) / PAGE_BYTES;
        if pages.is_empty() {
            return 0..0;
        }
        let end = pages.end.max(self.first + self.watched);
        self.first = match self.watched {
            0 => pages.start,
            _ => pages.start.min(self.first),
        };
        self.watched = end - self.first;
        pages
    }

    /// The same; nobody has written any of them yet, zeros all of them.
    pub fn unwritten(&mut self, at: Addr, len: u64) {
        let pages = self.watch(at, len);
        self.lines[pages.start as usize..pages.end as usize].fill(u64::MAX);
    }

    /// What is known of `line` will be asked for soon.
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        expect(&self.lines, (line / BITS) as usize);
    }

    /// `len` bytes at `at` may hold anything from now on.
    #[inline(always)]
    pub fn written(&mut self, at: Addr, len: usize) {
        if len == 0 {
            return;
        }
        let last = at.0 + (len as u64 - 1);
        let page = at.0 / PAGE_BYTES;
        if page != last / PAGE_BYTES {
            self.forget(at.line(), last / CACHE_LINE_BYTES + 1);
        } else if page.wrapping_sub(self.first) < self.watched {
            let count = last / CACHE_LINE_BYTES - at.line() + 1;
            self.lines[page as usize] &= !bits_of(at.line() % BITS, count);
        }
    }

    #[cold]
    fn forget(&mut self, first: u64, end: u64) {
        for (page, bits) in words_of(first, end) {
            self.lines[page] &= !bits;
        }
    }

    /// Whether all of lines `first` to before `end` are known to be zero.
    #[inline]
    pub fn know(&self, first: u64, end: u64) -> bool {
        words_of(first, end).all(|(page, bits)| self.lines[page] & bits == bits)
    }

    /// Lines `first` to before `end` are zero.
    pub fn remember(&mut self, first: u64, end: u64) {
        for (page, bits) in words_of(first, end) {
            if (page as u64).wrapping_sub(self.first) < self.watched {
                self.lines[page] |= bits;
            }
        }
    }
}

/// `count` bits, at least one, from `first` on.
#[inline(always)]
fn bits_of(first: u64, count: u64) -> u64 {
    (u64::MAX >> (BITS - count)) << first
}

/// The words of a map with one bit per line that hold lines `first` to before `end`, each with
/// its bits.
#[inline(always)]
fn words_of(first: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut line = first;
    std::iter::from_fn(move || {
        (line < end).then(|| {
            let bit = line % BITS;
            let here = (BITS - bit).min(end - line);
            let word = (line / BITS) as usize;
            line += here;
            (word, bits_of(bit, here))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: u64 = 320;

    /// All of it is watched; `fresh`, or written once.
    fn zeros(fresh: bool) -> ZeroLines {
        let bytes = LINES * CACHE_LINE_BYTES;
        let mut zeros = ZeroLines::new(bytes);
        zeros.unwritten(Addr(0), bytes);
        zeros.written(Addr(0), if fresh { 0 } else { bytes as usize });
        zeros
    }

    #[test]
    fn written_lines_are_not_known_to_be_zero_at_any_alignment() {
        for (at, len) in [(0, 1), (63, 2), (4095, 2), (4000, 4096), (100, 10_000), (20_480 - 64, 64), (20_480, 0)] {
            for fresh in [false, true] {
                let mut zeros = zeros(fresh);
                assert_eq!(zeros.know(0, LINES), fresh);
                zeros.remember(0, LINES);
                zeros.written(Addr(at), len);
                let written = at / 64..(at + len as u64).div_ceil(64);
                for line in 0..LINES {
                    let known = zeros.know(line, line + 1);
                    let may = len > 0 && written.contains(&line);
                    assert_eq!(known, !may, "line {line} after {len} bytes at {at}");
                }
            }
        }
    }

    /// Two pools with a table between them, and memory before and behind them.
    #[test]
    fn nothing_is_known_of_what_was_never_said_to_be_unwritten() {
        let page = PAGE_BYTES;
        let mut zeros = ZeroLines::new(8 * page);
        zeros.unwritten(Addr(5 * page), 2 * page);
        zeros.unwritten(Addr(2 * page + 64), 2 * page);
        let known = |zeros: &ZeroLines| {
            let pages = 0..8;
            pages.map(|page| zeros.know(page * BITS, (page + 1) * BITS)).collect::<Vec<_>>()
        };
        let only = |pages: &[usize]| (0..8).map(|page| pages.contains(&page)).collect::<Vec<_>>();
        assert_eq!(known(&zeros), only(&[3, 5, 6]));
        // What lies between them is told apart as well; what lies outside is not.
        zeros.remember(0, 8 * BITS);
        assert_eq!(known(&zeros), only(&[3, 4, 5, 6]));
        // Where zeros are only watched for, they are known once somebody has made some.
        zeros.watch(Addr(0), page);
        assert_eq!(known(&zeros), only(&[3, 4, 5, 6]));
        zeros.remember(0, BITS);
        assert_eq!(known(&zeros), only(&[0, 3, 4, 5, 6]));
        zeros.written(Addr(9), 1);
        zeros.written(Addr(3 * page - 1), 2);
        zeros.written(Addr(4 * page), 1);
        zeros.written(Addr(7 * page), 1);
        assert_eq!(known(&zeros), only(&[5, 6]));
    }
}
