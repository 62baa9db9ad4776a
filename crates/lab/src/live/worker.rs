//! One worker: poll its queue on every port, one packet at a time to completion, flush; sleep
//! when there is nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nicforge_apps::AnyApp;
use nicforge_interfaces::AnyDriver;
use nicforge_nic::transmit::TransmitDriver;
use nicforge_nic::{DriverHalf, DropCounters, Packet, PoolCache, PortId, Verdict};
use nicforge_platform::live::LiveCpu;
use nicforge_platform::{Cpu, Part};
use nicforge_units::Time;

use super::config::Idle;
use super::neighbour::{self, Own};

/// Empty turns before a worker sleeps: about as long as a wake-up takes.
const TURNS_BEFORE_SLEEP: u32 = 200;
/// How long it sleeps at most, while the device has buffers of its to give back and else.
const NAP: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_millis(50);
/// How often others are told what it counted.
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
    /// Packets dropped, by cause.
    pub drops: DropCounters,
    /// Transmit entries in use summed over packets, and entries there are likewise.
    pub transmit: (u64, u64),
    /// Time spent on empty polls and asleep.
    pub idle: Time,
    /// The application's own counters.
    pub app: Vec<(&'static str, u64)>,
}

/// What a worker is made of, but for its memory.
pub struct WorkerParts {
    /// Its queue on every port.
    pub drivers: Vec<AnyDriver>,
    /// Its transmit queue on every port.
    pub transmit: Vec<TransmitDriver>,
    /// Its level of the pool.
    pub pool: PoolCache,
    /// The application.
    pub app: AnyApp,
    /// Addresses of all ports.
    pub own: Vec<Own>,
    /// Packets per receive call.
    pub burst: usize,
    /// What to do when there is nothing to do.
    pub idle: Idle,
}

/// A worker at work.
pub struct Worker {
    cpu: LiveCpu,
    parts: WorkerParts,
    batch: Vec<Packet>,
    outgoing: Vec<(PortId, Packet)>,
    counts: WorkerCounts,
}

impl Worker {
    /// A worker on `cpu`.
    pub fn new(cpu: LiveCpu, parts: WorkerParts) -> Worker {
        Worker {
            cpu,
            batch: Vec::with_capacity(parts.burst),
            outgoing: Vec::with_capacity(parts.burst),
            parts,
            counts: WorkerCounts::default(),
        }
    }

    /// Brings its queues up.
    pub fn start(&mut self) {
        for driver in &mut self.parts.drivers {
            driver.start(&mut self.cpu, &mut self.parts.pool);
        }
    }

    /// Works until `stop` and nothing is left to do; tells `board` now and then.
    pub fn run(&mut self, stop: &AtomicBool, board: &Mutex<WorkerCounts>) {
        let mut empty = 0;
        let mut before = self.cpu.tick();
        let mut told = before;
        loop {
            let busy = self.turn();
            let now = self.cpu.tick();
            if now >= told + TELL_EVERY {
                self.tell(board);
                told = now;
            }
            if busy {
                (empty, before) = (0, now);
                continue;
            }
            self.counts.idle += now - before;
            before = now;
            if stop.load(Ordering::Acquire) {
                break;
            }
            empty += 1;
            match self.parts.idle {
                Idle::Sleep if empty > TURNS_BEFORE_SLEEP => self.sleep(),
                _ => std::hint::spin_loop(),
            }
        }
        self.tell(board);
    }

    /// Sleeps, unless something came in meanwhile.
    fn sleep(&mut self) {
        self.cpu.announce_sleep();
        if self.turn() {
            self.cpu.stay_awake();
            return;
        }
        let waits = self.parts.transmit.iter().any(|ring| ring.in_use() > 0);
        self.cpu.sleep(if waits { NAP } else { SLEEP });
    }

    fn tell(&mut self, board: &Mutex<WorkerCounts>) {
        let transmit = self.parts.transmit.iter();
        self.counts.pushed = transmit.clone().map(TransmitDriver::pushed).sum();
        self.counts.transmit = transmit.fold((0, 0), |(used, of), ring| {
            let (sum, pushes, entries) = ring.occupancy();
            (used + sum, of + pushes * entries)
        });
        self.counts.app = self.parts.app.counters();
        // A panic elsewhere leaves the counts as they were: whole.
        *board.lock().unwrap_or_else(PoisonError::into_inner) = self.counts.clone();
    }

    /// Takes what every queue has, up to a burst each; whether there was anything.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        for port in 0..self.parts.drivers.len() {
            self.cpu.enter(Part::Driver);
            let (driver, pool) = (&mut self.parts.drivers[port], &mut self.parts.pool);
            driver.rx_burst(&mut self.cpu, pool, &mut self.batch, self.parts.burst);
            if self.batch.is_empty() {
                continue;
            }
            busy = true;
            self.counts.taken += self.batch.len() as u64;
            self.cpu.tell_taken(self.counts.taken);
            for index in 0..self.batch.len() {
                let packet = self.batch[index];
                self.packet(packet);
            }
            self.batch.clear();
            self.flush();
        }
        if !busy {
            self.reclaim();
        }
        busy
    }

    fn packet(&mut self, mut packet: Packet) {
        let verdict = match neighbour::answer(&mut self.cpu, &packet, &self.parts.own) {
            Some(verdict) => verdict,
            None => self.parts.app.packet(&mut self.cpu, &mut packet),
        };
        match verdict {
            Verdict::Transmit(port) if usize::from(port.0) < self.parts.transmit.len() => {
                self.outgoing.push((port, packet));
            }
            Verdict::Transmit(_) => self.drop(&packet, "no_such_port"),
            Verdict::Drop(cause) => self.drop(&packet, cause),
            Verdict::Keep => self.counts.kept += 1,
        }
    }

    fn drop(&mut self, packet: &Packet, cause: &'static str) {
        self.counts.drops.count(cause);
        self.parts.pool.give(&mut self.cpu, packet.mbuf);
    }

    fn flush(&mut self) {
        for number in 0..self.parts.transmit.len() {
            let port = PortId(number as u8);
            let Some(last) = self.outgoing.iter().rposition(|(to, _)| *to == port) else {
                continue;
            };
            let (ring, pool) = (&mut self.parts.transmit[number], &mut self.parts.pool);
            ring.reclaim(&mut self.cpu, pool);
            for (index, (to, packet)) in self.outgoing.iter().enumerate() {
                if *to == port && ring.push(&mut self.cpu, packet, index == last).is_err() {
                    self.counts.drops.count("tx_ring_full");
                    pool.give(&mut self.cpu, packet.mbuf);
                }
            }
            ring.ring_doorbell(&mut self.cpu);
        }
        self.outgoing.clear();
    }

    fn reclaim(&mut self) {
        for ring in &mut self.parts.transmit {
            if ring.in_use() > 0 {
                ring.reclaim(&mut self.cpu, &mut self.parts.pool);
            }
        }
    }

    /// Takes back what the device is done with, at the end; returns how many buffers this worker
    /// answers for and how many its pool's shared level has. Only the sum of the first over all
    /// workers counts, see [`DriverHalf::buffers_held`].
    pub fn buffers(&mut self) -> (i64, u64) {
        self.reclaim();
        let parts = &self.parts;
        let in_rings: i64 = parts.drivers.iter().map(DriverHalf::buffers_held).sum();
        let in_transmit: u64 = parts.transmit.iter().map(TransmitDriver::in_use).sum();
        let outside = parts.pool.len() as u64 + in_transmit + self.counts.kept;
        let shared = parts.pool.pool().available(&mut self.cpu);
        (in_rings + outside as i64, shared)
    }
}
