//! One whole system: core, caches, memory, NICs, kernel and process.

use nicforge_apps::{AnyApp, AppConfig, SharedTables};
use nicforge_interfaces::kernel::{KernelNic, KernelPlan, registry};
use nicforge_interfaces::sinic::Options;
use nicforge_nic::{DriverCosts, Pool, PoolCache};
use nicforge_platform::sim::{Host, SimCore, SimCpu};
use nicforge_platform::{AddressSpace, Owner};
use nicforge_units::Time;

use super::attachment::Attachment;
use super::nic_slot::{NicSlot, NicSlots};
use super::process::{AnyProcess, PATTERN_BYTES, pattern};
use super::stack::{Connection, ConnectionPlan, Kernel, KernelCosts};
use super::wire::Wire;
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
    /// Its connections.
    pub connections: Vec<ConnectionPlan>,
    /// The links that end at its NICs.
    pub incoming: Vec<Wire>,
    /// Bytes of the process's own memory.
    pub process_bytes: u64,
    /// What forwards packets, on a gateway.
    pub gateway: Option<AppConfig>,
}

/// A system.
pub struct System {
    /// Caches and memory.
    pub host: Host,
    /// Its core.
    pub core: SimCore,
    /// Its NICs.
    pub nics: Vec<NicSlot>,
    /// What runs on the core.
    pub kernel: Kernel,
    /// When the core has something to do next.
    wakes: Time,
    pool: Pool,
}

impl System {
    /// As `plan` says; `process` is made when its memory is there.
    pub fn new(
        plan: SystemPlan<'_>,
        process: impl FnOnce(nicforge_platform::Addr) -> AnyProcess,
    ) -> Result<System, RunError> {
        let mut space = AddressSpace::default();
        let hardware = &plan.attachment.hardware;
        let unread: u64 = plan
            .connections
            .iter()
            .map(|connection| connection.buffer_bytes / SMALL_PAYLOAD)
            .sum();
        let lists = plan.incoming.len() * 2 * plan.nic.entries;
        let pool = Pool::new(
            &mut space,
            lists + unread.min(UNREAD_MAX) as usize + SPARE_BUFFERS,
        );
        let cache = PoolCache::new(&mut space, pool, POOL_CACHE, hardware.core.pool);
        let (mut nics, mut drivers) = (Vec::new(), Vec::new());
        for (number, incoming) in plan.incoming.into_iter().enumerate() {
            let nic_plan = kernel_plan(number as u8, &plan.nic, &plan.sinic, plan.driver);
            let (nic, driver) = registry::build(plan.interface, &nic_plan, &mut space)?;
            nics.push(NicSlot::new(nic, &hardware.pcie, number, incoming));
            drivers.push(driver);
        }
        let connections = plan
            .connections
            .iter()
            .map(|connection| Connection::new(connection, &mut space))
            .collect();
        let memory = space.data(plan.process_bytes, 4096);
        let gateway = match &plan.gateway {
            Some(config) => {
                let shared = SharedTables::allocate(config, &mut space);
                Some(AnyApp::build(config, 0, 1, &mut space, &shared)?)
            }
            None => None,
        };
        for slot in &mut nics {
            slot.nic
                .set_memory_end(nicforge_platform::Addr(space.end()));
        }
        let mut host = Host::new(hardware, &space);
        host.hierarchy
            .split_device_writes(plan.attachment.lines_to_cache);
        if plan.attachment.perfect {
            host.hierarchy.be_perfect();
        }
        let pattern = pattern();
        for from in (0..plan.process_bytes).step_by(PATTERN_BYTES) {
            let len = (plan.process_bytes - from).min(PATTERN_BYTES as u64) as usize;
            let bytes = host.memory.slice_mut(memory + from, len);
            bytes.copy_from_slice(&pattern[..len]);
        }
        let link = &hardware.pcie;
        let core = SimCore::new(0, &hardware.core, link.mmio_write, link.mmio_read);
        let process = process(memory);
        let kernel = Kernel::new(plan.costs, cache, drivers, connections, process, gateway);
        let mut system = System {
            host,
            core,
            nics,
            kernel,
            wakes: Time::ZERO,
            pool,
        };
        system.start();
        Ok(system)
    }

    fn start(&mut self) {
        let mut slots = NicSlots(&mut self.nics);
        let mut cpu = SimCpu::with_devices(&mut self.host, &mut self.core, &mut slots);
        self.pool.start(&mut cpu);
        self.kernel.start(&mut cpu);
        self.wakes = self.core.now();
        self.settle();
        for slot in &mut self.nics {
            slot.bring_up(&mut self.host);
        }
    }

    /// When the core has something to do.
    pub fn core_due(&self) -> Time {
        self.wakes
    }

    /// A step of the core.
    pub fn step_core(&mut self) {
        self.core.idle_until(self.wakes);
        self.core.begin_burst();
        let mut slots = NicSlots(&mut self.nics);
        let mut cpu = SimCpu::with_devices(&mut self.host, &mut self.core, &mut slots);
        let next = self.kernel.step(&mut cpu);
        let memory = &self.host.memory;
        self.kernel.check_arrived(|at, len| memory.slice(at, len));
        self.wakes = next.max(self.core.now());
        self.settle();
    }

    /// A step of NIC `number`. Returns whether it interrupts the core.
    pub fn step_nic(&mut self, number: usize) -> bool {
        self.nics[number].step(&mut self.host);
        self.take_interrupts(number)
    }

    /// Register writes go to the NICs, interrupts to the core.
    fn settle(&mut self) {
        for write in self.core.take_mmio() {
            if let Some(slot) = self.nics.get_mut(usize::from(write.register.device)) {
                slot.post(write);
            }
        }
        for number in 0..self.nics.len() {
            self.take_interrupts(number);
        }
    }

    fn take_interrupts(&mut self, number: usize) -> bool {
        let mut any = false;
        for (_, time) in self.nics[number].dma.take_interrupts() {
            self.kernel.interrupt(number, time);
            self.wakes = self.wakes.min(time.max(self.core.now()));
            any = true;
        }
        any
    }

    /// Frames that left NIC `number` since the last call.
    pub fn take_sent(&mut self, number: usize) -> Option<(Time, Vec<u8>)> {
        self.nics[number].nic.port().take_sent()
    }

    /// Whether every packet buffer is in exactly one place.
    pub fn check_buffers(&mut self) -> Result<(), RunError> {
        let mut cpu = SimCpu::new(&mut self.host, &mut self.core);
        let available = self.pool.available(&mut cpu) + self.kernel.pool.len() as u64;
        let held = available + self.kernel.buffers_held();
        let buffers = self.pool.count() as u64;
        match held == buffers {
            true => Ok(()),
            false => Err(RunError::BuffersLost { buffers, held }),
        }
    }
}

pub(super) fn kernel_plan(
    device: u8,
    nic: &NicNumbers,
    sinic: &Options,
    costs: DriverCosts,
) -> KernelPlan {
    KernelPlan {
        device,
        owner: Owner(0),
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
