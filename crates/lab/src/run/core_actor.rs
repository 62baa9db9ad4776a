//! One core: poll, then one packet at a time, then flush.
//!
//! A step is one poll, one packet or one flush, so that what the cores and the NICs do to the
//! caches interleaves as it would.

use std::collections::VecDeque;

use nicforge_apps::AnyApp;
use nicforge_interfaces::AnyDriver;
use nicforge_nic::transmit::TransmitDriver;
use nicforge_nic::{DriverHalf, DropCounters, Packet, PoolCache, PortId, Verdict};
use nicforge_platform::sim::{Host, SimCore, SimCpu};
use nicforge_platform::{Cpu, Part};
use nicforge_units::Time;

/// What the core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Poll,
    Packet(usize),
    Flush,
}

/// A core that runs an application over one receive queue.
pub struct CoreActor {
    /// Its time and accounting.
    pub core: SimCore,
    driver: AnyDriver,
    /// A transmit queue on each port.
    transmit: Vec<TransmitDriver>,
    pool: PoolCache,
    /// The application, with its own counters.
    pub app: AnyApp,
    burst: usize,
    next: Next,
    batch: Vec<Packet>,
    outgoing: Vec<(PortId, Packet)>,
    /// Times of publishes to this core that it has not polled for yet, oldest first.
    published: VecDeque<Time>,
    /// Packets that software dropped, by cause.
    pub drops: DropCounters,
    kept: u64,
    /// Receive calls that brought packets.
    bursts: u64,
}

impl CoreActor {
    /// A core at the beginning of a run.
    pub fn new(
        core: SimCore,
        driver: AnyDriver,
        transmit: Vec<TransmitDriver>,
        pool: PoolCache,
        app: AnyApp,
        burst: usize,
    ) -> CoreActor {
        CoreActor {
            core,
            driver,
            transmit,
            pool,
            app,
            burst,
            next: Next::Poll,
            batch: Vec::with_capacity(burst),
            outgoing: Vec::with_capacity(burst),
            published: VecDeque::new(),
            drops: DropCounters::default(),
            kept: 0,
            bursts: 0,
        }
    }

