//! Grounds of the suite: the sim, and plain memory, where everything is visible at once. The live
//! one is in live.rs.

use std::collections::BTreeMap;
use std::ops::DerefMut;

use nicforge_platform::sim::{DmaPort, Host, SimCore, SimCpu, SimDma, test_hardware};
use nicforge_platform::{Addr, AddressSpace, Cpu, Dma, FlatCpu, Part, Register, Vector};
use nicforge_units::{Bytes, Time};

/// What a test needs of a ground.
pub trait Ground {
    /// A core at work.
    type Core<'a>: DerefMut<Target: Cpu + Sized>
    where
        Self: 'a;
    /// The device at work.
    type Device<'a>: DerefMut<Target: Dma + Sized>
    where
        Self: 'a;

    /// Memory for `space`, and `cores` cores.
    fn new(space: &AddressSpace, cores: usize) -> Self;
    /// Core `number` begins a step.
    fn core(&mut self, number: usize) -> Self::Core<'_>;
    /// The device begins a step.
    fn device(&mut self) -> Self::Device<'_>;
    /// Nobody acts for `time`.
    fn pass(&mut self, time: Time);
    /// Register writes since the last call, in the order of their arrival.
    fn register_writes(&mut self) -> Vec<(u32, u64)>;
    /// `len` bytes at `at`, unseen by any model.
    fn peek(&mut self, at: Addr, len: usize) -> Vec<u8>;
}

/// The sim ground with small caches, so that building it costs little.
pub struct Sim {
    host: Host,
    port: DmaPort,
    cores: Vec<SimCore>,
    now: Time,
}

impl Sim {
    /// When what the device published since the last call becomes visible, in order.
    pub fn published(&mut self) -> Vec<Time> {
        self.host.memory.take_wakes().map(|(_, time)| time).collect()
    }

    /// The time up to which everybody has acted.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What core `number` has spent on `part`, waiting for locks included and for memory not.
    pub fn worked(&self, number: usize, part: Part) -> Time {
        Time::from_ps(self.cores[number].spent().work_ps[part as usize])
    }

    /// Every core's time.
    pub fn core_times(&self) -> Vec<Time> {
        self.cores.iter().map(SimCore::now).collect()
    }
}

impl Ground for Sim {
    type Core<'a> = Box<SimCpu<'a>>;
    type Device<'a> = Box<SimDma<'a>>;

    fn new(space: &AddressSpace, cores: usize) -> Sim {
        let mut hardware = test_hardware();
        hardware.cores = cores;
        hardware.l2.size = Bytes(64 << 10);
        hardware.llc.size = Bytes(11 * 64 * 1024);
        let link = &hardware.pcie;
        let core = |n| SimCore::new(n, &hardware.core, link.mmio_write, link.mmio_read);
        Sim {
            host: Host::new(&hardware, space),
            port: DmaPort::new(link, 0),
            cores: (0..cores).map(core).collect(),
            now: Time::ZERO,
        }
    }

    fn core(&mut self, number: usize) -> Box<SimCpu<'_>> {
        let core = &mut self.cores[number];
        core.idle_until(self.now);
        core.begin_burst();
        Box::new(SimCpu::new(&mut self.host, core))
    }

    fn device(&mut self) -> Box<SimDma<'_>> {
        Box::new(SimDma::new(&mut self.host, &mut self.port, self.now))
    }

    fn pass(&mut self, time: Time) {
        self.now += time;
    }

    fn register_writes(&mut self) -> Vec<(u32, u64)> {
        let mut writes: Vec<_> = self.cores.iter_mut().flat_map(|core| core.take_mmio()).collect();
        writes.sort_by_key(|write| write.arrives);
        if let Some(last) = writes.last() {
            self.now = self.now.max(last.arrives);
        }
        writes.iter().map(|write| (write.register.index, write.value)).collect()
    }

    fn peek(&mut self, at: Addr, len: usize) -> Vec<u8> {
        self.host.memory.slice(at, len).to_vec()
    }
}

/// Plain memory: no model, nothing takes time but what a test lets pass.
pub struct Flat {
    memory: FlatCpu,
    now: Time,
    /// What each register held when it was last looked at.
    seen: BTreeMap<u32, u64>,
    /// How often the device did what.
    pub calls: Calls,
}

/// Calls of [`Dma`] by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub reads: u64,
    pub reads_ahead: u64,
    pub writes: u64,
    pub publishes: u64,
}

/// A device over plain memory.
pub struct FlatDevice<'a> {
    memory: &'a mut FlatCpu,
    now: Time,
    calls: &'a mut Calls,
}

impl Ground for Flat {
    type Core<'a> = &'a mut FlatCpu;
    type Device<'a> = Box<FlatDevice<'a>>;

    fn new(space: &AddressSpace, _cores: usize) -> Flat {
        Flat { memory: FlatCpu::new(space.end()), now: Time::ZERO, seen: BTreeMap::new(), calls: Calls::default() }
    }

    fn core(&mut self, _number: usize) -> &mut FlatCpu {
        &mut self.memory
    }

    fn device(&mut self) -> Box<FlatDevice<'_>> {
        Box::new(FlatDevice { memory: &mut self.memory, now: self.now, calls: &mut self.calls })
    }

    fn pass(&mut self, time: Time) {
        self.now += time;
        self.memory.set_now(self.now);
    }

    fn register_writes(&mut self) -> Vec<(u32, u64)> {
        let now: Vec<_> = self.memory.registers().collect();
        let written = |&(Register { index, .. }, value): &(Register, u64)| {
            (self.seen.insert(index, value) != Some(value)).then_some((index, value))
        };
        now.iter().filter_map(written).collect()
    }

    fn peek(&mut self, at: Addr, len: usize) -> Vec<u8> {
        self.memory.bytes(at, len).to_vec()
    }
}

impl Dma for FlatDevice<'_> {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.calls.reads += 1;
        into.copy_from_slice(self.memory.bytes(from, into.len()));
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.calls.reads_ahead += 1;
        into.copy_from_slice(self.memory.bytes(from, into.len()));
        self.now()
    }

    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.calls.writes += 1;
        self.memory.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
    }

    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        self.calls.publishes += 1;
        self.memory.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
    }

    fn interrupt(&mut self, _vector: Vector) {}

    fn wait_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    fn now(&self) -> Time {
        self.now
    }
}
