//! One whole system: cores, caches, memory, NICs, kernel and processes.

use nicforge_apps::{AnyApp, AppConfig, SharedTables};
use nicforge_interfaces::kernel::{Frame, KernelDriver, KernelNic, KernelPlan, SharedLock, registry};
use nicforge_interfaces::sinic::Options;
use nicforge_nic::{DriverCosts, Pool, PoolCache};
use nicforge_platform::sim::{Host, SimCore, SimCpu};
use nicforge_platform::{Addr, AddressSpace, Owner};
use nicforge_units::Time;
use nicforge_wire::link::Link;

use super::attachment::Attachment;
use super::nic_slot::{Elsewhere, NicSlot, NicSlots, Nobody};
use super::process::AnyProcess;
use super::stack::{Connection, ConnectionPlan, Kernel, KernelCosts, Processor};
use crate::machine::NicNumbers;
use crate::run::RunError;

/// Packet buffers beside those that lists and sockets hold.
const SPARE_BUFFERS: usize = 1024;
/// Buffers that the core keeps at hand.
const POOL_CACHE: usize = 256;
/// The smallest payload of which a socket's buffer may be full.
const SMALL_PAYLOAD: u64 = 1024;
/// Buffers for packets that processes have not read, at most: beyond that the NIC waits for them.
const UNREAD_MAX: u64 = 16384;

/// What a system is made from.
pub struct SystemPlan<'a> {
    /// The machine, with its NICs in their places.
    pub attachment: &'a Attachment,
    /// What the kernel costs.
    pub costs: KernelCosts,
    /// What the driver costs.
    pub driver: DriverCosts,
    /// The interface of its NICs.
    pub interface: &'a str,
    /// The NICs.
    pub nic: NicNumbers,
    /// What they are configured as, where they are SINICs.
    pub sinic: Options,
    /// Cores; each runs a process.
    pub cores: usize,
    /// Its connections.
    pub connections: Vec<ConnectionPlan>,
    /// The links that end at its NICs.
    pub incoming: Vec<Link<Frame>>,
    /// Bytes of memory of the processes.
    pub process_bytes: u64,
    /// What forwards packets, on a gateway.
    pub gateway: Option<AppConfig>,
}

/// A system.
pub struct System {
    /// Caches and memory.
    pub host: Host,
    /// Its cores.
    pub cores: Vec<SimCore>,
    /// Its NICs.
    pub nics: Vec<NicSlot>,
    /// What runs on the cores.
    pub kernel: Kernel,
    /// When each core has something to do next.
    wakes: Vec<Time>,
    pool: Pool,
}

impl System {
    /// As `plan` says; `process` makes the process of a core when their memory is there.
    pub fn new(plan: SystemPlan<'_>, process: impl Fn(usize, Addr) -> AnyProcess) -> Result<System, RunError> {
        let mut space = AddressSpace::default();
        let hardware = &plan.attachment.hardware;
        let unread: u64 = plan.connections.iter().map(|connection| connection.buffer_bytes / SMALL_PAYLOAD).sum();
        let lists = plan.incoming.len() * 2 * plan.nic.entries;
        let pool = Pool::new(&mut space, lists + unread.min(UNREAD_MAX) as usize + plan.cores * SPARE_BUFFERS);
        let caches: Vec<PoolCache> =
            (0..plan.cores).map(|_| PoolCache::new(&mut space, pool, POOL_CACHE, hardware.core.pool)).collect();
        let (mut nics, mut drivers) = (Vec::new(), Vec::new());
        for (number, incoming) in plan.incoming.into_iter().enumerate() {
            let nic_plan = kernel_plan(number as u8, plan.cores, &plan.nic, &plan.sinic, plan.driver);
            let (nic, driver) = registry::build(plan.interface, &nic_plan, &mut space)?;
            nics.push(NicSlot::new(nic, &hardware.pcie, number, incoming));
            drivers.push(driver);
        }
        let connections =
            plan.connections.iter().map(|connection| Connection::new(connection, plan.cores, &mut space)).collect();
        let memory = space.data(plan.process_bytes, 4096);
        let gateway = plan.gateway.as_ref();
        let gateway = gateway.map(|config| gateway_of(config, &mut space));
        let gateway = gateway.transpose()?;
        let gateway_lock = SharedLock::new(&mut space, plan.cores);
        for slot in &mut nics {
            slot.nic.set_memory_end(Addr(space.end()));
        }
        let host = host_of(plan.attachment, &space);
        let link = &hardware.pcie;
        let cores = (0..plan.cores)
            .map(|number| SimCore::new(number, &hardware.core, link.mmio_write, link.mmio_read))
            .collect();
        let processors = caches
            .into_iter()
            .enumerate()
            .map(|(core, pool)| Processor::new(pool, process(core, memory), nics.len()))
            .collect();
        let gateway = (gateway, gateway_lock);
        let kernel = Kernel::new(plan.costs, processors, drivers, connections, gateway);
        let mut system = System { host, cores, nics, kernel, wakes: vec![Time::ZERO; plan.cores], pool };
        system.start();
        Ok(system)
    }

    fn start(&mut self) {
        let mut slots = NicSlots { slots: &mut self.nics, elsewhere: &mut Nobody };
        let first = &mut self.cores[0];
        let mut cpu = SimCpu::with_devices(&mut self.host, first, &mut slots);
        self.pool.start(&mut cpu);
        self.kernel.start(&mut cpu);
        self.wakes.fill(first.now());
        self.settle(0);
        for slot in &mut self.nics {
            slot.bring_up(&mut self.host);
        }
    }

