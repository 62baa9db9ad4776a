//! A core that plays a NIC (interface `emulated`).

use nicforge_interfaces::emulated::{self, BURST, CoreDma, NicHalf, TRANSMIT_ENTRIES, Whole};
use nicforge_nic::{DropCounters, Nic};
use nicforge_platform::Sim;
use nicforge_platform::sim::{SimCpu, SimDma};
use nicforge_units::Time;

use super::device::Device;
use super::program::{Account, Here, Next, Notice, Program};

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

/// The program that plays the NIC behind one device.
pub struct EmulatorProgram {
    device: usize,
    waits: Waits,
    /// Frames of each queue that were lost behind the device, by cause.
    drops: Vec<DropCounters>,
    /// Turns in which it moved packets.
    turns: u64,
    /// Packets that it moved in them.
    moved: u64,
    /// The physical NIC has no room for what it would send.
    is_full: bool,
}

impl EmulatorProgram {
    /// At the beginning of a run, for device `device`, which has so many `queues`.
    pub fn new(device: usize, queues: u16) -> EmulatorProgram {
        EmulatorProgram {
            device,
            waits: Waits::Packet,
            drops: vec![DropCounters::default(); usize::from(queues)],
            turns: 0,
            moved: 0,
            is_full: false,
        }
    }
}

/// The NIC that a core plays behind `nic`, if one does.
fn played(nic: &mut Nic<SimDma>) -> Option<&mut NicHalf<Sim>> {
    emulated::played::<Sim>(&mut *nic.receive)
}

/// Frames that the physical NIC still takes from cores that play another.
fn room(nic: &Nic<SimDma>) -> u64 {
    TRANSMIT_ENTRIES.saturating_sub(nic.transmit.internal_inside())
}

impl Program for EmulatorProgram {
    /// As long as it finds nothing it sleeps, and is charged the polls that it would have made.
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.core.idle_until(here.now);
        here.core.begin_burst();
        let now = here.core.now();
        let seen = here.published.iter().take_while(|&&time| time <= now).count();
        here.published.drain(..seen);
        let Some(device) = here.devices[self.device].rings_mut() else {
            return Next::Event;
        };
        let room = room(&device.nic);
        let Some(half) = played(&mut device.nic) else {
            return Next::Event;
        };
        let mut way = CoreDma::new(SimCpu::take(here.machine, here.core));
        let came_to = half.emulate(&mut way, seen);
        let mut frames = Vec::new();
        let sends = half.whole_mut().map(|whole| whole.flush(&mut way, room, &mut frames));
        way.cpu.give_back(here.machine, here.core);
        self.is_full = frames.len() as u64 == room && sends.is_some();
        let sends = sends.filter(|_| !self.is_full).unwrap_or(Time::NEVER);
        device.take_from_core(frames.into_iter());
        let nic = &mut device.nic;
        nic.counters.bad_register_writes += came_to.refused.len() as u64;
        let Some(half) = played(nic) else {
            return Next::Event;
        };
        self.turns += u64::from(came_to.moved() > 0);
        self.moved += came_to.moved() as u64;
        for lost in &came_to.lost {
            self.drops[usize::from(lost.queue)].count(lost.cause.0);
        }
        self.waits = match came_to.stuck {
            _ if came_to.more => Waits::No,
            0 => Waits::Packet,
            stuck if stuck < half.rings() => Waits::PacketOrBell,
            _ => Waits::Bell,
        };
        let moves = |&(number, _): &(usize, &Time)| !half.will_wait(number);
        let packet = match self.waits {
            Waits::No => return Next::Again,
            Waits::Bell => Time::NEVER,
            Waits::Packet => here.published.front().copied().unwrap_or(Time::NEVER),
            Waits::PacketOrBell => {
                let next = here.published.iter().enumerate().find(moves);
                next.map_or(Time::NEVER, |(_, &time)| time)
            }
        };
        Next::At(packet.min(half.emulation_due()).min(sends))
    }

    /// One whose packet will stand behind another that waits for a doorbell does not wake.
    fn notice(&mut self, devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        let wakes = match self.waits {
            Waits::Packet => true,
            Waits::PacketOrBell => {
                let nic = devices[self.device].rings_mut().map(|device| &mut device.nic);
                let half = nic.and_then(played);
                !half.is_some_and(|half| half.will_wait(notice.behind))
            }
            Waits::No | Waits::Bell => false,
        };
        wakes.then(|| notice.at.max(notice.now))
    }

    fn device_acted(&mut self, device: &mut dyn Device, now: Time, core: Time) -> Option<Time> {
        if self.is_full && device.rings().is_some_and(|device| room(&device.nic) > 0) {
            return Some(core.max(now));
        }
        let waits = matches!(self.waits, Waits::Bell | Waits::PacketOrBell);
        let rang =
            waits && device.rings_mut().and_then(|device| played(&mut device.nic)).is_some_and(|half| half.rang());
        rang.then(|| core.max(now))
    }

    fn account(&self) -> Account {
        Account { bursts: self.turns, moved: self.moved, ..Account::default() }
    }

    fn queue_drops(&self) -> &[DropCounters] {
        &self.drops
    }
}

/// The program that sends for a NIC that cores play whole.
pub struct SenderProgram {
    device: usize,
    /// The physical NIC has no room for what it would send.
    is_full: bool,
    turns: u64,
    moved: u64,
}

impl SenderProgram {
    /// At the beginning of a run, for device `device`.
    pub fn new(device: usize) -> SenderProgram {
        SenderProgram { device, is_full: false, turns: 0, moved: 0 }
    }
}

impl Program for SenderProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.core.idle_until(here.now);
        here.core.begin_burst();
        let Some(device) = here.devices[self.device].rings_mut() else {
            return Next::Event;
        };
        let room = room(&device.nic);
        let Some(whole) = whole(&mut device.nic) else {
            return Next::Event;
        };
        let mut way = CoreDma::new(SimCpu::take(here.machine, here.core));
        let (mut frames, bad) = (Vec::new(), whole.nic.counters.bad_register_writes);
        let due = whole.send(&mut way, room.min(BURST as u64), &mut frames);
        let bad = whole.nic.counters.bad_register_writes - bad;
        way.cpu.give_back(here.machine, here.core);
        device.nic.counters.bad_register_writes += bad;
        self.is_full = room == 0;
        self.turns += u64::from(!frames.is_empty());
        self.moved += frames.len() as u64;
        device.take_from_core(frames.into_iter());
        Next::At(if self.is_full { Time::NEVER } else { due })
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], _notice: Notice) -> Option<Time> {
        None
    }

    fn device_acted(&mut self, device: &mut dyn Device, now: Time, core: Time) -> Option<Time> {
        let device = device.rings_mut()?;
        let has_room = self.is_full && room(&device.nic) > 0;
        let acts = has_room || whole(&mut device.nic).is_some_and(|whole| whole.rang());
        acts.then(|| core.max(now))
    }

    fn account(&self) -> Account {
        Account { bursts: self.turns, moved: self.moved, ..Account::default() }
    }
}

/// The NIC behind `nic` that cores play whole, if they do.
fn whole(nic: &mut Nic<SimDma>) -> Option<&mut Whole<SimCpu>> {
    played(nic)?.whole_mut()
}
