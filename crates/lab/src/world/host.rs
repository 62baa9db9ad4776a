//! A host: memory, devices, cores, and what these run.

use std::collections::VecDeque;

use nicforge_interfaces::emulated::CoreDma;
use nicforge_nic::{DropCounters, Nic};
use nicforge_platform::sim::{CoreCycles, Host as SimHost, Lent, SimCore, SimCpu};
use nicforge_units::Time;

use super::core_time::spent_until;
use super::device::Device;
use super::program::{Account, Program};
use super::ring_device::RingDevice;

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

/// What a NIC that cores play dropped, on the way in and out.
fn drops_of_whole(nic: &Nic<CoreDma<SimCpu>>) -> [DropCounters; 2] {
    [nic.drops(), nic.transmit.counters().refused.clone()]
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
    /// The cores that play each device.
    pub(super) players: Vec<Vec<usize>>,
    /// The core that each device interrupts.
    pub(super) interrupted: Vec<usize>,
}

impl Host {
    /// A host whose cores own memory lines by their own numbers. Each device interrupts one core, in turn.
    pub fn new(machine: Lent<SimHost>, devices: Vec<Box<dyn Device>>, cores: Vec<Core>) -> Host {
        let count = cores.len().max(1);
        Host {
            owners: (0..cores.len()).collect(),
            players: vec![Vec::new(); devices.len()],
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
        self.players[device].push(core);
        if self.owners.len() <= owner {
            self.owners.resize(owner + 1, core);
        }
        self.owners[owner] = core;
    }

    /// The cores that play device `device`.
    pub fn players_of(&self, device: usize) -> impl Iterator<Item = &Core> {
        self.players[device].iter().map(|&core| &self.cores[core])
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

    /// What was dropped so far, wherever that was.
    pub fn drops(&self) -> DropCounters {
        let in_nics: Vec<DropCounters> = self.rings().map(|device| device.nic.drops()).collect();
        let played: Vec<DropCounters> = self.rings().filter_map(RingDevice::whole).flat_map(drops_of_whole).collect();
        let in_engines = self.rings().map(|device| &device.nic.transmit.counters().refused);
        let in_programs: Vec<DropCounters> = self.program_drops().collect();
        in_nics.iter().chain(&played).chain(in_engines).chain(&in_programs).collect()
    }

    /// Frames that programs dropped, and those that were lost behind devices that they play.
    pub(super) fn program_drops(&self) -> impl Iterator<Item = DropCounters> {
        self.cores.iter().flat_map(|core| {
            let lost = core.program.queue_drops().iter().cloned();
            lost.chain(std::iter::once(core.program.drops()))
        })
    }
}
