//! One set of a cache: its tags, their recency and their state, in one line of the machine that
//! simulates.

use bytemuck::cast;
use wide::{CmpEq, i8x16, i16x16, u8x16};

use super::WAYS_MAX;

/// Recency of a way that holds nothing: older than everything.
const EMPTY: u8 = u8::MAX;

/// Bits of a tag: 16 that are compared at once, and 4 above them.
pub(super) const TAG_BITS: u32 = 20;
const HIGH_BITS: usize = 4;

/// The ways of one index.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Set {
    /// Low bits of each way's tag.
    low: [i16; WAYS_MAX],
    /// 0 is the most recently used way.
    age: [u8; WAYS_MAX],
    /// High bits of each way's tag, four a way.
    high: u64,
    pub valid: u16,
    pub dirty: u16,
    /// Other caches may have the line, too.
    pub shared: u16,
}

pub(super) const EMPTY_SET: Set =
    Set { low: [0; WAYS_MAX], age: [EMPTY; WAYS_MAX], high: 0, valid: 0, dirty: 0, shared: 0 };

/// All ones for one way's low bits, by its number.
const ONLY_LOW: [[i16; WAYS_MAX]; WAYS_MAX] = {
    let mut only = [[0; WAYS_MAX]; WAYS_MAX];
    let mut way = 0;
    while way < WAYS_MAX {
        only[way][way] = -1;
        way += 1;
    }
    only
};

/// All ones for the ages of all ways but one, by its number.
const ALL_BUT: [[u8; WAYS_MAX]; WAYS_MAX] = {
    let mut all = [[u8::MAX; WAYS_MAX]; WAYS_MAX];
    let mut way = 0;
    while way < WAYS_MAX {
        all[way][way] = 0;
        way += 1;
    }
    all
};

const _: () = assert!(size_of::<Set>() == 64 && WAYS_MAX * HIGH_BITS <= 64);

impl Set {
    /// The way that holds `tag`, as a bit, or 0.
    #[inline(always)]
    pub fn find(&self, tag: u32) -> u16 {
        let equal = i16x16::new(self.low).simd_eq(i16x16::splat(tag as i16));
        // All ones stay all ones, and zero stays zero, when saturated to a byte.
        let found = i8x16::from_i16x16_saturate(equal).to_bitmask() as u16 & self.valid;
        match u64::from(tag >> 16) | self.high {
            0 => found,
            _ => self.find_high(found, tag >> 16),
        }
    }

    /// Of ways whose low bits agree, the one whose high bits are `high`.
    #[cold]
    fn find_high(&self, mut found: u16, high: u32) -> u16 {
        while found != 0 && self.high_of(found.trailing_zeros() as usize) != high {
            found &= found - 1;
        }
        found & found.wrapping_neg()
    }

    #[inline(always)]
    fn high_of(&self, way: usize) -> u32 {
        (self.high >> (HIGH_BITS * way)) as u32 & ((1 << HIGH_BITS) - 1)
    }

    /// The tag of `way`.
    #[inline(always)]
    pub fn tag(&self, way: usize) -> u32 {
        self.high_of(way) << 16 | u32::from(self.low[way] as u16)
    }

    /// `way` holds `tag` from now on.
    ///
    /// Here as in [`touch`](Self::touch) whole vectors are stored, as they will be loaded: what is stored
    /// in pieces and loaded as a whole soon after waits for all stores before it.
    #[inline(always)]
    pub fn set_tag(&mut self, way: usize, tag: u32) {
        let (low, there) = (i16x16::new(self.low), i16x16::new(ONLY_LOW[way]));
        self.low = (low ^ ((low ^ i16x16::splat(tag as i16)) & there)).to_array();
        // Few runs take so much memory that there are any.
        if u64::from(tag >> 16) | self.high != 0 {
            let shift = HIGH_BITS * way;
            let others = self.high & !(((1 << HIGH_BITS) - 1) << shift);
            self.high = others | u64::from(tag >> 16) << shift;
        }
    }

    /// Makes `way`, which holds a line, the youngest: all that were younger age by one.
    #[inline(always)]
    pub fn touch(&mut self, way: usize) {
        let (ages, bound) = (u8x16::new(self.age), u8x16::splat(self.age[way]));
        let older = ages.saturating_add(u8x16::splat(1)).min(bound).max(ages);
        self.age = (older & u8x16::new(ALL_BUT[way])).to_array();
    }

    /// Makes `way`, which was the oldest or empty, the youngest: all lines age by one.
    #[inline(always)]
    pub fn renew(&mut self, way: usize) {
        let older = u8x16::new(self.age).saturating_add(u8x16::splat(1));
        self.age = (older & u8x16::new(ALL_BUT[way])).to_array();
    }

    /// Takes the way out of the order of ages: all that were older get younger by one, so that
    /// the ages of n lines are always 0 to n - 1.
    #[inline(always)]
    pub fn forget(&mut self, way: usize) {
        let ages = u8x16::new(self.age);
        let younger = ages.min(u8x16::splat(self.age[way])).simd_eq(ages);
        let lines = ages.min(u8x16::splat(WAYS_MAX as u8)).simd_eq(ages);
        // All ones, which is -1, where a line was older.
        self.age = (ages + (lines & !younger)).to_array();
        self.age[way] = EMPTY;
    }

    /// The least recently used of `ways` ways; empty ways first.
    #[inline(always)]
    pub fn victim(&self, ways: usize) -> usize {
        let empty = ((1u32 << ways) - 1) as u16 & !self.valid;
        if empty != 0 {
            return empty.trailing_zeros() as usize & (WAYS_MAX - 1);
        }
        // All are taken, and their ages are 0 to `ways` - 1.
        let highest = u8x16::splat(ways as u8 - 1);
        let oldest = i8x16::new(cast(u8x16::new(self.age).simd_eq(highest)));
        oldest.to_bitmask().trailing_zeros() as usize & (WAYS_MAX - 1)
    }
}
