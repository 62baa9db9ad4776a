//! How often keys were asked for of late: a count-min sketch in blocks, which ages.
//!
//! A key has four counters of a byte, all in one cache line; an increment raises those that are
//! lowest, and the estimate is the lowest, so that it is too low only by age. Ageing halves
//! one line after the other, as TinyLFU does for all at once (Einziger et al., "TinyLFU: A Highly
//! Efficient Cache Admission Policy", section 3.3; Cormode and Muthukrishnan for the sketch).

use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::CACHE_LINE_BYTES;

use crate::tables::mix;

/// Counters for each item that can be hot: so many that in a sample a cold key hardly ever finds
/// all of its four raised by others.
const COUNTERS_PER_ITEM: u64 = 32;
/// Requests for each item that can be hot, until every counter has been halved (TinyLFU: a
/// sample of about ten times the cache's size).
pub const SAMPLE_PER_ITEM: u64 = 10;
/// Counters of a key.
const ROWS: u32 = 4;

const LINE: usize = CACHE_LINE_BYTES as usize;

/// The sketch of one partition; its counters live in modelled memory.
#[derive(Clone, Debug)]
pub struct Sketch {
    lines: Addr,
    mask: u64,
    /// Increments until the next line is halved, and which one that is.
    until_halving: u64,
    period: u64,
    hand: u64,
}

impl Sketch {
    /// Takes address space for a sketch that finds `items` hot ones. The memory must be zero.
    pub fn allocate(space: &mut AddressSpace, items: u64) -> Sketch {
        let lines = (items * COUNTERS_PER_ITEM).div_ceil(CACHE_LINE_BYTES).max(1).next_power_of_two();
        let period = (items * SAMPLE_PER_ITEM).div_ceil(lines).max(1);
        Sketch {
            lines: space.data(lines * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            mask: lines - 1,
            until_halving: period,
            period,
            hand: 0,
        }
    }

    /// Counts a request for the key of this hash; returns the new estimate.
    #[inline]
    pub fn add<C: Cpu>(&mut self, cpu: &mut C, hash: u64) -> u8 {
        self.age(cpu);
        let (at, places) = self.places(hash);
        let line = cpu.bytes_mut(at, LINE);
        let low = lowest(line, places);
        let more = low.saturating_add(1);
        for place in places {
            line[place] = line[place].max(more);
        }
        more
    }

    /// How often the key of this hash was asked for, at least.
    #[inline]
    pub fn estimate<C: Cpu>(&self, cpu: &mut C, hash: u64) -> u8 {
        let (at, places) = self.places(hash);
        lowest(cpu.bytes(at, LINE), places)
    }

    fn age<C: Cpu>(&mut self, cpu: &mut C) {
        self.until_halving -= 1;
        if self.until_halving > 0 {
            return;
        }
        self.until_halving = self.period;
        let at = self.lines + self.hand * CACHE_LINE_BYTES;
        cpu.bytes_mut(at, LINE).iter_mut().for_each(|count| *count /= 2);
        self.hand = (self.hand + 1) & self.mask;
    }

    /// The line of a key's counters, and where they are in it.
    #[inline]
    fn places(&self, hash: u64) -> (Addr, [usize; ROWS as usize]) {
        // Mixed, because clients choose the hash.
        let mixed = mix(hash);
        let at = self.lines + (mixed >> 32 & self.mask) * CACHE_LINE_BYTES;
        let place = |row: usize| (mixed >> (6 * row)) as usize % LINE;
        (at, std::array::from_fn(place))
    }
}

#[inline]
fn lowest(line: &[u8], places: [usize; ROWS as usize]) -> u8 {
    places.iter().map(|&place| line[place]).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_platform::FlatCpu;

    fn sketch(items: u64) -> (Sketch, FlatCpu) {
        let mut space = AddressSpace::default();
        let sketch = Sketch::allocate(&mut space, items);
        (sketch, FlatCpu::new(space.end()))
    }

    #[test]
    fn no_estimate_is_too_low_before_anything_ages() {
        let (mut sketch, mut cpu) = sketch(1000);
        // Fewer than the first halving comes after.
        for hash in 0..30u64 {
            for _ in 0..hash % 3 {
                sketch.add(&mut cpu, hash);
            }
        }
        for hash in 0..30 {
            assert!(u64::from(sketch.estimate(&mut cpu, hash)) >= hash % 3, "{hash}");
        }
    }

    #[test]
    fn often_asked_keys_stand_out_and_age() {
        let (mut sketch, mut cpu) = sketch(64);
        for round in 0..2_000u64 {
            sketch.add(&mut cpu, 7);
            for other in 0..4 {
                sketch.add(&mut cpu, 1_000 + 4 * round + other);
            }
        }
        let hot = sketch.estimate(&mut cpu, 7);
        let cold = (1_000..1_100).filter(|&key| sketch.estimate(&mut cpu, key) >= hot);
        assert_eq!(cold.count(), 0, "estimate of the hot one: {hot}");
        for round in 0..20_000 {
            sketch.add(&mut cpu, 1_000_000 + round);
        }
        assert!(sketch.estimate(&mut cpu, 7) < hot / 2);
    }

    #[test]
    fn counters_do_not_wrap() {
        let (mut sketch, mut cpu) = sketch(1 << 20);
        for _ in 0..400 {
            sketch.add(&mut cpu, 9);
        }
        assert!(sketch.estimate(&mut cpu, 9) >= 100);
    }
}
