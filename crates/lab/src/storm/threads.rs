//! The two threads of a machine without help of the NIC: one takes all frames in and shares tuples out, the other collects
//! tuples, and sends them in batches.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use nicforge_nic::transmit::TransmitDriver;
use nicforge_nic::{DriverHalf, DropCounters, Packet, PoolCache, data_of};
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Addr, Cpu, Part};
use nicforge_units::{CACHE_LINE_BYTES, Cycles, Time};

use super::frame::{self, ACK_BYTES, Content, DATA_BYTES, TUPLE_AT};
use super::options::Layout;
use super::queue::{Place, Receiver};
use super::topology::{MACHINES, machine_of};
use super::tuple::{TUPLE_BYTES, Tuple};
use super::window::{Seen, Window};
use super::worker::{BURST, WAIT};
use crate::world::device::Device;
use crate::world::program::{Account, Here, Next, Notice, Program};

/// Bytes of a frame that a cycle of a checksum takes.
const SUMMED_A_CYCLE: u64 = 16;

/// Windows of a machine's connections, which both threads know.
#[derive(Clone)]
pub struct Windows {
    /// By machine.
    pub of: Rc<RefCell<[Window; MACHINES]>>,
    /// Where they lie, a line each.
    pub at: Addr,
}

impl Windows {
    /// Changes the window of the connection to `machine`.
    fn with<T>(&self, cpu: &mut SimCpu, machine: usize, change: impl FnOnce(&mut Window, Time) -> T) -> T {
        let at = self.at + machine as u64 * CACHE_LINE_BYTES;
        let count: u64 = cpu.load(at);
        cpu.store(at, count.wrapping_add(1));
        change(&mut self.of.borrow_mut()[machine], cpu.now())
    }
}

/// What both threads know.
#[derive(Clone)]
pub struct Thread {
    /// Its machine.
    pub machine: usize,
    /// Where tasks run.
    pub layout: Layout,
    /// Windows of its connections.
    pub windows: Windows,
    /// Cost of the network stack for a packet.
    pub stack: Cycles,
    /// Cost of handing a tuple over.
    pub semaphore: Cycles,
}

/// A transmit ring with buffers.
pub struct Out {
    /// The ring.
    pub transmit: TransmitDriver,
    /// Packet buffers.
    pub pool: PoolCache,
}

impl Out {
    fn reclaim(&mut self, cpu: &mut SimCpu) {
        if self.transmit.in_use() > 0 {
            self.transmit.reclaim(cpu, &mut self.pool);
        }
    }

    /// Puts `len` bytes of `mbuf` into the ring; a full one drops them.
    fn push(&mut self, cpu: &mut SimCpu, mbuf: Addr, len: usize, drops: &mut DropCounters) {
        let packet = Packet::in_buffer(mbuf, len as u32, cpu.now());
        if self.transmit.push(cpu, &packet, true).is_err() {
            drops.count("tx_ring_full");
            self.pool.give(cpu, mbuf);
        }
    }

    fn buffers(&self) -> i64 {
        (self.pool.len() as u64 + self.transmit.buffers_held()) as i64
    }
}

/// Takes frames in.
pub struct Demultiplexer {
    thread: Thread,
    drivers: Vec<Box<dyn DriverHalf<SimCpu>>>,
    out: Out,
    /// Workers of this machine, by task.
    inlets: BTreeMap<u32, Place>,
    /// What came from each machine.
    seen: [Seen; MACHINES],
    batch: Vec<Packet>,
    handled: usize,
    drops: DropCounters,
}

impl Demultiplexer {
    /// The thread that empties `drivers`' queues.
    pub fn new(
        thread: Thread,
        drivers: Vec<Box<dyn DriverHalf<SimCpu>>>,
        out: Out,
        inlets: BTreeMap<u32, Place>,
    ) -> Demultiplexer {
        let (batch, drops) = (Vec::with_capacity(BURST), DropCounters::default());
        Demultiplexer { thread, drivers, out, inlets, seen: Default::default(), batch, handled: 0, drops }
    }

    /// Brings the NIC's queues up.
    pub fn start(&mut self, cpu: &mut SimCpu) {
        self.drivers.iter_mut().for_each(|driver| driver.start(cpu, &mut self.out.pool));
    }

