//! Which cores of which socket run what, and whether the machine has them.

use crate::machine::Machine;

use super::Settings;
use super::check::{Finding, ensure};

/// `1 core`, `2 cores`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

impl Settings {
    pub(super) fn check_cores(&self, machine: &Machine) -> Result<(), Finding> {
        let hardware = &machine.hardware;
        ensure(self.nics <= hardware.nics, &["nics"], || {
            (
                format!("{} wanted, {} has {}", counted(self.nics, "NIC"), machine.name, hardware.nics),
                format!("set nics to at most {}", hardware.nics),
            )
        })?;
        ensure(self.cores.is_multiple_of(self.nics.max(1)), &["cores", "nics"], || {
            let below = self.cores - self.cores % self.nics;
            (
                format!("{} cannot be divided evenly over {}", counted(self.cores, "core"), counted(self.nics, "NIC")),
                format!("set cores to a multiple of {}, such as {}", self.nics, below.max(self.nics)),
            )
        })?;
        self.check_this_socket(machine)?;
        self.check_other_socket(machine)
    }

    fn check_this_socket(&self, machine: &Machine) -> Result<(), Finding> {
        let there = machine.hardware.cores;
        let emulators = self.emulator_cores_here();
        let runners = self.stream_cores + self.graph_cores + self.copy_cores();
        let keys = &["cores", "stream_cores", "graph_cores", "copy", "emulator_socket", "interface"];
        ensure(self.all_cores() <= there, keys, || {
            (
                format!(
                    "{}{} and {} wanted, {} has {}",
                    counted(self.cores, "core"),
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
        let runners = match self.co_runners_elsewhere() {
            true => self.stream_cores + self.graph_cores,
            false => 0,
        };
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

    /// The interface whose rings drivers see: the one that a core plays, where one does.
    pub fn seen_by_drivers(&self) -> &str {
        match self.interface.as_str() {
            "emulated" => &self.emulates,
            interface => interface,
        }
    }

    /// Cores that play NICs: one for each where they are emulated.
    pub fn emulator_cores(&self) -> usize {
        match self.interface.as_str() {
            "emulated" => self.nics,
            _ => 0,
        }
    }

    /// Those of them on the socket of the NICs.
    pub fn emulator_cores_here(&self) -> usize {
        match self.emulator_socket.as_str() {
            "other" => 0,
            _ => self.emulator_cores(),
        }
    }

    /// The core that copies memory, if one does.
    fn copy_cores(&self) -> usize {
        usize::from(self.copy != "none")
    }

    /// Cores of all kinds on the socket of the NICs.
    pub fn all_cores(&self) -> usize {
        let here = self.cores + self.emulator_cores_here() + self.copy_cores();
        match self.co_runners_elsewhere() {
            true => here,
            false => here + self.stream_cores + self.graph_cores,
        }
    }

    /// Whether co-runners are on the other socket.
    pub fn co_runners_elsewhere(&self) -> bool {
        self.co_runner_socket == "other"
    }
}

/// Says that so many cores play NICs, if any does.
fn that_play(emulators: usize) -> String {
    match emulators {
        0 => String::new(),
        _ => format!(", {emulators} cores that play NICs"),
    }
}
