//! NICs that are played (interface `emulated`): this thread is the physical NIC, and in between the core
//! that makes another of it.

use nicforge_interfaces::emulated::{self, CoreDma, NicHalf};
use nicforge_nic::{Nic, PoolCache, registers};
use nicforge_platform::live::{DeviceCpu, LiveDma};
use nicforge_platform::{Dma, Live, Register};
use nicforge_units::Time;

use super::Device;

/// The NIC that a core plays behind `nic`, if one does.
pub(super) fn played(nic: &mut Nic<LiveDma>) -> Option<&mut NicHalf<Live>> {
    emulated::played::<Live>(&mut *nic.receive)
}

/// When `nic` has something to do of its own, the core that plays it among it.
pub(super) fn due(nic: &mut Nic<LiveDma>) -> Time {
    let played = played(nic).map_or(Time::NEVER, |half| half.emulation_due());
    nic.receive.due().min(played)
}

/// What the core that plays a NIC rings reaches the physical one.
fn ring(half: &mut NicHalf<Live>, core: &mut DeviceCpu) {
    for (register, value) in core.take_rung() {
        half.rung_by_core(&mut core.dma, register.index - registers::RECEIVE, value);
    }
}

/// The core that plays `nic`, if one does, fills its physical rings with buffers of `pool`.
pub fn fill(nic: &mut Nic<LiveDma>, way: &mut CoreDma<DeviceCpu>, pool: &mut PoolCache) {
    if let Some(half) = played(nic) {
        half.fill(way, pool);
        ring(half, &mut way.cpu);
    }
}

impl Device {
    /// The core that plays the NIC behind NIC `number`, if one does, does all that there is to do; whether
    /// there was anything.
    pub(super) fn play(&mut self, number: usize) -> bool {
        let mut any = false;
        loop {
            let nic = &mut self.nics[number];
            let Some(half) = played(nic) else {
                return any;
            };
            // What this thread published it sees.
            let came_to = half.emulate(&mut self.way, usize::MAX);
            ring(half, &mut self.way.cpu);
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
        let now = self.way.cpu.dma.now();
        let mut registers = self.registers.iter_mut();
        if let Some(watched) = registers.find(|watched| watched.register == register) {
            watched.refused = Some(now);
        }
    }
}
