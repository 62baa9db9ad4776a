//! All actors of a run, and the loop that runs the earliest.
//!
//! Actors in the order of their numbers: sources (one per port), NICs, cores, co-runners,
//! the control core, the probe, cores that play NICs.

mod accounts;

use nicforge_platform::sim::{Host, Schedule};
use nicforge_units::{BitRate, Time};

use super::RunError;
use super::co_runner::CoRunnerActor;
use super::control_actor::ControlActor;
use super::core_actor::CoreActor;
use super::emulator_actor::EmulatorActor;
use super::nic_actor::NicActor;
use super::probe::Probe;
use super::sink::Sink;
use super::source::{SourceActor, returned};
use nicforge_record::{Switch, TimelineEntry};

/// Without a frame moving for this long while frames are inside, a run is stuck.
const STUCK_AFTER: Time = Time::from_ms(50);
/// How often that is looked at.
const LOOK_EVERY: Time = Time::from_ms(1);

/// A run in progress.
pub struct World {
    /// Memory, caches.
    pub host: Host,
    /// One per port.
    pub sources: Vec<SourceActor>,
    /// One per port.
    pub nics: Vec<NicActor>,
    /// Those that run the application.
    pub cores: Vec<CoreActor>,
    /// Those that run something else.
    pub co_runners: Vec<CoRunnerActor>,
    /// The core that changes steering, if the interface has one.
    control: Option<ControlActor>,
    /// What records a time line, if one is asked for.
    probe: Option<Probe>,
    /// Those that play NICs: one per port, or none.
    pub emulators: Vec<EmulatorActor>,
    /// The other end of the wires.
    pub sink: Sink,
    schedule: Schedule,
    /// Cores poll from then on.
    polling_starts: Time,
    /// What was before is over.
    now: Time,
    moved: (u64, Time),
}

impl World {
    /// Puts the actors together. Sources and co-runners begin at time 0; NICs and cores wait.
    pub fn new(
        host: Host,
        sources: Vec<SourceActor>,
        nics: Vec<NicActor>,
        cores: Vec<CoreActor>,
        co_runners: Vec<CoRunnerActor>,
        sink: Sink,
        polling_starts: Time,
    ) -> World {
        // The control core, the probe, and a core that plays each NIC, may join them.
        let actors = sources.len() + 2 * nics.len() + cores.len() + co_runners.len() + 2;
        let mut world = World {
            host,
            sources,
            nics,
            cores,
            co_runners,
            control: None,
            probe: None,
            emulators: Vec::new(),
            sink,
            schedule: Schedule::new(actors),
            polling_starts,
            now: Time::ZERO,
            moved: (0, Time::ZERO),
        };
        for number in 0..world.sources.len() {
            let next = world.sources[number].next_step();
            world.schedule.set(number, next);
        }
        let first = world.first_co_runner();
        for number in 0..world.co_runners.len() {
            world.schedule.set(first + number, Time::ZERO);
        }
        world
    }

    /// Lets `control` change steering from now on.
    pub fn set_control(&mut self, control: ControlActor) {
        let first = control.interval();
        self.schedule.set(self.control_number(), first);
        self.control = Some(control);
    }

    /// Lets `probe` record from now on.
    pub fn set_probe(&mut self, probe: Probe) {
        let first = probe.interval();
        self.schedule.set(self.control_number() + 1, first);
        self.probe = Some(probe);
    }

    /// What the probe recorded until `ended`.
    pub fn take_timeline(&mut self, ended: Time) -> Vec<TimelineEntry> {
        let Some(mut probe) = self.probe.take() else {
            return Vec::new();
        };
        probe.look(ended, self);
        probe.into_entries()
    }

    /// What the control core decided.
    pub fn take_switches(&mut self) -> Vec<Switch> {
        let control = self.control.take();
        control.map_or(Vec::new(), ControlActor::into_switches)
    }

