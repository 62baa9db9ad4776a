//! The world of a run: hosts, wires and traffic sources, of which the earliest acts.
//!
//! ```text
//!  World ── Host ──┬─ Device: generator or link ─► NIC ══ Dma ══ memory
//!           host.rs│  device.rs, ring_device.rs, register_device.rs
//!                  └─ Core ─► Program (program.rs): *_program.rs, the kernel of systems/
//!  net.rs, agents.rs, waiting.rs: who is next, and what its step delivers;  generator.rs, sink.rs: the other end of wires
//!  control.rs, probe.rs: what looks at the world at even intervals;  accounts.rs: whether all adds up
//! ```
//!
//! One host at which frames are sent and several that talk TCP to each other are worlds of the same kind.

mod accounts;
pub mod agents;
mod co_runner_program;
pub mod control;
pub mod core_time;
pub mod device;
mod emulator_program;
pub mod generator;
mod host;
mod net;
mod packet_program;
pub mod probe;
pub mod program;
mod register_device;
mod ring_device;
pub mod sink;
mod sums;
mod waiting;

use nicforge_units::{BitRate, Time};

use crate::run::RunError;

pub use agents::{Agent, End, Outside, Place};
pub use emulator_program::{EmulatorProgram, SenderProgram};
pub use host::{Core, Host};
pub use packet_program::PacketProgram;
pub use register_device::RegisterDevice;
pub use ring_device::RingDevice;

use agents::Hosts;
use net::Net;

/// Without a frame moving for this long while frames are inside, a run is stuck.
const STUCK_AFTER: Time = Time::from_ms(50);
/// How often that is looked at.
const LOOK_EVERY: Time = Time::from_ms(1);

/// What looks at the world at even intervals, without an access of anybody.
pub trait Observer {
    /// From one look to the next.
    fn interval(&self) -> Time;

    /// A look at `now`.
    fn look(&mut self, now: Time, world: &mut World);
}

/// A run in progress.
pub struct World {
    /// The hosts; what is measured is measured at the first.
    pub hosts: Vec<Host>,
    /// The other end of wires that lead to no host.
    pub outside: Outside,
    observers: Vec<Option<Box<dyn Observer>>>,
    net: Net,
    /// Cores poll from then on.
    polling_starts: Time,
    /// What was before is over.
    now: Time,
    /// Frames that had left or were dropped when any last did, and when that was.
    moved: u64,
    moved_at: Time,
}

impl World {
    /// `hosts`, whose wires end as `ends` says. Generators begin at their first frame, all cores at time 0 that `begin`
    /// names; other cores and all devices wait.
    pub fn new(hosts: Vec<Host>, ends: Vec<Vec<End>>, outside: Outside, observers: Vec<Box<dyn Observer>>) -> World {
        let net = Net::new(&hosts, ends, outside.generators.len(), observers.len());
        let mut world = World {
            hosts,
            outside,
            observers: observers.into_iter().map(Some).collect(),
            net,
            polling_starts: Time::ZERO,
            now: Time::ZERO,
            moved: 0,
            moved_at: Time::ZERO,
        };
        for number in 0..world.outside.generators.len() {
            let next = world.outside.generators[number].next_step();
            world.net.set(Agent::Generator(number), next);
        }
        for (number, observer) in world.observers.iter().enumerate() {
            let first = observer.as_ref().map_or(Time::NEVER, |observer| observer.interval());
            world.net.set(Agent::Observer(number), first);
        }
        for (host, content) in world.hosts.iter().enumerate() {
            for (number, device) in content.devices.iter().enumerate() {
                world.net.set(Agent::Device(Place { host, number }), device.due());
            }
        }
        world
    }

    /// Frames that wait for cores which do not poll before `time` make no run stuck.
    pub fn polling_from(self, time: Time) -> World {
        World { polling_starts: time, ..self }
    }

    /// Core `place` has a step at `time`.
    pub fn begin(&mut self, place: Place, time: Time) {
        self.net.set(Agent::Core(place), time);
    }

    /// A core of `host` reads `register` in the middle of a step; the read arrives at `at`. Returns the value, and when
    /// the device gives it.
    #[cfg(test)]
    pub(crate) fn read_register(
        &mut self,
        host: usize,
        register: nicforge_platform::Register,
        at: Time,
    ) -> (u64, Time) {
        self.net.read_register(
            &mut Hosts::all(&mut self.hosts),
            &mut self.outside,
            Place { host, number: 0 },
            register,
            at,
        )
    }

    /// The switch keeps all frames that it sees.
    pub fn capture_switch(&mut self) {
        self.net.capture = Some(Vec::new());
    }

    /// Those frames.
    pub fn take_capture(&mut self) -> Vec<sink::Captured> {
        self.net.capture.take().unwrap_or_default()
    }

