//! Which worker has which packet buffer, as far as the device decides it: a frame that it wrote
//! into a buffer belongs to whom it announces it to.

use super::Region;
use crate::Addr;

/// Buffers written before a publish, at most: a frame in several parts.
const PARTS_MAX: usize = 4;

/// Packet buffers, and the 2 bytes for each that say who has it (0: nobody; `w + 1`: worker `w`).
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

/// Buffers that were written and are not announced yet.
#[derive(Debug)]
pub struct Pending {
    stock: Stock,
    written: [Addr; PARTS_MAX],
    count: usize,
}

impl Pending {
    pub fn new(stock: Stock) -> Pending {
        Pending {
            stock,
            written: [Addr(0); PARTS_MAX],
            count: 0,
        }
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

    /// What was written is announced to worker `owner`.
    pub fn announce(&mut self, region: &Region, owner: u16) {
        for offset in &self.written[..std::mem::take(&mut self.count)] {
            let entry = self.stock.ledger + offset.0 / self.stock.stride * 2;
            let mark = owner.wrapping_add(1);
            // Mostly it is the same worker as before: the line stays where it is.
            if region.load::<u16>(entry) != mark {
                region.store(entry, mark);
            }
        }
    }
}
