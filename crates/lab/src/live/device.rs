//! The device's thread: all NICs with their ports.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use hdrhistogram::Histogram;
use nicforge_interfaces::emulated::CoreDma;
use nicforge_interfaces::sh_ring_dynamic::Heuristic;
use nicforge_nic::Nic;
use nicforge_nic::transmit::{Bridged, Internal};
use nicforge_platform::Dma;
use nicforge_platform::live::ports::Port;
use nicforge_platform::live::{Bell, Control, DeviceCpu, LiveDma, LiveError};
use nicforge_units::Time;

use nicforge_options::{choice, options};

use super::Region;
use super::threads::Idle;
use super::{Shared, locked};

mod counts;
mod course;
mod orders;
mod out;
mod played;
mod registers;
mod room;
mod steering;
mod too_long;

use out::Out;
use played::due;
use registers::Watched;
use room::Backlog;

pub use counts::{DeviceCounts, NicCounts, StageCounts};
pub use course::Step;
pub use orders::{Done, Order, Ordered, Ownership, Served};
pub use played::fill;
use steering::Steering;
pub use too_long::TooLong;

/// Frames taken from a port before the others have their turn.
const BUDGET: usize = 32;
/// How long it sleeps at most, and where a port has nothing to wait for.
const SLEEP: Duration = Duration::from_millis(50);
const POLL: Duration = Duration::from_micros(50);
/// How often it is looked at whether frames can come in again.
const HELD: Duration = Duration::from_millis(2);

choice! {
    /// What happens to frames that come in while receive rings are full.
    pub enum WhenFull {
        /// They wait in the port, as in a FIFO of some megabytes, which drops when it is full.
        Wait = "wait",
        /// The NIC takes them and drops them, as one on a fast wire must. Files wait all the same.
        Drop = "drop",
    }
}

options! {
    /// Full receive rings.
    pub struct FullOptions {
        /// What happens to frames that come in while receive rings are full: they wait in the port, or the NIC drops them.
        when_full: WhenFull = WhenFull::Wait, "", WhenFull::ALLOWED;
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Frames come in.
    Running,
    /// None come in any more; what is inside goes out.
    Draining,
    /// As before, and it has been quiet for a while.
    Quiet,
    /// Workers have stopped: the device sends what is left, and ends.
    Ending,
}

impl Phase {
    /// The phase that `word` holds.
    pub fn of(word: &AtomicU8) -> Phase {
        match word.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Draining,
            2 => Phase::Quiet,
            _ => Phase::Ending,
        }
    }
}

/// How a device behaves at its limits.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Without work.
    pub idle: Idle,
    /// When receive rings are full.
    pub when_full: WhenFull,
    /// Frames of a port that may wait for software before the others wait in the port.
    pub window: usize,
    /// The longest segment that is delivered whole; 0: all are cut when they come in.
    pub longest_segment: usize,
    /// How steering is changed, where the interface has several sets of queues.
    pub heuristic: Option<Heuristic>,
    /// Whether frames for workers that are not there go to others.
    pub spreads: bool,
}

/// All NICs, their ports, and the memory.
pub struct Device {
    nics: Vec<Nic<LiveDma>>,
    ports: Vec<Box<dyn Port>>,
    too_long: Vec<TooLong>,
    /// Frames that stages send by other ports than their own.
    bridged: Vec<Bridged>,
    /// The way to memory; as software the thread takes buffers back, and plays NICs behind its own.
    way: CoreDma<DeviceCpu>,
    control: Control,
    bell: Bell,
    policy: Policy,
    backlog: Backlog,
    /// By worker: buffers that others, which began anew since, had lent it, less the reverse.
    lent: Vec<i64>,
    orders: Receiver<Ordered>,
    orderer: Sender<Ordered>,
    ownership: Option<Ownership>,
    steering: Option<Steering>,
    /// Whether ports have to wait because too many frames wait for software, or workers restart.
    held: bool,
    /// Until when frames wait in ports for workers that restart.
    waits_until: Time,
    registers: Vec<Watched>,
    /// As [`DeviceCounts::receive`] has it.
    receive: Vec<(u64, u64)>,
    /// From a frame's arrival to its departure, in ns.
    pub latency: Histogram<u64>,
}

