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

use nicforge_units::{Lines, Time};

use super::Hardware;
use super::ahead::{expect, use_large_pages};
use super::cache::PrivateCaches;
use super::counters::MemoryCounters;
use super::dram::Dram;
use super::lines;
use super::llc::Llc;
use shared::{Fetched, Leaving, SharedLevels};
use sharers::sharer;

pub use run::CoreRun;

/// No L2 has the line.
const NONE: u8 = 0;
/// More than one L2 may have it.
const MANY: u8 = lines::HOLDER_MAX;

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
    shared: SharedLevels,
    l2: PrivateCaches,
    /// Of lines that `MANY` hold: the L2s that may have each, as bits (sharers.rs). It saves
    /// the simulation from looking into all of them; no result depends on it.
    sharers: Vec<u16>,
    l2_hit: Time,
    /// Whether L2s bring the other line of 128 bytes along. Only what is prefetched depends on it here.
    pair_line: bool,
    io_ways: usize,
    /// Of each device write so many lines may go to the LLC; the others go to memory.
    lines_to_cache: u64,
    /// Every access is served at once, so nothing is kept.
    perfect: bool,
}

impl Hierarchy {
    /// The caches of `hardware`, cold, over `bytes` of address space.
    pub fn new(hardware: &Hardware, bytes: u64) -> Hierarchy {
        let lines = bytes.div_ceil(nicforge_units::CACHE_LINE_BYTES);
        let most = Hierarchy::bytes_max(hardware);
        assert!(
            hardware.cores <= Hierarchy::CORES_MAX && bytes <= most,
            "the model tells {most} bytes and {} cores apart; this run needs {bytes} and {}",
            Hierarchy::CORES_MAX,
            hardware.cores
        );
        let sharers = vec![0; lines as usize];
        use_large_pages(&sharers);
        Hierarchy {
            shared: SharedLevels {
                llc: Llc::new(&hardware.llc, hardware.io_ways, hardware.llc_one_young_in, lines),
                dram: Dram::new(&hardware.dram),
                llc_hit: hardware.llc.hit,
                other_l2: hardware.other_l2,
                counters: MemoryCounters::default(),
                on_its_way: false,
                leaving: Leaving::default(),
            },
            l2: PrivateCaches::new(hardware.cores, &hardware.l2),
            sharers,
            l2_hit: hardware.l2.hit,
            pair_line: hardware.core.l2_pair_line,
            io_ways: hardware.io_ways,
            lines_to_cache: u64::MAX,
            perfect: false,
        }
    }

    /// How many cores' L2s it can tell apart.
    pub const CORES_MAX: usize = MANY as usize - 1;

    /// How many bytes of address space the caches of `hardware` can tell apart.
    pub fn bytes_max(hardware: &Hardware) -> u64 {
        let lines = PrivateCaches::lines_max(&hardware.l2).min(Llc::LINES_MAX);
        lines * nicforge_units::CACHE_LINE_BYTES
    }

    /// Of each device write only the first `lines` lines go to the LLC from now on, and the others
    /// to memory: a header that is wanted soon, and payload that is not (integrated_nic,
    /// section 5.1).
    pub fn split_device_writes(&mut self, lines: u64) {
        self.lines_to_cache = lines;
    }

    /// Every access takes no time from now on, and none is counted: the memory of a system that only
    /// loads another one (integrated_nic, section 4.2).
    pub fn be_perfect(&mut self) {
        self.perfect = true;
    }

    /// Whether no access takes time.
    #[inline(always)]
    pub fn is_perfect(&self) -> bool {
        self.perfect
    }

    /// A core reads or writes one line. `app` says whom to count the LLC look-up for.
    #[inline]
    pub fn core_access(&mut self, core: usize, line: u64, write: bool, app: bool, now: Time) -> Served {
        if self.perfect {
            return Served { latency: Time::ZERO, l2_miss: false };
        }
        if let Some(latency) = self.hits_own_l2(core, line, write) {
            return Served { latency, l2_miss: false };
        }
        let latency = self.fetch_into_l2(core, line, write, app, now);
        Served { latency, l2_miss: true }
    }

    /// Where `core`'s own L2 has the line, the access is done, and this is its latency. Else it is to be fetched.
    #[inline(always)]
    pub fn hits_own_l2(&mut self, core: usize, line: u64, write: bool) -> Option<Time> {
        let shared = self.l2.of(core).hit(line, write)?;
        if write && shared.0 && self.holder(line) == MANY {
            return Some(self.make_own(core, line));
        }
        Some(self.l2_hit)
    }

