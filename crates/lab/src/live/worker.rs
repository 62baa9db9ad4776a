//! One worker: poll its queue on every port, one packet at a time to completion, flush; sleep
//! when there is nothing.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_nic::DropCounters;
use nicforge_platform::Cpu;
use nicforge_platform::live::{LiveCpu, WakeEvent};
use nicforge_units::Time;

use super::threads::Idle;
use crate::packet_loop::PacketLoop;

/// Empty turns before a worker sleeps: about as long as a wake-up takes.
const TURNS_BEFORE_SLEEP: u32 = 200;
/// How long it sleeps at most, while the device has buffers of its to give back and else.
const NAP: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_millis(50);
/// How long it waits for an interrupt at most: then it publishes how long it was idle.
const WAIT: Duration = Duration::from_millis(500);
/// How often a worker publishes its counts.
const TELL_EVERY: Time = Time::from_ms(50);

/// What a worker counted.
#[derive(Clone, Debug, Default)]
pub struct WorkerCounts {
    /// Packets taken from receive queues.
    pub taken: u64,
    /// Packets handed to transmit rings.
    pub pushed: u64,
    /// Packets that the application keeps.
    pub kept: u64,
    /// Packets handed over for sending that it never got, as a worker that went mad does.
    pub made: u64,
    /// Packets dropped, by cause.
    pub drops: DropCounters,
    /// Transmit entries in use summed over packets, and entries there are likewise.
    pub transmit: (u64, u64),
    /// Time spent on empty polls and asleep, and time in which no process worked at its place.
    pub idle: Time,
    /// The worker's process has not attached yet, or is gone.
    pub absent: bool,
    /// How long a worker's process has said nothing, who says what it counted some twenty times a second.
    pub silent: Time,
    /// The application's own counters.
    pub app: Vec<(&'static str, u64)>,
    /// Its gauges: values of now.
    pub gauges: Vec<(&'static str, u64)>,
}

/// The parts of a worker, except its memory.
pub struct WorkerParts<C: Cpu = LiveCpu> {
    /// Its queues on every port, its level of the pool, and the application.
    pub software: PacketLoop<C>,
    /// Where the application's own tables lie.
    pub tables: Range<u64>,
    /// What it does without work.
    pub idle: Idle,
    /// How often, at least, the device wants to know how many receive calls were made, if it does.
    pub calls_every: Option<Time>,
}

/// A worker at work.
pub struct Worker {
    cpu: LiveCpu,
    parts: WorkerParts,
    /// What the device interrupts it by, if it does.
    event: Option<WakeEvent>,
    counts: WorkerCounts,
    /// What the application had counted when these counts began at zero.
    app_before: Vec<(&'static str, u64)>,
    idle: Time,
    /// Receive calls: those made, and those that it would have made while it slept, at the pace of the empty
    /// turns before.
    calls: u64,
    empty_turn: Time,
}

/// Where a worker's run is between two turns.
#[derive(Debug)]
pub struct Course {
    /// Turns without anything to do, one after another.
    pub empty: u32,
    /// When the turn before ended.
    before: Time,
    told_at: Time,
    last_busy: Time,
}

/// Why a worker stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to, and nothing is left to do.
    Stopped,
    /// The device wants its queues to restart; its order.
    Halted(u64),
}

impl Worker {
    /// A worker on `cpu`, which the device interrupts by `event`, or wakes.
    pub fn new(cpu: LiveCpu, parts: WorkerParts, event: Option<WakeEvent>) -> Worker {
        let polled = parts.idle == Idle::Spin;
        Worker {
            cpu: if polled { cpu.device_polls() } else { cpu },
            parts,
            event,
            counts: WorkerCounts::default(),
            app_before: Vec::new(),
            idle: Time::ZERO,
            calls: 0,
            empty_turn: Time::ZERO,
        }
    }

    /// Its core.
    pub(super) fn cpu(&mut self) -> &mut LiveCpu {
        &mut self.cpu
    }

    /// Brings its queues up.
    pub fn start(&mut self) {
        self.parts.software.start(&mut self.cpu);
    }

    /// Works until `stop` and nothing is left to do, or until the device orders a halt; tells `told`
    /// now and then what was counted, and at the end.
    pub fn run(&mut self, stop: &AtomicBool, mut told: impl FnMut(&WorkerCounts)) -> Ended {
        // Empty turns before it sleeps.
        let patience = match self.parts.idle {
            Idle::Sleep => TURNS_BEFORE_SLEEP,
            Idle::Interrupt => 1,
            Idle::Spin => u32::MAX,
        };
        let mut course = self.begin();
        loop {
            let order = self.cpu.order();
            if !order.is_multiple_of(2) {
                told(self.counts());
                return Ended::Halted(order);
            }
            if self.step(&mut course, false, &mut told) {
                continue;
            }
            if stop.load(Ordering::Acquire) {
                break;
            }
            if course.empty == patience {
                let since = course.before - course.last_busy;
                self.empty_turn = Time::from_ps(since.as_ps() / u64::from(course.empty));
            }
            if course.empty > patience {
                self.sleep();
            } else {
                std::hint::spin_loop();
            }
        }
        told(self.counts());
        Ended::Stopped
    }

    /// Before the first turn.
    pub fn begin(&mut self) -> Course {
        let now = self.cpu.tick();
        Course { empty: 0, before: now, told_at: now, last_busy: now }
    }

    /// One turn; whether there was anything. Time since the turn before is idle if this one is empty, unless the
    /// thread did `other` work in between.
    pub fn step(&mut self, course: &mut Course, other: bool, told: &mut impl FnMut(&WorkerCounts)) -> bool {
        let busy = self.turn();
        let now = self.cpu.tick();
        if now >= course.told_at + TELL_EVERY {
            told(self.counts());
            course.told_at = now;
        }
        if busy {
            (course.empty, course.last_busy) = (0, now);
        } else {
            self.idle += if other { Time::ZERO } else { now - course.before };
            course.empty = course.empty.saturating_add(1);
        }
        course.before = now;
        busy
    }

    /// How long it may go without a turn: buffers that are being sent come back by its looking.
    pub fn may_rest(&self) -> Duration {
        if self.parts.software.buffers_in_rings().1 > 0 { NAP } else { SLEEP }
    }

    /// Goes on with other queues and another pool, and the same application; what was counted
    /// begins at zero.
    pub fn restart(&mut self, parts: WorkerParts) {
        let before = std::mem::replace(&mut self.parts, parts);
        self.parts.software.app = before.software.app;
        self.app_before = self.parts.software.app.counters();
        (self.counts, self.idle) = (WorkerCounts::default(), Time::ZERO);
        self.calls = 0;
        self.start();
    }

    /// Sleeps, unless something came in meanwhile.
    fn sleep(&mut self) {
        self.cpu.announce_sleep();
        if self.turn() {
            self.cpu.stay_awake();
            return;
        }
        let most = match &self.event {
            Some(_) if self.may_rest() == SLEEP => WAIT,
            _ => self.may_rest(),
        };
        let Some(every) = self.parts.calls_every else {
            return self.wait(most);
        };
        let from = self.cpu.tick();
        self.wait(most.min(Duration::from_nanos(every.as_ps() / 2_000)));
        let turns = (self.cpu.tick() - from).as_ps() / self.empty_turn.as_ps().max(1);
        self.calls += turns * self.parts.software.queues() as u64;
    }

    fn wait(&self, most: Duration) {
        match &self.event {
            Some(event) => self.cpu.sleep_until_interrupt(event, most),
            None => self.cpu.sleep(most),
        }
    }

    /// What it counted so far.
    pub fn counts(&mut self) -> &WorkerCounts {
        let software = &self.parts.software;
        let before = |name| self.app_before.iter().find(|(of, _)| *of == name).map_or(0, |(_, count)| *count);
        let app = software.app.counters().into_iter().map(|(name, count)| (name, count.saturating_sub(before(name))));
        self.counts = WorkerCounts {
            taken: software.taken(),
            pushed: software.pushed(),
            kept: software.kept(),
            made: 0,
            drops: software.drops.clone(),
            transmit: software.transmit_occupancy(),
            idle: self.idle,
            absent: false,
            silent: Time::ZERO,
            app: app.collect(),
            gauges: software.app.gauges(),
        };
        &self.counts
    }

    /// Takes what every queue has, up to a burst each; whether there was anything.
    fn turn(&mut self) -> bool {
        let software = &mut self.parts.software;
        let mut busy = false;
        for queue in 0..software.queues() {
            let polled = software.poll(&mut self.cpu, queue);
            if polled == 0 {
                continue;
            }
            busy = true;
            self.cpu.tell_taken(software.taken());
            for index in 0..polled {
                software.packet(&mut self.cpu, index);
            }
            software.flush(&mut self.cpu);
        }
        if !busy {
            software.reclaim(&mut self.cpu);
        }
        self.calls += software.queues() as u64;
        if self.parts.calls_every.is_some() {
            self.cpu.tell_calls(self.calls);
        }
        busy
    }

    /// Takes back what the device is done with, at the end; returns how many buffers this worker
    /// answers for and how many its pool's shared level has. Only the sum of the first over all
    /// workers counts.
    pub fn buffers(&mut self) -> (i64, u64) {
        let software = &mut self.parts.software;
        software.reclaim(&mut self.cpu);
        let shared = software.pool().shared(&mut self.cpu);
        (software.buffers(0), shared)
    }
}
