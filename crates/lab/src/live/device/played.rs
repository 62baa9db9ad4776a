//! NICs that are played (interface `emulated`): this thread is the physical NIC, and in between the core
//! that makes another of it.

use nicforge_interfaces::AnyNic;
use nicforge_interfaces::emulated::NicHalf;
use nicforge_nic::{Nic, PoolCache, ReceiveHalf, registers};
use nicforge_platform::live::{DeviceCpu, LiveCpu, LiveDma};
use nicforge_platform::{Dma, Register};
use nicforge_units::Time;

use super::Device;

/// When `nic` has something to do of its own, the core that plays it among it.
pub(super) fn due(nic: &mut Nic<AnyNic>) -> Time {
    let played = nic.receive.emulated();
    let played = played.map_or(Time::NEVER, |half| half.emulation_due());
    nic.receive.due().min(played)
}

/// What the core that plays a NIC rings reaches the physical one.
fn ring(half: &mut NicHalf, dma: &mut LiveDma, rung: Vec<(Register, u64)>) {
    for (register, value) in rung {
        half.rung_by_core(dma, register.index - registers::RECEIVE, value);
    }
}

/// The core that plays `nic`, if one does, fills its physical rings with buffers of `pool`.
pub fn fill(nic: &mut Nic<AnyNic>, (core, dma): (&mut LiveCpu, &mut LiveDma), pool: &mut PoolCache) {
    if let Some(half) = nic.receive.emulated() {
        let mut core = DeviceCpu::new(core, dma);
        half.fill(&mut core, pool);
        let rung = core.into_rung();
        ring(half, dma, rung);
    }
}

impl Device {
    /// The core that plays the NIC behind NIC `number`, if one does, does all that there is to do; whether
    /// there was anything.
    pub(super) fn play(&mut self, number: usize) -> bool {
        let mut any = false;
        loop {
            let nic = &mut self.nics[number];
            let Some(half) = nic.receive.emulated() else {
                return any;
            };
            let mut core = DeviceCpu::new(&mut self.core, &mut self.dma);
            // What this thread published it sees.
            let came_to = half.emulate(&mut core, usize::MAX);
            let rung = core.into_rung();
            ring(half, &mut self.dma, rung);
            any |= came_to.moved() > 0;
            for lost in came_to.lost {
                nic.take_back(lost.queue, lost.cause);
            }
            for queues in came_to.blamed {
                nic.blame(queues);
            }
            nic.counters.bad_register_writes += came_to.refused.len() as u64;
            let device = nic.port().0;
            for index in came_to.refused {
                let index = registers::RECEIVE + index;
                self.refuse(Register { device, index });
            }
            if !came_to.more {
                return any;
            }
        }
    }

    /// What `register` holds cannot be.
    fn refuse(&mut self, register: Register) {
        let now = self.dma.now();
        let mut registers = self.registers.iter_mut();
        if let Some(watched) = registers.find(|watched| watched.register == register) {
            watched.refused = Some(now);
        }
    }
}
