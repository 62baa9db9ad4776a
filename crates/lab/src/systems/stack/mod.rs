//! A kernel's network stack on one core: interrupts, the driver's poll, IP and TCP, sockets,
//! system calls (integrated_nic, sections 2.1 to 2.3).
//!
//! ```text
//!   interrupt ─► poll, a packet a step ─► input.rs: IP, TCP ─► receive queue ─► copy ─► process
//!   driver ◄──── output.rs: segments, queue ◄──── send buffer ◄──── copy ◄─────────────┘
//! ```
//!
//! A step of the core is one of these: taking an interrupt, one received packet, one packet's
//! worth of a system call. Interrupts come first, then polling, but after a round of packets the
//! process has a turn, as it would have beside a kernel thread that polls.

mod calls;
mod connection;
mod engine;
mod forward;
mod input;
mod output;
mod receive_queue;
mod send_buffer;

use std::collections::VecDeque;

use nicforge_apps::AnyApp;
use nicforge_interfaces::kernel::{AnyKernelDriver, KernelDriver, Received, Sending};
use nicforge_nic::{DropCounters, PoolCache, Segment};
use nicforge_platform::{Addr, Cpu, Part};
use nicforge_units::{Cycles, Time};

pub use connection::{Connection, ConnectionPlan};
pub use engine::Endpoint;

use super::process::{AnyProcess, Call, Outcome};

/// What the kernel's instructions cost, beyond its memory accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCosts {
    /// Taking an interrupt and returning from it.
    pub interrupt: Cycles,
    /// Asking the interrupt controller which device it was.
    pub controller: Cycles,
    /// IP and TCP of a received segment with payload.
    pub rx_data: Cycles,
    /// The same without payload.
    pub rx_ack: Cycles,
    /// TCP and IP of a segment with payload.
    pub tx_data: Cycles,
    /// The same without payload.
    pub tx_ack: Cycles,
    /// IP of a packet that is forwarded.
    pub forward: Cycles,
    /// Entering a system call and leaving it.
    pub system_call: Cycles,
    /// Going to sleep and being woken.
    pub wake: Cycles,
    /// Bytes copied in a cycle, when they are in the cache.
    pub copy_bytes_per_cycle: f64,
    /// Packets polled before a process has its turn.
    pub poll_round: usize,
}

/// Counts of a kernel since its run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    /// Bytes that processes read.
    pub read_bytes: u64,
    /// Bytes that processes wrote.
    pub written_bytes: u64,
    /// Payload of packets that were forwarded.
    pub forwarded_bytes: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Packets received.
    pub packets_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Bytes that came to a process and are not those that its peer sent: a defect.
    pub wrong_bytes: u64,
}

/// What the process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Nothing: it runs.
    No,
    /// Something to read on this connection.
    Readable(usize),
    /// Something to read on any connection.
    AnyReadable,
    /// Room in this connection's send buffer.
    Writable(usize),
    /// It has ended.
    Ever,
}

/// The kernel of one core, its process, and its drivers.
pub struct Kernel {
    costs: KernelCosts,
    /// Buffers of packets.
    pub pool: PoolCache,
    /// By NIC.
    pub drivers: Vec<AnyKernelDriver>,
    /// By number.
    pub connections: Vec<Connection>,
    process: AnyProcess,
    /// What forwards packets, on a gateway.
    gateway: Option<AnyApp>,
    call: Option<Call>,
    /// Bytes that the current call has moved.
    moved: u64,
    waiting: Waiting,
    /// The connection that a select looks at first.
    select_from: usize,
    /// Interrupts on their way, by NIC.
    interrupts: Vec<VecDeque<Time>>,
    polling: Vec<bool>,
    polled: usize,
    /// The NIC whose turn is next.
    poll_from: usize,
    /// Frames that the driver had no room for, by NIC.
    queues: Vec<VecDeque<Sending>>,
    /// Whether the thread that sends has its turn coming, by NIC.
    thread_sends: Vec<bool>,
    received: Vec<Received>,
    /// What came to the process in this step: its place in the stream, and where it is.
    arrived: Vec<(u64, Segment)>,
    /// Packets that were dropped, by cause.
    pub drops: DropCounters,
    /// Counts.
    pub counters: KernelCounters,
}

impl Kernel {
    /// A kernel that has not begun.
    pub fn new(
        costs: KernelCosts,
        pool: PoolCache,
        drivers: Vec<AnyKernelDriver>,
        connections: Vec<Connection>,
        process: AnyProcess,
        gateway: Option<AnyApp>,
    ) -> Kernel {
        let nics = drivers.len();
        Kernel {
            costs,
            pool,
            drivers,
            connections,
            process,
            gateway,
            call: None,
            moved: 0,
            waiting: Waiting::No,
            select_from: 0,
            interrupts: vec![VecDeque::new(); nics],
            polling: vec![false; nics],
            polled: 0,
            poll_from: 0,
            queues: vec![VecDeque::new(); nics],
            thread_sends: vec![false; nics],
            received: Vec::new(),
            arrived: Vec::new(),
            drops: DropCounters::default(),
            counters: KernelCounters::default(),
        }
    }