    /// Brings the queue up, before the run.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        self.driver.start(cpu, &mut self.pool);
    }

    /// Something was published to this core, visible at `time`.
    pub fn notice(&mut self, time: Time) {
        self.published.push_back(time);
    }

    /// When a core that found nothing polls again: at the next publish.
    pub fn sleeps_until(&self) -> Time {
        self.published.front().copied().unwrap_or(Time::NEVER)
    }

    /// One step at `now`; returns the time of the next, or `None` when the core sleeps.
    pub fn step(&mut self, host: &mut Host, now: Time) -> Option<Time> {
        match self.next {
            Next::Poll => {
                self.core.idle_until(now);
                if !self.poll(host) {
                    // Without buffers frames may wait although the poll found nothing: it goes
                    // on polling until transmit completions bring some back.
                    let starved = self.pool.is_empty();
                    return starved.then(|| self.core.now());
                }
                self.next = Next::Packet(0);
            }
            Next::Packet(index) => {
                self.packet(host, index);
                self.next = match index + 1 < self.batch.len() {
                    true => Next::Packet(index + 1),
                    false => Next::Flush,
                };
            }
            Next::Flush => {
                self.flush(host);
                self.batch.clear();
                self.next = Next::Poll;
            }
        }
        Some(self.core.now())
    }

    fn poll(&mut self, host: &mut Host) -> bool {
        let before = self.core.spent().clone();
        let buffers = self.buffers_in_rings();
        while self
            .published
            .front()
            .is_some_and(|&time| time <= self.core.now())
        {
            self.published.pop_front();
        }
        self.core.begin_burst();
        let mut cpu = SimCpu::new(host, &mut self.core);
        cpu.enter(Part::Driver);
        self.driver
            .rx_burst(&mut cpu, &mut self.pool, &mut self.batch, self.burst);
        if self.batch.is_empty() {
            for transmit in &mut self.transmit {
                if transmit.in_use() > 0 {
                    transmit.reclaim(&mut cpu, &mut self.pool);
                }
            }
            // A poll that found no packet but moved buffers did work.
            if self.buffers_in_rings() == buffers {
                self.core.count_as_idle(&before);
            }
        }
        self.bursts += u64::from(!self.batch.is_empty());
        !self.batch.is_empty()
    }

    /// Buffers in the receive and in the transmit rings.
    fn buffers_in_rings(&self) -> (i64, u64) {
        let in_transmit = self.transmit.iter().map(TransmitDriver::in_use).sum();
        (self.driver.buffers_held(), in_transmit)
    }

    fn packet(&mut self, host: &mut Host, index: usize) {
        let mut packet = self.batch[index];
        let mut cpu = SimCpu::new(host, &mut self.core);
        cpu.enter(Part::App);
        let verdict = self.app.packet(&mut cpu, &mut packet);
        cpu.enter(Part::Driver);
        match verdict {
            Verdict::Transmit(port) if usize::from(port.0) < self.transmit.len() => {
                self.outgoing.push((port, packet));
            }
            Verdict::Transmit(_) => self.drop(host, &packet, "no_such_port"),
            Verdict::Drop(cause) => self.drop(host, &packet, cause),
            Verdict::Keep => self.kept += 1,
        }
    }

    fn drop(&mut self, host: &mut Host, packet: &Packet, cause: &'static str) {
        self.drops.count(cause);
        let mut cpu = SimCpu::new(host, &mut self.core);
        self.pool.give(&mut cpu, packet.mbuf);
    }

    fn flush(&mut self, host: &mut Host) {
        let mut cpu = SimCpu::new(host, &mut self.core);
        cpu.enter(Part::Driver);
        for (number, transmit) in self.transmit.iter_mut().enumerate() {
            let port = PortId(number as u8);
            let Some(last) = self.outgoing.iter().rposition(|(to, _)| *to == port) else {
                continue;
            };
            transmit.reclaim(&mut cpu, &mut self.pool);
            for (index, (to, packet)) in self.outgoing.iter().enumerate() {
                if *to == port && transmit.push(&mut cpu, packet, index == last).is_err() {
                    self.drops.count("tx_ring_full");
                    self.pool.give(&mut cpu, packet.mbuf);
                }
            }
            transmit.ring_doorbell(&mut cpu);
        }
        self.outgoing.clear();
    }

    /// Packets taken from the receive queue so far.
    pub fn taken(&self) -> u64 {
        self.driver.taken()
    }

    /// Receive calls until `now`: those that brought packets, and as many as fit into the time
    /// that was spent on empty ones.
    pub fn receive_calls(&self, now: Time) -> u64 {
        // A core that sleeps is charged when it wakes.
        let asleep = now.saturating_sub(self.core.now());
        let idle = self.core.spent().idle_ps + asleep.as_ps();
        let config = self.core.config();
        let empty = config.frequency.time_for(config.empty_poll).as_ps();
        self.bursts + idle / empty.max(1)
    }

    /// Packets handed to transmit rings so far.
    pub fn pushed(&self) -> u64 {
        self.transmit.iter().map(TransmitDriver::pushed).sum()
    }

    /// Packets between poll and flush.
    pub fn in_hand(&self) -> u64 {
        let waiting = match self.next {
            Next::Packet(index) => self.batch.len() - index,
            Next::Poll | Next::Flush => 0,
        };
        (waiting + self.outgoing.len()) as u64
    }

    /// Packets that the application keeps.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Buffers that this core answers for: in its rings, its stack and its hands. Only the sum
    /// over all cores counts, see [`DriverHalf::buffers_held`].
    pub fn buffers(&self) -> i64 {
        let (in_receive, in_transmit) = self.buffers_in_rings();
        let outside = self.pool.len() as u64 + in_transmit + self.in_hand() + self.kept;
        in_receive + outside as i64
    }

    /// Transmit occupancy: entries in use summed over pushes, entries there are likewise.
    pub fn transmit_occupancy(&self) -> (u64, u64) {
        self.transmit.iter().fold((0, 0), |(used, of), transmit| {
            let (sum, pushes, entries) = transmit.occupancy();
            (used + sum, of + pushes * entries)
        })
    }

    /// What it waits for, for a run that is stuck.
    pub fn describe(&self) -> String {
        format!(
            "core at {}: next {:?}, {} in hand, {} taken, {} pushed",
            self.core.now(),
            self.next,
            self.in_hand(),
            self.taken(),
            self.pushed()
        )
    }
}
