//! Co-runners: cores that run something else and only use memory.

use nicforge_apps::{CoRunner, Copier};
use nicforge_nic::Allocation;
use nicforge_platform::AddressSpace;
use nicforge_platform::sim::Hardware;
use nicforge_units::Bytes;

use super::build::core_of;
use crate::run::options::{CoRunners, Copies, Copying};
use crate::settings::Settings;
use crate::world::Core;

/// What copies memory as the settings have it, to or from `nicmem`, memory of a NIC.
fn copier(settings: &Settings, hardware: &Hardware, space: &mut AddressSpace, nicmem: Option<Allocation>) -> Copier {
    let nicmem = nicmem.map(|memory| memory.at);
    let ends = match settings.read::<CoRunners>().copy {
        Copying::HostToNicmem => [None, nicmem],
        Copying::NicmemToHost => [nicmem, None],
        Copying::None | Copying::HostToHost => [None, None],
    };
    let len = Bytes(settings.read::<Copies>().copy_kib * 1024);
    Copier::new(space, ends, len, hardware.core.copy_line, hardware.llc.size)
}

/// The co-runners that the settings ask for, on cores after all others or on the other socket;
/// what copies memory uses `nicmem` of a NIC, and runs on this socket.
pub fn co_runners(
    settings: &Settings,
    hardware: &Hardware,
    space: &mut AddressSpace,
    seed: u64,
    nicmem: Option<Allocation>,
) -> Vec<Core> {
    let CoRunners { stream_cores, graph_cores, copy } = settings.read();
    let elsewhere = settings.co_runners_elsewhere();
    // Nobody sees which lines the other socket's cores use, so they may be the same ones.
    let shared_stream = (elsewhere && stream_cores > 0).then(|| CoRunner::stream(space));
    let shared_graph = (elsewhere && graph_cores > 0).then(|| CoRunner::graph(space, 0));
    let streams = (0..stream_cores).map(|_| None);
    let graphs = (0..graph_cores).map(|number| Some(seed + 2 * number as u64));
    let programs: Vec<Option<u64>> = streams.chain(graphs).collect();
    let first = settings.cores() + settings.emulator_cores_here();
    let actor = |(number, graph): (usize, Option<u64>)| {
        let program = match (graph, &shared_graph, &shared_stream) {
            (Some(seed), Some(graph), _) => graph.seeded(seed),
            (None, _, Some(stream)) => stream.clone(),
            (Some(seed), ..) => CoRunner::graph(space, seed),
            (None, ..) => CoRunner::stream(space),
        };
        let mut core = core_of(hardware, first + number);
        if elsewhere {
            core.be_behind_link(hardware.other_socket.latency);
        }
        Core::new(core, Box::new(program))
    };
    let mut actors: Vec<_> = programs.into_iter().enumerate().map(actor).collect();
    if copy != Copying::None {
        // The last of this socket.
        let core = core_of(hardware, settings.all_cores() - 1);
        let program = CoRunner::Copy(copier(settings, hardware, space, nicmem));
        actors.push(Core::new(core, Box::new(program)));
    }
    actors
}
