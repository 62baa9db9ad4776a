//! Grounds of the suite: the sim, and plain memory, where everything is visible at once. The live
//! one is in live.rs.

use std::collections::BTreeMap;
use std::ops::DerefMut;

use nicforge_platform::sim::{DmaPort, Host, Lent, SimCore, SimCpu, SimDma, Turn, test_hardware};
use nicforge_platform::{self as platform, Addr, AddressSpace, Cpu, FlatCpu, FlatDma, Part, Register};
use nicforge_units::{Bytes, Time};

use crate::KnownGround;
use crate::emulated::CoreDma;

/// What a core is on the ground of `G`.
pub type CpuOf<G> = <<G as Ground>::On as platform::Ground>::Cpu;
/// What the device is on the ground of `G`.
pub type DmaOf<G> = <<G as Ground>::On as platform::Ground>::Dma;
/// What a core that plays the device is on the ground of `G`.
pub type PlayerOf<G> = <<G as Ground>::On as platform::Ground>::Player;

/// What a test needs of a ground.
pub trait Ground {
    /// The ground.
    type On: KnownGround;
    /// A core at work.
    type Core<'a>: DerefMut<Target = CpuOf<Self>>
    where
        Self: 'a;
    /// The device at work.
    type Device<'a>: DerefMut<Target = DmaOf<Self>>
    where
        Self: 'a;

    /// Memory for `space`, and `cores` cores; the last may play the device.
    fn new(space: &AddressSpace, cores: usize) -> Self;
    /// Core `number` begins a step.
    fn core(&mut self, number: usize) -> Self::Core<'_>;
    /// The device begins a step.
    fn device(&mut self) -> Self::Device<'_>;
    /// The last core makes a step as the device.
    fn play<R>(&mut self, step: impl FnOnce(&mut CoreDma<PlayerOf<Self>>) -> R) -> R;
    /// Time passes by `time` without any action.
    fn pass(&mut self, time: Time);
    /// Register writes since the last call, in the order of their arrival.
    fn register_writes(&mut self) -> Vec<(u32, u64)>;
    /// `len` bytes at `at`, unseen by any model.
    fn peek(&mut self, at: Addr, len: usize) -> Vec<u8>;
}

/// The sim ground with small caches, so that building it costs little.
pub struct Sim {
    host: Lent<Host>,
    port: Lent<DmaPort>,
    cores: Vec<Lent<SimCore>>,
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
        self.cores.iter().map(|core| core.now()).collect()
    }

    fn begin(&mut self, number: usize) {
        self.cores[number].idle_until(self.now);
        self.cores[number].begin_burst();
    }
}

impl Ground for Sim {
    type On = platform::Sim;
    type Core<'a> = Turn<'a, SimCpu>;
    type Device<'a> = Turn<'a, SimDma>;

    fn new(space: &AddressSpace, cores: usize) -> Sim {
        let mut hardware = test_hardware();
        hardware.cores = cores;
        hardware.l2.size = Bytes(64 << 10);
        hardware.llc.size = Bytes(11 * 64 * 1024);
        let link = &hardware.pcie;
        let core = |n| Lent::new(SimCore::new(n, &hardware.core, link.mmio_write, link.mmio_read));
        Sim {
            host: Lent::new(Host::new(&hardware, space)),
            port: Lent::new(DmaPort::new(link, 0)),
            cores: (0..cores).map(core).collect(),
            now: Time::ZERO,
        }
    }

    fn core(&mut self, number: usize) -> Turn<'_, SimCpu> {
        self.begin(number);
        SimCpu::on(&mut self.host, &mut self.cores[number])
    }

    fn device(&mut self) -> Turn<'_, SimDma> {
        SimDma::on(&mut self.host, &mut self.port, self.now)
    }

    fn play<R>(&mut self, step: impl FnOnce(&mut CoreDma<SimCpu>) -> R) -> R {
        let last = self.cores.len() - 1;
        self.begin(last);
        let core = &mut self.cores[last];
        let mut way = CoreDma::new(SimCpu::take(&mut self.host, core));
        let done = step(&mut way);
        way.cpu.give_back(&mut self.host, core);
        done
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
    /// The device, with the memory; it counts its calls.
    pub device: FlatDma,
    now: Time,
    /// What each register held when it was last looked at.
    seen: BTreeMap<u32, u64>,
}

impl Ground for Flat {
    type On = platform::Flat;
    type Core<'a> = &'a mut FlatCpu;
    type Device<'a> = &'a mut FlatDma;

    fn new(space: &AddressSpace, _cores: usize) -> Flat {
        let device = FlatDma::new(FlatCpu::new(space.end()));
        Flat { device, now: Time::ZERO, seen: BTreeMap::new() }
    }

    fn core(&mut self, _number: usize) -> &mut FlatCpu {
        &mut self.device.cpu
    }

    fn device(&mut self) -> &mut FlatDma {
        self.device.set_now(self.now);
        &mut self.device
    }

    fn play<R>(&mut self, step: impl FnOnce(&mut CoreDma<FlatCpu>) -> R) -> R {
        let cpu = std::mem::replace(&mut self.device.cpu, FlatCpu::new(0));
        let mut way = CoreDma::new(cpu);
        let done = step(&mut way);
        self.device.cpu = way.cpu;
        done
    }

    fn pass(&mut self, time: Time) {
        self.now += time;
        self.device.cpu.set_now(self.now);
    }

    fn register_writes(&mut self) -> Vec<(u32, u64)> {
        let now: Vec<_> = self.device.cpu.registers().collect();
        let written = |&(Register { index, .. }, value): &(Register, u64)| {
            (self.seen.insert(index, value) != Some(value)).then_some((index, value))
        };
        now.iter().filter_map(written).collect()
    }

    fn peek(&mut self, at: Addr, len: usize) -> Vec<u8> {
        self.device.cpu.bytes(at, len).to_vec()
    }
}