    /// Lets `emulators` play the NICs from the beginning on.
    pub fn set_emulators(&mut self, emulators: Vec<EmulatorActor>) {
        let first = self.first_emulator();
        for number in 0..emulators.len() {
            self.schedule.set(first + number, Time::ZERO);
        }
        self.emulators = emulators;
    }

    fn first_emulator(&self) -> usize {
        self.control_number() + 2
    }

    fn control_number(&self) -> usize {
        self.first_co_runner() + self.co_runners.len()
    }

    fn first_core(&self) -> usize {
        self.sources.len() + self.nics.len()
    }

    fn first_co_runner(&self) -> usize {
        self.first_core() + self.cores.len()
    }

    /// How far it has run.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Each port gets frames at `rate` from `from` on, until `ends`.
    pub fn offer(&mut self, rate: BitRate, from: Time, ends: Time) {
        for (number, source) in self.sources.iter_mut().enumerate() {
            source.offer(rate, from, ends);
            self.schedule.set(number, source.next_step());
        }
    }

    /// Runs until nothing is due before `until`.
    pub fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        let mut look = Time::ZERO;
        loop {
            let (actor, time) = self.schedule.earliest();
            if time >= until {
                self.now = until;
                return Ok(());
            }
            if time >= look {
                self.check_progress(time)?;
                look = time + LOOK_EVERY;
            }
            self.host.hierarchy.no_more_before(time);
            self.step(actor, time);
        }
    }

    #[inline(always)]
    fn step(&mut self, actor: usize, now: Time) {
        let (first_nic, first_core) = (self.sources.len(), self.first_core());
        if actor < first_nic {
            self.step_source(actor);
        } else if actor < first_core {
            self.step_nic(actor - first_nic, now);
        } else if actor < self.first_co_runner() {
            self.step_core(actor - first_core, now);
        } else if actor == self.control_number() {
            self.step_control(actor, now);
        } else if actor >= self.first_emulator() {
            self.step_emulator(actor - self.first_emulator(), now);
        } else if actor > self.control_number() {
            self.step_probe(actor, now);
        } else {
            let number = actor - self.first_co_runner();
            let next = self.co_runners[number].step(&mut self.host);
            self.schedule.set(actor, next);
        }
    }

    fn step_source(&mut self, number: usize) {
        if let Some((frame, last_bit)) = self.sources[number].frame() {
            self.nics[number].receive(&mut self.host, &frame, last_bit);
            if self.nics[number].next_step() < self.schedule.time_of(self.sources.len() + number) {
                self.reschedule_nic(number);
            }
        }
        let next = self.sources[number].next_step();
        self.schedule.set(number, next);
        self.wake_cores();
    }

    fn step_nic(&mut self, number: usize, now: Time) {
        self.nics[number].step(&mut self.host, &mut self.sink, now);
        self.reschedule_nic(number);
        self.wake_cores();
        if let Some(emulator) = self.emulators.get(number)
            && emulator.waits_for_bell()
            && self.nics[number].rang()
        {
            let actor = self.first_emulator() + number;
            let next = self.schedule.time_of(actor).min(emulator.now().max(now));
            self.schedule.set(actor, next);
        }
        for frame in self.sink.take_returned() {
            if let Some(source) = returned(&mut self.sources, &frame) {
                let next = self.sources[source].next_step();
                self.schedule.set(source, next);
            }
        }
    }

    fn step_core(&mut self, number: usize, now: Time) {
        let core = &mut self.cores[number];
        let next = core.step(&mut self.host, now);
        let next = next.unwrap_or_else(|| core.sleeps_until());
        let actor = self.first_core() + number;
        self.schedule.set(actor, next);
        let mut touched = 0u64;
        // By reference: each was stored field by field a moment ago.
        for write in self.cores[number].core.take_mmio().as_slice() {
            let device = usize::from(write.register.device);
            self.nics[device].post(write);
            touched |= 1 << device;
        }
        while touched != 0 {
            self.reschedule_nic(touched.trailing_zeros() as usize);
            touched &= touched - 1;
        }
    }

    fn step_emulator(&mut self, number: usize, now: Time) {
        let (emulator, nic) = (&mut self.emulators[number], &mut self.nics[number]);
        let next = emulator.step(&mut self.host, nic, now);
        for write in emulator.take_mmio() {
            nic.post(&write);
        }
        let actor = self.first_emulator() + number;
        self.schedule.set(actor, next);
        self.reschedule_nic(number);
        self.wake_cores();
    }

    fn step_control(&mut self, actor: usize, now: Time) {
        let Some(control) = &mut self.control else {
            return self.schedule.set(actor, Time::NEVER);
        };
        let switches = control.step(now, &self.host, &mut self.nics, &self.cores);
        self.schedule.set(actor, now + control.interval());
        if switches {
            (0..self.nics.len()).for_each(|number| self.reschedule_nic(number));
        }
    }

    fn step_probe(&mut self, actor: usize, now: Time) {
        let next = self.probe.take().map(|mut probe| {
            probe.look(now, self);
            now + self.probe.insert(probe).interval()
        });
        self.schedule.set(actor, next.unwrap_or(Time::NEVER));
    }

    /// Each core that sleeps polls once, as it would have meanwhile, and is done with what that brings.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn poll_in_vain(&mut self) -> Result<(), RunError> {
        let first = self.first_core();
        for number in 0..self.cores.len() {
            let soonest = self.schedule.time_of(first + number).min(self.now);
            self.schedule.set(first + number, soonest);
        }
        self.run_until(self.now + Time::from_ps(1))?;
        let busy = self.cores.iter().map(|core| core.core.now());
        self.run_until(busy.fold(self.now, Time::max))
    }

    fn reschedule_nic(&mut self, number: usize) {
        let next = self.nics[number].next_step();
        self.schedule.set(self.sources.len() + number, next);
    }

    /// Tells cores what was published to them; one that sleeps polls when it is visible.
    #[inline(always)]
    fn wake_cores(&mut self) {
        if self.host.memory.has_wakes() {
            self.wake_those_told();
        }
    }

    fn wake_those_told(&mut self) {
        let first = self.sources.len() + self.nics.len();
        let first_emulator = self.first_emulator();
        for (owner, time) in self.host.memory.take_wakes() {
            let number = usize::from(owner.0);
            if let Some(emulator) = number.checked_sub(self.cores.len()) {
                let actor = first_emulator + emulator;
                if self.emulators[emulator].notice(&mut self.nics[emulator], time) {
                    let time = time.max(self.emulators[emulator].now());
                    let next = self.schedule.time_of(actor).min(time);
                    self.schedule.set(actor, next);
                }
                continue;
            }
            self.cores[number].notice(time);
            if self.schedule.time_of(first + number) == Time::NEVER {
                self.schedule.set(first + number, time.max(self.polling_starts));
            }
        }
    }

    /// When the next step of those who move frames is due.
    pub fn next_time(&self) -> Time {
        let emulators = self.first_emulator()..self.first_emulator() + self.emulators.len();
        let actors = (0..self.first_co_runner()).chain(emulators);
        let times = actors.map(|actor| self.schedule.time_of(actor));
        times.fold(Time::NEVER, Time::min)
    }

    fn check_progress(&mut self, now: Time) -> Result<(), RunError> {
        let moved = self.sink.total() + self.dropped();
        if moved != self.moved.0 || self.inside() == 0 {
            self.moved = (moved, now);
            return Ok(());
        }
        // Cores that are not to poll yet keep everybody waiting.
        let since = self.moved.1.max(self.polling_starts);
        if now.saturating_sub(since) < STUCK_AFTER {
            return Ok(());
        }
        let nics = self.nics.iter().map(NicActor::describe);
        let cores = self.cores.iter().map(CoreActor::describe);
        Err(RunError::Stuck { at: now, inside: self.inside(), actors: nics.chain(cores).collect() })
    }
}
