//! A core that plays a NIC (interface `emulated`).

use std::collections::VecDeque;

use nicforge_nic::DropCounters;
use nicforge_platform::sim::{Host, MmioWrite, SimCore, SimCpu};
use nicforge_units::Time;

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
    core: SimCore,
    /// Times of publishes to this core that it has not polled for yet, oldest first.
    published: VecDeque<Time>,
    waits: Waits,
    /// Frames that were lost behind the device, by cause.
    pub drops: DropCounters,
}

impl EmulatorActor {
    /// At the beginning of a run.
    pub fn new(core: SimCore) -> EmulatorActor {
        EmulatorActor {
            core,
            published: VecDeque::new(),
            waits: Waits::Packet,
            drops: DropCounters::default(),
        }
    }

    /// Something was published to this core, visible at `time`; returns whether that wakes it.
    pub fn notice(&mut self, time: Time) -> bool {
        self.published.push_back(time);
        matches!(self.waits, Waits::Packet | Waits::PacketOrBell)
    }

    /// The core's time.
    pub fn now(&self) -> Time {
        self.core.now()
    }

    /// Whether a doorbell of the NIC that it plays wakes it.
    pub fn waits_for_bell(&self) -> bool {
        matches!(self.waits, Waits::Bell | Waits::PacketOrBell)
    }

    /// One step at `now` for the NIC that is `nic`'s; returns the time of the next. As long as it
    /// finds nothing it sleeps, and is charged the polls that it would have made.
    pub fn step(&mut self, host: &mut Host, nic: &mut NicActor, now: Time) -> Time {
        let Some(half) = nic.nic.receive.emulated() else {
            return Time::NEVER;
        };
        self.core.idle_until(now);
        self.core.begin_burst();
        while self
            .published
            .front()
            .is_some_and(|&time| time <= self.core.now())
        {
            self.published.pop_front();
        }
        let came_to = half.emulate(&mut SimCpu::new(host, &mut self.core));
        let (due, rings) = (half.emulation_due(), half.rings());
        for lost in &came_to.lost {
            self.drops.count(lost.cause.0);
        }
        nic.nic.counters.bad_register_writes += came_to.refused;
        self.waits = match came_to.waiting {
            _ if came_to.passed > 0 || !came_to.lost.is_empty() => Waits::No,
            0 => Waits::Packet,
            waiting if waiting < rings => Waits::PacketOrBell,
            _ => Waits::Bell,
        };
        let published = self.published.front().copied().unwrap_or(Time::NEVER);
        match self.waits {
            Waits::No => self.core.now(),
            Waits::Packet | Waits::PacketOrBell => published.min(due),
            Waits::Bell => due,
        }
    }

    /// Its register writes since the last call.
    pub fn take_mmio(&mut self) -> std::vec::Drain<'_, MmioWrite> {
        self.core.take_mmio()
    }
}
