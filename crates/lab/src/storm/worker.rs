//! A worker on its core: takes tuples from its queue and from the NIC, and gives tuples to workers here, to the multiplexer,
//! or to the NIC.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nicforge_nic::{DropCounters, Packet, data_of};
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Cpu, Part, Sim};
use nicforge_units::{Cycles, Time};
use nicforge_wire::headers::ETHERNET_HEADER_LEN;

use super::frame::{BARE_BYTES, BARE_MARK, BARE_TYPE};
use super::job::Job;
use super::options::Layout;
use super::queue::{Place, Receiver};
use super::topology::machine_of;
use super::tuple::{TUPLE_BYTES, Tuple};
use crate::assembly::CoreParts;
use crate::world::device::Device;
use crate::world::program::{Account, Here, Next, Notice, Program};

/// Packets of one poll, and frames of one doorbell.
pub const BURST: usize = 16;
/// A worker that found no room looks again after this time.
pub const WAIT: Time = Time::from_us(1);

/// A worker that its core runs, and whose results are read at the end.
pub type SharedWorker = Rc<RefCell<Worker>>;

/// How tuples leave for other machines.
pub enum Way {
    /// By the multiplexer, which empties this queue.
    Threads(Place),
    /// By the NIC, which also fills a queue of the worker.
    Nic(Box<CoreParts<Sim>>),
}

/// Counters of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tuples that it took, and those of them that came from other machines.
    pub taken: u64,
    pub from_others: u64,
    /// Tuples that it gave.
    pub given: u64,
    /// Time of tuples, in picoseconds: in its queues, in its hands, and of those from other machines from the worker that gave
    /// them to this machine.
    pub waited_ps: u64,
    pub worked_ps: u64,
    pub travelled_ps: u64,
}

impl Counts {
    /// The sum of both.
    pub fn and(&self, other: &Counts) -> Counts {
        Counts {
            taken: self.taken + other.taken,
            from_others: self.from_others + other.from_others,
            given: self.given + other.given,
            waited_ps: self.waited_ps + other.waited_ps,
            worked_ps: self.worked_ps + other.worked_ps,
            travelled_ps: self.travelled_ps + other.travelled_ps,
        }
    }
}

/// A worker.
pub struct Worker {
    /// Its task.
    pub task: u32,
    /// What it does.
    pub job: Job,
    /// What it counted.
    pub counts: Counts,
    /// Its drops by cause.
    pub drops: DropCounters,
    machine: usize,
    layout: Layout,
    semaphore: Cycles,
    inlet: Receiver,
    /// Workers of this machine, by task.
    here: BTreeMap<u32, Place>,
    way: Way,
    /// Packets of the last poll, and how many of them are handled.
    batch: Vec<Packet>,
    handled: usize,
    /// A tuple that found no room.
    pending: Option<Tuple>,
    /// Frames of which the NIC was not told.
    untold: usize,
}

/// The parts of a worker.
pub struct WorkerPlan {
    /// Its task and the machine that it runs on.
    pub task: u32,
    pub machine: usize,
    pub layout: Layout,
    /// What taking a tuple over from another thread costs.
    pub semaphore: Cycles,
    /// Workers of this machine, by task; its own queue is among them.
    pub here: BTreeMap<u32, Place>,
}

impl Worker {
    /// A worker with nothing to do yet.
    pub fn new(plan: WorkerPlan, job: Job, inlet: Receiver, way: Way) -> Worker {
        let WorkerPlan { task, machine, layout, semaphore, here } = plan;
        Worker {
            task,
            job,
            counts: Counts::default(),
            drops: DropCounters::default(),
            machine,
            layout,
            semaphore,
            inlet,
            here,
            way,
            batch: Vec::with_capacity(BURST),
            handled: 0,
            pending: None,
            untold: 0,
        }
    }

    /// Brings its queue of the NIC up.
    pub fn start(&mut self, cpu: &mut SimCpu) {
        if let Way::Nic(parts) = &mut self.way {
            let CoreParts { drivers, pool, .. } = &mut **parts;
            drivers.iter_mut().for_each(|driver| driver.start(cpu, pool));
        }
    }

    /// One turn: takes a tuple, and gives one. Returns whether there was any.
    fn turn(&mut self, cpu: &mut SimCpu) -> bool {
        if let Some(tuple) = self.pending.take()
            && !self.send(cpu, tuple)
        {
            self.tell(cpu);
            return false;
        }
        let began = cpu.now();
        let taken = self.take(cpu);
        let given = self.job.give(cpu);
        let busy = taken || given.is_some();
        if let Some(tuple) = given {
            self.send(cpu, tuple);
        }
        if taken {
            self.counts.worked_ps += (cpu.now() - began).as_ps();
        }
        if !busy || self.untold >= BURST {
            self.tell(cpu);
        }
        busy
    }

    /// Takes a tuple from its queue, or else from the NIC.
    fn take(&mut self, cpu: &mut SimCpu) -> bool {
        cpu.enter(Part::Driver);
        let found = match self.inlet.pop(cpu) {
            Some(found) => {
                cpu.work(self.semaphore);
                Some(found)
            }
            None => self.take_arrived(cpu),
        };
        let Some((tuple, came)) = found else { return false };
        let now = cpu.now();
        self.counts.taken += 1;
        self.counts.waited_ps += now.saturating_sub(came).as_ps();
        if machine_of(self.layout, tuple.from()).is_some_and(|from| from != self.machine) {
            self.counts.from_others += 1;
            self.counts.travelled_ps += tuple.since_left(came).as_ps();
        }
        self.job.take(cpu, &tuple);
        true
    }

