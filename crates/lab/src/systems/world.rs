//! All systems and the links between them, in one schedule: the earliest actor runs, ties go to
//! the lowest number. Actors are each system's NICs, then its core, system by system.

use nicforge_interfaces::kernel::KernelNic;
use nicforge_platform::sim::Schedule;
use nicforge_units::Time;

use super::system::System;
use crate::run::RunError;

/// Who an actor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Nic { system: usize, number: usize },
    Core { system: usize },
}

/// Whole systems on their links.
pub struct World {
    /// The systems; the first is the one that is looked at.
    pub systems: Vec<System>,
    /// For each NIC of each system: the system and the NIC at the other end of its link.
    peers: Vec<Vec<(usize, usize)>>,
    actors: Vec<Actor>,
    /// The first actor of each system.
    first_actor: Vec<usize>,
    schedule: Schedule,
}

impl World {
    /// `systems`, of which NIC `n` of system `s` is linked to `peers[s][n]`.
    pub fn new(systems: Vec<System>, peers: Vec<Vec<(usize, usize)>>) -> World {
        let (mut actors, mut first_actor) = (Vec::new(), Vec::new());
        for (system, content) in systems.iter().enumerate() {
            first_actor.push(actors.len());
            let nics = 0..content.nics.len();
            actors.extend(nics.map(|number| Actor::Nic { system, number }));
            actors.push(Actor::Core { system });
        }
        let mut world = World {
            schedule: Schedule::new(actors.len()),
            systems,
            peers,
            actors,
            first_actor,
        };
        for system in 0..world.systems.len() {
            world.carry_all(system);
        }
        world
    }

    /// Runs until `time`.
    ///
    /// # Errors
    /// When nothing will ever happen again before.
    pub fn run_until(&mut self, time: Time) -> Result<(), RunError> {
        loop {
            let (number, due) = self.schedule.earliest();
            if due == Time::NEVER {
                return Err(self.stuck(time));
            }
            if due >= time {
                return Ok(());
            }
            match self.actors[number] {
                Actor::Nic { system, number } => {
                    let interrupts = self.systems[system].step_nic(number);
                    self.carry(system, number);
                    if interrupts {
                        self.reschedule_core(system);
                    }
                }
                Actor::Core { system } => {
                    self.systems[system].step_core();
                    self.carry_all(system);
                }
            }
        }
    }

    /// Everything that a step of a system's core may have changed.
    fn carry_all(&mut self, system: usize) {
        for nic in 0..self.systems[system].nics.len() {
            self.carry(system, nic);
        }
        self.reschedule_core(system);
    }

    /// Frames of NIC `nic` go onto its link, and both ends' NICs are due accordingly.
    fn carry(&mut self, system: usize, nic: usize) {
        let mut sent = false;
        let (peer, peer_nic) = self.peers[system][nic];
        while let Some((time, frame)) = self.systems[system].take_sent(nic) {
            let link = &mut self.systems[peer].nics[peer_nic];
            if let Some(buffer) = link.send_here(time, frame) {
                self.systems[system].nics[nic].nic.port().recycle(buffer);
            }
            sent = true;
        }
        if sent {
            self.reschedule_nic(peer, peer_nic);
        }
        self.reschedule_nic(system, nic);
    }

    fn reschedule_core(&mut self, system: usize) {
        let core = self.first_actor[system] + self.systems[system].nics.len();
        self.schedule.set(core, self.systems[system].core_due());
    }

    fn reschedule_nic(&mut self, system: usize, nic: usize) {
        let due = self.systems[system].nics[nic].due();
        self.schedule.set(self.first_actor[system] + nic, due);
    }

    fn stuck(&self, at: Time) -> RunError {
        let describe = |(number, system): (usize, &System)| {
            format!("system {number}: {}", system.kernel.describe())
        };
        RunError::Stuck {
            at,
            inside: 0,
            actors: self.systems.iter().enumerate().map(describe).collect(),
        }
    }
}
