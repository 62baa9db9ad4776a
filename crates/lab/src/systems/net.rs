//! The schedule of all systems and the links between them, and what goes on elsewhere while a core
//! waits for its NIC.
//!
//! A core's step runs to its end before anybody else's begins. A read that blocks is the exception:
//! what it waits for may come from a system whose time has not come yet. Then the other systems go
//! on, up to when something happens at the NIC, and frames reach it as they are sent.

use nicforge_interfaces::kernel::KernelNic;
use nicforge_units::Time;

use super::nic_slot::{Elsewhere, NicSlot, Nobody};
use super::system::System;

/// Who an actor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A NIC.
    Nic {
        /// Its system.
        system: usize,
        /// Which.
        number: usize,
    },
    /// A core.
    Core {
        /// Its system.
        system: usize,
        /// Which.
        number: usize,
    },
}

/// Systems, by number.
pub trait Systems {
    /// System `number`, where no core of it is in the middle of a step.
    fn system(&mut self, number: usize) -> Option<&mut System>;

    /// NIC `nic` of system `system`.
    fn slot(&mut self, system: usize, nic: usize) -> &mut NicSlot;
}

impl Systems for Vec<System> {
    fn system(&mut self, number: usize) -> Option<&mut System> {
        self.get_mut(number)
    }

    fn slot(&mut self, system: usize, nic: usize) -> &mut NicSlot {
        &mut self[system].nics[nic]
    }
}

/// Links, and when everybody is due.
pub struct Net {
    /// For each NIC of each system: the system and the NIC at the other end of its link.
    peers: Vec<Vec<(usize, usize)>>,
    actors: Vec<Actor>,
    /// The first actor of each system.
    first_actor: Vec<usize>,
    /// When each actor is due. They are few: whoever is first is looked for among all.
    due: Vec<Time>,
    /// A system of which a core is in the middle of a step, and waits: nobody else of it runs.
    held: Option<usize>,
}

impl Net {
    /// That of `systems`, of which NIC `n` of system `s` is linked to `peers[s][n]`.
    pub fn new(systems: &[System], peers: Vec<Vec<(usize, usize)>>) -> Net {
        let (mut actors, mut first_actor) = (Vec::new(), Vec::new());
        for (system, content) in systems.iter().enumerate() {
            first_actor.push(actors.len());
            let nics = 0..content.nics.len();
            actors.extend(nics.map(|number| Actor::Nic { system, number }));
            let cores = 0..content.cores.len();
            actors.extend(cores.map(|number| Actor::Core { system, number }));
        }
        Net { due: vec![Time::NEVER; actors.len()], peers, actors, first_actor, held: None }
    }

    /// Who is due first, and when, of equals the lowest number; nobody if all wait.
    #[inline]
    pub fn earliest(&self) -> Option<(Actor, Time)> {
        let (mut first, mut earliest) = (0, Time::NEVER);
        for (number, &due) in self.due.iter().enumerate() {
            if due < earliest {
                (first, earliest) = (number, due);
            }
        }
        (earliest < Time::NEVER).then(|| (self.actors[first], earliest))
    }

    /// A step of a NIC.
    pub fn step_nic(&mut self, systems: &mut impl Systems, system: usize, number: usize) {
        let Some(here) = systems.system(system) else {
            return;
        };
        if here.step_nic(number) {
            self.reschedule_cores(here, system);
        }
        self.carry(systems, system, number);
    }

    /// Everything that a step of one of a system's cores may have changed.
    pub fn carry_all(&mut self, systems: &mut impl Systems, system: usize) {
        let released = self.held == Some(system);
        let Some(here) = systems.system(system) else {
            return;
        };
        self.reschedule_cores(here, system);
        let nics = here.nics.len();
        if !released && !here.nics.iter().any(NicSlot::is_touched) {
            return;
        }
        if released {
            self.held = None;
            for (number, slot) in here.nics.iter().enumerate() {
                self.set_nic_due(system, number, slot.due());
            }
        }
        for nic in 0..nics {
            self.carry(systems, system, nic);
        }
    }

