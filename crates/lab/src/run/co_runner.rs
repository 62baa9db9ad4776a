//! A core that runs something else and only uses memory.

use nicforge_apps::CoRunner;
use nicforge_platform::sim::{Host, SimCore, SimCpu};
use nicforge_units::Time;

/// A co-runner on its core.
pub struct CoRunnerActor {
    core: SimCore,
    program: CoRunner,
}

impl CoRunnerActor {
    /// `program` on `core`.
    pub fn new(core: SimCore, program: CoRunner) -> CoRunnerActor {
        CoRunnerActor { core, program }
    }

    /// One step; returns the time of the next.
    pub fn step(&mut self, host: &mut Host) -> Time {
        self.core.begin_burst();
        self.program.step(&mut SimCpu::new(host, &mut self.core));
        self.core.now()
    }
}
