//! Who acts next, and what each step delivers to others: frames, register writes, interrupts, publishes.

use std::collections::VecDeque;

use nicforge_nic::PortId;
use nicforge_nic::transmit::Bridged;
use nicforge_platform::sim::Schedule;
use nicforge_units::Time;

use super::agents::{Agent, End, Hosts, Outside, Place};
use super::device::{Device, Elsewhere, Nobody, WayOut};
use super::generator::returned;
use super::host::{Core, Host};
use super::program::{Here, Next, Notice, Wake};
use super::sink::Captured;
use super::waiting::Others;

/// The schedule, and the wires between devices.
pub struct Net {
    pub(super) schedule: Schedule,
    pub(super) agents: Vec<Agent>,
    /// When each agent is due, whether or not its host is held.
    pub(super) due: Vec<Time>,
    /// For each device of each host, the other end of its wire.
    ends: Vec<Vec<End>>,
    /// The first device's agent of each host, and its first core's.
    first_device: Vec<usize>,
    first_core: Vec<usize>,
    /// A host of which a core is in the middle of a step, and waits: no other agent of it runs.
    pub(super) held: Option<usize>,
    wakes: Vec<Wake>,
    bridged: Vec<Bridged>,
    /// Frames that the switch had no port for.
    pub(super) unswitched: u64,
    /// Frames that it saw, if they are kept.
    pub(super) capture: Option<Vec<Captured>>,
}

impl Net {
    /// For `hosts`, whose wires end as `ends` says, with so many `generators` and `observers`. All agents wait. They are
    /// numbered in this order: generators, then each host's devices and cores, then observers; of those that are due
    /// together the lowest number acts first.
    pub fn new(hosts: &[Host], ends: Vec<Vec<End>>, generators: usize, observers: usize) -> Net {
        let mut agents: Vec<Agent> = (0..generators).map(Agent::Generator).collect();
        let (mut first_device, mut first_core) = (Vec::new(), Vec::new());
        for (host, content) in hosts.iter().enumerate() {
            let place = |number| Place { host, number };
            first_device.push(agents.len());
            agents.extend((0..content.devices.len()).map(|number| Agent::Device(place(number))));
            first_core.push(agents.len());
            agents.extend((0..content.cores.len()).map(|number| Agent::Core(place(number))));
        }
        agents.extend((0..observers).map(Agent::Observer));
        Net {
            schedule: Schedule::new(agents.len()),
            due: vec![Time::NEVER; agents.len()],
            agents,
            ends,
            first_device,
            first_core,
            held: None,
            wakes: Vec::new(),
            bridged: Vec::new(),
            unswitched: 0,
            capture: None,
        }
    }

    /// Who is due first, and when; `Time::NEVER` when all wait.
    #[inline]
    pub fn earliest(&self) -> (Agent, Time) {
        let (agent, due) = self.schedule.earliest();
        (self.agents[agent.min(self.agents.len() - 1)], due)
    }

    fn number(&self, agent: Agent) -> usize {
        match agent {
            Agent::Generator(number) => number,
            Agent::Device(place) => self.first_device[place.host] + place.number,
            Agent::Core(place) => self.first_core[place.host] + place.number,
            Agent::Observer(number) => {
                let observers = self.agents.iter().rev().take_while(|agent| matches!(agent, Agent::Observer(_)));
                self.agents.len() - observers.count() + number
            }
        }
    }

    /// When `agent` is due.
    pub fn due(&self, agent: Agent) -> Time {
        self.due[self.number(agent)]
    }

    /// `agent` acts next at `time`.
    pub fn set(&mut self, agent: Agent, time: Time) {
        self.set_due(self.number(agent), time);
    }

    /// Agent `number` acts next at `time`; if its host is held, once it is released.
    #[inline]
    fn set_due(&mut self, number: usize, time: Time) {
        self.due[number] = time;
        if self.held.is_none() || !self.is_held(number) {
            self.schedule.set(number, time);
        }
    }

    /// Whether the agent acts on the host that is held.
    pub(super) fn is_held(&self, number: usize) -> bool {
        match self.agents[number] {
            Agent::Device(place) | Agent::Core(place) => self.held == Some(place.host),
            // Generators send to the first host.
            Agent::Generator(_) => self.held == Some(0),
            Agent::Observer(_) => self.held.is_some(),
        }
    }

    /// When the first agent acts that moves frames: co-runners and observers never end.
    pub fn next_of_frames(&self, hosts: &[Host]) -> Time {
        let moves = |agent: &&Agent| match **agent {
            Agent::Generator(_) | Agent::Device(_) => true,
            Agent::Core(place) => !hosts[place.host].cores[place.number].program.is_endless(),
            Agent::Observer(_) => false,
        };
        self.agents.iter().filter(moves).map(|&agent| self.due(agent)).fold(Time::NEVER, Time::min)
    }

