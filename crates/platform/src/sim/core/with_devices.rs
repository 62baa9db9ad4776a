//! A core whose register reads are answered: for kernels, whose drivers read registers.

use nicforge_units::Time;

use super::{SimCore, SimCpu};
use crate::sim::lent::{Lent, Turn};
use crate::sim::locks::Locks;
use crate::sim::{Devices, Host};
use crate::{Addr, Cpu, Register, forward_cpu};

/// A step of a core on whose register reads devices answer. A read is preceded by the register writes that the core
/// posted before.
pub struct DeviceReader<'a> {
    cpu: Turn<'a, SimCpu>,
    devices: &'a mut dyn Devices,
}

impl<'a> DeviceReader<'a> {
    /// A step of `core` that begins at its own time; `devices` answer.
    pub fn on(host: &'a mut Lent<Host>, core: &'a mut Lent<SimCore>, devices: &'a mut dyn Devices) -> DeviceReader<'a> {
        DeviceReader { cpu: SimCpu::on(host, core), devices }
    }
}

impl Cpu for DeviceReader<'_> {
    forward_cpu!(cpu: load store acquire release atomic unlock bytes bytes_mut copy_loop mmio_write work enter now hint);

    /// The state of kernels is not in this memory: locks are taken in the order of the calls.
    fn lock(&mut self, at: Addr) {
        self.cpu.take_lock(at, Locks::take_in_order);
    }

    fn mmio_read(&mut self, register: Register) -> u64 {
        let devices = &mut *self.devices;
        let (value, waited) = self.cpu.pause(
            |host, core| {
                let there = Time::from_ps(core.mmio_read.as_ps() / 2);
                let mut arrives = core.cursor + there;
                // A read does not overtake writes.
                for write in std::mem::take(&mut core.mmio) {
                    arrives = arrives.max(write.arrives);
                    devices.write(host, &write);
                }
                let (value, given) = devices.read(host, register, arrives);
                let back = given.max(arrives) + (core.mmio_read - there);
                (value, back - core.cursor)
            },
            SimCpu::of,
        );
        self.cpu.stall(waited);
        value
    }
}
