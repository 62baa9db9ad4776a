//! The control core of an interface that changes steering while it runs. It stands apart from the cores that run the
//! application: what it reads are counters, and it takes nothing from the caches.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_interfaces::sh_ring_dynamic::{Control, Reading};
use nicforge_nic::registers;
use nicforge_platform::Register;
use nicforge_platform::sim::MmioWrite;
use nicforge_record::Switch;
use nicforge_units::{Bytes, Time};

use super::{Observer, World};

/// Every change of steering, oldest first; the run and the control core share them.
pub type Switches = Rc<RefCell<Vec<Switch>>>;

/// The control core: it acts once in each control step.
pub struct ControlCore {
    control: Control,
    /// How long a register write takes.
    mmio_write: Time,
    before: Reading,
    switches: Switches,
}

impl ControlCore {
    /// At the beginning of a run; what it decides goes into `switches`.
    pub fn new(control: Control, mmio_write: Time, switches: Switches) -> ControlCore {
        ControlCore { control, mmio_write, before: Reading::default(), switches }
    }
}

impl Observer for ControlCore {
    fn interval(&self) -> Time {
        self.control.step()
    }

    /// Tells all NICs if steering is to change.
    fn look(&mut self, now: Time, world: &mut World) {
        let host = &world.hosts[0];
        let polls = host.cores.iter().filter(|core| core.program.polls_rings());
        let reading = Reading {
            at: now,
            received: Bytes(world.rings().map(|device| device.nic.counters.bytes).sum()),
            transferred: host.machine.hierarchy.device_lines().bytes(),
            calls: polls.map(|core| core.receive_calls(now)).collect(),
        };
        let set = self.control.look(&reading.since(&self.before));
        self.before = reading;
        let Some(set) = set else {
            return;
        };
        let sets = world.rings().next().map_or(&[][..], |device| device.nic.receive.sets());
        let name = sets.get(usize::from(set)).copied().unwrap_or_default();
        self.switches.borrow_mut().push(Switch { ms: now.as_seconds() * 1e3, set: name.to_owned() });
        for device in 0..world.hosts[0].devices.len() {
            let register = Register { device: device as u8, index: registers::STEERING };
            world.post(0, &MmioWrite { arrives: now + self.mmio_write, register, value: set.into() });
        }
    }
}
