//! Which L2s have a line beside the one that asks. The directory knows one of them; of lines that several
//! may have it keeps a bit for each, which saves the simulation from looking into all L2s. No result
//! depends on these bits.

use super::{Hierarchy, MANY, NONE};

/// L2s that have bits of their own: those that are as many apart share one.
const TOLD_APART: usize = u16::BITS as usize;

/// The bit of an L2.
#[inline(always)]
pub(super) fn sharer(l2: usize) -> u16 {
    1 << (l2 % TOLD_APART)
}

/// Visits those of `count` L2s that `sharers` stands for, but `core`'s.
#[inline(always)]
fn each_other(mut sharers: u16, count: usize, core: usize, mut visit: impl FnMut(usize)) {
    while sharers != 0 {
        let first = sharers.trailing_zeros() as usize;
        sharers &= sharers - 1;
        // Nearly always there is one. A range with steps takes longer to set up.
        let mut number = first;
        while number < count {
            if number != core {
                visit(number);
            }
            number += TOLD_APART;
        }
    }
}

impl Hierarchy {
    /// Whether an L2 other than `core`'s has the line, which it shares from now on. A snoop filter knows which;
    /// this directory knows one of them and looks for more.
    pub(super) fn share_with(&mut self, core: usize, line: u64) -> bool {
        match self.holder(line) {
            NONE => false,
            MANY => {
                let (sharers, count) = (self.sharers[line as usize], self.l2.count());
                let mut found = false;
                each_other(sharers, count, core, |number| {
                    found |= self.l2.of(number).share(line);
                });
                found
            }
            holder => self.l2.of(usize::from(holder) - 1).share(line),
        }
    }

    /// Removes the line from every L2 but `core`'s own; says whether it was dirty there.
    pub(super) fn take_from_other_l2s(&mut self, core: usize, line: u64) -> Option<bool> {
        match self.holder(line) {
            NONE => None,
            MANY => {
                let (sharers, count) = (self.sharers[line as usize], self.l2.count());
                let mut found = None;
                each_other(sharers, count, core, |number| {
                    if let Some(dirty) = self.l2.of(number).remove(line) {
                        found = Some(dirty || found.unwrap_or(false));
                    }
                });
                found
            }
            holder if usize::from(holder) == core + 1 => None,
            holder => self.l2.of(usize::from(holder) - 1).remove(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(l2s: &[usize], count: usize, core: usize) -> Vec<usize> {
        let bits = l2s.iter().fold(0, |bits, &l2| bits | sharer(l2));
        let mut visited = Vec::new();
        each_other(bits, count, core, |number| visited.push(number));
        visited.sort_unstable();
        visited
    }

    #[test]
    fn all_that_share_are_visited_but_who_asks() {
        assert_eq!(visited(&[3, 7, 15], 16, 7), [3, 15]);
        assert_eq!(visited(&[3], 16, 3), [0usize; 0]);
        // Those that are sixteen apart are looked into as well.
        assert_eq!(visited(&[1, 18], 33, 2), [1, 17, 18]);
        assert_eq!(visited(&[0, 32], 33, 16), [0, 32]);
    }
}
