//! Lines that a burst has touched: within it they are free.

/// Lines that one burst may touch for free after the first time: half an L1 of 32 KiB.
const LINES: usize = 256;

/// Bits of what is kept: below the burst's number whether the line was written, above it the line's number but
/// for the bits that say its place.
const BURST_SHIFT: u32 = 1;
const LINE_SHIFT: u32 = 9;
/// The number of no burst.
const NO_BURST: u32 = 0;

/// Lines touched in this burst. Every core has as many, and cores take turns: a word each is short, so that most of
/// them stay in the caches of the machine that simulates.
pub struct BurstLines {
    lines: [u32; LINES],
    /// The burst's number in its place.
    burst: u32,
}

impl BurstLines {
    /// Nothing is near.
    pub fn new() -> BurstLines {
        BurstLines { lines: [NO_BURST; LINES], burst: 1 << BURST_SHIFT }
    }

    /// A new burst begins: nothing is near.
    pub fn begin_burst(&mut self) {
        self.burst += 1 << BURST_SHIFT;
        if self.burst == 1 << LINE_SHIFT {
            *self = BurstLines::new();
        }
    }

    /// `line`, of fewer than 2^31, as it is kept when it was read.
    #[inline(always)]
    fn read(&self, line: u64) -> u32 {
        (line as u32 / LINES as u32) << LINE_SHIFT | self.burst
    }

    /// Whether `line` was touched. What was written may be read, but not the other way round.
    #[inline(always)]
    pub fn has(&self, line: u64, write: bool) -> bool {
        // 0 where it was read, 1 where it was written.
        let near = self.lines[line as usize % LINES] ^ self.read(line);
        (near ^ u32::from(write)) < 2 - u32::from(write)
    }

    /// `line` is touched.
    #[inline(always)]
    pub fn add(&mut self, line: u64, write: bool) {
        self.lines[line as usize % LINES] = self.read(line) | u32::from(write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_burst_stay_near_until_it_ends() {
        let mut near = BurstLines::new();
        for burst in 0..1000 {
            for line in [0, 7, (1 << 31) - 1, burst] {
                assert!(!near.has(line, false), "line {line}, burst {burst}");
            }
            near.add(7, false);
            near.add((1 << 31) - 1, true);
            assert!(near.has(7, false) && !near.has(7, true));
            assert!(near.has((1 << 31) - 1, false) && near.has((1 << 31) - 1, true));
            // The same place, another line.
            assert!(!near.has(7 + LINES as u64, false));
            near.begin_burst();
        }
    }
}
