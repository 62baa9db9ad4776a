//! The control core of an interface that changes steering while it runs. It stands apart from the
//! cores that run the application: what it reads are counters, and it takes nothing from the caches.

use nicforge_interfaces::sh_ring_dynamic::{Control, Reading};
use nicforge_nic::{ReceiveHalf, registers};
use nicforge_platform::Register;
use nicforge_platform::sim::{Host, MmioWrite};
use nicforge_units::{Bytes, Time};

use super::core_actor::CoreActor;
use super::nic_actor::NicActor;
use nicforge_record::Switch;

/// The control core as an actor: it acts once in each control step.
pub struct ControlActor {
    control: Control,
    /// How long a register write takes.
    mmio_write: Time,
    before: Reading,
    /// What it decided, oldest first.
    switches: Vec<Switch>,
}

impl ControlActor {
    /// At the beginning of a run.
    pub fn new(control: Control, mmio_write: Time) -> ControlActor {
        ControlActor { control, mmio_write, before: Reading::default(), switches: Vec::new() }
    }

    /// From one step to the next.
    pub fn interval(&self) -> Time {
        self.control.step()
    }

    /// Looks at `now`, and tells all NICs if steering is to change; returns whether it is.
    pub fn step(&mut self, now: Time, host: &Host, nics: &mut [NicActor], cores: &[CoreActor]) -> bool {
        let reading = Reading {
            at: now,
            received: Bytes(nics.iter().map(|actor| actor.nic.counters.bytes).sum()),
            transferred: host.hierarchy.device_lines().bytes(),
            calls: cores.iter().map(|core| core.receive_calls(now)).collect(),
        };
        let set = self.control.look(&reading.since(&self.before));
        self.before = reading;
        if let Some(set) = set {
            self.record(now, set, nics);
            for (device, nic) in nics.iter_mut().enumerate() {
                nic.post(&MmioWrite {
                    arrives: now + self.mmio_write,
                    register: Register { device: device as u8, index: registers::STEERING },
                    value: set.into(),
                });
            }
        }
        set.is_some()
    }

    fn record(&mut self, now: Time, set: u16, nics: &[NicActor]) {
        let names = nics.first().map_or(&[][..], |nic| nic.nic.receive.sets());
        let name = names.get(usize::from(set)).copied().unwrap_or_default();
        self.switches.push(Switch { ms: now.as_seconds() * 1e3, set: name.to_owned() });
    }

    /// Every time that it changed steering.
    pub fn into_switches(self) -> Vec<Switch> {
        self.switches
    }
}
