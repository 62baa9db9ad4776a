//! Lines that a burst has touched: within it they are free.

/// Lines that one burst may touch for free after the first time: half an L1 of 32 KiB.
const LINES: usize = 256;

/// Bits below the burst's number: more lines than there are.
const BURST_SHIFT: u32 = 40;

/// Lines touched in this burst: the burst's number, the line, and whether it was written.
pub struct Near {
    lines: [u64; LINES],
    burst: u64,
}

impl Near {
    /// Nothing is near.
    pub fn new() -> Near {
        Near {
            lines: [u64::MAX; LINES],
            burst: 0,
        }
    }

    /// A new burst begins: nothing is near.
    pub fn begin_burst(&mut self) {
        // It may come round: what was near so many bursts ago is long overwritten.
        self.burst = self.burst.wrapping_add(1 << BURST_SHIFT);
    }

    /// Whether `line` was touched. What was written may be read, but not the other way round.
    #[inline(always)]
    pub fn has(&self, line: u64, write: bool) -> bool {
        // 0 where it was read, 1 where it was written.
        let near = self.lines[line as usize % LINES] ^ (line << 1 | self.burst);
        (near ^ u64::from(write)) < 2 - u64::from(write)
    }

    /// `line` is touched.
    #[inline(always)]
    pub fn add(&mut self, line: u64, write: bool) {
        self.lines[line as usize % LINES] = line << 1 | self.burst | u64::from(write);
    }
}
