//! A host: memory, devices, cores, and what these run.

use std::collections::VecDeque;

use nicforge_nic::{DropCounters, Pool};
use nicforge_platform::sim::{CoreCycles, Host as SimHost, Lent, SimCore, SimCpu};
use nicforge_units::Time;

use super::core_time::spent_until;
use super::device::Device;
use super::program::{Account, Program};
use super::ring_device::RingDevice;
use crate::LostError;

/// A core and its program.
pub struct Core {
    /// Its time and accounting.
    pub sim: Lent<SimCore>,
    /// What runs on it.
    pub program: Box<dyn Program>,
    /// Publishes that the program has not looked for yet, oldest first.
    pub(super) published: VecDeque<Time>,
    /// A publish before this time wakes it then.
    pub(super) starts: Time,
}

impl Core {
    /// A core at the beginning of a run.
    pub fn new(sim: Lent<SimCore>, program: Box<dyn Program>) -> Core {
        Core { sim, program, published: VecDeque::new(), starts: Time::ZERO }
    }

    /// The same core, which publishes wake from `time` on.
    pub fn starting_at(self, time: Time) -> Core {
        Core { starts: time, ..self }
    }

    /// Where its time went until `now`.
    pub fn spent_until(&self, now: Time) -> CoreCycles {
        spent_until(&self.sim, now)
    }

    /// Receive calls until `now`: those that brought packets, and as many as fit into the time that was spent on empty
    /// ones.
    pub fn receive_calls(&self, now: Time) -> u64 {
        let config = self.sim.config();
        let empty = config.frequency.time_for(config.empty_poll).as_ps();
        self.program.account().bursts + self.spent_until(now).idle_ps / empty.max(1)
    }
}

/// A host.
pub struct Host {
    /// Memory and caches.
    pub machine: Lent<SimHost>,
    /// Its devices.
    pub devices: Vec<Box<dyn Device>>,
    /// Its cores.
    pub cores: Vec<Core>,
    /// The core that an owner of memory lines is, by the owner's number.
    pub(super) owners: Vec<usize>,
    /// The core that plays each device, if one does.
    pub(super) players: Vec<Option<usize>>,
    /// The core that each device interrupts.
    pub(super) interrupted: Vec<usize>,
}

impl Host {
    /// A host whose cores own memory lines by their own numbers. Each device interrupts one core, in turn.
    pub fn new(machine: Lent<SimHost>, devices: Vec<Box<dyn Device>>, cores: Vec<Core>) -> Host {
        let count = cores.len().max(1);
        Host {
            owners: (0..cores.len()).collect(),
            players: vec![None; devices.len()],
            interrupted: (0..devices.len()).map(|device| device % count).collect(),
            machine,
            devices,
            cores,
        }
    }

    /// The same host, where memory lines of owner `number` wake core `owners[number]`.
    pub fn with_owners(self, owners: Vec<usize>) -> Host {
        Host { owners, ..self }
    }

    /// Core `core` plays device `device`, and owns memory lines as `owner`.
    pub fn plays(&mut self, core: usize, device: usize, owner: usize) {
        self.players[device] = Some(core);
        if self.owners.len() <= owner {
            self.owners.resize(owner + 1, core);
        }
        self.owners[owner] = core;
    }

    /// The core that plays device `device`, if one does.
    pub fn player_of(&self, device: usize) -> Option<&Core> {
        self.players[device].map(|core| &self.cores[core])
    }

    /// The cores that play devices.
    pub fn players(&self) -> impl Iterator<Item = &Core> {
        self.players.iter().flatten().map(|&core| &self.cores[core])
    }

    /// What all programs have of frames and buffers.
    pub fn accounts(&self) -> impl Iterator<Item = Account> {
        self.cores.iter().map(|core| core.program.account())
    }

    /// Its NICs of rings.
    pub fn rings(&self) -> impl Iterator<Item = &RingDevice> {
        self.devices.iter().filter_map(|device| device.rings())
    }

    /// Whether all frames of its NIC are somewhere, and all buffers of its pool.
    ///
    /// # Errors
    /// [`LostError`].
    pub fn check_sums(&mut self, pool: &Pool) -> Result<(), LostError> {
        if let Some(device) = self.rings().next() {
            let (nic, out) = (&device.nic, device.nic.transmit.counters());
            // From the wire, from rings, and of the NIC's own; to the host, to the wire, kept by stages; dropped; inside.
            let arrived = nic.counters.frames + nic.transmit.served() + nic.stages.injected();
            let left = nic.counters.delivered + out.frames + nic.stages.consumed();
            let dropped = nic.drops().total() + out.refused.total();
            let inside = nic.held() + nic.transmit.internal_inside() + nic.stages.inward();
            if arrived != left + dropped + inside {
                return Err(LostError::Frames { arrived, left, dropped, inside });
            }
        }
        let in_programs: i64 = self.accounts().map(|account| account.buffers).sum();
        let mut cpu = SimCpu::on(&mut self.machine, &mut self.cores[0].sim);
        let held = pool.available(&mut *cpu).wrapping_add_signed(in_programs);
        drop(cpu);
        let buffers = pool.count() as u64;
        if held == buffers { Ok(()) } else { Err(LostError::Buffers { buffers, held }) }
    }

    /// What was dropped so far, wherever that was.
    pub fn drops(&self) -> DropCounters {
        let in_nics: Vec<DropCounters> = self.rings().map(|device| device.nic.drops()).collect();
        let in_engines = self.rings().map(|device| &device.nic.transmit.counters().refused);
        let in_programs: Vec<DropCounters> = self.program_drops().collect();
        in_nics.iter().chain(in_engines).chain(&in_programs).collect()
    }

    /// Frames that programs dropped, and those that were lost behind devices that they play.
    pub(super) fn program_drops(&self) -> impl Iterator<Item = DropCounters> {
        self.cores.iter().flat_map(|core| {
            let lost = core.program.queue_drops().iter().cloned();
            lost.chain(std::iter::once(core.program.drops()))
        })
    }
}