    /// The next frame of generator `number` reaches the first host's device with that number.
    pub fn step_generator(&mut self, hosts: &mut Hosts<'_>, outside: &mut Outside, number: usize) {
        let place = Place { host: 0, number };
        let generator = &mut outside.generators[number];
        if let Some((frame, last_bit)) = generator.frame()
            && let Some(Host { machine, devices, .. }) = hosts.host(0)
            && let Some(device) = devices.get_mut(number)
        {
            device.receive(machine, &frame, last_bit);
            let due = device.due();
            let agent = self.first_device[0] + number;
            if due < self.due[agent] {
                self.set_due(agent, due);
            }
        }
        self.set_due(number, generator.next_step());
        self.wake_cores(hosts, place.host);
    }

    /// A step of a device at `now`.
    pub fn step_device(&mut self, hosts: &mut Hosts<'_>, outside: &mut Outside, place: Place, now: Time) {
        let Place { host, number } = place;
        let Some(Host { machine, devices, .. }) = hosts.host(host) else {
            return;
        };
        let sink = matches!(self.ends[host][number], End::Outside).then_some(&mut outside.sink);
        let mut out = WayOut { sink, sent: VecDeque::new(), bridged: &mut self.bridged };
        devices[number].step(machine, &mut out, now);
        self.deliver_interrupts(hosts, place);
        self.carry(hosts, place);
        self.bridge(hosts, place);
        self.wake_cores(hosts, host);
        self.tell_player(hosts, place, now);
        for frame in outside.sink.take_returned() {
            if let Some(number) = returned(&mut outside.generators, &frame) {
                let next = outside.generators[number].next_step();
                self.set_due(number, next);
            }
        }
    }

    /// A core may play the device and wait for what it did.
    fn tell_player(&mut self, hosts: &mut Hosts<'_>, place: Place, now: Time) {
        let Some(Host { devices, cores, players, .. }) = hosts.host(place.host) else {
            return;
        };
        for &number in &players[place.number] {
            let core = &mut cores[number];
            let own = core.sim.now();
            if let Some(wakes) = core.program.device_acted(&mut *devices[place.number], now, own) {
                self.bring_forward(self.first_core[place.host] + number, wakes);
            }
        }
    }

    /// A step of a core at `now`.
    pub fn step_core(&mut self, hosts: &mut Hosts<'_>, outside: &mut Outside, place: Place, now: Time) {
        let next = match hosts.split(place.host) {
            Some((before, here, after)) => {
                let mut others = Others { host: place.host, before, after, net: self, outside };
                run_step(here, place.number, now, &mut others)
            }
            // While a core of another host waits, a core here that waits for its own device knows what is on its link.
            None => match hosts.host(place.host) {
                Some(here) => run_step(here, place.number, now, &mut Nobody),
                None => return,
            },
        };
        if self.held == Some(place.host) {
            self.release();
        }
        self.set_due(self.first_core[place.host] + place.number, next);
        self.settle(hosts, place);
    }

    /// A core of `place.host` reads a register in the middle of a step.
    #[cfg(test)]
    pub(super) fn read_register(
        &mut self,
        hosts: &mut Hosts<'_>,
        outside: &mut Outside,
        place: Place,
        register: nicforge_platform::Register,
        at: Time,
    ) -> (u64, Time) {
        use nicforge_platform::sim::Devices;
        let (before, here, after) = hosts.split(place.host).unwrap();
        let mut others = Others { host: place.host, before, after, net: self, outside };
        let mut reach = super::device::Reach { devices: &mut here.devices, elsewhere: &mut others };
        reach.read(&mut here.machine, register, at)
    }

    /// Delivers what a core's step caused: register writes, wakes, interrupts and frames.
    fn settle(&mut self, hosts: &mut Hosts<'_>, place: Place) {
        let Some(Host { devices, cores, .. }) = hosts.host(place.host) else {
            return;
        };
        let core = &mut cores[place.number];
        for write in core.sim.take_mmio().as_slice() {
            if let Some(device) = devices.get_mut(usize::from(write.register.device)) {
                device.post(write);
            }
        }
        core.program.take_wakes(&mut self.wakes);
        if devices.iter().any(|device| device.is_touched()) {
            for number in 0..devices.len() {
                let place = Place { host: place.host, number };
                self.deliver_interrupts(hosts, place);
                self.carry(hosts, place);
            }
        }
        self.apply_wakes(hosts, place.host);
        self.wake_cores(hosts, place.host);
    }

    fn apply_wakes(&mut self, hosts: &mut Hosts<'_>, host: usize) {
        let Some(there) = hosts.host(host) else {
            return;
        };
        for Wake { core, at } in std::mem::take(&mut self.wakes) {
            let own = there.cores[core].sim.now();
            self.bring_forward(self.first_core[host] + core, at.max(own));
        }
    }