    /// When each core has something to do.
    pub fn cores_due(&self) -> &[Time] {
        &self.wakes
    }

    /// A step of core `number`; `elsewhere` is what other systems do while it waits for a NIC.
    pub fn step_core(&mut self, number: usize, elsewhere: &mut dyn Elsewhere) {
        let core = &mut self.cores[number];
        core.idle_until(self.wakes[number]);
        core.begin_burst();
        let memory = &mut self.host.memory;
        self.kernel.make_content(number, |at, len| memory.slice_mut(at, len));
        let mut slots = NicSlots { slots: &mut self.nics, elsewhere };
        let mut cpu = SimCpu::with_devices(&mut self.host, core, &mut slots);
        let next = self.kernel.step(number, &mut cpu);
        let memory = &self.host.memory;
        self.kernel.check_arrived(|at, len| memory.slice(at, len));
        self.wakes[number] = next.max(core.now());
        self.settle(number);
    }

    /// A step of NIC `number`. Returns whether it interrupts a core.
    pub fn step_nic(&mut self, number: usize) -> bool {
        self.nics[number].step_all(&mut self.host);
        self.take_interrupts(number)
    }

    /// Register writes of core `number` go to the NICs, and interrupts and what it leaves for others
    /// to the cores.
    fn settle(&mut self, number: usize) {
        let core = &mut self.cores[number];
        if core.has_mmio() {
            for write in core.take_mmio() {
                if let Some(slot) = self.nics.get_mut(usize::from(write.register.device)) {
                    slot.post(write);
                }
            }
        }
        for nic in 0..self.nics.len() {
            self.take_interrupts(nic);
        }
        if self.kernel.has_wakes() {
            for (core, time) in self.kernel.take_wakes() {
                self.wakes[core] = self.wakes[core].min(time.max(self.cores[core].now()));
            }
        }
    }

    #[inline(always)]
    fn take_interrupts(&mut self, nic: usize) -> bool {
        let any = self.nics[nic].dma.has_interrupts();
        if any {
            self.deliver_interrupts(nic);
        }
        any
    }

    #[inline(never)]
    fn deliver_interrupts(&mut self, nic: usize) {
        for (_, time) in self.nics[nic].dma.take_interrupts() {
            let core = self.kernel.interrupt(nic, time);
            self.wakes[core] = self.wakes[core].min(time.max(self.cores[core].now()));
        }
    }

    /// Whether every frame that came to a NIC was dropped, was taken by the stack, or is inside. What is
    /// on the links comes in for that.
    pub fn check_frames(&mut self) -> Result<(), RunError> {
        for number in 0..self.nics.len() {
            let core = &mut self.cores[self.kernel.core_of(number)];
            let reached = self.nics[number].take_all(&mut self.host);
            core.idle_until(reached.max(core.now()) + LAST_COPIES);
            let mut slots = NicSlots { slots: &mut self.nics, elsewhere: &mut Nobody };
            let mut cpu = SimCpu::with_devices(&mut self.host, core, &mut slots);
            let between = self.kernel.drivers[number].between(&mut cpu);
            let (slot, taken) = (&self.nics[number], self.kernel.taken[number]);
            let arrived = slot.arrived.0;
            let dropped = slot.drops.total() + between.dropped;
            let inside = slot.nic.received_inside() + between.in_memory;
            if taken + dropped + inside != arrived + between.deferred {
                return Err(RunError::FramesLost {
                    arrived,
                    left: taken,
                    dropped,
                    inside: inside.saturating_sub(between.deferred),
                });
            }
        }
        Ok(())
    }

    /// Whether every packet buffer is in exactly one place.
    pub fn check_buffers(&mut self) -> Result<(), RunError> {
        let mut cpu = SimCpu::new(&mut self.host, &mut self.cores[0]);
        let held = self.pool.available(&mut cpu) + self.kernel.buffers_held();
        let buffers = self.pool.count() as u64;
        match held == buffers {
            true => Ok(()),
            false => Err(RunError::BuffersLost { buffers, held }),
        }
    }
}

/// How long NICs may take for what they have begun when a run ends, with room to spare.
const LAST_COPIES: Time = Time::from_ms(1);

fn gateway_of(config: &AppConfig, space: &mut AddressSpace) -> Result<AnyApp, RunError> {
    let shared = SharedTables::allocate(config, space);
    Ok(AnyApp::build(config, 0, 1, space, &shared)?)
}

/// Caches and memory.
pub(super) fn host_of(attachment: &Attachment, space: &AddressSpace) -> Host {
    let mut host = Host::new(&attachment.hardware, space);
    host.hierarchy.split_device_writes(attachment.lines_to_cache);
    if attachment.perfect {
        host.hierarchy.be_perfect();
    }
    host
}

pub(super) fn kernel_plan(
    device: u8,
    cores: usize,
    nic: &NicNumbers,
    sinic: &Options,
    costs: DriverCosts,
) -> KernelPlan {
    KernelPlan {
        device,
        // One NIC after the other interrupts another core.
        owner: Owner(u16::from(device) % cores as u16),
        cores,
        rx_entries: nic.entries,
        tx_entries: nic.entries,
        rate: nic.port,
        wire_overhead: nic.wire_overhead,
        rx_fifo: nic.rx_fifo,
        tx_fifo: nic.tx_fifo,
        interrupt_delay: nic.interrupt_delay,
        sinic: sinic.clone(),
        costs,
    }
}
