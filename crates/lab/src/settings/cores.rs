//! Which cores of which socket run what, and whether the machine has them.

use nicforge_interfaces::emulated::{EmulatedOptions, Socket};
use nicforge_options::{Finding, ensure};

use super::Settings;
use crate::machine::Machine;
use crate::run::options::{CoRunnerPlace, CoRunners, Copying};

/// `1 core`, `2 cores`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

impl Settings {
    pub(super) fn check_cores(&self, machine: &Machine) -> Result<(), Finding> {
        let (hardware, cores, nics) = (&machine.hardware, self.cores(), self.nics());
        ensure(nics <= hardware.nics, &["nics"], || {
            (
                format!("{} wanted, {} has {}", counted(nics, "NIC"), machine.name, hardware.nics),
                format!("set nics to at most {}", hardware.nics),
            )
        })?;
        ensure(cores.is_multiple_of(nics.max(1)), &["cores", "nics"], || {
            let below = cores - cores % nics;
            (
                format!("{} cannot be divided evenly over {}", counted(cores, "core"), counted(nics, "NIC")),
                format!("set cores to a multiple of {}, such as {}", nics, below.max(nics)),
            )
        })?;
        self.check_this_socket(machine)?;
        self.check_other_socket(machine)
    }

    fn check_this_socket(&self, machine: &Machine) -> Result<(), Finding> {
        let there = machine.hardware.cores;
        let emulators = self.emulator_cores_here();
        let CoRunners { stream_cores, graph_cores, .. } = self.read();
        let runners = stream_cores + graph_cores + self.copy_cores();
        let keys = &["cores", "stream_cores", "graph_cores", "copy", "emulator_socket", "interface"];
        ensure(self.all_cores() <= there, keys, || {
            (
                format!(
                    "{}{} and {} wanted, {} has {}",
                    counted(self.cores(), "core"),
                    that_play(emulators),
                    counted(runners, "co-runner"),
                    machine.name,
                    counted(there, "core")
                ),
                format!("cores + stream_cores + graph_cores is at most {}", there - emulators.min(there)),
            )
        })
    }

    fn check_other_socket(&self, machine: &Machine) -> Result<(), Finding> {
        let there = machine.hardware.other_socket.cores;
        let emulators = self.emulator_cores() - self.emulator_cores_here();
        let CoRunners { stream_cores, graph_cores, .. } = self.read();
        let runners = if self.co_runners_elsewhere() { stream_cores + graph_cores } else { 0 };
        let keys = &["stream_cores", "graph_cores", "co_runner_socket", "emulator_socket", "interface"];
        ensure(runners + emulators <= there, keys, || {
            let here = match emulators {
                0 => "",
                _ => "; with emulator_socket \"same\" cores of this socket play NICs",
            };
            (
                format!(
                    "{runners} co-runners{} wanted on the other socket, {} has {there} cores there",
                    that_play(emulators),
                    machine.name
                ),
                format!("stream_cores + graph_cores there is at most {}{here}", there - emulators.min(there)),
            )
        })
    }

    /// Cores that play NICs: one for each where they are emulated, or two where they play all of it.
    pub fn emulator_cores(&self) -> usize {
        if self.shape().is_some_and(|shape| shape.played) { self.nics() * self.players_of_a_nic() } else { 0 }
    }

    /// Cores that play each NIC where they are emulated: the second sends.
    pub fn players_of_a_nic(&self) -> usize {
        1 + usize::from(self.inner_description().is_some_and(|inner| inner.played_whole))
    }

    /// Those of them on the socket of the NICs.
    pub fn emulator_cores_here(&self) -> usize {
        match self.read::<EmulatedOptions>().emulator_socket {
            Socket::Other => 0,
            Socket::Same => self.emulator_cores(),
        }
    }

    /// The core that copies memory, if one does.
    fn copy_cores(&self) -> usize {
        usize::from(self.read::<CoRunners>().copy != Copying::None)
    }

    /// Cores of all kinds on the socket of the NICs.
    pub fn all_cores(&self) -> usize {
        let CoRunners { stream_cores, graph_cores, .. } = self.read();
        let here = self.cores() + self.emulator_cores_here() + self.copy_cores();
        if self.co_runners_elsewhere() { here } else { here + stream_cores + graph_cores }
    }

    /// Whether co-runners are on the other socket.
    pub fn co_runners_elsewhere(&self) -> bool {
        self.read::<CoRunnerPlace>().co_runner_socket == Socket::Other
    }
}

/// Says that so many cores play NICs, if any does.
fn that_play(emulators: usize) -> String {
    match emulators {
        0 => String::new(),
        _ => format!(", {emulators} cores that play NICs"),
    }
}
