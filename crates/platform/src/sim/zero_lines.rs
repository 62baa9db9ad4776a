//! Which lines of memory are known to hold zeros only.
//!
//! One bit a line, a word for each 4 KiB; above it one bit for each such word that may be written
//! only with a look at it. Nearly all that is written is no payload, and learns so from a few lines
//! of the machine that simulates.

use nicforge_units::CACHE_LINE_BYTES;

use super::ahead::expect;
use crate::Addr;

/// Lines, or words, of one word of bits.
const BITS: u64 = 64;
/// Bytes whose lines are in one word.
const PAGE_BYTES: u64 = BITS * CACHE_LINE_BYTES;

/// Lines that hold zeros only.
pub struct ZeroLines {
    lines: Vec<u64>,
    /// Pages of which lines are known: those of payload, and those that nobody has written yet.
    watched: Vec<u64>,
    /// Pages of payload: some of it was made zero.
    payload: Vec<u64>,
}

impl ZeroLines {
    /// Nothing is known of `bytes` of memory.
    pub fn new(bytes: u64) -> ZeroLines {
        let pages = bytes.div_ceil(PAGE_BYTES);
        ZeroLines {
            lines: vec![0; pages as usize],
            watched: vec![0; pages.div_ceil(BITS) as usize],
            payload: vec![0; pages.div_ceil(BITS) as usize],
        }
    }

    /// Nobody has written any of `len` bytes at `at` yet, zeros all of them.
    pub fn unwritten(&mut self, at: Addr, len: u64) {
        let pages = at.0.div_ceil(PAGE_BYTES)..(at.0 + len) / PAGE_BYTES;
        for page in pages {
            self.lines[page as usize] = u64::MAX;
            self.watched[(page / BITS) as usize] |= bit(page as usize);
        }
    }

    /// What is known of `line` will be asked for soon.
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        expect(&self.lines, (line / BITS) as usize);
    }

    /// `len` bytes at `at` may hold anything from now on.
    #[inline(always)]
    pub fn written(&mut self, at: Addr, len: usize) {
        let page = at.0 / PAGE_BYTES;
        let crosses = at.0 % PAGE_BYTES + len as u64 > PAGE_BYTES;
        // All payload is watched.
        if len > 0 && (has(&self.watched, page as usize) || crosses) {
            self.forget_written(at, len);
        }
    }

    /// The same for bytes, at least one, of which some may be watched. Out of line, for nearly all that is written is
    /// not; what is, is headers, which lie in one page: that way is short.
    #[inline(never)]
    fn forget_written(&mut self, at: Addr, len: usize) {
        let last = at.0 + (len as u64 - 1);
        let page = at.0 / PAGE_BYTES;
        if page == last / PAGE_BYTES && has(&self.payload, page as usize) {
            let bits = bits_of(at.line() % BITS, last / CACHE_LINE_BYTES - at.line() + 1);
            self.lines[page as usize] &= !bits;
        } else {
            self.forget(at.line(), last / CACHE_LINE_BYTES + 1);
        }
    }

    #[inline(never)]
    fn forget(&mut self, first: u64, end: u64) {
        for (page, bits) in words_of(first, end) {
            if has(&self.payload, page) {
                self.lines[page] &= !bits;
            } else {
                // Tables and rings: whoever writes there will write there again.
                self.lines[page] = 0;
                self.watched[page / BITS as usize] &= !bit(page);
            }
        }
    }

    /// Whether all of lines `first` to before `end`, which are payload, are known to be zero.
    #[inline]
    pub fn know(&mut self, first: u64, end: u64) -> bool {
        words_of(first, end).fold(true, |known, (page, bits)| {
            self.watched[page / BITS as usize] |= bit(page);
            self.payload[page / BITS as usize] |= bit(page);
            known && self.lines[page] & bits == bits
        })
    }

    /// Lines `first` to before `end` are zero, of which [`know`](Self::know) was asked.
    pub fn remember(&mut self, first: u64, end: u64) {
        for (page, bits) in words_of(first, end) {
            self.lines[page] |= bits;
        }
    }
}

#[inline(always)]
fn bit(page: usize) -> u64 {
    1 << (page as u64 % BITS)
}

#[inline(always)]
fn has(pages: &[u64], page: usize) -> bool {
    pages[page / BITS as usize] & bit(page) != 0
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

    fn zeros(fresh: bool) -> ZeroLines {
        let bytes = LINES * CACHE_LINE_BYTES;
        let mut zeros = ZeroLines::new(bytes);
        zeros.unwritten(Addr(0), if fresh { bytes } else { 0 });
        zeros
    }

    #[test]
    fn what_was_written_is_not_known_wherever_it_begins_and_ends() {
        for (at, len) in [
            (0, 1),
            (63, 2),
            (4095, 2),
            (4000, 4096),
            (100, 10_000),
            (20_480 - 64, 64),
            (20_480, 0),
        ] {
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

    #[test]
    fn a_page_that_was_written_before_it_had_payload_is_not_known() {
        let mut zeros = zeros(true);
        zeros.written(Addr(4096 + 640), 8);
        zeros.written(Addr(4096 + 60), 8);
        assert!(zeros.know(0, 64) && zeros.know(128, LINES));
        assert!(!zeros.know(74, 75) && !zeros.know(64, 65) && !zeros.know(65, 66));
        zeros.remember(64, 128);
        zeros.written(Addr(4096 + 640), 8);
        assert!(!zeros.know(74, 75) && zeros.know(64, 74) && zeros.know(75, 128));
    }
}
