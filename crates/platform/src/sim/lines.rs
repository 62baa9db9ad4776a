//! What the chip knows of each line of memory, one word a line: where in the LLC it is, in what
//! state, and which L2 has it.
//!
//! ```text
//!   bit     15      14 … 8       6       5       4        3 … 0
//!        touched   L2 holder   fresh   dirty   in LLC   LLC way
//! ```
//!
//! The word is loaded and stored as a whole: what is stored in part and loaded as a whole soon after waits for
//! all stores before it. Only what makes room in the LLC, which is far from the machine that simulates and not
//! asked for soon, is told so by a store of the lower byte, which waits for nothing ([`Line::leave`]).
//!
//! A device moves runs of lines, so what it asks lies in one or two lines of the machine that
//! simulates, however many sets the run covers.

use bytemuck::{Pod, Zeroable};
use wide::u16x8;

/// Mask of the LLC way.
const WAY: u16 = 0xf;
/// The LLC has the line.
const IN_LLC: u16 = 1 << 4;
/// Memory does not have its content yet.
const DIRTY: u16 = 1 << 5;
/// A device wrote it and nobody has read it since.
const FRESH: u16 = 1 << 6;
/// A device touched it since the window began. (In a map of its own this took 1 % of a simulation's time.)
const TOUCHED: u16 = 1 << 15;
const HOLDER_SHIFT: u32 = 8;
/// Which L2 has it.
const HOLDER: u16 = (HOLDER_MAX as u16) << HOLDER_SHIFT;
/// The highest number of a holder.
pub const HOLDER_MAX: u8 = 0x7f;

/// What a cache says about a line that leaves it or is found in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineState {
    /// Memory does not have its content yet.
    pub dirty: bool,
    /// A device wrote it and nobody has read it since.
    pub fresh: bool,
}

/// What a device's read of a run of lines met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRun {
    /// Lines that no cache has.
    pub missing: u64,
    /// Lines that a device had written and nobody had read.
    pub fresh: u64,
}

/// One line's word, lower byte first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Line([u8; 2]);

impl Line {
    #[inline(always)]
    fn of(bits: u16) -> Line {
        Line(bits.to_le_bytes())
    }

    #[inline(always)]
    fn bits(self) -> u16 {
        u16::from_le_bytes(self.0)
    }

    /// The LLC way that has it.
    #[inline(always)]
    pub fn way(self) -> Option<usize> {
        let bits = self.bits();
        (bits & IN_LLC != 0).then_some(usize::from(bits & WAY))
    }

    /// Its state in the LLC.
    #[inline(always)]
    pub fn state(self) -> LineState {
        LineState { dirty: self.bits() & DIRTY != 0, fresh: self.bits() & FRESH != 0 }
    }

    /// Which L2 has it, as whoever set it means it.
    #[inline(always)]
    pub fn holder(self) -> u8 {
        ((self.bits() & HOLDER) >> HOLDER_SHIFT) as u8
    }

    /// Another L2 has it: `holder`, at most [`HOLDER_MAX`].
    #[inline(always)]
    pub fn set_holder(&mut self, holder: u8) {
        *self = Line::of(self.bits() & !HOLDER | u16::from(holder) << HOLDER_SHIFT);
    }

    /// It is in `way` of the LLC, and a core's content of it is newer.
    #[inline(always)]
    pub fn updated(self, way: usize) -> Line {
        Line::of(self.bits() & !(WAY | FRESH) | way as u16 | IN_LLC | DIRTY)
    }

    /// The LLC does not have it, but the L2 `holder`.
    #[inline(always)]
    pub fn given(self, holder: u8) -> Line {
        Line::of(self.bits() & TOUCHED | u16::from(holder) << HOLDER_SHIFT)
    }

    /// It is in `way` of the LLC, where an L2 left it, dirty or not; `holder` has it still.
    #[inline(always)]
    pub fn filled(self, way: usize, dirty: bool, holder: u8) -> Line {
        let dirty = if dirty { DIRTY } else { 0 };
        Line::of(self.given(holder).bits() | way as u16 | IN_LLC | dirty)
    }

    /// A device wrote it into `way` of the LLC; no L2 has it any more.
    #[inline(always)]
    pub fn written(way: usize) -> Line {
        Line::of(way as u16 | IN_LLC | DIRTY | FRESH | TOUCHED)
    }

    /// A device wrote it past the caches, of which none has it any more.
    #[inline(always)]
    pub fn written_to_memory() -> Line {
        Line::of(TOUCHED)
    }

    /// Somebody reads it where it is; returns whether nobody had since a device wrote it.
    #[inline(always)]
    pub fn read(&mut self) -> bool {
        let fresh = self.state().fresh;
        *self = Line::of(self.bits() & !FRESH);
        fresh
    }

