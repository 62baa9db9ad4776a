//! Receive buffers that all connections share, as rxBisect's cores share theirs: payload takes a page when it comes and
//! gives it back when it was read. Pages that came back last leave first, so few of them are in use, and in a cache.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nicforge_nic::Segment;
use nicforge_platform::Addr;

/// Bytes of a page: a buffer of the NIC's.
pub const PAGE_BYTES: u64 = 2048;
const WORDS: usize = PAGE_BYTES as usize / 64;

/// Pages that a NIC and its host's software share.
pub type SharedPages = Rc<RefCell<Pages>>;

/// A page that holds bytes of a ring.
#[derive(Clone, Debug)]
struct Held {
    at: Addr,
    /// A bit for each byte that waits to be read.
    waiting: [u64; WORDS],
}

/// Pages, and what part of which ring they hold.
#[derive(Debug, Default)]
pub struct Pages {
    free: Vec<Addr>,
    /// By address in the rings, in pages.
    held: BTreeMap<u64, Held>,
    /// Held at a time at most.
    pub most: usize,
}

/// The part of `word` that lies in the bits `from` to `to`.
fn mask(word: usize, from: usize, to: usize) -> u64 {
    let (low, high) = (from.saturating_sub(word * 64).min(64), to.saturating_sub(word * 64).min(64));
    if low >= high { 0 } else { u64::MAX >> (64 - (high - low)) << low }
}

/// The parts of a segment, cut at pages: number of the page, first byte in it, bytes.
fn parts(segment: Segment) -> impl Iterator<Item = (u64, u64, u64)> {
    let (mut at, end) = (segment.at.0, segment.at.0 + u64::from(segment.len));
    std::iter::from_fn(move || {
        let (page, first) = (at / PAGE_BYTES, at % PAGE_BYTES);
        let len = (end - at).min(PAGE_BYTES - first);
        at += len;
        (len > 0).then_some((page, first, len))
    })
}

impl Pages {
    /// All of them free.
    pub fn new(free: Vec<Addr>) -> Pages {
        Pages { free, ..Pages::default() }
    }

    /// Where bytes of a ring go; pages are taken for them. Returns how many were taken, too.
    pub fn write(&mut self, segment: Segment) -> (Vec<Segment>, u64) {
        let mut taken = 0;
        let mut places = Vec::new();
        for (number, first, len) in parts(segment) {
            if !self.held.contains_key(&number) {
                let Some(at) = self.free.pop() else { continue };
                taken += 1;
                self.held.insert(number, Held { at, waiting: [0; WORDS] });
            }
            if let Some(page) = self.held.get_mut(&number) {
                let (from, to) = (first as usize, (first + len) as usize);
                (from / 64..to.div_ceil(64)).for_each(|word| page.waiting[word] |= mask(word, from, to));
                places.push(Segment { at: page.at + first, len: len as u32 });
            }
        }
        self.most = self.most.max(self.held.len());
        (places, taken)
    }

    /// Where bytes of a ring are.
    pub fn read(&self, segment: Segment) -> Vec<Segment> {
        let place = |(number, first, len): (u64, u64, u64)| {
            let page = self.held.get(&number)?;
            Some(Segment { at: page.at + first, len: len as u32 })
        };
        parts(segment).filter_map(place).collect()
    }

    /// Bytes of a ring were read: pages without others are free.
    pub fn free(&mut self, segment: Segment) {
        for (number, first, len) in parts(segment) {
            let Some(page) = self.held.get_mut(&number) else { continue };
            let (from, to) = (first as usize, (first + len) as usize);
            (from / 64..to.div_ceil(64)).for_each(|word| page.waiting[word] &= !mask(word, from, to));
            if page.waiting == [0; WORDS] {
                self.free.push(page.at);
                self.held.remove(&number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_free_when_all_that_came_was_read() {
        let mut pages = Pages::new(vec![Addr(1 << 20), Addr(2 << 20)]);
        let (at, base) = (Addr(10 * PAGE_BYTES), 10 * PAGE_BYTES);
        let (places, taken) = pages.write(Segment { at: at + 2000, len: 100 });
        assert_eq!((places.len(), taken, pages.most), (2, 2, 2));
        assert_eq!(places[0], Segment { at: Addr((2 << 20) + 2000), len: 48 });
        assert_eq!(pages.read(Segment { at: at + 2010, len: 10 }), [Segment { at: Addr((2 << 20) + 2010), len: 10 }]);
        assert!(pages.write(Segment { at: Addr(base * 5), len: 1 }).0.is_empty(), "none is left");
        pages.free(Segment { at: at + 2000, len: 48 });
        assert_eq!(pages.free, [Addr(2 << 20)], "the other holds 52 bytes");
        pages.free(Segment { at: at + 2048, len: 51 });
        assert_eq!(pages.free.len(), 1);
        pages.free(Segment { at: at + 2099, len: 1 });
        assert_eq!(pages.free, [Addr(2 << 20), Addr(1 << 20)]);
    }
}
