//! Memory in pages of 4 KiB: a core whose TLB does not know a page reads its entry in the table of pages.
//!
//! Upper levels of the table are taken to be in the caches that cores have for them: each of their entries stands
//! for 2 MiB or more. Memory in large pages needs no walk, as a TLB knows all of it.

use nicforge_units::{CACHE_LINE_BYTES, Lines, Time};

use super::CacheConfig;
use super::cache::{Cache, OwnCache};
use crate::{AddressSpace, PAGE_BYTES, PagedRange};

const PAGE_LINES: u64 = PAGE_BYTES / CACHE_LINE_BYTES;
/// Ways of the second-level TLB (Intel optimization manual, Skylake).
const TLB_WAYS: usize = 12;

/// Which addresses are in pages of 4 KiB.
pub struct PagedMap {
    /// Lines in which all of it lies: `count` of them from `first` on.
    first: u64,
    count: u64,
    ranges: Vec<PagedRange>,
}

impl PagedMap {
    /// What `space` handed out; nothing where cores have no TLB.
    pub fn new(space: &AddressSpace, tlb_pages: usize) -> PagedMap {
        let ranges = if tlb_pages == 0 { Vec::new() } else { space.paged_ranges().to_vec() };
        let first = ranges.iter().map(|range| range.at.line()).min().unwrap_or(0);
        let ends = ranges.iter().map(|range| range.at.line() + range.pages * PAGE_LINES);
        PagedMap { first, count: ends.max().unwrap_or(0) - first, ranges }
    }

    /// Whether `line` lies where such pages lie.
    #[inline(always)]
    pub fn may_hold(&self, line: u64) -> bool {
        line.wrapping_sub(self.first) < self.count
    }

    /// The line with the table's entry of the page that `line` is in.
    pub fn entry_line(&self, line: u64) -> Option<u64> {
        let range = self.ranges.iter().find(|range| {
            let behind = line.wrapping_sub(range.at.line());
            behind < range.pages * PAGE_LINES
        })?;
        Some(range.entry_line((line - range.at.line()) / PAGE_LINES))
    }
}

/// The pages that a core's second-level TLB knows.
pub struct Tlb(Option<Cache>);

impl Tlb {
    /// An empty one for so many pages; none for 0.
    pub fn new(pages: usize) -> Tlb {
        let config = CacheConfig { size: Lines(pages as u64).bytes(), ways: TLB_WAYS, hit: Time::ZERO };
        Tlb((pages > 0).then(|| Cache::new(&config)))
    }

    /// Whether the page of `line` was known; it is from now on.
    pub fn knows(&mut self, line: u64) -> bool {
        let page = line / PAGE_LINES;
        let Some(pages) = &mut self.0 else { return true };
        let known = pages.hit(page, false).is_some();
        if !known {
            pages.fill(page, false, false);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_an_entry_of_its_own_in_the_table() {
        let mut space = AddressSpace::default();
        space.data(100, 64);
        let at = space.paged(20 * PAGE_BYTES + 1);
        let map = PagedMap::new(&space, 1536);
        let (first, last) = (at.line(), (at + 20 * PAGE_BYTES).line());
        assert!(map.may_hold(first) && map.may_hold(last) && !map.may_hold(first - 1));
        let entries: Vec<u64> = (0..21).filter_map(|page| map.entry_line(first + page * PAGE_LINES)).collect();
        // Eight entries of 8 bytes in a line.
        let table = entries[0];
        assert_eq!(entries, (0..21).map(|page| table + page / 8).collect::<Vec<_>>());
        assert!(!map.may_hold(table));
        assert_eq!(PagedMap::new(&space, 0).entry_line(first), None);
    }

    #[test]
    fn a_tlb_forgets_what_it_has_no_room_for() {
        let mut tlb = Tlb::new(24);
        let pages = |pages: std::ops::Range<u64>| pages.map(|page| page * PAGE_LINES);
        assert!(pages(0..24).all(|line| !tlb.knows(line)));
        assert!(pages(0..24).all(|line| tlb.knows(line + 5)));
        assert!(pages(24..48).all(|line| !tlb.knows(line)));
        assert!(pages(0..24).all(|line| !tlb.knows(line)));
        assert!(Tlb::new(0).knows(7));
    }
}
