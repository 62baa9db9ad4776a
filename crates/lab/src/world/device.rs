//! A device of a host, and how cores reach the devices of their host.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::DropCounters;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_platform::Register;
use nicforge_platform::sim::{Devices, DmaPort, Host as SimHost, Lent, MmioWrite};
use nicforge_units::Time;
use nicforge_wire::traffic::Arrival;

use super::ring_device::RingDevice;
use super::sink::Sink;

/// A NIC with its way to memory, the register writes on their way to it, and the link that ends at it.
pub trait Device {
    /// When it acts next.
    fn due(&self) -> Time;

    /// Does what is due at `now`.
    fn step(&mut self, host: &mut Lent<SimHost>, out: &mut WayOut<'_>, now: Time);

    /// A core's register write is on its way.
    fn post(&mut self, write: &MmioWrite);

    /// A traffic source sends `frame`, whose last bit arrives at `last_bit`.
    fn receive(&mut self, host: &mut Lent<SimHost>, frame: &Arrival<'_>, last_bit: Time);

    /// A host at the other end of its link sends a frame, whose last bit leaves it at `time`. Returns a buffer that
    /// the sender may use again, if there is one.
    fn send_here(&mut self, time: Time, frame: Frame) -> Option<Frame>;

    /// The next frame that it has sent to the other end of its link, with the time when its last bit left.
    fn take_sent(&mut self) -> Option<(Time, Frame)>;

    /// Takes back a buffer for frames that it sends.
    fn recycle(&mut self, _buffer: Frame) {}

    /// Whether it may have sent frames, raised an interrupt or changed [`due`](Self::due) since the last call of
    /// [`take_touched`](Self::take_touched).
    fn is_touched(&self) -> bool;

    /// The same, which is known from then on.
    fn take_touched(&mut self) -> bool;

    /// Its way to memory.
    fn port(&mut self) -> &mut Lent<DmaPort>;

    /// Brings it up to `at`, or to where it is already, for a register read that arrives then; returns that time.
    fn catch_up_to(&mut self, host: &mut Lent<SimHost>, at: Time) -> Time;

    /// Whether a read of register `index` would block now, and how long at most.
    fn blocks(&self, _index: u32) -> Option<Time> {
        None
    }

    /// Does the one thing that is due first, for a read that blocks.
    fn step_first(&mut self, _host: &mut Lent<SimHost>) {}

    /// Answers a read of register `index` at `at`, up to which it was brought. Returns the value, and when it gives it.
    fn answer(&mut self, host: &mut Lent<SimHost>, index: u32, at: Time) -> (u64, Time);

    /// What it counted.
    fn tally(&mut self) -> Tally;

    /// Frames that its link lost.
    fn lost_on_link(&self) -> u64;

    /// All register writes so far arrive: the run begins with a NIC that its driver has brought up.
    fn bring_up(&mut self, host: &mut Lent<SimHost>);

    /// All that is on its way here arrives: nobody sends more. Returns when that is.
    fn take_all(&mut self, host: &mut Lent<SimHost>) -> Time;

    /// Counts a frame that never came.
    #[cfg(test)]
    fn miscount(&mut self) {}

    /// What it waits for, for a run that is stuck.
    fn describe(&self) -> Option<String> {
        None
    }

    /// The NIC of rings that it is, if it is one.
    fn rings(&self) -> Option<&RingDevice> {
        None
    }

    /// The same, to change something.
    fn rings_mut(&mut self) -> Option<&mut RingDevice> {
        None
    }
}

/// Frames of a device, and the bytes of some.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Frames that came in.
    pub arrived: Count,
    /// Frames that left.
    pub sent: Count,
    /// Frames that came in and that it holds.
    pub received_inside: u64,
    /// Frames that it could not take, by cause.
    pub drops: DropCounters,
    /// What else it counted: errors of its driver, above all.
    pub errors: DropCounters,
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, more: Count) {
        self.frames += more.frames;
        self.bytes += more.bytes;
    }
}

/// The way out of a device: its wire, and the other devices of its host.
pub struct WayOut<'a> {
    /// What the world's sink receives; without it frames leave for another host.
    pub sink: Option<&'a mut Sink>,
    /// Frames that left for another host, each with the time when its last bit did.
    pub sent: VecDeque<(Time, Frame)>,
    /// Frames that stages send by other devices' ports.
    pub bridged: &'a mut Vec<Bridged>,
}

impl Egress for WayOut<'_> {
    #[inline]
    fn depart(&mut self, departure: Departure<'_>) {
        match &mut self.sink {
            Some(sink) => sink.depart(departure),
            None => self.sent.push_back((departure.last_bit, departure.pieces.concat().into())),
        }
    }

    fn bridge(&mut self, frame: Bridged) {
        self.bridged.push(frame);
    }
}

/// What other hosts do while a core waits for its device.
pub trait Elsewhere {
    /// Does the first thing that is due there before `before`. Frames that `devices` have sent arrive there, and frames
    /// from there come to them. Returns whether there was one.
    fn step(&mut self, devices: &mut [Box<dyn Device>], before: Time) -> bool;
}

/// There are no other hosts, or none that may run.
pub struct Nobody;

impl Elsewhere for Nobody {
    fn step(&mut self, _devices: &mut [Box<dyn Device>], _before: Time) -> bool {
        false
    }
}

/// The devices of one host, as its cores reach them.
pub struct Reach<'a> {
    /// The devices.
    pub devices: &'a mut [Box<dyn Device>],
    /// The other hosts.
    pub elsewhere: &'a mut dyn Elsewhere,
}

impl Devices for Reach<'_> {
    fn write(&mut self, _host: &mut Lent<SimHost>, write: &MmioWrite) {
        if let Some(device) = self.devices.get_mut(usize::from(write.register.device)) {
            device.post(write);
        }
    }

    fn read(&mut self, host: &mut Lent<SimHost>, register: Register, at: Time) -> (u64, Time) {
        let number = usize::from(register.device);
        // Nothing answers for a device that is not there: all ones, as on a PCI bus.
        let Some(device) = self.devices.get_mut(number) else {
            return (u64::MAX, at);
        };
        // Another core may have been ahead; the writes that come before this read have to be there.
        let at = device.catch_up_to(host, at);
        let Some(most) = device.blocks(register.index) else {
            return device.answer(host, register.index, at);
        };
        // What comes in meanwhile may be what is waited for, and may not have been sent yet.
        let limit = at + most;
        while self.devices[number].blocks(register.index).is_some() {
            let next = self.devices[number].due();
            if self.elsewhere.step(self.devices, next.min(limit)) {
                continue;
            }
            if next > limit {
                break;
            }
            self.devices[number].step_first(host);
        }
        let (value, given) = self.devices[number].answer(host, register.index, at);
        (value, given.min(limit))
    }
}
