//! Who acts in a world, and where: devices and cores by host and number, the ends of wires.

use super::device::Device;
use super::generator::Generator;
use super::host::Host;
use super::sink::Sink;

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// A traffic source.
    Generator(usize),
    /// A device.
    Device(Place),
    /// A core.
    Core(Place),
    /// What looks at the world at even intervals.
    Observer(usize),
}

/// A device or a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its host.
    pub host: usize,
    /// Its number there.
    pub number: usize,
}

/// The other end of a device's wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What generators send from, and what is sent to the sink.
    Outside,
    /// A device of another host.
    Peer(Place),
    /// A switch, which goes by the last byte of a frame's destination: host 0 is 1. The links that end at devices are its
    /// output ports.
    Switch,
}

/// What is at the other end of wires that lead to no host.
pub struct Outside {
    /// Where frames go.
    pub sink: Sink,
    /// Where they come from: one for each device of the first host, or none.
    pub generators: Vec<Generator>,
}

/// All hosts, or all whose cores are not in the middle of a step.
pub struct Hosts<'a> {
    pub(super) before: &'a mut [Host],
    /// The devices of the host between the others, of which a core waits in its step.
    pub(super) held: Option<&'a mut [Box<dyn Device>]>,
    pub(super) after: &'a mut [Host],
}

impl<'a> Hosts<'a> {
    /// All of `hosts`.
    pub fn all(hosts: &'a mut [Host]) -> Hosts<'a> {
        Hosts { before: hosts, held: None, after: &mut [] }
    }

    /// Host `number`, where no core of it is in the middle of a step.
    pub fn host(&mut self, number: usize) -> Option<&mut Host> {
        match number.checked_sub(self.before.len()) {
            None => self.before.get_mut(number),
            Some(behind) => self.after.get_mut(behind.checked_sub(1)?),
        }
    }

    /// Host `number` and those before and behind it, if no host is held.
    pub(super) fn split(&mut self, number: usize) -> Option<(&mut [Host], &mut Host, &mut [Host])> {
        if self.held.is_some() {
            return None;
        }
        let (before, rest) = self.before.split_at_mut_checked(number)?;
        let (here, after) = rest.split_first_mut()?;
        Some((before, here, after))
    }

    pub(super) fn device(&mut self, place: Place) -> Option<&mut dyn Device> {
        if place.host == self.before.len() && self.held.is_some() {
            return Some(&mut **self.held.as_mut()?.get_mut(place.number)?);
        }
        Some(&mut **self.host(place.host)?.devices.get_mut(place.number)?)
    }
}
