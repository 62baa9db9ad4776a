//! Software in place of an application: a TCP stack, say. It sees each worker as a port of its own, whose frames come
//! through the NIC's receive ring and leave by its transmit ring. RSS splits flows among workers.

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use nicforge_nic::PortId;
use nicforge_platform::Cpu;
use nicforge_platform::live::ports::{Link, Port, PortCounters};
use nicforge_platform::live::{LiveCpu, LiveError, WakeEvent};
use nicforge_units::Time;

use super::assemble::Assembly;
use super::config::LiveConfig;
use super::locked;
use super::threads::{Idle, ThreadOptions};
use super::worker::{WorkerCounts, WorkerParts};
use crate::live::LiveRunError;
use crate::packet_loop::PacketLoop;

/// Runs with a port for each worker until it is told to stop. An error ends the run.
pub type Software<'a> = Box<dyn FnOnce(Vec<WorkerEnd>, &AtomicBool) -> Result<(), String> + Send + 'a>;

/// A worker's place, for whoever works there.
pub struct WorkerEnd {
    /// Its frames.
    pub port: Box<dyn Port>,
    /// The core for its thread, if the run gives out cores.
    pub core: Option<usize>,
}

/// The queue and the port that a worker has.
const QUEUE: usize = 0;
const PORT: PortId = PortId(0);

/// The worker's side of rings and pool.
struct Rings {
    cpu: LiveCpu,
    software: PacketLoop<LiveCpu>,
    /// Packets polled, and how many of them were handed over.
    polled: usize,
    handed: usize,
    /// Its user waits since then.
    armed: Option<Time>,
    idle: Time,
    /// Frames that it made.
    made: u64,
    scratch: Vec<u8>,
}

/// A worker as a port. Clones are the same port.
#[derive(Clone)]
pub struct WorkerPort {
    rings: Arc<Mutex<Rings>>,
    event: WakeEvent,
    mac: Option<[u8; 6]>,
    link: Option<Link>,
    counters: PortCounters,
}

impl WorkerPort {
    /// The worker made of `parts`, whom the device wakes by `event`, behind a port with this address and link.
    pub fn new(cpu: LiveCpu, parts: WorkerParts, event: WakeEvent, behind: (Option<[u8; 6]>, Option<Link>)) -> Self {
        let rings = Rings {
            cpu,
            software: parts.software,
            polled: 0,
            handed: 0,
            armed: None,
            idle: Time::ZERO,
            made: 0,
            scratch: Vec::new(),
        };
        let (mac, link) = behind;
        WorkerPort { rings: Arc::new(Mutex::new(rings)), event, mac, link, counters: PortCounters::default() }
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        locked(&self.rings)
    }

    /// Brings the queues up.
    pub fn start(&self) {
        let Rings { cpu, software, .. } = &mut *self.rings();
        software.start(cpu);
    }

    /// What it counted so far.
    pub fn counts(&self) -> WorkerCounts {
        let rings = self.rings();
        WorkerCounts {
            taken: rings.software.taken(),
            pushed: rings.software.pushed(),
            kept: rings.software.kept() + (rings.polled - rings.handed) as u64,
            made: rings.made,
            drops: rings.software.drops.clone(),
            transmit: rings.software.transmit_occupancy(),
            idle: rings.idle,
            ..WorkerCounts::default()
        }
    }

    /// At the end, as [`Worker::buffers`](super::worker::Worker::buffers).
    pub fn buffers(&self) -> (i64, u64) {
        let Rings { cpu, software, polled, handed, .. } = &mut *self.rings();
        software.reclaim(cpu);
        let shared = software.pool().shared(cpu);
        (software.buffers(*polled - *handed), shared)
    }
}

/// All workers as ports, whose own side has this address and link.
pub(super) fn worker_ports(
    config: &LiveConfig,
    assembly: &mut Assembly,
    behind: &(Option<[u8; 6]>, Option<Link>),
) -> Result<Vec<WorkerPort>, LiveRunError> {
    let (parts, events) = (std::mem::take(&mut assembly.workers), std::mem::take(&mut assembly.events));
    if config.tcp.is_none() || parts.len() != events.len() {
        return Err(LiveRunError::Software("takes the place of workers where the file has a `[tcp]`".into()));
    }
    let spins = config.live.read::<ThreadOptions>().idle == Idle::Spin;
    let each = parts.into_iter().zip(events).enumerate();
    let ports = each.map(|(number, (parts, event))| {
        let cpu = LiveCpu::new(assembly.control.clone(), assembly.bell.clone(), number);
        let cpu = if spins { cpu.device_polls() } else { cpu };
        WorkerPort::new(cpu, parts, event, behind.clone())
    });
    Ok(ports.collect())
}

impl Rings {
    fn wake_up(&mut self) {
        let now = self.cpu.tick();
        if let Some(since) = self.armed.take() {
            self.cpu.stay_awake();
            self.idle += now - since;
        }
    }

    /// Polls where all of the last batch was handed over; whether frames are there.
    fn poll(&mut self) -> bool {
        if self.handed == self.polled {
            self.software.end_batch();
            self.handed = 0;
            self.polled = self.software.poll(&mut self.cpu, QUEUE);
            self.cpu.tell_taken(self.software.taken());
        }
        self.polled > 0
    }

    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8])) {
        let packet = *self.software.polled(self.handed);
        let head = self.cpu.bytes(packet.head.at, packet.head.len as usize);
        if packet.rest.len == 0 {
            each(head);
        } else {
            self.scratch.clear();
            self.scratch.extend_from_slice(head);
            self.scratch.extend_from_slice(self.cpu.bytes(packet.rest.at, packet.rest.len as usize));
            each(&self.scratch);
        }
        self.software.consume(&mut self.cpu, self.handed);
        self.handed += 1;
    }
}

impl Port for WorkerPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        let rings = &mut *locked(&self.rings);
        if rings.armed.is_some() {
            rings.wake_up();
            self.event.clear();
        }
        let mut taken = 0;
        while taken < budget && rings.poll() {
            rings.hand_over(each);
            taken += 1;
        }
        self.counters.received += taken as u64;
        Ok(taken)
    }

    fn send(&mut self, frame: &[u8], _now: Time) -> Result<(), LiveError> {
        let rings = &mut *locked(&self.rings);
        rings.made += 1;
        if rings.software.originate(&mut rings.cpu, PORT, frame) {
            self.counters.sent += 1;
            self.counters.sent_bytes += frame.len() as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        let rings = &mut *locked(&self.rings);
        rings.software.send(&mut rings.cpu);
        Ok(())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.file())
    }

    fn arm(&mut self) -> bool {
        let rings = &mut *locked(&self.rings);
        if rings.armed.is_some() {
            // It slept, woke up for something else, and did not look here.
            rings.wake_up();
        }
        rings.software.reclaim(&mut rings.cpu);
        rings.cpu.announce_sleep();
        rings.armed = Some(rings.cpu.tick());
        if rings.poll() {
            rings.wake_up();
            return false;
        }
        true
    }

    fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.mac
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }
}
