//! A kernel's network stack: interrupts, the driver's poll, IP and TCP, sockets, system calls
//! (integrated_nic, sections 2.1 to 2.3).
//!
//! ```text
//!   interrupt ─► poll, a packet a step ─► input.rs: IP, TCP ─► receive queue ─► copy ─► process
//!   driver ◄──── output.rs: segments, queue ◄──── send buffer ◄──── copy ◄─────────────┘
//! ```
//!
//! A step of the core is one of these: taking an interrupt, one received packet, one packet's
//! worth of a system call. Interrupts come first, then polling, but after a round of packets the
//! process has a turn, as it would have beside a kernel thread that polls.
//!
//! With several cores each runs a process of its own with connections of its own, and a NIC
//! interrupts one of them (processor.rs). That core receives for all, or hands packets to the cores
//! whose connections they are (spread.rs). A step runs to its end before another core's begins, so
//! what cores do to each other carries the time from which it counts, and sockets are locked.

mod calls;
mod connection;
mod engine;
mod forward;
mod input;
mod output;
mod processor;
mod receive_queue;
mod send_buffer;
mod spread;

use nicforge_apps::nat::Nat;
use nicforge_interfaces::kernel::{KernelDriver, SharedLock};
use nicforge_nic::DropCounters;
use nicforge_platform::sim::DeviceReader;
use nicforge_platform::{Addr, Cpu, Part};
use nicforge_units::{Cycles, Time};

pub use connection::{Connection, ConnectionPlan};
pub use engine::Endpoint;
pub use processor::Processor;

use processor::Waiting;

use super::process::{AnyProcess, Call, Outcome};

/// A driver of a simulated host's kernel.
pub type Driver = dyn for<'a> KernelDriver<DeviceReader<'a>>;

/// What forwards packets, on a gateway: one core at a time.
pub struct Gateway {
    /// Translates their addresses.
    pub nat: Nat,
    /// What its instructions cost for a packet.
    pub work: Cycles,
    /// The core at work holds it.
    pub lock: SharedLock,
}

/// What the kernel's instructions cost, beyond its memory accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCosts {
    /// Taking an interrupt and returning from it.
    pub interrupt: Cycles,
    /// An access to the interrupt controller.
    pub controller: Cycles,
    /// Accesses to it for an interrupt: which device it was, masking it, letting it through again.
    pub controller_accesses: u64,
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

impl KernelCounters {
    /// Bytes that were of use to somebody.
    pub fn payload(&self) -> u64 {
        self.read_bytes + self.written_bytes + self.forwarded_bytes
    }
}

/// The kernel of a system, its processes, and its drivers.
pub struct Kernel {
    costs: KernelCosts,
    /// By core.
    pub processors: Vec<Processor>,
    /// By NIC.
    pub drivers: Vec<Box<Driver>>,
    /// Frames that each of them has brought.
    pub taken: Vec<u64>,
    /// By number.
    pub connections: Vec<Connection>,
    /// What forwards packets, on a gateway.
    gateway: Option<Gateway>,
    /// Cores that others have given something to do, and from when on.
    wakes: Vec<(usize, Time)>,
    /// Packets that were dropped, by cause.
    pub drops: DropCounters,
    /// Counts.
    pub counters: KernelCounters,
}

impl Kernel {
    /// A kernel that has not begun; `gateway` forwards packets.
    pub fn new(
        costs: KernelCosts,
        processors: Vec<Processor>,
        drivers: Vec<Box<Driver>>,
        connections: Vec<Connection>,
        gateway: Option<Gateway>,
    ) -> Kernel {
        Kernel {
            costs,
            processors,
            taken: vec![0; drivers.len()],
            drivers,
            connections,
            gateway,
            wakes: Vec::new(),
            drops: DropCounters::default(),
            counters: KernelCounters::default(),
        }
    }

    /// The core that NIC `nic` interrupts, and that polls it.
    pub fn core_of(&self, nic: usize) -> usize {
        nic % self.processors.len()
    }