    fn turn(&mut self, cpu: &mut SimCpu) -> bool {
        cpu.enter(Part::Driver);
        if self.handled == self.batch.len() {
            self.out.transmit.ring_doorbell(cpu);
            self.out.reclaim(cpu);
            self.batch.clear();
            self.handled = 0;
            for driver in &mut self.drivers {
                driver.rx_burst(cpu, &mut self.out.pool, &mut self.batch, BURST);
            }
        }
        let Some(&packet) = self.batch.get(self.handled) else { return false };
        self.handled += 1;
        cpu.enter(Part::Stack);
        if let Err(cause) = self.packet(cpu, &packet) {
            self.drops.count(cause);
        }
        self.out.pool.free(cpu, &packet);
        true
    }

    /// Brings a tuple to its worker, and acknowledges it if there was room.
    fn packet(&mut self, cpu: &mut SimCpu, packet: &Packet) -> Result<(), &'static str> {
        let Thread { machine, stack, semaphore, .. } = self.thread;
        let len = packet.head.len as usize;
        cpu.work(stack + Cycles(len as u64 / SUMMED_A_CYCLE));
        let bytes = cpu.bytes(packet.head.at, len).to_vec();
        let (from, sequence) = match frame::read(&bytes, machine)? {
            Content::Acknowledgement { from, upto } => {
                self.thread.windows.with(cpu, from, |window, now| window.acknowledge(upto, now));
                return Ok(());
            }
            Content::Tuple { from, sequence } => (from, sequence),
        };
        let mut tuple = Tuple::default();
        tuple.0.copy_from_slice(&bytes[TUPLE_AT..]);
        let place = self.inlets.get(&tuple.to()).ok_or("no_such_task")?;
        if self.seen[from].has(sequence) {
            return Err("duplicate");
        }
        cpu.enter(Part::Copy);
        cpu.work(semaphore);
        if !place.push(cpu, &tuple, packet.stamp) {
            return Err("queue_full");
        }
        self.seen[from].add(sequence);
        cpu.enter(Part::Stack);
        cpu.work(stack);
        let mbuf = self.out.pool.take(cpu).ok_or("no_buffer_for_acknowledgement")?;
        let bytes = frame::acknowledgement(machine, from, &tuple, sequence);
        cpu.bytes_mut(data_of(mbuf), ACK_BYTES).copy_from_slice(&bytes);
        self.out.push(cpu, mbuf, ACK_BYTES, &mut self.drops);
        Ok(())
    }
}

/// Tuples for one machine, each in a buffer of its own.
#[derive(Default)]
struct Batch {
    mbufs: VecDeque<Addr>,
    /// When the first of them came.
    since: Time,
    leaves: bool,
}

/// Sends tuples.
pub struct Multiplexer {
    thread: Thread,
    out: Out,
    /// One of each worker.
    outlets: Vec<Receiver>,
    /// Which comes next.
    next: usize,
    batches: [Batch; MACHINES],
    most: usize,
    longest: Time,
    drops: DropCounters,
}

impl Multiplexer {
    /// The thread that empties `outlets` and sends up to `most` tuples together, none of which waits `longest` for others.
    pub fn new(thread: Thread, out: Out, outlets: Vec<Receiver>, most: usize, longest: Time) -> Multiplexer {
        let (batches, drops) = (Default::default(), DropCounters::default());
        Multiplexer { thread, out, outlets, next: 0, batches, most, longest, drops }
    }

    /// Sends a part of a batch, or else collects from one worker; returns whether there was anything to do.
    fn turn(&mut self, cpu: &mut SimCpu) -> bool {
        let now = cpu.now();
        let is_due = |batch: &Batch| {
            let is_full = batch.mbufs.len() >= self.most || now >= batch.since + self.longest;
            !batch.mbufs.is_empty() && (batch.leaves || is_full)
        };
        if let Some(machine) = self.batches.iter().position(is_due) {
            self.send(cpu, machine);
            return true;
        }
        for _ in 0..self.outlets.len() {
            self.next = (self.next + 1) % self.outlets.len();
            if self.collect(cpu) {
                return true;
            }
        }
        self.out.reclaim(cpu);
        false
    }

