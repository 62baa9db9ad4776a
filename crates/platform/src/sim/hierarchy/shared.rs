//! What all cores share: the LLC and memory behind it.

use nicforge_units::Time;

use crate::sim::cache::Evicted;
use crate::sim::counters::MemoryCounters;
use crate::sim::dram::Dram;
use crate::sim::llc::Llc;

use super::{MANY, NONE};

/// LLC and memory.
pub(super) struct SharedLevels {
    /// The LLC; the words of its lines say which L2 has each: `NONE`, the one (number + 1), or
    /// `MANY`.
    pub llc: Llc,
    pub dram: Dram,
    pub llc_hit: Time,
    pub other_l2: Time,
    pub counters: MemoryCounters,
    /// Whether what left an L2 last is not here yet.
    pub on_its_way: bool,
    pub leaving: Leaving,
}

/// What an L2 got that lacked a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetched {
    /// Load-to-use latency.
    pub latency: Time,
    /// Memory does not have its content yet.
    pub dirty: bool,
    /// It came from the LLC or another L2.
    pub on_chip: bool,
    /// Other L2s may have it, too.
    pub shared: bool,
}

/// A line that leaves an L2.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaving {
    core: usize,
    evicted: Evicted,
    at: Time,
}

impl SharedLevels {
    /// Gives a line that no other L2 has to the L2 `holder`: out of the LLC, or from memory, where it
    /// is clean.
    #[inline(always)]
    pub fn fetch(&mut self, line: u64, holder: u8, now: Time) -> Fetched {
        match self.llc.give(line, holder) {
            Some(state) => {
                self.counters.fresh_read += u64::from(state.fresh);
                Fetched { latency: self.llc_hit, dirty: state.dirty, on_chip: true, shared: holder == MANY }
            }
            // Memory is asked when the look-up has found nothing.
            None => {
                self.llc.missed(line);
                Fetched {
                    latency: self.llc_hit + self.dram.read(now, 1),
                    dirty: false,
                    on_chip: false,
                    shared: holder == MANY,
                }
            }
        }
    }

    /// A line leaves `core`'s L2. It arrives here before anything else is asked ([`arrive`](Self::arrive)),
    /// and until then the machine that simulates fetches what it needs for that.
    #[inline(always)]
    pub fn victim(&mut self, core: usize, evicted: Evicted, at: Time) {
        debug_assert!(!self.on_its_way, "one line is on its way at a time");
        self.llc.expect(evicted.line);
        self.on_its_way = true;
        self.leaving = Leaving { core, evicted, at };
    }

    /// What is on its way arrives; what has to leave the LLC for it is written to memory.
    #[inline(always)]
    pub fn arrive(&mut self) {
        if self.on_its_way {
            self.on_its_way = false;
            self.put();
        }
    }

    fn put(&mut self) {
        // By reference: it was stored field by field a moment ago.
        let Leaving { core, evicted, at } = &self.leaving;
        let (&Evicted { line, dirty, .. }, &at) = (evicted, at);
        let (word, own) = (self.llc.lines[line as usize], *core as u8 + 1);
        let mut holder = NONE;
        if evicted.shared {
            if word.holder() == MANY && word.way().is_some() {
                if dirty {
                    self.llc.update(line);
                }
                return;
            }
            self.llc.make_stale(line);
            holder = if word.holder() == own { NONE } else { word.holder() };
        } else {
            debug_assert!(word.holder() == own && word.way().is_none(), "what no other L2 may have is nowhere else");
        }
        if self.llc.fill(line, dirty, holder) {
            self.counters.llc_write_backs += 1;
            self.dram.write(at, 1);
        }
    }
}
