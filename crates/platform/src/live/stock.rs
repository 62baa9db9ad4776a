//! Which worker has which packet buffer, as far as the device decides it: a frame that it wrote
//! into a buffer belongs to whom it announces it to.

use std::ops::Range;

use super::Region;
use crate::Addr;

/// Buffers written before a publish, at most: a frame in several parts.
const PARTS_MAX: usize = 4;

/// Packet buffers, and the 2 bytes for each with its holder (0: none; `w + 1`: worker `w`).
#[derive(Clone, Copy, Debug)]
pub struct Stock {
    /// Where the first buffer begins.
    pub begin: Addr,
    /// From one to the next.
    pub stride: u64,
    /// How many.
    pub count: u64,
    /// Where the first one's holder is written down.
    pub ledger: Addr,
}

impl Stock {
    /// Where it is written down who has the buffer `offset` behind the first one's beginning.
    fn entry(&self, offset: u64) -> Addr {
        self.ledger + offset / self.stride * 2
    }
}

/// Buffers that were written and are not announced yet.
#[derive(Debug)]
pub struct Pending {
    stock: Stock,
    written: [Addr; PARTS_MAX],
    count: usize,
}

impl Pending {
    pub fn new(stock: Stock) -> Pending {
        Pending { stock, written: [Addr(0); PARTS_MAX], count: 0 }
    }

    /// Something was written at `to`.
    #[inline]
    pub fn wrote(&mut self, to: Addr) {
        let offset = to.0.wrapping_sub(self.stock.begin.0);
        if offset < self.stock.stride * self.stock.count && self.count < PARTS_MAX {
            self.written[self.count] = Addr(offset);
            self.count += 1;
        }
    }

    /// Whether one of `workers` has the buffer at `at`.
    pub fn is_from(&self, region: &Region, at: Addr, workers: &Range<u16>) -> bool {
        let offset = at.0.wrapping_sub(self.stock.begin.0);
        // What is none of these buffers is not written down.
        offset >= self.stock.stride * self.stock.count || {
            let holder: u16 = region.load(self.stock.entry(offset));
            workers.contains(&holder.wrapping_sub(1))
        }
    }

    /// What was written is announced to worker `owner`.
    pub fn announce(&mut self, region: &Region, owner: u16) {
        for offset in &self.written[..std::mem::take(&mut self.count)] {
            let entry = self.stock.entry(offset.0);
            let mark = owner.wrapping_add(1);
            // Mostly it is the same worker as before: the line stays where it is.
            if region.load::<u16>(entry) != mark {
                region.store(entry, mark);
            }
        }
    }
}
