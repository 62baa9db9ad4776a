//! A host with a kernel and processes.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_apps::nat::Nat;
use nicforge_apps::{AppConfig, AppKind, Place};
use nicforge_interfaces::kernel::{Frame, KernelPlan, SharedLock, SlabCache, Slabs};
use nicforge_interfaces::sinic::Options;
use nicforge_interfaces::{Built, InterfaceEntry, InterfaceError, NicMemory, Plan, WholeNic};
use nicforge_nic::{DriverCosts, Pool};
use nicforge_options::Values;
use nicforge_platform::sim::{DeviceReader, Host as SimHost, Lent, SimCore};
use nicforge_platform::{Addr, AddressSpace, Owner, Sim};
use nicforge_units::{Cycles, Time};
use nicforge_wire::link::Link;

use super::attachment::Attachment;
use super::process::AnyProcess;
use super::stack::{Connection, ConnectionPlan, Gateway, Kernel, KernelCosts, Processor};
use crate::LostError;
use crate::machine::NicNumbers;
use crate::run::RunError;
use crate::world::device::{Device, Nobody, Reach};
use crate::world::program::{Here, Next, Notice, Program, Wake};
use crate::world::{Core, Host, RegisterDevice};

/// Packet buffers beside those that lists and sockets hold.
const SPARE_BUFFERS: usize = 1024;
/// The smallest payload of which a socket's buffer may be full.
const SMALL_PAYLOAD: u64 = 1024;
/// Buffers for packets in sockets, at most: beyond that the NIC and processes wait for them.
const IN_SOCKETS_MAX: u64 = 32768;

/// What a system is made from.
pub struct SystemPlan<'a> {
    /// The machine, with its NICs in their places.
    pub attachment: &'a Attachment,
    /// What the kernel costs.
    pub costs: KernelCosts,
    /// What the driver costs.
    pub driver: DriverCosts,
    /// The interface of its NICs.
    pub interface: InterfaceEntry,
    /// What the scenario says.
    pub values: Values,
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

impl SystemPlan<'_> {
    /// The halves of NIC `number`.
    fn whole_nic(&self, number: usize, pool: Pool, space: &mut AddressSpace) -> Result<WholeNic<Sim>, RunError> {
        let hardware = &self.attachment.hardware;
        let write_wait = Cycles(hardware.core.frequency.cycles_in(hardware.pcie.mmio_read) as u64);
        let kernel =
            KernelPlan { write_wait, ..kernel_plan(number as u8, self.cores, &self.nic, &self.sinic, self.driver) };
        let plan = Plan {
            device: kernel.device,
            owners: vec![kernel.owner],
            first_position: 0,
            pool,
            descriptor_read: self.attachment.hardware.nic.descriptor_read,
            costs: self.driver,
            nicmem: NicMemory::default(),
            emulates: None,
            emulator: Owner::NOBODY,
            values: self.values.clone(),
            seed: 0,
            emulator_fills: false,
            kernel: Some(kernel),
        };
        match self.interface.build::<Sim>(&plan, space)? {
            Built::Whole(nic) => Ok(nic),
            Built::Rings(_) => Err(InterfaceError::NeedsPacketLoop.into()),
        }
    }
}

/// A kernel that runs on all cores of its host.
pub type SharedKernel = Rc<RefCell<Kernel>>;

/// The kernel of a host, and what is needed to judge it when the run ends.
pub struct System {
    /// What runs on the cores.
    pub kernel: SharedKernel,
    /// When each core has its first step.
    pub begins: Vec<Time>,
    slabs: Slabs,
}

/// A host, before it is part of a world, and its kernel.
pub struct BuiltSystem {
    /// The host.
    pub host: Host,
    /// The kernel.
    pub system: System,
}