    /// `core` writes a line that its L2 has and others may have too; returns the latency.
    fn make_own(&mut self, core: usize, line: u64) -> Time {
        let elsewhere = self.take_from_other_l2s(core, line);
        self.set_holder(line, core as u8 + 1);
        if elsewhere.is_some() { self.shared.other_l2 } else { self.l2_hit }
    }

    /// Load-to-use latency of an L2.
    #[inline(always)]
    pub fn l2_hit_latency(&self) -> Time {
        self.l2_hit
    }

    #[inline(always)]
    fn holder(&self, line: u64) -> u8 {
        self.shared.llc.lines[line as usize].holder()
    }

    #[inline(always)]
    fn set_holder(&mut self, line: u64, holder: u8) {
        self.shared.llc.lines[line as usize].set_holder(holder);
    }

    /// Nobody will ask for anything before `now`: what memory carried until then is its load.
    #[inline]
    pub fn no_more_before(&mut self, now: Time) {
        if self.shared.dram.slots_end(now) {
            self.shared.arrive();
            self.shared.dram.no_more_before(now);
        }
    }

    /// A core of another socket reads or writes one line that its own caches do not have. It comes
    /// from a cache of this socket or from memory. What is written leaves the caches here, and comes
    /// back to memory some time.
    pub fn remote_access(&mut self, line: u64, write: bool, now: Time) -> Time {
        self.shared.arrive();
        let word = self.shared.llc.lines[line as usize];
        let (in_llc, held) = (word.way().is_some(), word.holder() != NONE);
        self.shared.counters.fresh_read += u64::from(self.shared.llc.read(line));
        let latency = if in_llc || held { self.shared.llc_hit } else { self.shared.dram.read(now, 1) };
        if write {
            if held {
                self.invalidate_l2_copy(line);
            }
            if in_llc {
                self.shared.llc.remove(line);
            }
            self.shared.dram.write(now, 1);
        }
        latency
    }

    /// A core writes one whole line to memory, and no cache has it afterwards; returns how long memory makes it wait.
    pub fn core_write_past(&mut self, line: u64, now: Time) -> Time {
        if self.perfect {
            return Time::ZERO;
        }
        self.shared.arrive();
        self.invalidate_l2_copy(line);
        self.shared.llc.remove(line);
        self.shared.dram.write(now, 1)
    }