    /// Brings the NICs up.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        cpu.enter(Part::Driver);
        for (driver, polling) in self.drivers.iter_mut().zip(&mut self.polling) {
            driver.start(cpu, &mut self.pool);
            *polling = driver.advice().polls;
        }
        cpu.enter(Part::Stack);
    }

    /// NIC `nic` interrupts at `time`.
    pub fn interrupt(&mut self, nic: usize, time: Time) {
        self.interrupts[nic].push_back(time);
    }

    /// One step; returns when the next one is due.
    pub fn step<C: Cpu>(&mut self, cpu: &mut C) -> Time {
        let now = cpu.now();
        if let Some(nic) = self.interrupted_by(now) {
            self.take_interrupt(cpu, nic);
            return cpu.now();
        }
        // Timers and threads have a turn too, or they would never come while packets do.
        let others = self.waiting == Waiting::No
            || self.thread_may_send().is_some()
            || self.connection_due(now).is_some();
        let turn = self.polled >= self.costs.poll_round && others;
        if !turn && let Some(nic) = self.polled_next() {
            self.poll(cpu, nic);
            self.poll_from = nic + 1;
            return cpu.now();
        }
        self.polled = 0;
        if let Some(nic) = self.thread_may_send() {
            self.drain_queue(cpu, nic);
            return cpu.now();
        }
        if let Some(number) = self.connection_due(now) {
            self.flush(cpu, number);
            return cpu.now();
        }
        if self.waiting == Waiting::No {
            self.run(cpu);
            return cpu.now();
        }
        let interrupts = self.interrupts.iter().filter_map(VecDeque::front);
        let timers = self.connections.iter().map(|connection| connection.due);
        interrupts
            .copied()
            .chain(timers)
            .min()
            .unwrap_or(Time::NEVER)
    }

    /// Counts the bytes that came to the process in this step, whoever copied them, and are not
    /// those that its peer sent. `memory` shows them without an access of anybody.
    pub fn check_arrived<'a>(&mut self, memory: impl Fn(Addr, usize) -> &'a [u8]) {
        for (place, there) in self.arrived.drain(..) {
            let bytes = memory(there.at, there.len as usize);
            if !self.process.is_right(place, bytes) {
                self.counters.wrong_bytes += u64::from(there.len);
            }
        }
    }

    /// The next NIC in turn that is polled.
    fn polled_next(&self) -> Option<usize> {
        let nics = self.polling.len();
        let mut turns = (0..nics).map(|step| (self.poll_from + step) % nics);
        turns.find(|&nic| self.polling[nic])
    }

    fn interrupted_by(&self, now: Time) -> Option<usize> {
        let raised = |times: &VecDeque<Time>| times.front().is_some_and(|&time| time <= now);
        self.interrupts.iter().position(raised)
    }

    fn take_interrupt<C: Cpu>(&mut self, cpu: &mut C, nic: usize) {
        cpu.enter(Part::Interrupt);
        self.counters.interrupts += 1;
        self.interrupts[nic].pop_front();
        cpu.work(self.costs.interrupt);
        cpu.work(self.costs.controller);
        self.polling[nic] |= self.drivers[nic].interrupt(cpu);
        if self.polling[nic] && self.drivers[nic].advice().receive_thread {
            cpu.enter(Part::Stack);
            cpu.work(self.costs.wake);
        }
    }

    fn poll<C: Cpu>(&mut self, cpu: &mut C, nic: usize) {
        cpu.enter(Part::Driver);
        let mut received = std::mem::take(&mut self.received);
        let more = self.drivers[nic].poll(cpu, &mut self.pool, &mut received, 1);
        self.polling[nic] = more;
        let advice = self.drivers[nic].advice();
        // A thread takes turns with the process, and who polls always leaves it the turn when there
        // is nothing.
        let turn = advice.receive_thread || advice.polls && received.is_empty();
        self.polled += if turn { self.costs.poll_round } else { 1 };
        self.drain_queue(cpu, nic);
        cpu.enter(Part::Stack);
        for packet in received.drain(..) {
            self.input(cpu, nic, &packet);
        }
        self.received = received;
        if self.drivers[nic].is_pressed() {
            self.fetch_deferred(cpu, nic);
        }
    }

    /// The NIC is full: what was left in it goes to kernel buffers, the oldest of each connection
    /// first, until the NIC is no longer full.
    fn fetch_deferred<C: Cpu>(&mut self, cpu: &mut C, nic: usize) {
        cpu.enter(Part::Copy);
        let driver = &mut self.drivers[nic];
        let connections = self.connections.iter_mut();
        let here = connections.filter(|connection| connection.plan.nic == nic);
        for payload in here.flat_map(|connection| connection.receive.in_nic()) {
            if !driver.is_pressed() {
                break;
            }
            payload.fetch(cpu, driver);
        }
        cpu.enter(Part::Stack);
    }

    fn connection_due(&self, now: Time) -> Option<usize> {
        self.connections
            .iter()
            .position(|connection| connection.due <= now)
    }

    /// Bytes that a process read and wrote, and all else that was counted.
    pub fn buffers_held(&self) -> u64 {
        let queued: usize = self.queues.iter().map(VecDeque::len).sum();
        let unread: usize = self
            .connections
            .iter()
            .map(|connection| connection.receive.len())
            .sum();
        let drivers: u64 = self.drivers.iter().map(KernelDriver::buffers_held).sum();
        (queued + unread) as u64 + drivers
    }

    /// What it waits for, in words.
    pub fn describe(&self) -> String {
        let states: Vec<String> = self
            .connections
            .iter()
            .take(4)
            .map(|connection| format!("{:?}", connection.engine.socket().state()))
            .collect();
        format!(
            "call {:?}, waiting {:?}, first connections {}",
            self.call,
            self.waiting,
            states.join(" ")
        )
    }
}

/// The outcome that a call begins with.
const BEGUN: Outcome = Outcome::Begun;
