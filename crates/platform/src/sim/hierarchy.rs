//! All caches and memory together, as the agents see them.
//!
//! ```text
//!   core 0 ── L2 ─┐                      ┌─ NIC 0
//!   core 1 ── L2 ─┼── LLC (+ I/O ways) ──┼─ NIC 1
//!                 │        │             │
//!                          DRAM
//! ```
//!
//! The LLC is a non-inclusive victim cache: a line moves from it to the L2 that asks, and
//! comes back when the L2 evicts it. Device writes update a line where it is in the LLC or
//! allocate into the I/O ways (DDIO); device reads never allocate. A directory says which L2
//! has a line, so that nobody searches sixteen of them.

use nicforge_units::Time;

use super::Hardware;
use super::cache::{Cache, LineState, WayMask};
use super::counters::{MemoryCounters, Touched};
use super::dram::Dram;

/// No L2 has the line.
const NONE: u8 = 0;
/// More than one L2 may have it.
const MANY: u8 = u8::MAX;

/// Where a core's access was served, and how long that took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Load-to-use latency.
    pub latency: Time,
    /// The core's own L2 did not have it.
    pub l2_miss: bool,
}

/// Caches and memory of one machine.
pub struct Hierarchy {
    llc: Cache,
    l2: Vec<Cache>,
    /// Per line: `NONE`, the one L2 that has it (number + 1), or `MANY`.
    directory: Vec<u8>,
    dram: Dram,
    l2_hit: Time,
    llc_hit: Time,
    l2_ways: WayMask,
    core_ways: WayMask,
    io_ways: WayMask,
    /// What happened so far.
    pub counters: MemoryCounters,
    /// What devices touched since the window began.
    pub touched: Touched,
}

impl Hierarchy {
    /// The caches of `hardware`, cold, over `bytes` of address space.
    pub fn new(hardware: &Hardware, bytes: u64) -> Hierarchy {
        let lines = bytes.div_ceil(nicforge_units::CACHE_LINE_BYTES);
        let llc = Cache::new(&hardware.llc, true);
        let l2: Vec<Cache> = (0..hardware.cores)
            .map(|_| Cache::new(&hardware.l2, false))
            .collect();
        let lines_max = l2.iter().chain([&llc]).map(Cache::lines_max).min();
        assert!(
            hardware.cores < usize::from(MANY) && lines_max >= Some(lines),
            "the model tells {lines_max:?} lines apart; this run needs {lines}"
        );
        Hierarchy {
            llc,
            l2,
            directory: vec![NONE; lines as usize],
            dram: Dram::new(&hardware.dram),
            l2_hit: hardware.l2.hit,
            llc_hit: hardware.llc.hit,
            l2_ways: WayMask::all(hardware.l2.ways),
            core_ways: WayMask::all(hardware.llc.ways),
            io_ways: WayMask::highest(hardware.io_ways, hardware.llc.ways),
            counters: MemoryCounters::default(),
            touched: Touched::new(lines),
        }
    }

    /// A core reads or writes one line. `app` says whom to count the LLC look-up for.
    #[inline]
    pub fn core_access(
        &mut self,
        core: usize,
        line: u64,
        write: bool,
        app: bool,
        now: Time,
    ) -> Served {
        let l2 = &mut self.l2[core];
        let hit = if write {
            l2.hit_write(line)
        } else {
            l2.hit(line)
        };
        if hit.is_some() {
            if write && self.directory[line as usize] == MANY {
                self.take_from_other_l2s(core, line);
                self.directory[line as usize] = core as u8 + 1;
            }
            return Served {
                latency: self.l2_hit,
                l2_miss: false,
            };
        }
        let latency = self.fetch_into_l2(core, line, write, app, now);
        Served {
            latency,
            l2_miss: true,
        }
    }

    /// Brings a line into an L2 that lacks it; returns the latency.
    fn fetch_into_l2(&mut self, core: usize, line: u64, write: bool, app: bool, now: Time) -> Time {
        let holder = self.directory[line as usize];
        let mut owner = core as u8 + 1;
        let mut dirty = write;
        let mut latency = self.llc_hit;
        let mut found = false;
        if holder != NONE {
            if write {
                let state = self.take_from_other_l2s(core, line);
                found = state.is_some();
                dirty |= state.is_some_and(|state| state.dirty);
            } else if holder == MANY || self.l2[usize::from(holder) - 1].holds(line) {
                owner = MANY;
                found = holder != MANY;
            }
            // A line in another L2 costs a look-up and a snoop.
            latency = if found {
                latency + self.llc_hit
            } else {
                latency
            };
        }
        if !found {
            match self.llc.remove(line) {
                Some(state) => {
                    found = true;
                    dirty |= state.dirty;
                    self.counters.fresh_read += u64::from(state.fresh);
                }
                None => latency += self.dram.read(now, 1),
            }
        }
        self.counters.core_look_up(app, found);
        self.directory[line as usize] = owner;
        let state = LineState {
            dirty,
            fresh: false,
        };
        if let Some(evicted) = self.l2[core].fill(line, self.l2_ways, state) {
            self.victim_to_llc(core, evicted.line, evicted.state.dirty, now);
        }
        latency
    }