impl Device {
    /// NIC `i` has port `i`, about which `too_long[i]` tells senders.
    pub fn new(
        nics: Vec<Nic<LiveDma>>,
        ports: Vec<Box<dyn Port>>,
        too_long: Vec<TooLong>,
        mut way: CoreDma<DeviceCpu>,
        region: Region,
        policy: Policy,
        ownership: Option<Ownership>,
    ) -> Device {
        if policy.idle == Idle::Spin {
            way.cpu.dma.be_polled();
        }
        let (orderer, orders) = channel();
        let devices = 0..nics.len() as u8;
        let registers = devices.flat_map(|device| region.control.registers(device).collect::<Vec<_>>());
        Device {
            registers: registers.map(Watched::new).collect(),
            // Up to a minute, to three digits: both are allowed, so this cannot fail.
            latency: Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds and digits that are allowed"),
            backlog: Backlog::default(),
            lent: Vec::new(),
            receive: Vec::new(),
            orders,
            orderer,
            ownership,
            steering: policy.heuristic.map(|heuristic| Steering::new(heuristic, &mut way.cpu.dma)),
            held: false,
            waits_until: Time::ZERO,
            nics,
            ports,
            too_long,
            bridged: Vec::new(),
            way,
            control: region.control,
            bell: region.bell,
            policy,
        }
    }

    /// Buffers that no worker counts: what workers' own counts are short of ([`Nic::lent`]), and
    /// what NICs keep ([`Queues::holds`](nicforge_nic::Queues::holds)).
    pub fn buffers(&self) -> i64 {
        let held: u64 = self.nics.iter().map(|nic| nic.receive.holds()).sum();
        self.lent.iter().sum::<i64>().wrapping_add_unsigned(held)
    }

    /// Its way to memory.
    pub(super) fn dma(&mut self) -> &mut LiveDma {
        &mut self.way.cpu.dma
    }

    /// Where orders go; ring the bell after one.
    pub fn orderer(&self) -> Sender<Ordered> {
        self.orderer.clone()
    }

    /// The workers that can only restart together with `worker`.
    pub fn together(&self, worker: usize) -> Range<usize> {
        let groups = self.nics.iter().map(|nic| nic.together(worker as u16));
        groups.fold(worker..worker + 1, |all, group| all.start.min(group.start.into())..all.end.max(group.end.into()))
    }

    /// Does what there is to do once; whether there was anything.
    fn round(&mut self, takes: bool) -> Result<bool, LiveError> {
        let mut busy = self.follow_orders();
        // Before the registers: what was taken before a doorbell rang has its entries back.
        self.look_at_workers();
        busy |= self.read_registers();
        // Once for all ports, or the first one's turn would be everybody's.
        let gives_up = self.gives_up();
        self.held = self.way.cpu.dma.now() < self.waits_until;
        let takes = takes && !self.held;
        let mut burst = false;
        for number in 0..self.nics.len() {
            let room = self.room(number);
            let (nic, port) = (&mut self.nics[number], &mut self.ports[number]);
            if takes {
                let waits = self.policy.when_full == WhenFull::Wait && !gives_up;
                let budget = match waits || port.is_patient() {
                    // Frames of a file can wait until all workers are there.
                    _ if port.is_patient() && nic.has_closed() => 0,
                    true => room.min(BUDGET),
                    false => BUDGET,
                };
                let dma = &mut self.way.cpu.dma;
                // Within the clock's step, frames have times of their own, by which each is known.
                let mut stamp = dma.now() + Time::from_ps((number * BUDGET) as u64);
                let mut each = |frame: &[u8], left| {
                    nic.receive_unfinished(dma, frame, left, stamp);
                    stamp += Time::from_ps(1);
                };
                let longest = self.policy.longest_segment;
                busy |= port.receive_unfinished(budget, longest, &mut each)? > 0;
            }
            let moved = |nic: &Nic<LiveDma>| (nic.transmit.served(), nic.transmit.counters().frames);
            let before = moved(nic);
            let now = self.way.cpu.dma.now();
            let too_long = &mut self.too_long[number];
            let mut out = Out::new(&mut **port, too_long, &mut self.latency, &mut self.bridged, now);
            while nic.advance(&mut self.way.cpu.dma, &mut out) <= now {}
            if let Some(error) = out.failed {
                return Err(error);
            }
            for error in too_long.take_errors().into_iter().filter(|_| takes) {
                nic.receive(&mut self.way.cpu.dma, &error, now);
            }
            if moved(nic) != before {
                busy = true;
                burst |= moved(nic).1 - before.1 >= BUDGET as u64;
                port.flush()?;
            }
            busy |= self.bridge(number);
            busy |= self.play(number);
        }
        self.way.cpu.dma.wake();
        if burst && self.sleeps() {
            // Whoever receives them may be waiting for this core, and the next burst would overrun its socket.
            std::thread::yield_now();
        }
        Ok(busy)
    }

