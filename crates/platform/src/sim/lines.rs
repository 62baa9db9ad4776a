//! What the chip knows of each line of memory, one word a line: where in the LLC it is, in what
//! state, and which L2 has it.
//!
//! ```text
//!   bit     15      14 … 7       6       5       4        3 … 0
//!        touched   L2 holder   fresh   dirty   in LLC   LLC way
//! ```
//!
//! The holder is no byte of its own, so that the word is stored as a whole: what is stored in part and loaded
//! as a whole soon after waits for all stores before it.
//!
//! A device moves runs of lines, so what it asks lies in one or two lines of the machine that
//! simulates, however many sets the run covers.

/// Mask of the LLC way.
const WAY: u16 = 0xf;
/// The LLC has the line.
const IN_LLC: u16 = 1 << 4;
/// Memory does not have its content yet.
const DIRTY: u16 = 1 << 5;
/// A device wrote it and nobody has read it since.
const FRESH: u16 = 1 << 6;
/// A device touched it since the window began.
const TOUCHED: u16 = 1 << 15;
const HOLDER_SHIFT: u32 = 7;
/// Which L2 has it.
const HOLDER: u16 = 0xff << HOLDER_SHIFT;

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

/// One line's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line(u16);

impl Line {
    /// The LLC way that has it.
    #[inline(always)]
    pub fn way(self) -> Option<usize> {
        (self.0 & IN_LLC != 0).then_some(usize::from(self.0 & WAY))
    }

    /// Its state in the LLC.
    #[inline(always)]
    pub fn state(self) -> LineState {
        LineState {
            dirty: self.0 & DIRTY != 0,
            fresh: self.0 & FRESH != 0,
        }
    }

    /// Which L2 has it, as whoever set it means it.
    #[inline(always)]
    pub fn holder(self) -> u8 {
        ((self.0 & HOLDER) >> HOLDER_SHIFT) as u8
    }

    /// Another L2 has it.
    #[inline(always)]
    pub fn set_holder(&mut self, holder: u8) {
        self.0 = self.0 & !HOLDER | u16::from(holder) << HOLDER_SHIFT;
    }

    /// It goes into `way` of the LLC.
    #[inline(always)]
    pub fn enter(&mut self, way: usize, state: LineState) {
        self.0 = self.0 & !(WAY | DIRTY | FRESH)
            | way as u16
            | IN_LLC
            | if state.dirty { DIRTY } else { 0 }
            | if state.fresh { FRESH } else { 0 };
    }

    /// It leaves the LLC for the L2 `holder`.
    #[inline(always)]
    pub fn given(self, holder: u8) -> Line {
        Line(self.0 & TOUCHED | u16::from(holder) << HOLDER_SHIFT)
    }

    /// It goes into `way` of the LLC from an L2, dirty or not; `holder` has it still.
    #[inline(always)]
    pub fn filled(self, way: usize, dirty: bool, holder: u8) -> Line {
        let dirty = if dirty { DIRTY } else { 0 };
        Line(self.given(holder).0 | way as u16 | IN_LLC | dirty)
    }

    /// A device writes it into `way` of the LLC.
    #[inline(always)]
    pub fn written(&mut self, way: usize) {
        self.0 = self.0 & !WAY | way as u16 | IN_LLC | DIRTY | FRESH | TOUCHED;
    }

    /// Somebody reads it where it is; returns whether nobody had since a device wrote it.
    #[inline(always)]
    pub fn read(&mut self) -> bool {
        let fresh = self.0 & FRESH != 0;
        self.0 &= !FRESH;
        fresh
    }

    /// It leaves the LLC.
    #[inline(always)]
    pub fn leave(&mut self) {
        self.0 &= !(WAY | IN_LLC | DIRTY | FRESH);
    }

    /// A device touches it.
    #[inline(always)]
    pub fn touch(&mut self) {
        self.0 |= TOUCHED;
    }
}

/// A device reads a run of lines: none is fresh any more.
#[inline]
pub fn read_run(run: &mut [Line]) -> ReadRun {
    let (mut missing, mut fresh) = (0u16, 0u16);
    for line in run.iter_mut() {
        missing += u16::from(line.0 & (IN_LLC | HOLDER) == 0);
        fresh += u16::from(line.0 & FRESH != 0);
        line.0 = line.0 & !FRESH | TOUCHED;
    }
    ReadRun {
        missing: missing.into(),
        fresh: fresh.into(),
    }
}

/// Whether an L2 has any line of a run.
#[inline]
pub fn any_held(run: &[Line]) -> bool {
    run.iter().fold(0, |all, line| all | line.0) & HOLDER != 0
}

/// Which lines of a run, at most 64, an L2 has: bit i says so of line i.
#[inline]
pub fn held(run: &[Line]) -> u64 {
    let lines = run.iter().rev();
    lines.fold(0, |held, line| held << 1 | u64::from(line.0 & HOLDER != 0))
}

/// Whether the LLC has any line of a run.
#[inline]
pub fn any_in_llc(run: &[Line]) -> bool {
    run.iter().fold(0, |all, line| all | line.0) & IN_LLC != 0
}

/// How many lines devices touched since the last [`forget_touched`].
pub fn touched(lines: &[Line]) -> u64 {
    let touched = lines.iter().filter(|line| line.0 & TOUCHED != 0);
    touched.count() as u64
}

/// The window begins: nothing is touched.
pub fn forget_touched(lines: &mut [Line]) {
    for line in lines {
        line.0 &= !TOUCHED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_state_and_holder_do_not_disturb_each_other() {
        let mut line = Line::default();
        line.set_holder(200);
        line.enter(
            10,
            LineState {
                dirty: true,
                fresh: false,
            },
        );
        line.touch();
        assert_eq!((line.way(), line.holder()), (Some(10), 200));
        assert!(line.state().dirty && !line.state().fresh);
        line.set_holder(0);
        line.leave();
        assert_eq!((line.way(), line.holder()), (None, 0));
        assert_eq!(touched(&[line]), 1);
    }

    #[test]
    fn touched_lines_count_once() {
        let mut lines = vec![Line::default(); 100];
        read_run(&mut lines[10..34]);
        read_run(&mut lines[30..40]);
        lines[35].written(0);
        assert_eq!(touched(&lines), 30);
        forget_touched(&mut lines);
        assert_eq!(touched(&lines), 0);
    }

    #[test]
    fn a_read_run_ends_freshness_but_not_dirtiness() {
        let mut lines = [Line::default(); 4];
        lines[1].written(3);
        lines[2].set_holder(1);
        let run = read_run(&mut lines);
        assert_eq!((run.missing, run.fresh), (2, 1));
        assert_eq!(read_run(&mut lines).fresh, 0);
        assert!(lines[1].state().dirty);
        assert!(any_held(&lines) && !any_held(&lines[..2]));
        assert_eq!(held(&lines), 0b100);
    }
}
