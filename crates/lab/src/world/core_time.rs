//! Where the time of cores went, by part.

use nicforge_platform::Part;
use nicforge_platform::sim::{CoreCycles, SimCore};
use nicforge_units::{Frequency, Time};

use nicforge_record::CyclesPerPacket;

/// Where `core`'s time went until `now`. One that sleeps is charged its empty polls when it wakes, which
/// may be much later; until then they count here.
pub fn spent_until(core: &SimCore, now: Time) -> CoreCycles {
    let mut spent = core.spent().clone();
    spent.idle_ps += now.saturating_sub(core.now()).as_ps();
    spent
}

/// The time of some cores in the window, in cycles.
pub struct Cores {
    work: [f64; Part::ALL.len()],
    stall: [f64; Part::ALL.len()],
    idle_seconds: f64,
    cores: usize,
}

impl Cores {
    /// From the first to the second of what each of them had `spent`.
    pub fn between<'a>(clock: Frequency, spent: impl Iterator<Item = (&'a CoreCycles, &'a CoreCycles)>) -> Cores {
        let cycles = |ps: u64| clock.cycles_in(Time::from_ps(ps));
        let mut cores =
            Cores { work: [0.0; Part::ALL.len()], stall: [0.0; Part::ALL.len()], idle_seconds: 0.0, cores: 0 };
        for (before, after) in spent {
            let spent = after.since(before);
            cores.cores += 1;
            for (sum, ps) in cores.work.iter_mut().zip(spent.work_ps) {
                *sum += cycles(ps);
            }
            for (sum, ps) in cores.stall.iter_mut().zip(spent.stall_ps) {
                *sum += cycles(ps);
            }
            cores.idle_seconds += Time::from_ps(spent.idle_ps).as_seconds();
        }
        cores
    }

    /// For each of `frames`; `None` when there were none.
    pub fn per_packet(&self, frames: u64) -> Option<CyclesPerPacket> {
        if frames == 0 {
            return None;
        }
        let each = |cycles: f64| cycles / frames as f64;
        // In the order of `Part::ALL`; the kernel's parts are not of this world.
        let [driver, app, sync, alloc, ..] = self.work.map(each);
        let stall = each(self.stall.iter().sum());
        Some(CyclesPerPacket { total: driver + app + sync + alloc + stall, driver, app, sync, alloc, stall })
    }

    /// Share of what was not idle that went into taking and giving buffers, stalls included.
    pub fn alloc_share(&self) -> Option<f64> {
        let busy: f64 = self.work.iter().chain(&self.stall).sum();
        let alloc = Part::Alloc as usize;
        (busy > 0.0).then(|| (self.work[alloc] + self.stall[alloc]) / busy)
    }

    /// Share of `seconds` that these cores polled in vain; `None` without cores.
    pub fn idle_share(&self, seconds: f64) -> Option<f64> {
        // An idle core is charged to the end of its last poll, which may lie after the window.
        let idle = self.idle_seconds / (seconds * self.cores as f64);
        (self.cores > 0).then(|| idle.clamp(0.0, 1.0))
    }
}