    fn bring_forward(&mut self, agent: usize, time: Time) {
        let due = self.due[agent];
        self.set_due(agent, due.min(time));
    }

    /// Interrupts of a device go to the core that it interrupts.
    fn deliver_interrupts(&mut self, hosts: &mut Hosts<'_>, place: Place) {
        let Some(Host { devices, cores, interrupted, .. }) = hosts.host(place.host) else {
            return;
        };
        let port = devices[place.number].port();
        if !port.has_interrupts() {
            return;
        }
        let number = interrupted[place.number];
        let core = &mut cores[number];
        for (_, at) in port.take_interrupts() {
            core.program.interrupt(place.number, at);
            self.bring_forward(self.first_core[place.host] + number, at.max(core.sim.now()));
        }
    }

    /// Tells cores what was published to them; one that sleeps polls when it is visible.
    #[inline(always)]
    fn wake_cores(&mut self, hosts: &mut Hosts<'_>, host: usize) {
        let Some(there) = hosts.host(host) else {
            return;
        };
        if there.machine.memory.has_wakes() {
            self.notice_publishes(there, host);
        }
    }

    fn notice_publishes(&mut self, there: &mut Host, host: usize) {
        let Host { machine, devices, cores, owners, .. } = there;
        for (owner, at) in machine.memory.take_wakes() {
            let number = owners[usize::from(owner.0)];
            let (core, agent) = (&mut cores[number], self.first_core[host] + number);
            let due = self.due[agent];
            let notice = Notice { behind: core.published.len(), at, now: core.sim.now(), sleeps: due == Time::NEVER };
            // A device's link delivers in order; other cores publish at their own times.
            let later = core.published.iter().rev().take_while(|other| **other > at).count();
            core.published.insert(core.published.len() - later, at);
            if let Some(wakes) = core.program.notice(devices, notice) {
                self.set_due(agent, due.min(wakes.max(core.starts)));
            }
        }
    }

    /// Frames of a device go onto its link, and both ends are due accordingly.
    pub(super) fn carry(&mut self, hosts: &mut Hosts<'_>, place: Place) {
        let Some(device) = hosts.device(place) else {
            return;
        };
        if !device.take_touched() {
            return;
        }
        let due = device.due();
        self.set_device_due(place, due);
        let end = self.ends[place.host][place.number];
        if matches!(end, End::Outside) {
            return;
        }
        while let Some((time, frame)) = hosts.device(place).and_then(|device| device.take_sent()) {
            let peer = match end {
                End::Peer(peer) => Some(peer),
                _ => self.switch(time, frame.bytes()),
            };
            let Some(peer) = peer else { continue };
            let back = hosts.device(peer).and_then(|device| device.send_here(time, frame));
            if let Some(buffer) = back
                && let Some(device) = hosts.device(place)
            {
                device.recycle(buffer);
            }
            if let Some(device) = hosts.device(peer) {
                let due = device.due();
                self.set_device_due(peer, due);
            }
        }
    }

    /// Where a frame goes that reaches the switch at `time`; it has no ports for others than the hosts.
    fn switch(&mut self, time: Time, frame: &[u8]) -> Option<Place> {
        if let Some(capture) = &mut self.capture {
            capture.push(Captured { time, port: PortId(0), bytes: frame.to_vec() });
        }
        let host = usize::from(*frame.get(5)?).checked_sub(1).filter(|&host| host < self.ends.len());
        if host.is_none() {
            self.unswitched += 1;
        }
        host.map(|host| Place { host, number: 0 })
    }

    /// Frames that stages of a device send by other ports reach the devices there.
    fn bridge(&mut self, hosts: &mut Hosts<'_>, place: Place) {
        for frame in std::mem::take(&mut self.bridged) {
            let to = Place { number: usize::from(frame.port.0), ..place };
            if let Some(device) = hosts.device(to).and_then(|device| device.rings_mut()) {
                device.bridge(frame);
                let due = device.due();
                self.set_device_due(to, due);
            } else if let Some(device) = hosts.device(place).and_then(|device| device.rings_mut()) {
                device.nic.has_no_port();
            }
        }
    }

    fn set_device_due(&mut self, place: Place, due: Time) {
        self.set_due(self.first_device[place.host] + place.number, due);
    }
}

/// One step of core `number` of `host` at `now`; returns when its next one is due.
fn run_step(host: &mut Host, number: usize, now: Time, elsewhere: &mut dyn Elsewhere) -> Time {
    let Host { machine, devices, cores, .. } = host;
    let Core { sim, program, published, .. } = &mut cores[number];
    let next = program.step(&mut Here { now, machine, core: sim, published, devices, elsewhere });
    match next {
        Next::Again => sim.now(),
        Next::At(time) => time.max(sim.now()),
        Next::Event => published.front().copied().unwrap_or(Time::NEVER),
    }
}