impl BuiltSystem {
    /// As `plan` says; `process` makes the process of a core when their memory is there.
    pub fn new(mut plan: SystemPlan<'_>, process: impl Fn(usize, Addr) -> AnyProcess) -> Result<BuiltSystem, RunError> {
        let mut space = AddressSpace::default();
        let hardware = &plan.attachment.hardware;
        let each = plan.connections.iter().map(|connection| connection.buffer_bytes / SMALL_PAYLOAD);
        let in_sockets = (2 * each.sum::<u64>()).min(IN_SOCKETS_MAX) as usize;
        let lists = plan.incoming.len() * (plan.nic.rx_entries + plan.nic.tx_entries);
        let pool = Pool::new(&mut space, lists + in_sockets + plan.cores * SPARE_BUFFERS);
        let slabs = Slabs::new(&mut space, pool, plan.cores);
        let caches: Vec<SlabCache> =
            (0..plan.cores).map(|_| SlabCache::new(&mut space, &slabs, hardware.core.pool)).collect();
        let (mut devices, mut drivers) = (Vec::new(), Vec::new());
        for (number, incoming) in std::mem::take(&mut plan.incoming).into_iter().enumerate() {
            let WholeNic { nic, driver } = plan.whole_nic(number, pool, &mut space)?;
            devices.push(RegisterDevice::new(nic, &hardware.pcie, number, incoming));
            drivers.push(driver);
        }
        let connections =
            plan.connections.iter().map(|connection| Connection::new(connection, plan.cores, &mut space)).collect();
        let memory = space.data(plan.process_bytes, 4096);
        let gateway = match &plan.gateway {
            Some(config) => {
                let shared = Nat::share(config, &mut space);
                let place = Place { core: 0, cores: 1 };
                Some((Nat::allocate(config, place, &mut space, &shared)?, config.work))
            }
            None => None,
        };
        let lock = SharedLock::new(&mut space, plan.cores);
        let gateway = gateway.map(|(nat, work)| Gateway { nat, work, lock });
        for device in &mut devices {
            device.nic.set_memory_end(Addr(space.end()));
        }
        let link = &hardware.pcie;
        let cores: Vec<Lent<SimCore>> = (0..plan.cores)
            .map(|number| Lent::new(SimCore::new(number, &hardware.core, link.mmio_write, link.mmio_read)))
            .collect();
        let processors = caches
            .into_iter()
            .enumerate()
            .map(|(core, pool)| Processor::new(pool, process(core, memory), devices.len()))
            .collect();
        let kernel = Kernel::new(plan.costs, processors, drivers, connections, gateway);
        let object = |device| -> Box<dyn Device> { Box::new(device) };
        let devices = devices.into_iter().map(object).collect();
        Ok(start(Lent::new(machine_of(plan.attachment, &space)), devices, cores, kernel, slabs))
    }
}

/// The kernel brings the NICs up, on the first core; then each core has a step.
fn start(
    mut machine: Lent<SimHost>,
    mut devices: Vec<Box<dyn Device>>,
    mut cores: Vec<Lent<SimCore>>,
    mut kernel: Kernel,
    slabs: Slabs,
) -> BuiltSystem {
    let first = &mut cores[0];
    let mut reach = Reach { devices: &mut devices, elsewhere: &mut Nobody };
    let mut cpu = DeviceReader::on(&mut machine, first, &mut reach);
    kernel.start(&mut cpu);
    drop(cpu);
    for write in first.take_mmio() {
        if let Some(device) = devices.get_mut(usize::from(write.register.device)) {
            device.post(&write);
        }
    }
    let mut begins = vec![first.now(); cores.len()];
    for (number, device) in devices.iter_mut().enumerate() {
        for (_, at) in device.port().take_interrupts() {
            let core = kernel.interrupt(number, at);
            begins[core] = begins[core].min(at.max(cores[core].now()));
        }
        device.bring_up(&mut machine);
    }
    let kernel = Rc::new(RefCell::new(kernel));
    let program = |core| Box::new(KernelProgram { kernel: kernel.clone(), core });
    let cores = cores.into_iter().enumerate().map(|(number, core)| Core::new(core, program(number)));
    BuiltSystem {
        host: Host::new(machine, devices, cores.collect()),
        system: System { kernel: kernel.clone(), begins, slabs },
    }
}

