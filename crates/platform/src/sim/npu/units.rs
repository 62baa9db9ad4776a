//! Memories as FPCs see them: a command's latency, and its place in the unit's queue.

use nicforge_units::{Cycles, Frequency, Time};

use super::NpuMemory;

/// A memory command of a thread, which swaps out until it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// No memory: the thread goes on.
    None,
    /// The core's local memory.
    Local,
    /// Cluster local scratch of the thread's island.
    Cls,
    /// Cluster target memory of the thread's island.
    Ctm,
    /// Internal memory: look-up engine, work-queues.
    Imem,
    /// External memory, in its SRAM cache.
    Emem,
    /// External memory, in DRAM.
    Dram,
}

#[derive(Clone, Debug)]
struct Unit {
    latency: Time,
    free_at: Time,
}

/// The memories of a processor.
#[derive(Clone, Debug)]
pub struct Units {
    local: Time,
    dram: Time,
    command: Time,
    cls: Vec<Unit>,
    ctm: Vec<Unit>,
    imem: Unit,
    emem: Unit,
}

impl Units {
    /// The memories of `islands` islands.
    pub fn new(memory: &NpuMemory, islands: usize, clock: Frequency) -> Units {
        let time = |cycles: Cycles| clock.time_for(cycles);
        let unit = |latency| Unit { latency: time(latency), free_at: Time::ZERO };
        Units {
            local: time(memory.local),
            dram: time(memory.dram).saturating_sub(time(memory.emem)),
            command: time(memory.command),
            cls: vec![unit(memory.cls); islands],
            ctm: vec![unit(memory.ctm); islands],
            imem: unit(memory.imem),
            emem: unit(memory.emem),
        }
    }

    /// How long `command` of a thread of `island` takes, issued at `now`.
    pub fn access(&mut self, command: Command, island: usize, now: Time) -> Time {
        let (unit, beyond) = match command {
            Command::None => return Time::ZERO,
            Command::Local => return self.local,
            Command::Cls => (&mut self.cls[island], Time::ZERO),
            Command::Ctm => (&mut self.ctm[island], Time::ZERO),
            Command::Imem => (&mut self.imem, Time::ZERO),
            Command::Emem => (&mut self.emem, Time::ZERO),
            Command::Dram => (&mut self.emem, self.dram),
        };
        let begins = unit.free_at.max(now);
        unit.free_at = begins + self.command;
        begins.saturating_sub(now) + unit.latency + beyond
    }
}