    /// Takes what the next worker has, up to a burst.
    fn collect(&mut self, cpu: &mut SimCpu) -> bool {
        cpu.enter(Part::Copy);
        for taken in 0..BURST {
            if self.out.pool.is_empty() {
                self.out.reclaim(cpu);
            }
            // A buffer first: what is taken must leave.
            let Some(mbuf) = self.out.pool.take(cpu) else { return taken > 0 };
            let Some((tuple, _)) = self.outlets[self.next].pop(cpu) else {
                self.out.pool.give(cpu, mbuf);
                return taken > 0;
            };
            cpu.work(self.thread.semaphore);
            let Some(machine) = machine_of(self.thread.layout, tuple.to()) else {
                self.drops.count("no_such_task");
                self.out.pool.give(cpu, mbuf);
                continue;
            };
            cpu.bytes_mut(data_of(mbuf) + TUPLE_AT as u64, TUPLE_BYTES).copy_from_slice(&tuple.0);
            let batch = &mut self.batches[machine];
            if batch.mbufs.is_empty() {
                batch.since = cpu.now();
            }
            batch.mbufs.push_back(mbuf);
        }
        true
    }

    /// Sends a burst of a batch. What the window does not let through is dropped: tuples are delivered at most once.
    fn send(&mut self, cpu: &mut SimCpu, machine: usize) {
        cpu.enter(Part::Stack);
        self.out.reclaim(cpu);
        for _ in 0..BURST {
            let Some(mbuf) = self.batches[machine].mbufs.pop_front() else { break };
            cpu.work(self.thread.stack);
            let Some(sequence) = self.thread.windows.with(cpu, machine, |window, now| window.send(now)) else {
                self.drops.count("no_window");
                self.out.pool.give(cpu, mbuf);
                continue;
            };
            cpu.work(Cycles(DATA_BYTES as u64 / SUMMED_A_CYCLE));
            let bytes = cpu.bytes_mut(data_of(mbuf), DATA_BYTES);
            frame::write_headers(bytes, self.thread.machine, machine, sequence);
            self.out.push(cpu, mbuf, DATA_BYTES, &mut self.drops);
        }
        self.batches[machine].leaves = !self.batches[machine].mbufs.is_empty();
        self.out.transmit.ring_doorbell(cpu);
    }

    fn due(&self) -> Time {
        let waiting = self.batches.iter().filter(|batch| !batch.mbufs.is_empty());
        waiting.map(|batch| batch.since + self.longest).fold(Time::NEVER, Time::min)
    }

    fn in_hand(&self) -> u64 {
        self.batches.iter().map(|batch| batch.mbufs.len() as u64).sum()
    }
}

/// One step of a thread that does `turn`, and without anything to do sleeps until `due`.
fn step(here: &mut Here<'_>, turn: impl FnOnce(&mut SimCpu) -> bool, due: Time) -> Next {
    here.begin_round();
    let before = here.core.spent().clone();
    if turn(&mut here.cpu()) {
        return Next::Again;
    }
    here.core.count_as_idle(&before);
    here.sleep(due)
}

impl Program for Demultiplexer {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        step(here, |cpu| self.turn(cpu), Time::NEVER)
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn account(&self) -> Account {
        let waiting = (self.batch.len() - self.handled) as u64;
        let in_receive: i64 = self.drivers.iter().map(|driver| driver.buffers_held()).sum();
        Account {
            taken: self.drivers.iter().map(|driver| driver.taken()).sum(),
            pushed: self.out.transmit.pushed(),
            in_hand: waiting,
            buffers: in_receive + self.out.buffers() + waiting as i64,
            ..Account::default()
        }
    }

    fn drops(&self) -> DropCounters {
        self.drops.clone()
    }

    fn describe(&self) -> Option<String> {
        Some(format!("demultiplexer of machine {}: {} in hand", self.thread.machine, self.batch.len() - self.handled))
    }
}

impl Program for Multiplexer {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        let next = step(here, |cpu| self.turn(cpu), Time::NEVER);
        match next {
            Next::At(time) => {
                let now = here.core.now();
                // Without buffers tuples wait although nothing is due.
                let starved = if self.out.pool.ran_dry() { now + WAIT } else { Time::NEVER };
                Next::At(time.min(self.due()).min(starved))
            }
            other => other,
        }
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn account(&self) -> Account {
        Account {
            pushed: self.out.transmit.pushed(),
            buffers: self.out.buffers() + self.in_hand() as i64,
            ..Account::default()
        }
    }

    fn drops(&self) -> DropCounters {
        self.drops.clone()
    }

    fn describe(&self) -> Option<String> {
        Some(format!("multiplexer of machine {}: {} in hand", self.thread.machine, self.in_hand()))
    }
}
