//! What cores do for each other: packets for connections of other cores, processes woken from
//! another core, frames that wait for another core's driver.

use nicforge_interfaces::kernel::Received;
use nicforge_platform::sim::DeviceReader;
use nicforge_platform::{Cpu, Part};
use nicforge_units::Time;

use super::Kernel;
use super::input::parse;
use super::processor::{Handed, Waiting};

impl Kernel {
    /// Gives a packet to the core whose process reads its connection: the header is read here, and
    /// the payload may still be in the NIC (integrated_nic, section A.2.1).
    pub(super) fn spread(&mut self, core: usize, cpu: &mut DeviceReader<'_>, nic: usize, packet: &Received) {
        let port = parse(cpu, packet).map(|segment| segment.local_port);
        let number = port.ok().and_then(|port| self.connection_at(port));
        let to = number.map_or(core, |number| self.connections[number].plan.core);
        // What belongs to nobody is dropped here.
        if to == core {
            return self.input(core, cpu, nic, packet);
        }
        let interrupts = self.processors[to].handed.is_empty();
        if interrupts {
            cpu.work(self.costs.controller);
        }
        let at = cpu.now();
        self.processors[to].handed.push_back(Handed { at, nic, packet: *packet, interrupts });
        self.wakes.push((to, at));
    }

    /// Takes the oldest packet that another core has left here, if there is one.
    pub(super) fn take_handed(&mut self, core: usize, cpu: &mut DeviceReader<'_>) -> bool {
        let processor = &mut self.processors[core];
        let now = cpu.now();
        let first = processor.handed.front();
        if first.is_none_or(|handed| handed.at > now) {
            return false;
        }
        let Some(handed) = processor.handed.pop_front() else {
            return false;
        };
        // A thread takes turns with the process.
        processor.polled += self.costs.poll_round;
        if handed.interrupts {
            cpu.enter(Part::Interrupt);
            cpu.work(self.costs.interrupt);
        }
        cpu.enter(Part::Stack);
        if handed.interrupts {
            cpu.work(self.costs.wake);
        }
        self.input(core, cpu, handed.nic, &handed.packet);
        true
    }

    /// What the process of `core` waited for has come by another core.
    pub(super) fn wake_up(&mut self, core: usize, cpu: &mut DeviceReader<'_>) {
        let processor = &mut self.processors[core];
        if processor.woken.is_some_and(|at| at <= cpu.now()) {
            processor.woken = None;
            processor.waiting = Waiting::No;
            cpu.enter(Part::Stack);
            cpu.work(self.costs.wake);
        }
    }

    /// Wakes `owner`'s process, from core `core`.
    pub(super) fn wake_process(&mut self, core: usize, cpu: &mut DeviceReader<'_>, owner: usize) {
        let processor = &mut self.processors[owner];
        if owner == core {
            processor.waiting = Waiting::No;
            cpu.work(self.costs.wake);
        } else if processor.woken.is_none() {
            // It is interrupted by this core.
            cpu.work(self.costs.controller);
            processor.woken = Some(cpu.now());
            self.wakes.push((owner, cpu.now()));
        }
    }

    /// The NIC was asked what it has sent: other cores whose frames wait try again.
    pub(super) fn let_others_send(&mut self, core: usize, cpu: &DeviceReader<'_>, nic: usize) {
        for (other, processor) in self.processors.iter_mut().enumerate() {
            if other != core && !processor.queues[nic].is_empty() {
                let from = &mut processor.sends_from[nic];
                *from = cpu.now().min(*from);
                self.wakes.push((other, *from));
            }
        }
    }

    /// The core whose queue frames of `core` for NIC `nic` go by.
    pub(super) fn sender(&self, core: usize, nic: usize) -> usize {
        if self.drivers[nic].advice().transmit_thread { self.core_of(nic) } else { core }
    }

    /// Connection `number` is due at another time, which may be past; its core may have to know, and
    /// knows from `now` on.
    pub(super) fn set_due(&mut self, core: usize, now: Time, number: usize, due: Time) {
        let connection = &mut self.connections[number];
        connection.due = due;
        if connection.plan.core != core && due < Time::NEVER {
            self.wakes.push((connection.plan.core, due.max(now)));
        }
    }
}