    /// The next tuple that the NIC brought. What is none is dropped.
    fn take_arrived(&mut self, cpu: &mut SimCpu) -> Option<(Tuple, Time)> {
        let Way::Nic(parts) = &mut self.way else { return None };
        let CoreParts { drivers, pool, .. } = &mut **parts;
        if self.handled == self.batch.len() {
            self.batch.clear();
            self.handled = 0;
            drivers.iter_mut().for_each(|driver| driver.rx_burst(cpu, pool, &mut self.batch, BURST));
        }
        while let Some(&packet) = self.batch.get(self.handled) {
            self.handled += 1;
            let is_tuple = packet.mark == BARE_MARK && packet.head.len as usize == TUPLE_BYTES;
            let tuple = is_tuple.then(|| {
                let mut tuple = Tuple::default();
                tuple.0.copy_from_slice(cpu.bytes(packet.head.at, TUPLE_BYTES));
                tuple
            });
            pool.free(cpu, &packet);
            match tuple {
                Some(tuple) => return Some((tuple, packet.stamp)),
                None => self.drops.count("not_a_tuple"),
            }
        }
        None
    }

    /// Gives `tuple` away; where there is no room it is pending, and the answer is false.
    fn send(&mut self, cpu: &mut SimCpu, mut tuple: Tuple) -> bool {
        cpu.enter(Part::Driver);
        let now = cpu.now();
        tuple.leave(now);
        let sent = match (self.here.get(&tuple.to()), &mut self.way) {
            (Some(place), _) => {
                cpu.work(self.semaphore);
                place.push(cpu, &tuple, now)
            }
            (None, Way::Threads(outlet)) => {
                cpu.work(self.semaphore);
                outlet.push(cpu, &tuple, now)
            }
            (None, Way::Nic(parts)) => {
                let sent = to_nic(cpu, parts, &tuple);
                self.untold += usize::from(sent);
                sent
            }
        };
        if sent {
            self.counts.given += 1;
        } else {
            self.pending = Some(tuple);
        }
        sent
    }

    /// Tells the NIC of frames.
    fn tell(&mut self, cpu: &mut SimCpu) {
        let Way::Nic(parts) = &mut self.way else { return };
        let CoreParts { transmit, pool, .. } = &mut **parts;
        for transmit in transmit {
            transmit.ring_doorbell(cpu);
            if transmit.in_use() > 0 {
                transmit.reclaim(cpu, pool);
            }
        }
        self.untold = 0;
    }

    fn account(&self) -> Account {
        let Way::Nic(parts) = &self.way else { return Account::default() };
        let waiting = (self.batch.len() - self.handled) as u64;
        let in_transmit: u64 = parts.transmit.iter().map(|transmit| transmit.buffers_held()).sum();
        let in_receive: i64 = parts.drivers.iter().map(|driver| driver.buffers_held()).sum();
        Account {
            taken: parts.drivers.iter().map(|driver| driver.taken()).sum(),
            pushed: parts.transmit.iter().map(|transmit| transmit.pushed()).sum(),
            in_hand: waiting,
            buffers: in_receive + (parts.pool.len() as u64 + in_transmit + waiting) as i64,
            ..Account::default()
        }
    }
}

/// Puts a bare tuple into a transmit ring, if ring and pool have room.
fn to_nic(cpu: &mut SimCpu, parts: &mut CoreParts<Sim>, tuple: &Tuple) -> bool {
    let CoreParts { transmit, pool, .. } = parts;
    let [transmit] = &mut transmit[..] else { return false };
    let Some(mbuf) = pool.take(cpu) else { return false };
    let at = data_of(mbuf);
    let frame = cpu.bytes_mut(at, BARE_BYTES);
    frame[..ETHERNET_HEADER_LEN].fill(0);
    frame[ETHERNET_HEADER_LEN - 2..ETHERNET_HEADER_LEN].copy_from_slice(&BARE_TYPE.to_be_bytes());
    frame[ETHERNET_HEADER_LEN..].copy_from_slice(&tuple.0);
    let packet = Packet::in_buffer(mbuf, BARE_BYTES as u32, cpu.now());
    let sent = transmit.push(cpu, &packet, true).is_ok();
    if !sent {
        pool.give(cpu, mbuf);
    }
    sent
}

/// A core that runs a worker.
pub struct WorkerProgram(pub SharedWorker);

impl Program for WorkerProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.begin_round();
        let before = here.core.spent().clone();
        let mut worker = self.0.borrow_mut();
        if worker.turn(&mut here.cpu()) {
            return Next::Again;
        }
        here.core.count_as_idle(&before);
        let now = here.core.now();
        let waits = if worker.pending.is_some() { now + WAIT } else { Time::NEVER };
        here.sleep(worker.job.due().max(now + Time::from_ps(1)).min(waits))
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn account(&self) -> Account {
        self.0.borrow().account()
    }

    fn drops(&self) -> DropCounters {
        self.0.borrow().drops.clone()
    }

    fn describe(&self) -> Option<String> {
        let worker = self.0.borrow();
        Some(format!("worker of task {}: {:?}", worker.task, worker.counts))
    }
}
