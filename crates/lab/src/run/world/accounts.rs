//! What came in, left, was dropped, and is inside; and that the sum is right.

use nicforge_nic::{DropCounters, Waiting};

use super::World;
use crate::run::RunError;
use crate::run::core_actor::CoreActor;

impl World {
    /// Frames that came in so far.
    pub fn arrived(&self) -> u64 {
        self.nics.iter().map(|actor| actor.nic.counters.frames).sum()
    }

    /// What was dropped so far, wherever that was.
    pub fn drops(&self) -> DropCounters {
        let in_nics: Vec<DropCounters> = self.nics.iter().map(|a| a.nic.drops()).collect();
        let engines = self.nics.iter().map(|actor| &actor.nic.transmit);
        let in_engines = engines.map(|engine| &engine.counters().refused);
        let in_emulation = self.emulators.iter().flat_map(|emulator| &emulator.drops);
        let in_cores = self.cores.iter().map(|core| &core.software.drops);
        let behind = in_engines.chain(in_emulation).chain(in_cores);
        in_nics.iter().chain(behind).collect()
    }

    /// How full receive queues were, summed over arriving frames.
    pub fn waiting_sum(&self) -> Waiting {
        let nics = self.nics.iter();
        nics.map(|actor| actor.nic.waiting_sum()).sum()
    }

    /// Frames that were dropped so far, whatever the cause.
    pub fn dropped(&self) -> u64 {
        self.drops().total()
    }

    fn lost_in_emulation(&self) -> u64 {
        let drops = self.emulators.iter().flat_map(|emulator| &emulator.drops);
        drops.map(DropCounters::total).sum()
    }

    /// Frames that cores took out of receive rings so far.
    pub fn taken(&self) -> u64 {
        let cores = self.cores.iter();
        cores.map(|core| core.software.taken()).sum()
    }

    /// Frames that wait in NICs or receive rings for a core to take them.
    pub fn backlog(&self) -> u64 {
        let delivered: u64 = self.nics.iter().map(|a| a.nic.counters.delivered).sum();
        let held: u64 = self.nics.iter().map(|a| a.nic.held()).sum();
        held + (delivered - self.taken() - self.lost_in_emulation())
    }

    /// Frames that are somewhere between the wires, place by place.
    pub fn inside(&self) -> u64 {
        let software = || self.cores.iter().map(|core| &core.software);
        let in_hand: u64 = self.cores.iter().map(CoreActor::in_hand).sum();
        let kept: u64 = software().map(|software| software.kept()).sum();
        let pushed: u64 = software().map(|software| software.pushed()).sum();
        let served: u64 = self.nics.iter().map(|a| a.nic.transmit.served()).sum();
        let turned = self.nics.iter().map(|a| a.nic.transmit.internal_inside());
        self.backlog() + turned.sum::<u64>() + in_hand + kept + (pushed - served)
    }

    /// Arrivals = departures + drops + inside, and every buffer is in exactly one place.
    pub fn check_conservation(&self, buffers: u64, shared: u64) -> Result<(), RunError> {
        let (arrived, left) = (self.arrived(), self.sink.total());
        let (dropped, inside) = (self.dropped(), self.inside());
        if arrived != left + dropped + inside {
            return Err(RunError::FramesLost { arrived, left, dropped, inside });
        }
        let held = shared.wrapping_add_signed(self.cores.iter().map(CoreActor::buffers).sum::<i64>());
        if held != buffers {
            return Err(RunError::BuffersLost { buffers, held });
        }
        Ok(())
    }
}
