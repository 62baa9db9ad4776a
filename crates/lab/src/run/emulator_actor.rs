//! A core that plays a NIC (interface `emulated`).

use std::collections::VecDeque;

use nicforge_interfaces::emulated::Way;
use nicforge_nic::DropCounters;
use nicforge_platform::sim::{CoreCycles, Host, Lent, MmioWrite, SimCore, SimCpu};
use nicforge_units::Time;

use super::core_time::spent_until;
use super::nic_actor::NicActor;

/// What an emulating core that finds nothing to do waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// It is at work.
    No,
    /// A packet.
    Packet,
    /// A packet, or a doorbell of the emulated NIC, for packets that found no descriptor.
    PacketOrBell,
    /// A doorbell: packets of all its rings found no descriptor.
    Bell,
}

/// The core that plays the NIC behind one port.
pub struct EmulatorActor {
    core: Lent<SimCore>,
    /// Times of publishes to this core that it has not polled for yet, oldest first.
    published: VecDeque<Time>,
    waits: Waits,
    /// Frames of each queue that were lost behind the device, by cause.
    pub drops: Vec<DropCounters>,
    /// Turns in which it moved packets.
    pub turns: u64,
    /// Packets that it moved in them.
    pub moved: u64,
}

impl EmulatorActor {
    /// At the beginning of a run, for a NIC with so many `queues`.
    pub fn new(core: Lent<SimCore>, queues: u16) -> EmulatorActor {
        EmulatorActor {
            core,
            published: VecDeque::new(),
            waits: Waits::Packet,
            drops: vec![DropCounters::default(); usize::from(queues)],
            turns: 0,
            moved: 0,
        }
    }

    /// The device of `nic` published a completion to this core, visible at `time`; returns whether
    /// that wakes it. One whose packet will stand behind another that waits for a doorbell does not.
    pub fn notice(&mut self, nic: &mut NicActor, time: Time) -> bool {
        let number = self.published.len();
        self.published.push_back(time);
        match self.waits {
            Waits::Packet => true,
            Waits::PacketOrBell => {
                let half = nic.played();
                !half.is_some_and(|half| half.will_wait(number))
            }
            Waits::No | Waits::Bell => false,
        }
    }

    /// The core's time.
    pub fn now(&self) -> Time {
        self.core.now()
    }

    /// Where its time went until `now`: as long as it sleeps it polls in vain.
    pub fn spent_until(&self, now: Time) -> CoreCycles {
        spent_until(&self.core, now)
    }

    /// Whether a doorbell of the NIC that it plays wakes it.
    pub fn waits_for_bell(&self) -> bool {
        matches!(self.waits, Waits::Bell | Waits::PacketOrBell)
    }

    /// One step at `now` for the NIC that is `nic`'s; returns the time of the next. As long as it
    /// finds nothing it sleeps, and is charged the polls that it would have made.
    pub fn step(&mut self, host: &mut Lent<Host>, nic: &mut NicActor, now: Time) -> Time {
        let Some(half) = nic.played() else {
            return Time::NEVER;
        };
        self.core.idle_until(now);
        self.core.begin_burst();
        let now = self.core.now();
        let seen = self.published.iter().take_while(|&&time| time <= now);
        let seen = seen.count();
        self.published.drain(..seen);
        let mut way = Way::new(SimCpu::take(host, &mut self.core));
        let came_to = half.emulate(&mut way, seen);
        way.cpu.give_back(host, &mut self.core);
        let (rings, due) = (half.rings(), half.emulation_due());
        self.turns += u64::from(came_to.moved() > 0);
        self.moved += came_to.moved() as u64;
        for lost in &came_to.lost {
            self.drops[usize::from(lost.queue)].count(lost.cause.0);
        }
        nic.nic.counters.bad_register_writes += came_to.refused.len() as u64;
        self.waits = match came_to.stuck {
            _ if came_to.more => Waits::No,
            0 => Waits::Packet,
            stuck if stuck < rings => Waits::PacketOrBell,
            _ => Waits::Bell,
        };
        let packet = match self.waits {
            Waits::No => return self.core.now(),
            Waits::Bell => Time::NEVER,
            Waits::Packet => self.published.front().copied().unwrap_or(Time::NEVER),
            Waits::PacketOrBell => {
                let mut waits = |number| nic.played().is_some_and(|half| half.will_wait(number));
                let mut numbers = 0..self.published.len();
                let next = numbers.find(|&number| !waits(number));
                next.map_or(Time::NEVER, |number| self.published[number])
            }
        };
        packet.min(due).max(self.core.now())
    }

    /// Its register writes since the last call.
    pub fn take_mmio(&mut self) -> std::vec::Drain<'_, MmioWrite> {
        self.core.take_mmio()
    }
}