    /// It leaves the LLC, for another line or altogether.
    #[inline(always)]
    pub fn leave(&mut self) {
        self.0[0] = 0;
    }
}

/// A device reads a run of lines: none is fresh any more.
#[inline]
pub fn read_run(run: &mut [Line]) -> ReadRun {
    let (mut missing, mut fresh) = (0u16, 0u16);
    for line in run.iter_mut() {
        let bits = line.bits();
        missing += u16::from(bits & (IN_LLC | HOLDER) == 0);
        fresh += u16::from(bits & FRESH != 0);
        *line = Line::of(bits & !FRESH | TOUCHED);
    }
    ReadRun { missing: missing.into(), fresh: fresh.into() }
}

/// What the words of any line of a run say: whether the LLC has one, and whether an L2.
#[inline(always)]
pub fn any(run: &[Line]) -> Line {
    Line::of(run.iter().fold(0, |all, line| all | line.bits()))
}

/// So many words are one vector.
pub const AT_ONCE: usize = 8;

/// Words as one load has them.
#[inline(always)]
fn words(eight: &[Line; AT_ONCE]) -> [u16; AT_ONCE] {
    bytemuck::pod_read_unaligned::<[u16; AT_ONCE]>(bytemuck::bytes_of(eight)).map(u16::from_le)
}

/// Which of the first [`AT_ONCE`] lines of a run L2s have, as bits.
#[inline(always)]
pub fn held(run: &[Line]) -> u32 {
    match run.first_chunk::<AT_ONCE>() {
        Some(eight) => {
            let holders = u16x8::new(words(eight)) & u16x8::splat(HOLDER);
            !holders.simd_eq(u16x8::splat(0)).to_bitmask() & ((1 << AT_ONCE) - 1)
        }
        None => (0..).zip(run).fold(0, |held, (number, line)| held | u32::from(line.bits() & HOLDER != 0) << number),
    }
}

/// How many lines have `bit` set.
fn count(lines: &[Line], bit: u16) -> u64 {
    // Sums of as few bits as words have are many in a vector; so many words cannot overflow one.
    let chunks = lines.chunks(u16::MAX.into());
    let of = |chunk: &[Line]| -> u16 { chunk.iter().map(|line| u16::from(line.bits() & bit != 0)).sum() };
    chunks.map(|chunk| u64::from(of(chunk))).sum()
}

/// How many lines devices wrote and nobody has read since, of those that are still here.
pub fn fresh(lines: &[Line]) -> u64 {
    count(lines, FRESH)
}

/// How many lines devices touched since the last [`forget_touched`].
pub fn touched(lines: &[Line]) -> u64 {
    count(lines, TOUCHED)
}

/// The window begins: nothing is touched.
pub fn forget_touched(lines: &mut [Line]) {
    for line in lines {
        *line = Line::of(line.bits() & !TOUCHED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_state_and_holder_do_not_disturb_each_other() {
        let mut line = Line::default();
        line.set_holder(HOLDER_MAX);
        line = line.updated(10);
        assert_eq!((line.way(), line.holder()), (Some(10), HOLDER_MAX));
        assert!(line.state().dirty && !line.state().fresh);
        line.leave();
        assert_eq!((line.way(), line.holder()), (None, HOLDER_MAX));
        line = line.filled(10, false, 1);
        assert_eq!((line.way(), line.holder()), (Some(10), 1));
        assert!(!line.state().dirty);
    }

    #[test]
    fn touched_lines_count_once() {
        let mut lines = vec![Line::default(); 100];
        read_run(&mut lines[10..34]);
        read_run(&mut lines[30..40]);
        lines[35] = Line::written(0);
        assert_eq!(touched(&lines), 30);
        forget_touched(&mut lines);
        assert_eq!(touched(&lines), 0);
    }

    #[test]
    fn lines_that_l2s_have_are_told_wherever_the_run_ends() {
        for count in 0..=AT_ONCE + 2 {
            let mut lines = vec![Line::written(15); count];
            let mut expected = 0;
            for number in [1, 6, 7, 9] {
                if let Some(line) = lines.get_mut(number) {
                    line.set_holder(1 + 63 * u8::from(number > 1));
                    expected |= 1 << number & ((1 << AT_ONCE) - 1);
                }
            }
            assert_eq!(held(&lines), expected, "{count} lines");
        }
    }

    #[test]
    fn a_read_run_ends_freshness_but_not_dirtiness() {
        let mut lines = [Line::default(); 4];
        lines[1] = Line::written(3);
        lines[2].set_holder(1);
        let run = read_run(&mut lines);
        assert_eq!((run.missing, run.fresh), (2, 1));
        assert_eq!(read_run(&mut lines).fresh, 0);
        assert!(lines[1].state().dirty);
        assert!(any(&lines).holder() != 0 && any(&lines[..2]).holder() == 0);
    }
}