    /// Frames that the switch had no port for.
    pub fn unswitched(&self) -> u64 {
        self.net.unswitched
    }

    /// How far it has run.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Each port gets frames at `rate` from `from` on, until `ends`.
    pub fn offer(&mut self, rate: BitRate, from: Time, ends: Time) {
        for (number, generator) in self.outside.generators.iter_mut().enumerate() {
            generator.offer(rate, from, ends);
            self.net.set(Agent::Generator(number), generator.next_step());
        }
    }

    /// Runs until nothing is due before `until`.
    ///
    /// # Errors
    /// When nothing moves although frames are inside, or nothing will ever happen again.
    pub fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        let generates = !self.outside.generators.is_empty();
        let mut look = Time::ZERO;
        loop {
            let (agent, time) = self.net.earliest();
            if time == Time::NEVER && !generates {
                return Err(self.stuck(until));
            }
            if time >= until {
                self.now = until;
                return Ok(());
            }
            if generates && time >= look {
                self.check_progress(time)?;
                look = time + LOOK_EVERY;
            }
            for host in &mut self.hosts {
                host.machine.hierarchy.no_more_before(time);
            }
            self.step(agent, time);
        }
    }

    #[inline(always)]
    fn step(&mut self, agent: Agent, now: Time) {
        let mut hosts = Hosts::all(&mut self.hosts);
        match agent {
            Agent::Generator(number) => self.net.step_generator(&mut hosts, &mut self.outside, number),
            Agent::Device(place) => self.net.step_device(&mut hosts, &mut self.outside, place, now),
            Agent::Core(place) => self.net.step_core(&mut hosts, &mut self.outside, place, now),
            Agent::Observer(number) => self.observe(number, now),
        }
    }

    fn observe(&mut self, number: usize, now: Time) {
        let Some(mut observer) = self.observers[number].take() else {
            return self.net.set(Agent::Observer(number), Time::NEVER);
        };
        observer.look(now, self);
        self.net.set(Agent::Observer(number), now + observer.interval());
        self.observers[number] = Some(observer);
    }

    /// The core at `place` writes a register of its host, which arrives at `write.arrives`.
    pub fn post(&mut self, host: usize, write: &nicforge_platform::sim::MmioWrite) {
        let number = usize::from(write.register.device);
        if let Some(device) = self.hosts[host].devices.get_mut(number) {
            device.post(write);
            self.net.set(Agent::Device(Place { host, number }), device.due());
        }
    }

    /// Each core that sleeps polls once, as it would have meanwhile, and is done with what that brings.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn poll_in_vain(&mut self) -> Result<(), RunError> {
        for place in self.cores_of_frames() {
            let soonest = self.net.due(Agent::Core(place)).min(self.now);
            self.net.set(Agent::Core(place), soonest);
        }
        self.run_until(self.now + Time::from_ps(1))?;
        let busy = self.cores_of_frames().into_iter().map(|place| self.hosts[place.host].cores[place.number].sim.now());
        let until = busy.fold(self.now, Time::max);
        self.run_until(until)
    }

    /// Cores that poll receive rings.
    fn cores_of_frames(&self) -> Vec<Place> {
        let of_host = |(host, content): (usize, &Host)| {
            let polls = content.cores.iter().enumerate().filter(|(_, core)| core.program.polls_rings());
            polls.map(|(number, _)| Place { host, number }).collect::<Vec<_>>()
        };
        self.hosts.iter().enumerate().flat_map(of_host).collect()
    }

    /// When the next step of those who move frames is due.
    pub fn next_time(&self) -> Time {
        self.net.next_of_frames(&self.hosts)
    }

    fn check_progress(&mut self, now: Time) -> Result<(), RunError> {
        let moved = self.outside.sink.total() + self.dropped() + self.kept();
        if moved != self.moved || self.inside() == 0 {
            (self.moved, self.moved_at) = (moved, now);
            return Ok(());
        }
        // Cores that are not to poll yet keep all frames waiting.
        let since = self.moved_at.max(self.polling_starts);
        if now.saturating_sub(since) < STUCK_AFTER {
            return Ok(());
        }
        Err(self.stuck(now))
    }

    /// The error of a world in which nothing moves.
    pub fn stuck(&self, at: Time) -> RunError {
        let of_host = |host: &Host| {
            let devices = host.devices.iter().filter_map(|device| device.describe());
            let cores = host.cores.iter().filter_map(|core| {
                core.program.describe().map(|describes| format!("core at {}: {describes}", core.sim.now()))
            });
            devices.chain(cores).collect::<Vec<_>>()
        };
        let inside = if self.outside.generators.is_empty() { 0 } else { self.inside() };
        RunError::Stuck { at, inside, actors: self.hosts.iter().flat_map(of_host).collect() }
    }
}