    /// Removes the line from every L2 but `core`'s own; returns the state it had there.
    fn take_from_other_l2s(&mut self, core: usize, line: u64) -> Option<LineState> {
        match self.directory[line as usize] {
            NONE => None,
            MANY => {
                let mut found: Option<LineState> = None;
                for (number, l2) in self.l2.iter_mut().enumerate() {
                    if number != core
                        && let Some(state) = l2.remove(line)
                    {
                        let dirty = state.dirty || found.is_some_and(|found| found.dirty);
                        found = Some(LineState { dirty, ..state });
                    }
                }
                found
            }
            holder if usize::from(holder) == core + 1 => None,
            holder => self.l2[usize::from(holder) - 1].remove(line),
        }
    }

    #[inline]
    fn victim_to_llc(&mut self, core: usize, line: u64, dirty: bool, now: Time) {
        let holder = &mut self.directory[line as usize];
        if *holder == core as u8 + 1 {
            *holder = NONE;
        } else if *holder == MANY && self.llc.holds(line) {
            if dirty {
                self.llc.hit_write(line);
            }
            return;
        }
        let state = LineState {
            dirty,
            fresh: false,
        };
        self.fill_llc(line, self.core_ways, state, now);
    }

    /// Fills the LLC; what has to leave is written to memory. Returns how long memory makes
    /// a device wait with that.
    #[inline(always)]
    fn fill_llc(&mut self, line: u64, ways: WayMask, state: LineState, now: Time) -> Time {
        match self.llc.fill(line, ways, state) {
            Some(evicted) => {
                self.counters.fresh_lost += u64::from(evicted.state.fresh);
                if evicted.state.dirty {
                    self.counters.llc_write_backs += 1;
                    self.dram.write(now, 1)
                } else {
                    Time::ZERO
                }
            }
            None => Time::ZERO,
        }
    }

    /// A device writes `count` lines from `first` on; returns how long memory makes it wait.
    #[inline]
    pub fn device_write(&mut self, first: u64, count: u64, now: Time) -> Time {
        self.touched.mark(first, count);
        self.counters.device_write_lines += count;
        let holders = &self.directory[first as usize..(first + count) as usize];
        if holders.iter().any(|&holder| holder != NONE) {
            self.invalidate_l2_copies(first, count);
        }
        if self.io_ways.is_empty() {
            return self.write_around(first, count, now);
        }
        let run = self.llc.write_run(first, count, self.io_ways);
        self.counters.device_write_hits += count - run.allocated;
        self.counters.fresh_lost += run.fresh_lost;
        self.counters.llc_write_backs += run.written_back;
        self.dram.write(now, run.written_back)
    }

    fn invalidate_l2_copies(&mut self, first: u64, count: u64) {
        for line in first..first + count {
            if self.directory[line as usize] != NONE {
                self.take_from_other_l2s(usize::MAX - 1, line);
                self.directory[line as usize] = NONE;
            }
        }
    }

    /// A device's write when it may not allocate: to memory, and out of the LLC.
    fn write_around(&mut self, first: u64, count: u64, now: Time) -> Time {
        for line in first..first + count {
            self.llc.remove(line);
        }
        self.counters.fresh_lost += count;
        self.dram.write(now, count)
    }

    /// A device reads `count` lines from `first` on; returns the longest latency of them.
    #[inline]
    pub fn device_read(&mut self, first: u64, count: u64, now: Time) -> Time {
        /// Lines that one run's bits hold.
        const RUN: u64 = 64;
        self.touched.mark(first, count);
        self.counters.device_read_lines += count;
        let mut from_memory = 0;
        for start in (first..first + count).step_by(RUN as usize) {
            let run = self.llc.read_run(start, RUN.min(first + count - start));
            self.counters.fresh_read += run.fresh;
            let mut missing = run.missing;
            while missing != 0 {
                let line = start + u64::from(missing.trailing_zeros());
                missing &= missing - 1;
                from_memory += u64::from(self.directory[line as usize] == NONE);
            }
        }
        self.counters.device_read_hits += count - from_memory;
        match from_memory {
            0 => self.llc_hit,
            lines => self.llc_hit + self.dram.read(now, lines),
        }
    }

    /// Lines of address space.
    pub fn lines(&self) -> u64 {
        self.directory.len() as u64
    }

    /// Lines that went to or came from memory.
    pub fn dram_lines(&self) -> u64 {
        self.dram.lines()
    }
}

#[cfg(test)]
mod tests;
