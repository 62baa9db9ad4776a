//! Which set of queues steering uses, as the heuristic of dynamic shRing decides (shRing, section 5.1.5): the
//! same one as in a simulation, over counts of real time.

use nicforge_interfaces::sh_ring_dynamic::{Control, Heuristic, Reading};
use nicforge_nic::registers;
use nicforge_platform::live::LiveDma;
use nicforge_units::{Bytes, Time};

use super::Device;
use crate::live::Shared;

/// Who changes steering.
#[derive(Debug)]
pub struct Steering {
    control: Control,
    before: Reading,
    /// What it decided, oldest first, and when.
    switches: Vec<(Time, &'static str)>,
}

/// How many are kept: a run may last for days.
const SWITCHES_MAX: usize = 100_000;

impl Steering {
    /// At the beginning of a run, by `heuristic`.
    pub fn new(heuristic: Heuristic, dma: &mut LiveDma) -> Steering {
        dma.count_moved();
        Steering { control: Control::new(heuristic), before: Reading::default(), switches: Vec::new() }
    }

    /// When it looks again.
    pub fn due(&self) -> Time {
        self.before.at + self.control.step()
    }

    /// Steering uses `set` since `now`; whether that is kept.
    fn record(&mut self, now: Time, set: &'static str) -> bool {
        let room = self.switches.len() < SWITCHES_MAX;
        if room {
            self.switches.push((now, set));
        }
        room
    }

    /// Looks at `now`; `works` says who of the workers is there. The set that is to be used from now on, if
    /// that is another.
    fn look(&mut self, now: Reading, works: impl Fn(usize) -> bool) -> Option<u16> {
        let mut seen = now.since(&self.before);
        self.before = now;
        let there = (0..seen.calls.len()).filter(|&worker| works(worker));
        let made = there.clone().map(|worker| seen.calls[worker]);
        // What workers say may be nonsense.
        let mean = made.fold(0, u64::saturating_add) / there.count().max(1) as u64;
        // Who is not there is neither faster nor slower than the others.
        for (worker, calls) in seen.calls.iter_mut().enumerate() {
            if !works(worker) {
                *calls = mean;
            }
        }
        self.control.look(&seen)
    }
}

impl Device {
    /// Looks at `now`, if it is time, and tells all NICs of another set of queues, and people.
    pub(super) fn steer(&mut self, now: Time, shared: &Shared) {
        let Some(steering) = self.steering.as_mut().filter(|steering| steering.due() <= now) else {
            return;
        };
        let workers = 0..shared.workers.len();
        let reading = Reading {
            at: now,
            received: Bytes(self.nics.iter().map(|nic| nic.counters.bytes).sum()),
            transferred: Bytes(self.way.cpu.dma.moved()),
            calls: workers.map(|worker| self.control.calls(worker)).collect(),
        };
        let works = |worker| !self.nics.iter().any(|nic| nic.is_closed(worker as u16));
        let Some(set) = steering.look(reading, works) else {
            return;
        };
        for nic in &mut self.nics {
            nic.write_register(&mut self.way.cpu.dma, registers::STEERING, set.into());
        }
        if let Some(nic) = self.nics.first() {
            let active = nic.active_set();
            let report = if steering.record(now, active) { "" } else { "; the report has no room for this" };
            shared.tell(format!("steering uses the {active} queues now{report}"));
        }
    }

    /// When steering changed, and to which set of queues.
    pub fn switches(&self) -> &[(Time, &'static str)] {
        self.steering.as_ref().map_or(&[], |steering| &steering.switches)
    }
}
