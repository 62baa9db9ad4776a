//! What the simulation will need for a core's next accesses, prefetched ahead of them. Nothing of the model
//! changes.

use nicforge_units::CACHE_LINE_BYTES;

use super::SimCpu;
use crate::{Addr, Completions};

/// Where an entry of a line says that it is there.
const LAST_WORD: u64 = CACHE_LINE_BYTES - 8;

impl SimCpu {
    /// Three steps, each of which needs what the one before prefetched: an entry, what the caches know of the
    /// lines that it leads to, and what these drive out.
    #[inline(always)]
    pub(super) fn expect_named(&self, completions: &Completions) {
        let Completions { at: [next, second, third], bit, names: word, lines } = *completions;
        let (memory, number) = (&self.host.memory, self.core.number);
        memory.expect_publish(third);
        self.host.hierarchy.expect_in_l2(number, third.line());
        let all = self.host.hierarchy.lines();
        let named = |at: Addr, bit: u64| {
            let there = memory.word(at + LAST_WORD) & 1 == bit;
            let named = if there { memory.word(at + word * 8) } else { 0 };
            // Many entries name nothing, and some what software made up.
            let line = Addr(named).line();
            (1..all).contains(&line).then_some(line)
        };
        if let Some(later) = named(second, bit[1]) {
            memory.expect_frame(later);
            for behind in lines {
                memory.expect(later.wrapping_add(behind));
            }
            self.host.hierarchy.expect_few_in_l2(number, later, lines);
        }
        if let Some(soon) = named(next, bit[0]) {
            for behind in lines {
                let line = soon.wrapping_add(behind);
                self.host.hierarchy.expect_fetch(number, line);
            }
        }
    }
}