    /// A core will access `line` soon.
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        expect(&self.shared.llc.lines, line as usize);
    }

    /// The same, and it is looked for in its L2.
    #[inline(always)]
    pub fn expect_in_l2(&self, core: usize, line: u64) {
        self.expect(line);
        self.l2.expect(core, line);
        if self.pair_line {
            self.l2.expect(core, line ^ 1);
        }
    }

    /// The same for a few lines, counted from `line`, that lie so near to each other that one look at what
    /// is known of them brings all of it.
    #[inline(always)]
    pub fn expect_few_in_l2(&self, core: usize, line: u64, few: [u64; 4]) {
        self.expect(line);
        self.l2.expect_few(core, line, few, self.pair_line);
    }

    /// The same, which was [expected](Self::expect_in_l2) before: what makes room for it is prefetched, and
    /// where else it is.
    #[inline(always)]
    pub fn expect_fetch(&self, core: usize, line: u64) {
        let Some(word) = self.shared.llc.lines.get(line as usize) else {
            return;
        };
        let holder = usize::from(word.holder());
        if holder == core + 1 {
            return;
        }
        if holder.wrapping_sub(1) < self.l2.count() {
            self.l2.expect(holder - 1, line);
        }
        if let Some(way) = word.way() {
            self.shared.llc.expect_way(line, way);
        }
        if holder != usize::from(NONE) {
            // Two may have it once it is fetched.
            expect(&self.sharers, line as usize);
        }
        self.expect_victim(core, line);
        let pair = line ^ 1;
        if self.pair_line && self.shared.llc.lines.get(pair as usize).is_some_and(|word| word.holder() == NONE) {
            self.expect_victim(core, pair);
        }
    }

    #[inline(always)]
    fn expect_victim(&self, core: usize, line: u64) {
        if let Some(victim) = self.l2.next_out(core, line) {
            self.shared.llc.expect(victim);
        }
    }

    /// Somebody will write `line` soon, which another L2 may have.
    #[inline(always)]
    pub fn expect_remote_write(&self, line: u64) {
        let holder = self.shared.llc.lines.get(line as usize);
        let holder = holder.map_or(0, |word| usize::from(word.holder()));
        if holder.wrapping_sub(1) < self.l2.count() {
            self.l2.expect(holder - 1, line);
        }
    }

    /// Brings a line into an L2 that lacks it; returns the latency.
    #[inline(always)]
    pub fn fetch_into_l2(&mut self, core: usize, line: u64, write: bool, app: bool, now: Time) -> Time {
        self.shared.arrive();
        let fetched = match self.holder(line) {
            NONE => self.shared.fetch(line, core as u8 + 1, now),
            _ => self.fetch_held(core, line, write, now),
        };
        let counters = &mut self.shared.counters;
        counters.core_look_ups(app, 1, u64::from(fetched.on_chip));
        let evicted = self.l2.of(core).fill(line, fetched.dirty | write, fetched.shared);
        if let Some(evicted) = evicted {
            self.shared.victim(core, evicted, now);
        }
        fetched.latency
    }

    /// The same for a line that other L2s may have, up to where it goes into the own one.
    #[inline(never)]
    fn fetch_held(&mut self, core: usize, line: u64, write: bool, now: Time) -> Fetched {
        let word = self.shared.llc.lines[line as usize];
        let (holder, own) = (word.holder(), core as u8 + 1);
        // What the LLC has beside several L2s needs no snoop.
        let beside = word.way().is_some() && holder == MANY;
        let (elsewhere, owner) = if write {
            (self.take_from_other_l2s(core, line), own)
        } else {
            let found = !beside && self.share_with(core, line);
            let owner = if found || beside { MANY } else { own };
            (found.then_some(false), owner)
        };
        if owner == MANY {
            let before = match holder {
                MANY => self.sharers[line as usize],
                one => sharer(usize::from(one) - 1),
            };
            self.sharers[line as usize] = before | sharer(core);
        }
        let Some(dirty) = elsewhere else {
            return self.shared.fetch(line, owner, now);
        };
        self.set_holder(line, owner);
        Fetched {
            latency: self.shared.other_l2,
            dirty,
            on_chip: true,
            // What one writes stays in the LLC beside it.
            shared: owner == MANY || word.way().is_some(),
        }
    }

    /// Brings the other line of `line`'s 128 bytes into the L2 of `core`, unless an L2 has it. Nobody waits for it, and
    /// it is no look-up of the core.
    #[inline(always)]
    pub fn fetch_pair_of(&mut self, core: usize, line: u64, now: Time) {
        let pair = line ^ 1;
        if pair >= self.lines() || self.holder(pair) != NONE {
            return;
        }
        self.shared.arrive();
        let fetched = self.shared.fetch(pair, core as u8 + 1, now);
        if let Some(evicted) = self.l2.of(core).fill(pair, fetched.dirty, fetched.shared) {
            self.shared.victim(core, evicted, now);
        }
    }

    /// What happened so far.
    pub fn counters(&mut self) -> MemoryCounters {
        let mut counters = self.quick_counters();
        counters.fresh_lost += self.shared.llc.fresh_lost();
        counters
    }

    /// The same without most of [`MemoryCounters::fresh_lost`], which takes a look at every line of memory.
    pub fn quick_counters(&mut self) -> MemoryCounters {
        self.shared.arrive();
        self.shared.counters.clone()
    }

    /// Lines that devices wrote and read.
    pub fn device_lines(&self) -> Lines {
        let counters = &self.shared.counters;
        Lines(counters.device_write_lines + counters.device_read_lines)
    }

    /// Lines of address space.
    pub fn lines(&self) -> u64 {
        self.shared.llc.lines.len() as u64
    }

    /// Lines that went to or came from memory.
    pub fn dram_lines(&mut self) -> u64 {
        self.shared.arrive();
        self.shared.dram.lines()
    }

    /// Lines that devices touched since the window began.
    pub fn touched_lines(&self) -> u64 {
        lines::touched(&self.shared.llc.lines)
    }

    /// The window begins.
    pub fn forget_touched(&mut self) {
        lines::forget_touched(&mut self.shared.llc.lines);
    }
}

mod device;
mod run;
mod shared;
mod sharers;
#[cfg(test)]
mod tests;