    /// Frames of NIC `nic` go onto its link, and both ends' NICs are due accordingly.
    fn carry(&mut self, systems: &mut impl Systems, system: usize, nic: usize) {
        let slot = systems.slot(system, nic);
        if !slot.take_touched() {
            return;
        }
        let (has_sent, due) = (slot.nic.port().has_sent(), slot.due());
        self.set_nic_due(system, nic, due);
        if has_sent {
            self.carry_frames(systems, system, nic);
        }
    }

    fn carry_frames(&mut self, systems: &mut impl Systems, system: usize, nic: usize) {
        let (peer, peer_nic) = self.peers[system][nic];
        while let Some((time, frame)) = systems.slot(system, nic).nic.port().take_sent() {
            let back = systems.slot(peer, peer_nic).send_here(time, frame);
            if let Some(buffer) = back {
                systems.slot(system, nic).nic.port().recycle(buffer);
            }
        }
        let due = systems.slot(peer, peer_nic).due();
        self.set_nic_due(peer, peer_nic, due);
    }

    #[inline]
    fn set_nic_due(&mut self, system: usize, nic: usize, due: Time) {
        if self.held != Some(system) {
            self.due[self.first_actor[system] + nic] = due;
        }
    }

    fn reschedule_cores(&mut self, here: &System, system: usize) {
        let first = self.first_actor[system] + here.nics.len();
        // Mostly one, for which a call that copies is longer than the copy.
        for (due, &wakes) in self.due[first..].iter_mut().zip(here.cores_due()) {
            *due = wakes;
        }
    }

    /// Nobody of `system` runs until its core's step is over.
    fn hold(&mut self, system: usize) {
        if self.held == Some(system) {
            return;
        }
        self.held = Some(system);
        for (actor, due) in self.actors.iter().zip(&mut self.due) {
            let (Actor::Nic { system: of, .. } | Actor::Core { system: of, .. }) = *actor;
            if of == system {
                *due = Time::NEVER;
            }
        }
    }
}

/// All systems but the one of which a core is in the middle of a step.
pub struct Others<'a> {
    /// The number of that system.
    pub system: usize,
    /// Those before it.
    pub before: &'a mut [System],
    /// Those behind it.
    pub after: &'a mut [System],
    /// The schedule.
    pub net: &'a mut Net,
}

/// The same with that system's NICs.
struct Reach<'a> {
    before: &'a mut [System],
    slots: &'a mut [NicSlot],
    after: &'a mut [System],
}

impl Systems for Reach<'_> {
    fn system(&mut self, number: usize) -> Option<&mut System> {
        match number.checked_sub(self.before.len()) {
            None => self.before.get_mut(number),
            Some(behind) => self.after.get_mut(behind.checked_sub(1)?),
        }
    }

    fn slot(&mut self, system: usize, nic: usize) -> &mut NicSlot {
        match system.checked_sub(self.before.len()) {
            None => &mut self.before[system].nics[nic],
            Some(0) => &mut self.slots[nic],
            Some(behind) => &mut self.after[behind - 1].nics[nic],
        }
    }
}

impl Elsewhere for Others<'_> {
    fn step(&mut self, slots: &mut [NicSlot], before: Time) -> bool {
        let (net, nics) = (&mut *self.net, slots.len());
        let mut reach = Reach { before: self.before, slots, after: self.after };
        net.hold(self.system);
        for nic in 0..nics {
            net.carry(&mut reach, self.system, nic);
        }
        let first = net.earliest().filter(|&(_, due)| due < before);
        let Some((actor, _)) = first else {
            return false;
        };
        match actor {
            Actor::Nic { system, number } => net.step_nic(&mut reach, system, number),
            Actor::Core { system, number } => {
                if let Some(there) = reach.system(system) {
                    // A core there that waits for its own NIC knows what is on its link.
                    there.step_core(number, &mut Nobody);
                }
                net.carry_all(&mut reach, system);
            }
        }
        true
    }
}
