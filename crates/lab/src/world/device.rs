//! A device of a host, of either family, and how cores reach the devices of their host.

use nicforge_interfaces::kernel::{Frame, KernelNic};
use nicforge_nic::Nic;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_platform::Register;
use nicforge_platform::sim::{Devices, Host as SimHost, Lent, MmioWrite, SimDma};
use nicforge_units::Time;

use super::register_device::RegisterDevice;
use super::ring_device::RingDevice;
use super::sink::Sink;

/// A device of a host.
// There are few, and each is large.
#[allow(clippy::large_enum_variant)]
pub enum Device {
    /// A NIC that shares rings with its drivers.
    Ring(RingDevice),
    /// A NIC that its driver reads registers of.
    Register(RegisterDevice),
}

impl Device {
    /// The NIC of rings that it is, if it is one.
    pub fn ring_nic(&mut self) -> Option<&mut Nic<SimDma>> {
        match self {
            Device::Ring(device) => Some(&mut device.nic),
            Device::Register(_) => None,
        }
    }

    /// The NIC of rings that it is.
    pub fn ring(&self) -> Option<&RingDevice> {
        match self {
            Device::Ring(device) => Some(device),
            Device::Register(_) => None,
        }
    }

    /// When it acts next.
    #[inline]
    pub fn due(&self) -> Time {
        match self {
            Device::Ring(device) => device.due(),
            Device::Register(device) => device.due(),
        }
    }

    /// A core's register write is on its way.
    #[inline]
    pub fn post(&mut self, write: &MmioWrite) {
        match self {
            Device::Ring(device) => device.post(write),
            Device::Register(device) => device.post(*write),
        }
    }

    /// A host at the other end of its link sends a frame, whose last bit leaves it at `time`. Returns a buffer that
    /// the sender may use again, if there is one.
    pub fn send_here(&mut self, time: Time, frame: Frame) -> Option<Frame> {
        match self {
            Device::Ring(device) => {
                device.send_here(time, frame);
                None
            }
            Device::Register(device) => device.send_here(time, frame),
        }
    }

    /// Frames that it has sent to the other end of its link, into `sent`, each with the time when its last bit left.
    pub fn take_sent(&mut self) -> Option<(Time, Frame)> {
        match self {
            Device::Ring(_) => None,
            Device::Register(device) => device.nic.port().take_sent(),
        }
    }

    /// What it waits for, for a run that is stuck.
    pub fn describe(&self) -> Option<String> {
        match self {
            Device::Ring(device) => Some(device.describe()),
            Device::Register(_) => None,
        }
    }
}

/// Frames that leave a NIC of rings for another host.
#[derive(Default)]
pub struct ToPeer {
    /// The frames, each with the time when its last bit left.
    pub frames: Vec<(Time, Frame)>,
}

impl ToPeer {
    fn depart(&mut self, departure: Departure<'_>) {
        self.frames.push((departure.last_bit, departure.pieces.concat().into()));
    }
}

/// The other end of a device's wire.
pub enum Wire<'a> {
    /// What the world's sink receives.
    Outside(&'a mut Sink),
    /// A link to another host.
    Peer(&'a mut ToPeer),
}

/// The way out of a device: its wire, and the other devices of its host.
pub struct WayOut<'a> {
    /// The wire.
    pub wire: Wire<'a>,
    /// Frames that stages send by other devices' ports.
    pub bridged: &'a mut Vec<Bridged>,
}

impl Egress for WayOut<'_> {
    #[inline]
    fn depart(&mut self, departure: Departure<'_>) {
        match &mut self.wire {
            Wire::Outside(sink) => sink.depart(departure),
            Wire::Peer(peer) => peer.depart(departure),
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
    fn step(&mut self, devices: &mut [Device], before: Time) -> bool;
}

/// There are no other hosts, or none that may run.
pub struct Nobody;

impl Elsewhere for Nobody {
    fn step(&mut self, _devices: &mut [Device], _before: Time) -> bool {
        false
    }
}

/// The devices of one host, as its cores reach them.
pub struct Reach<'a> {
    /// The devices.
    pub devices: &'a mut [Device],
    /// The other hosts.
    pub elsewhere: &'a mut dyn Elsewhere,
}

impl Reach<'_> {
    fn register_device(&mut self, number: usize) -> Option<&mut RegisterDevice> {
        match self.devices.get_mut(number) {
            Some(Device::Register(device)) => Some(device),
            _ => None,
        }
    }
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
        if let Some(Device::Ring(device)) = self.devices.get_mut(number) {
            return device.read_register(host, register.index, at);
        }
        let Some(device) = self.register_device(number) else {
            return (u64::MAX, at);
        };
        // Another core may have been ahead; the writes that come before this read have to be there.
        let at = device.catch_up_to(host, at);
        let Some(most) = device.nic.blocks(register.index) else {
            return device.answer(host, register.index);
        };
        // What comes in meanwhile may be what is waited for, and may not have been sent yet.
        let limit = at + most;
        loop {
            let next = match self.register_device(number) {
                Some(device) if device.nic.blocks(register.index).is_some() => device.due(),
                _ => break,
            };
            if self.elsewhere.step(self.devices, next.min(limit)) {
                continue;
            }
            if next > limit {
                break;
            }
            if let Some(device) = self.register_device(number) {
                device.step(host);
            }
        }
        let Some(device) = self.register_device(number) else {
            return (u64::MAX, at);
        };
        let (value, given) = device.answer(host, register.index);
        (value, given.min(limit))
    }
}
