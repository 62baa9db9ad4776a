//! A core that runs something else and only uses memory.

use nicforge_apps::CoRunner;
use nicforge_platform::AddressSpace;
use nicforge_platform::sim::{Hardware, Host, SimCore, SimCpu};
use nicforge_units::Time;

use super::build::core_of;
use crate::settings::Settings;

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

/// The co-runners that the settings ask for, on cores after all others.
pub fn co_runners(
    settings: &Settings,
    hardware: &Hardware,
    space: &mut AddressSpace,
    seed: u64,
) -> Vec<CoRunnerActor> {
    let first = settings.cores + settings.emulator_cores();
    let streams = (0..settings.stream_cores).map(|_| None);
    let graphs = (0..settings.graph_cores).map(|number| Some(seed + number as u64));
    let programs = streams.chain(graphs).enumerate();
    programs
        .map(|(number, graph)| {
            let program = match graph {
                Some(seed) => CoRunner::graph(space, seed),
                None => CoRunner::stream(space),
            };
            CoRunnerActor::new(core_of(hardware, first + number), program)
        })
        .collect()
}