/// A kernel and its processes, as one of the cores runs them.
struct KernelProgram {
    kernel: SharedKernel,
    core: usize,
}

impl Program for KernelProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.core.idle_until(here.now);
        here.core.begin_burst();
        // It is told by interrupts and looks at memory when it polls.
        here.published.clear();
        let mut kernel = self.kernel.borrow_mut();
        let memory = &mut here.machine.memory;
        kernel.make_content(self.core, |at, len| memory.slice_mut(at, len));
        let next = here.with_devices(|cpu| kernel.step(self.core, cpu));
        let memory = &here.machine.memory;
        kernel.check_arrived(|at, len| memory.slice(at, len));
        Next::At(next)
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], _notice: Notice) -> Option<Time> {
        None
    }

    fn interrupt(&mut self, device: usize, at: Time) {
        self.kernel.borrow_mut().interrupt(device, at);
    }

    fn take_wakes(&mut self, into: &mut Vec<Wake>) {
        into.extend(self.kernel.borrow_mut().take_wakes().map(|(core, at)| Wake { core, at }));
    }

    fn describe(&self) -> Option<String> {
        (self.core == 0).then(|| self.kernel.borrow().describe())
    }
}

impl System {
    /// Whether every frame that came to a NIC was dropped, was taken by the stack, or is inside. Frames on the links
    /// come in for that.
    ///
    /// # Errors
    /// When they do not add up.
    pub fn check_frames(&self, host: &mut Host) -> Result<(), RunError> {
        let kernel = self.kernel.borrow();
        for number in 0..host.devices.len() {
            let core = &mut host.cores[kernel.core_of(number)].sim;
            let reached = host.devices[number].take_all(&mut host.machine);
            let until = reached.max(core.now()) + LAST_COPIES;
            core.idle_until(until);
            let mut reach = Reach { devices: &mut host.devices, elsewhere: &mut Nobody };
            let mut cpu = DeviceReader::on(&mut host.machine, core, &mut reach);
            let between = kernel.drivers[number].between(&mut cpu);
            drop(cpu);
            let tally = host.devices[number].tally();
            let (taken, arrived) = (kernel.taken[number], tally.arrived.frames);
            let dropped = tally.drops.total() + between.dropped;
            let inside = tally.received_inside + between.in_memory;
            if taken + dropped + inside != arrived + between.deferred {
                let inside = inside.saturating_sub(between.deferred);
                return Err(LostError::Frames { arrived, left: taken, dropped, inside }.into());
            }
        }
        Ok(())
    }

    /// Whether every packet buffer is in exactly one place.
    ///
    /// # Errors
    /// When one is not.
    pub fn check_buffers(&self) -> Result<(), RunError> {
        // One that is in several hands is held by each of them.
        let held = self.slabs.free() + self.kernel.borrow().buffers_held() - self.slabs.clones();
        let buffers = self.slabs.count();
        if held == buffers { Ok(()) } else { Err(LostError::Buffers { buffers, held }.into()) }
    }
}

/// How long NICs may take for what they have begun when a run ends, with room to spare.
const LAST_COPIES: Time = Time::from_ms(1);

/// Caches and memory.
pub(super) fn machine_of(attachment: &Attachment, space: &AddressSpace) -> SimHost {
    let mut host = SimHost::new(&attachment.hardware, space);
    host.hierarchy.split_device_writes(attachment.lines_to_cache);
    if attachment.perfect {
        host.hierarchy.be_perfect();
    }
    host
}

pub(crate) fn kernel_plan(
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
        rx_entries: nic.rx_entries,
        tx_entries: nic.tx_entries,
        rate: nic.port,
        wire_overhead: nic.wire_overhead,
        rx_fifo: nic.rx_fifo,
        tx_fifo: nic.tx_fifo,
        interrupt_delay: nic.interrupt_delay,
        sinic: sinic.clone(),
        costs,
        write_wait: Cycles(0),
    }
}