    /// Frames that stages of NIC `number` send by other ports go to the NICs there; whether there were any.
    fn bridge(&mut self, number: usize) -> bool {
        let any = !self.bridged.is_empty();
        for Bridged { port, bytes, stamp, ready } in std::mem::take(&mut self.bridged) {
            match self.nics.get_mut(usize::from(port.0)) {
                Some(nic) => nic.transmit.push_internal(Internal { port, behind: 0, ready, stamp, bytes }),
                None => self.nics[number].has_no_port(),
            }
        }
        any
    }

    /// Sleeps until a worker rings or a frame comes in, at most as long as `most`.
    pub(super) fn sleep(&mut self, most: Duration) -> Result<(), LiveError> {
        let due = self.nics.iter_mut().map(due);
        let looks = self.steering.as_ref().map(Steering::due);
        let due = due.chain(looks).min().unwrap_or(Time::NEVER);
        let mut ports = self.ports.iter();
        let polled = ports.any(|port| port.readable().is_none() && !port.is_patient());
        let longest = match (polled, self.held) {
            (true, _) => POLL,
            (_, true) => HELD,
            _ => SLEEP,
        };
        let timeout = self.control.clock().until(due).min(longest).min(most);
        // Workers ring when there is room again.
        let ports = self.ports.iter().filter(|_| !self.held);
        let files: Vec<BorrowedFd<'_>> = ports.filter_map(|port| port.readable()).collect();
        let unchanged = || {
            let mut registers = self.registers.iter();
            registers.all(|watched| self.control.register_value(watched.register) == watched.seen)
        };
        self.bell.sleep(&self.control, &files, timeout, unchanged)
    }

    fn tell(&mut self, shared: &Shared) -> Result<(), LiveError> {
        for port in &mut self.ports {
            port.look()?;
            port.take_note().into_iter().for_each(|note| shared.tell(note));
        }
        let events = self.nics.iter_mut().flat_map(|nic| nic.stages.take_events());
        events.for_each(|event| shared.tell(event));
        self.look_at_rings();
        let counts = self.nics.iter().zip(&self.ports).map(|(nic, port)| {
            let mut drops = nic.drops();
            let link = port.link().cloned();
            let port = port.counters();
            let refused = nic.transmit.counters().refused.causes().iter();
            let more = [("port_refused", port.refused), ("above_mtu", port.above_mtu)];
            let more = more.iter().chain(refused).chain(&port.unreadable);
            for &(cause, count) in more.filter(|(_, count)| *count > 0) {
                drops.add(cause, count);
            }
            NicCounts {
                nic: nic.counters.clone(),
                waiting: nic.waiting_sum(),
                drops,
                port: port.clone(),
                link,
                stages: StageCounts::of(nic),
                served: nic.transmit.served(),
            }
        });
        let counts = DeviceCounts {
            nics: counts.collect(),
            receive: self.receive.clone(),
            dropped: self.count_dropped(),
            lending: self.count_lending(),
            nonsense: self.count_nonsense(),
            impossible: self.impossible(),
            sets: self.sets(),
        };
        *locked(&shared.device) = counts;
        Ok(())
    }
}
