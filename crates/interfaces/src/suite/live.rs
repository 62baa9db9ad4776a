//! The live ground in the suite: shared memory and register words, on one thread, so that every
//! step is seen. That threads of its own work too is shown where live runs are assembled.

use std::collections::BTreeMap;

use nicforge_platform::live::{Bell, Control, DeviceCpu, LiveCpu, LiveDma, Shape};
use nicforge_platform::{self as platform, Addr, AddressSpace, Cpu, Dma};
use nicforge_units::Time;

use super::Ground;
use crate::emulated::CoreDma;

/// Registers of a device in the suite, by far more than it uses.
const REGISTERS: u32 = 64;

/// Shared memory, as live runs have it.
pub struct Live {
    control: Control,
    /// The device, and the core that plays one.
    player: CoreDma<DeviceCpu>,
    cores: Vec<LiveCpu>,
    /// What each register held when it was last looked at.
    seen: BTreeMap<u32, u64>,
}

impl Ground for Live {
    type On = platform::Live;
    type Core<'a> = &'a mut LiveCpu;
    type Device<'a> = &'a mut LiveDma;

    fn new(space: &AddressSpace, cores: usize) -> Live {
        let shape = Shape { devices: 1, workers: cores, banks: vec![(0, REGISTERS)] };
        let control = Control::new(space, &shape).expect("shared memory");
        let bell = Bell::new().expect("an eventfd");
        let core = |number| LiveCpu::new(control.clone(), bell.clone(), number);
        Live {
            player: CoreDma::new(DeviceCpu::new(core(cores - 1), LiveDma::new(control.clone(), space))),
            cores: (0..cores).map(core).collect(),
            seen: BTreeMap::new(),
            control,
        }
    }

    fn core(&mut self, number: usize) -> &mut LiveCpu {
        // What was published counts for whoever has the next turn.
        self.player.cpu.dma.flush();
        &mut self.cores[number]
    }

    fn device(&mut self) -> &mut LiveDma {
        &mut self.player.cpu.dma
    }

    fn play<R>(&mut self, step: impl FnOnce(&mut CoreDma<DeviceCpu>) -> R) -> R {
        let done = step(&mut self.player);
        // Its doorbells reach the device as every core's do.
        for (register, value) in self.player.cpu.take_rung() {
            self.player.cpu.cpu.mmio_write(register, value);
        }
        done
    }

    fn pass(&mut self, time: Time) {
        let device = &mut self.player.cpu.dma;
        let until = device.now() + time;
        device.set_time(until);
    }

    fn register_writes(&mut self) -> Vec<(u32, u64)> {
        let registers = self.control.registers(0);
        let values = registers.map(|register| {
            let value = self.control.register_value(register);
            (register.index, value)
        });
        let written = |&(index, value): &(u32, u64)| {
            let before = self.seen.insert(index, value).unwrap_or(0);
            before != value
        };
        values.filter(written).collect()
    }

    fn peek(&mut self, at: Addr, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.control.region().read(at, &mut bytes);
        bytes
    }
}
