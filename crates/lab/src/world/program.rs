//! What cores run: one step at a time.

use std::collections::VecDeque;

use nicforge_nic::DropCounters;
use nicforge_platform::sim::{DeviceReader, Host as SimHost, Lent, SimCore, SimCpu, Turn};
use nicforge_units::Time;

use super::device::{Device, Elsewhere, Reach};

/// What a program wants after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its next step follows at once.
    Again,
    /// It sleeps until then, or until an event before.
    At(Time),
    /// It sleeps until something is published to its core.
    Event,
}

/// A core in the middle of a step, and what its program reaches from there.
pub struct Here<'a> {
    /// When the step begins.
    pub now: Time,
    /// Memory and caches.
    pub machine: &'a mut Lent<SimHost>,
    /// The core.
    pub core: &'a mut Lent<SimCore>,
    /// Publishes to this core that the program has not looked for yet, oldest first, each with the time from which it
    /// is visible.
    pub published: &'a mut VecDeque<Time>,
    /// The host's devices.
    pub devices: &'a mut [Box<dyn Device>],
    /// What other hosts do while a register read blocks.
    pub elsewhere: &'a mut dyn Elsewhere,
}

impl Here<'_> {
    /// The core as software sees it, on a host whose devices answer no register reads.
    pub fn cpu(&mut self) -> Turn<'_, SimCpu> {
        SimCpu::on(self.machine, self.core)
    }

    /// Begins a round: time comes to now, and what was published until then is seen.
    pub fn begin_round(&mut self) {
        self.core.idle_until(self.now);
        while self.published.front().is_some_and(|&time| time <= self.core.now()) {
            self.published.pop_front();
        }
        self.core.begin_burst();
    }

    /// Sleeps until `due`, or until something is published.
    pub fn sleep(&self, due: Time) -> Next {
        let published = self.published.front().copied().unwrap_or(Time::NEVER);
        Next::At(due.min(published))
    }

    /// Runs `work` on the core, with devices that answer register reads.
    pub fn with_devices<T>(&mut self, work: impl FnOnce(&mut DeviceReader<'_>) -> T) -> T {
        let mut reach = Reach { devices: self.devices, elsewhere: self.elsewhere };
        work(&mut DeviceReader::on(self.machine, self.core, &mut reach))
    }
}

/// Frames and buffers of a program: for the sum at the end of a run, and for what is measured.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Frames taken out of receive rings.
    pub taken: u64,
    /// Frames given to transmit rings.
    pub pushed: u64,
    /// Frames that ended at an application.
    pub kept: u64,
    /// Frames between poll and flush.
    pub in_hand: u64,
    /// Packet buffers that it answers for; only the sum over all programs counts, as drivers may fill each other's
    /// buffers.
    pub buffers: i64,
    /// Receive calls that brought packets, or turns that moved some.
    pub bursts: u64,
    /// Packets that those moved, where that is not `taken`.
    pub moved: u64,
    /// Transmit entries in use, summed over pushes.
    pub transmit_used: u64,
    /// Transmit entries that there are, summed likewise.
    pub transmit_entries: u64,
    /// Packet buffers that it wanted and did not get.
    pub refused_buffers: u64,
    /// Bytes that it copied.
    pub copied: u64,
}

/// What a core runs.
pub trait Program {
    /// One step.
    fn step(&mut self, here: &mut Here<'_>) -> Next;

    /// The publish with number `number` since the last look arrives at `time`; the core's time is `now`, and it
    /// `sleeps` or has a step before it. Returns when it wakes, if this wakes it.
    fn notice(&mut self, devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        let _ = devices;
        notice.sleeps.then_some(notice.at)
    }

    /// Device `device`, which interrupts this core, raised an interrupt that arrives at `at`.
    fn interrupt(&mut self, device: usize, at: Time) {
        let _ = (device, at);
    }

    /// Cores to which it has given something to do since the last call, each with the time from which it is there.
    fn take_wakes(&mut self, into: &mut Vec<Wake>) {
        let _ = into;
    }

    /// The device that it plays did something at `now`, and the core's own time is `core`. Returns when it wakes, if
    /// that wakes it.
    fn device_acted(&mut self, device: &mut dyn Device, now: Time, core: Time) -> Option<Time> {
        let _ = (device, now, core);
        None
    }

    /// What it has of frames and buffers.
    fn account(&self) -> Account {
        Account::default()
    }

    /// Frames that it dropped, by cause.
    fn drops(&self) -> DropCounters {
        DropCounters::default()
    }

    /// Frames of each queue of the device that it plays that it lost.
    fn queue_drops(&self) -> &[DropCounters] {
        &[]
    }

    /// Its application's own counters.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether it polls receive rings, and sleeps while they are empty.
    fn polls_rings(&self) -> bool {
        false
    }

    /// Whether it goes on for ever and moves no frames.
    fn is_endless(&self) -> bool {
        false
    }

    /// What it waits for, for a run that is stuck; nothing, if it never ends.
    fn describe(&self) -> Option<String> {
        None
    }
}

/// A publish to a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How many others the program has not looked for yet.
    pub behind: usize,
    /// From when on it is visible.
    pub at: Time,
    /// The core's time.
    pub now: Time,
    /// Whether no step of the core is due.
    pub sleeps: bool,
}

/// A core of the same host that has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Which.
    pub core: usize,
    /// From when on.
    pub at: Time,
}
