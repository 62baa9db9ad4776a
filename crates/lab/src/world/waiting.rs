//! What goes on at other hosts while a core waits for its device.
//!
//! A core's step runs to its end before any other agent's begins. A read that blocks is the exception: what it waits for
//! may come from a host whose time has not come yet. Then the other hosts go on, up to when something happens at the
//! device, and frames reach it as they are sent.

use nicforge_units::Time;

use super::agents::{Agent, Hosts, Outside, Place};
use super::device::{Device, Elsewhere};
use super::host::Host;
use super::net::Net;

impl Net {
    /// No agent of `host` acts until its core's step is over.
    pub(super) fn hold(&mut self, host: usize) {
        if self.held == Some(host) {
            return;
        }
        self.held = Some(host);
        for number in (0..self.agents.len()).filter(|&number| self.is_held(number)).collect::<Vec<_>>() {
            self.schedule.set(number, Time::NEVER);
        }
    }

    /// The host's agents act again.
    pub(super) fn release(&mut self) {
        self.held = None;
        for (number, &due) in self.due.iter().enumerate() {
            self.schedule.set(number, due);
        }
    }
}

/// All hosts but the one of which a core is in the middle of a step.
pub(super) struct Others<'a> {
    /// The number of that host.
    pub(super) host: usize,
    pub(super) before: &'a mut [Host],
    pub(super) after: &'a mut [Host],
    pub(super) net: &'a mut Net,
    pub(super) outside: &'a mut Outside,
}

impl Elsewhere for Others<'_> {
    fn step(&mut self, devices: &mut [Box<dyn Device>], before: Time) -> bool {
        let count = devices.len();
        let mut hosts = Hosts { before: self.before, held: Some(devices), after: self.after };
        self.net.hold(self.host);
        for number in 0..count {
            self.net.carry(&mut hosts, Place { host: self.host, number });
        }
        let (agent, due) = self.net.earliest();
        if due >= before {
            return false;
        }
        match agent {
            Agent::Generator(number) => self.net.step_generator(&mut hosts, self.outside, number),
            Agent::Device(place) => self.net.step_device(&mut hosts, self.outside, place, due),
            Agent::Core(place) => self.net.step_core(&mut hosts, self.outside, place, due),
            // Observers are held with any host.
            Agent::Observer(_) => return false,
        }
        true
    }
}