    /// Brings the NICs up.
    pub fn start(&mut self, cpu: &mut DeviceReader<'_>) {
        cpu.enter(Part::Driver);
        for nic in 0..self.drivers.len() {
            let core = self.core_of(nic);
            let processor = &mut self.processors[core];
            self.drivers[nic].start(cpu, &mut processor.pool);
            processor.polling[nic] = self.drivers[nic].advice().polls;
        }
        cpu.enter(Part::Stack);
    }

    /// NIC `nic` interrupts at `time`. Returns which core.
    pub fn interrupt(&mut self, nic: usize, time: Time) -> usize {
        let core = self.core_of(nic);
        self.processors[core].interrupt(nic, time);
        core
    }

    /// Whether [`take_wakes`](Self::take_wakes) has any.
    pub fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// Cores that have been given something to do since the last call, and from when on.
    pub fn take_wakes(&mut self) -> std::vec::Drain<'_, (usize, Time)> {
        self.wakes.drain(..)
    }

    /// One step of `core`; returns when the next one is due.
    pub fn step(&mut self, core: usize, cpu: &mut DeviceReader<'_>) -> Time {
        let now = cpu.now();
        self.wake_up(core, cpu);
        let processor = &self.processors[core];
        if let Some(nic) = processor.interrupted_by(now) {
            self.take_interrupt(core, cpu, nic);
            return cpu.now();
        }
        // Timers and threads have a turn too, or they would never come while packets do.
        let runs = processor.waiting == Waiting::No;
        let others = || runs || processor.thread_may_send(now).is_some() || self.connection_due(core, now).is_some();
        let turn = processor.polled >= self.costs.poll_round && others();
        if !turn && self.receive(core, cpu) {
            return cpu.now();
        }
        self.processors[core].polled = 0;
        if let Some(nic) = self.processors[core].thread_may_send(now) {
            self.drain_queue(core, cpu, nic);
            return cpu.now();
        }
        if let Some(number) = self.connection_due(core, now) {
            let lock = self.connections[number].lock;
            lock.hold(cpu, |cpu| self.flush(core, cpu, number));
            return cpu.now();
        }
        if runs {
            self.run(core, cpu);
            return cpu.now();
        }
        let timers = self.own(core).map(|connection| connection.due);
        timers.fold(self.processors[core].due(), Time::min)
    }

    /// Takes a packet from a NIC that is polled, or one that another core has received.
    fn receive(&mut self, core: usize, cpu: &mut DeviceReader<'_>) -> bool {
        if let Some(nic) = self.processors[core].polled_next() {
            self.poll(core, cpu, nic);
            self.processors[core].poll_from = nic + 1;
            return true;
        }
        self.take_handed(core, cpu)
    }

    /// The connections of `core`'s process.
    fn own(&self, core: usize) -> impl Iterator<Item = &Connection> {
        let here = move |connection: &&Connection| connection.plan.core == core;
        self.connections.iter().filter(here)
    }

    /// Counts the bytes that came to a process in this step, whoever copied them, and are not
    /// those that its peer sent. `memory` shows them without an access of anybody.
    pub fn check_arrived<'a>(&mut self, memory: impl Fn(Addr, usize) -> &'a [u8]) {
        for processor in &mut self.processors {
            if processor.arrived.is_empty() {
                continue;
            }
            for (number, place, there) in processor.arrived.drain(..) {
                let bytes = memory(there.at, there.len as usize);
                let way = self.connections[number].way(number, false);
                if !way.is(place, bytes) {
                    self.counters.wrong_bytes += u64::from(there.len);
                }
            }
        }
    }

    fn take_interrupt(&mut self, core: usize, cpu: &mut DeviceReader<'_>, nic: usize) {
        cpu.enter(Part::Interrupt);
        self.counters.interrupts += 1;
        let processor = &mut self.processors[core];
        processor.taken(nic);
        cpu.work(self.costs.interrupt);
        cpu.work(self.costs.controller * self.costs.controller_accesses);
        processor.polling[nic] |= self.drivers[nic].interrupt(cpu);
        if processor.polling[nic] && self.drivers[nic].advice().receive_thread {
            cpu.enter(Part::Stack);
            cpu.work(self.costs.wake);
        }
    }

    fn poll(&mut self, core: usize, cpu: &mut DeviceReader<'_>, nic: usize) {
        cpu.enter(Part::Driver);
        let processor = &mut self.processors[core];
        let mut received = std::mem::take(&mut processor.received);
        let more = self.drivers[nic].poll(cpu, &mut processor.pool, &mut received, 1);
        processor.polling[nic] = more;
        self.taken[nic] += received.len() as u64;
        let advice = self.drivers[nic].advice();
        // A thread takes turns with the process, and who polls always leaves it the turn when there
        // is nothing.
        let turn = advice.receive_thread || advice.polls && received.is_empty();
        processor.polled += if turn { self.costs.poll_round } else { 1 };
        self.drain_queue(core, cpu, nic);
        self.let_others_send(core, cpu, nic);
        cpu.enter(Part::Stack);
        for packet in received.drain(..) {
            if advice.spreads { self.spread(core, cpu, nic, &packet) } else { self.input(core, cpu, nic, &packet) }
        }
        self.processors[core].received = received;
        if self.drivers[nic].is_pressed() {
            self.fetch_deferred(cpu, nic);
        }
    }

    /// The NIC is full: what was left in it goes to kernel buffers, the oldest of each connection
    /// first, until the NIC is no longer full.
    fn fetch_deferred(&mut self, cpu: &mut DeviceReader<'_>, nic: usize) {
        cpu.enter(Part::Copy);
        let driver = &mut *self.drivers[nic];
        let connections = self.connections.iter_mut();
        let here = connections.filter(|connection| connection.plan.nic == nic);
        for connection in here {
            let (lock, receive) = (connection.lock, &mut connection.receive);
            lock.hold(cpu, |cpu| {
                let mut in_nic = receive.in_nic();
                while driver.is_pressed()
                    && let Some(payload) = in_nic.next()
                {
                    payload.fetch(cpu, driver);
                }
            });
        }
        cpu.enter(Part::Stack);
    }

    fn connection_due(&self, core: usize, now: Time) -> Option<usize> {
        let due = |connection: &Connection| connection.due <= now && connection.plan.core == core;
        self.connections.iter().position(due)
    }

    /// Packet buffers that it holds, and its drivers.
    pub fn buffers_held(&self) -> u64 {
        let processors = self.processors.iter();
        let here: usize = processors.clone().map(Processor::packets_held).sum();
        let at_hand: usize = processors.map(|processor| processor.pool.len()).sum();
        let connections = self.connections.iter();
        let in_sockets: usize = connections.map(|connection| connection.receive.len() + connection.send.len()).sum();
        let drivers: u64 = self.drivers.iter().map(|driver| driver.buffers_held()).sum();
        (here + at_hand + in_sockets) as u64 + drivers
    }

    /// Whether every process waits, and nothing that would wake it is on its way to it.
    pub fn all_wait(&self) -> bool {
        let waits = |one: &Processor| one.waiting != Waiting::No && one.woken.is_none();
        self.processors.iter().all(waits)
    }

    /// What it waits for, in words.
    pub fn describe(&self) -> String {
        let states: Vec<String> =
            self.connections.iter().take(4).map(|connection| format!("{:?}", connection.engine.state())).collect();
        let processes: Vec<String> = self
            .processors
            .iter()
            .map(|processor| format!("call {:?}, waiting {:?}", processor.call, processor.waiting))
            .collect();
        format!("{}; first connections {}", processes.join("; "), states.join(" "))
    }
}

/// The outcome that a call begins with.
const BEGUN: Outcome = Outcome::Begun;
