//! A core's accesses to lines that follow each other: what is copied, parsed or filled lies in many.

use std::ops::Range;

use nicforge_units::Time;

use super::shared::SharedLevels;
use super::{Hierarchy, MANY, NONE};
use crate::sim::cache::{Kind, OwnCache};
use crate::sim::core::BurstLines;

/// Who accesses a run of lines, and how.
#[derive(Clone, Copy, Debug)]
pub struct CoreRun {
    /// The core.
    pub core: usize,
    /// Whether it writes.
    pub write: bool,
    /// Whom LLC look-ups count for.
    pub app: bool,
    /// The share of each line's latency that the core waits for, in 2^-16.
    pub share_q16: u64,
    /// When it begins.
    pub now: Time,
}

impl CoreRun {
    #[inline(always)]
    fn waits(&self, latency: Time) -> u64 {
        (latency.as_ps() * self.share_q16) >> 16
    }
}

impl Hierarchy {
    /// Accesses `lines`, except those that are `near`, one behind the other, as
    /// [`core_access`](Self::core_access) does; returns how long the core waits for all of them.
    #[inline]
    pub fn core_run(&mut self, run: &CoreRun, mut lines: Range<u64>, near: &mut BurstLines) -> Time {
        let mut waited = 0;
        while let Some(line) = self.run_alone(run, &mut lines, near, &mut waited) {
            let now = run.now + Time::from_ps(waited);
            let served = self.core_access(run.core, line, run.write, run.app, now);
            waited += run.waits(served.latency);
        }
        Time::from_ps(waited)
    }

    /// Goes on in `lines` up to one that another core may have too, which is returned.
    #[inline(always)]
    fn run_alone(
        &mut self,
        run: &CoreRun,
        lines: &mut Range<u64>,
        near: &mut BurstLines,
        waited: &mut u64,
    ) -> Option<u64> {
        let (shared, hit) = (&mut self.shared, run.waits(self.l2_hit));
        match self.l2.of(run.core) {
            Kind::Ways(own) => alone(own, shared, run, lines, near, hit, waited),
            Kind::TwoWays(own) => alone(own, shared, run, lines, near, hit, waited),
        }
    }
}

/// The same over a cache of one kind. `hit` is what the core waits for a line that it has.
#[inline(always)]
fn alone<C: OwnCache>(
    own: &mut C,
    shared: &mut SharedLevels,
    run: &CoreRun,
    lines: &mut Range<u64>,
    near: &mut BurstLines,
    hit: u64,
    waited: &mut u64,
) -> Option<u64> {
    let owner = run.core as u8 + 1;
    let (mut look_ups, mut found) = (0, 0);
    let shared_line = lines.find(|&line| {
        if near.has(line, run.write) {
            return false;
        }
        near.add(line, run.write);
        shared.arrive();
        let holder = shared.llc.lines[line as usize].holder();
        if holder != NONE {
            // What the own cache does not have is in another's.
            let is_shared = own.hit(line, run.write).is_none() || run.write && holder == MANY;
            *waited += if is_shared { 0 } else { hit };
            return is_shared;
        }
        let now = run.now + Time::from_ps(*waited);
        let fetched = shared.fetch(line, owner, now);
        look_ups += 1;
        found += u64::from(fetched.on_chip);
        if let Some(evicted) = own.fill(line, fetched.dirty | run.write, fetched.shared) {
            shared.victim(run.core, evicted, now);
        }
        *waited += run.waits(fetched.latency);
        false
    });
    shared.counters.core_look_ups(run.app, look_ups, found);
    shared_line
}

#[cfg(test)]
mod tests {
    use nicforge_units::Lines;

    use super::*;
    use crate::sim::test_hardware;

    /// 32 lines of `l2_ways` ways for each of two cores, 64 lines for both.
    fn small(l2_ways: usize, io_ways: usize) -> Hierarchy {
        let mut hardware = test_hardware();
        hardware.l2.size = Lines(32).bytes();
        hardware.l2.ways = l2_ways;
        hardware.llc.size = Lines(64).bytes();
        hardware.llc.ways = 4;
        hardware.io_ways = io_ways;
        Hierarchy::new(&hardware, 1 << 20)
    }

    fn one_by_one(hierarchy: &mut Hierarchy, run: &CoreRun, lines: Range<u64>) -> Time {
        lines.fold(Time::ZERO, |waited, line| {
            let now = run.now + waited;
            let served = hierarchy.core_access(run.core, line, run.write, run.app, now);
            waited + Time::from_ps(run.waits(served.latency))
        })
    }

    #[test]
    fn a_run_is_what_its_lines_are_one_by_one() {
        for (l2_ways, io_ways) in [(2, 0), (2, 1), (2, 4), (4, 0), (4, 1), (4, 4)] {
            let [mut runs, mut lines] = [0; 2].map(|_| small(l2_ways, io_ways));
            let mut near = BurstLines::new();
            let mut state = 7u32;
            let mut draw = |below: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                u64::from((state >> 16) % below)
            };
            for step in 0..3000 {
                let (first, count) = (draw(200), 1 + draw(12));
                let now = Time::from_ns(50 * step);
                if draw(3) == 0 {
                    let written = runs.device_write(first, count, now);
                    assert_eq!(written, lines.device_write(first, count, now));
                    continue;
                }
                let run =
                    CoreRun { core: draw(2) as usize, write: draw(2) == 0, app: draw(2) == 0, share_q16: 1 << 14, now };
                near.begin_burst();
                let waited = runs.core_run(&run, first..first + count, &mut near);
                let expected = one_by_one(&mut lines, &run, first..first + count);
                assert_eq!(waited, expected, "{run:?}, {count} lines from {first} on");
                // A second time they are near.
                let again = runs.core_run(&run, first..first + count, &mut near);
                assert_eq!(again, Time::ZERO);
            }
            assert_eq!(runs.counters(), lines.counters());
            assert_eq!(runs.dram_lines(), lines.dram_lines());
            assert!(runs.counters().app_hits > 100 && runs.counters().fresh_lost > 100);
        }
    }
}
