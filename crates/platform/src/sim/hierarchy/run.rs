//! A core's accesses to lines that follow each other: what is copied, parsed or filled lies in many.

use std::ops::Range;

use nicforge_units::Time;

use super::shared::SharedLevels;
use super::{Hierarchy, MANY, NONE};
use crate::sim::cache::{Kind, OwnCache};
use crate::sim::core::Near;

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
    /// Accesses `lines`, but for those that are `near`, one behind the other, as
    /// [`core_access`](Self::core_access) does; returns how long the core waits for all of them.
    #[inline]
    pub fn core_run(&mut self, run: &CoreRun, mut lines: Range<u64>, near: &mut Near) -> Time {
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
        near: &mut Near,
        waited: &mut u64,
    ) -> Option<u64> {
        let (shared, hit) = (&mut self.shared, run.waits(self.l2_hit));
        match self.l2.of(run.core) {
            Kind::Ways(own) => alone(own, shared, run, (lines, near, hit), waited),
            Kind::TwoWays(own) => alone(own, shared, run, (lines, near, hit), waited),
        }
    }
}

/// The same over a cache of one kind. `hit` is what the core waits for a line that it has.
#[inline(always)]
fn alone<C: OwnCache>(
    own: &mut C,
    shared: &mut SharedLevels,
    run: &CoreRun,
    (lines, near, hit): (&mut Range<u64>, &mut Near, u64),
    waited: &mut u64,
) -> Option<u64> {
    let owner = run.core as u8 + 1;
    let (mut look_ups, mut found) = (0, 0);
    let shared_line = lines.find(|&line| {
        if near.has(line, run.write) {
            return false;
        }
        near.add(line, run.write);
        if own.hit(line, run.write) {
            let is_shared = run.write && shared.llc.lines[line as usize].holder() == MANY;
            *waited += if is_shared { 0 } else { hit };
            return is_shared;
        }
        if shared.llc.lines[line as usize].holder() != NONE {
            return true;
        }
        let now = run.now + Time::from_ps(*waited);
        let (memory, dirty) = shared.fetch(line, owner, now);
        look_ups += 1;
        found += u64::from(memory.is_none());
        if let Some(evicted) = own.fill(line, dirty | run.write) {
            shared.victim(run.core, evicted, now);
        }
        *waited += run.waits(shared.llc_hit + memory.unwrap_or_default());
        false
    });
    shared.counters.core_look_ups(run.app, look_ups, found);
    shared_line
}
