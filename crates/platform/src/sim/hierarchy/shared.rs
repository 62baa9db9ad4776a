//! What all cores share: the LLC and memory behind it.

use nicforge_units::Time;

use crate::sim::cache::Evicted;
use crate::sim::counters::MemoryCounters;
use crate::sim::dram::Dram;
use crate::sim::llc::{Llc, Room};

use super::{MANY, NONE};

/// LLC and memory.
pub(super) struct SharedLevels {
    /// The LLC; the words of its lines say which L2 has each: `NONE`, the one (number + 1), or
    /// `MANY`.
    pub llc: Llc,
    pub dram: Dram,
    pub llc_hit: Time,
    pub counters: MemoryCounters,
    /// What left an L2 last, and is not here yet.
    pub on_its_way: Option<Leaving>,
}

/// A line that leaves an L2.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    core: usize,
    evicted: Evicted,
    /// Where it will go.
    room: Room,
    at: Time,
}

impl SharedLevels {
    /// Gives a line that no other L2 has to the L2 `holder`: out of the LLC, or from memory, where it
    /// is clean. Returns the latency of memory, if it was there, and whether the line is dirty.
    #[inline(always)]
    pub fn fetch(&mut self, line: u64, holder: u8, now: Time) -> (Option<Time>, bool) {
        match self.llc.give(line, holder) {
            Some(state) => {
                self.counters.fresh_read += u64::from(state.fresh);
                (None, state.dirty)
            }
            None => (Some(self.dram.read(now, 1)), false),
        }
    }

    /// A line leaves `core`'s L2. It arrives here before anything else is asked ([`arrive`](Self::arrive)),
    /// and until then the machine that simulates fetches what it needs for that.
    #[inline(always)]
    pub fn victim(&mut self, core: usize, evicted: Evicted, at: Time) {
        debug_assert!(
            self.on_its_way.is_none(),
            "one line is on its way at a time"
        );
        let room = self.llc.room(evicted.line);
        self.on_its_way = Some(Leaving {
            core,
            evicted,
            room,
            at,
        });
    }

    /// What is on its way arrives; what has to leave the LLC for it is written to memory.
    #[inline(always)]
    pub fn arrive(&mut self) {
        if let Some(leaving) = self.on_its_way.take() {
            self.put(leaving);
        }
    }

    fn put(&mut self, leaving: Leaving) {
        let Leaving {
            core,
            evicted,
            room,
            at,
        } = leaving;
        let Evicted { line, dirty } = evicted;
        let word = self.llc.lines[line as usize];
        let holder = match word.holder() {
            holder if holder == core as u8 + 1 => NONE,
            MANY if word.way().is_some() => {
                if dirty {
                    self.llc.update(line);
                }
                return;
            }
            holder => holder,
        };
        if let Some(evicted) = self.llc.fill(line, room, dirty, holder) {
            self.counters.fresh_lost += u64::from(evicted.fresh);
            if evicted.dirty {
                self.counters.llc_write_backs += 1;
                self.dram.write(at, 1);
            }
        }
    }
}
