//! Three machines on a switch, with workers on cores of their own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::stage::Chain;
use nicforge_nic::{Nic, Pool, PortId};
use nicforge_options::Value;
use nicforge_platform::sim::{DmaPort, Hardware, Host as SimHost, Lent, SimCore, SimCpu, SimDma};
use nicforge_platform::{AddressSpace, Owner, Sim};
use nicforge_units::{CACHE_LINE_BYTES, Cycles, Time};
use nicforge_wire::link::{Bottleneck, Link};

use super::MACHINE;
use super::job::Job;
use super::options::{Help, StormOptions};
use super::queue::{Place as QueuePlace, Receiver};
use super::threads::{Demultiplexer, Multiplexer, Out, Thread, Windows};
use super::topology::{MACHINES, tasks_of};
use super::worker::{SharedWorker, Way, Worker, WorkerPlan, WorkerProgram};
use crate::assembly::{self, Adapters, BuildError, CoreParts};
use crate::machine::Machine;
use crate::run::options::Clock;
use crate::run::{RunError, core_of, driver_costs, nic_spec};
use crate::settings::Settings;
use crate::systems::options::{LinkOptions, SwitchOptions};
use crate::world::program::Program;
use crate::world::sink::Sink;
use crate::world::{Core, EmulatorProgram, End, Host, Outside, Place, RingDevice, SenderProgram, World};

/// Buffers beside those of rings and of the core's cache: what the multiplexer's batches hold, and bursts.
const SPARE_BUFFERS: usize = 2048;
/// Queues of the NIC that the demultiplexer empties; the second's transmit ring is the multiplexer's.
const THREADS: usize = 2;

/// A machine's software.
pub struct Software {
    /// Its workers, in the order of their cores.
    pub workers: Vec<SharedWorker>,
    /// Packet buffers.
    pub pool: Pool,
}

/// A world of three machines.
pub struct Storm {
    /// The world.
    pub world: World,
    /// The software of each machine.
    pub software: Vec<Software>,
    /// A machine's hardware.
    pub hardware: Hardware,
}

/// Builds the world of one point.
pub fn build(machine: &Machine, settings: &Settings, seed: u64) -> Result<Storm, RunError> {
    let mut hardware = machine.hardware.clone();
    hardware.nics = 1;
    if let Some(ghz) = settings.read::<Clock>().cpu_ghz {
        hardware.core.frequency = nicforge_units::Frequency::from_ghz(ghz);
    }
    let (mut hosts, mut software) = (Vec::new(), Vec::new());
    for number in 0..MACHINES {
        let plan = MachinePlan::new(number, settings, &hardware, seed);
        let (host, parts) = plan.host()?;
        hosts.push(host);
        software.push(parts);
    }
    let outside = Outside { sink: Sink::new(0, false, false), generators: Vec::new() };
    let cores: Vec<usize> = hosts.iter().map(|host| host.cores.len()).collect();
    let mut world = World::new(hosts, vec![vec![End::Switch]; MACHINES], outside, Vec::new());
    for (host, cores) in cores.into_iter().enumerate() {
        (0..cores).for_each(|number| world.begin(Place { host, number }, Time::ZERO));
    }
    Ok(Storm { world, software, hardware })
}

struct MachinePlan<'a> {
    number: usize,
    tasks: &'static [u32],
    options: StormOptions,
    /// Cores that play the NIC.
    players: usize,
    settings: &'a Settings,
    hardware: Hardware,
    seed: u64,
}

/// The contents of a machine's memory.
struct Parts {
    nic: Nic<SimDma>,
    threads: Option<(Demultiplexer, Multiplexer)>,
    workers: Vec<Worker>,
    pool: Pool,
    space: AddressSpace,
}

impl<'a> MachinePlan<'a> {
    fn new(number: usize, settings: &'a Settings, hardware: &Hardware, seed: u64) -> MachinePlan<'a> {
        let options: StormOptions = settings.read();
        let tasks = tasks_of(options.storm_layout)[number];
        let mut hardware = hardware.clone();
        // A machine has one NIC.
        let players = settings.emulator_cores() / settings.nics().max(1);
        hardware.cores = tasks.len() + if options.storm_help == Help::Nic { players } else { THREADS };
        MachinePlan { number, players, tasks, options, settings, hardware, seed }
    }

    fn is_helped(&self) -> bool {
        self.options.storm_help == Help::Nic
    }

    /// Queues of the NIC.
    fn queues(&self) -> usize {
        if self.is_helped() { self.tasks.len() } else { THREADS }
    }

    /// The first core of a worker.
    fn first_core(&self) -> usize {
        if self.is_helped() { 0 } else { THREADS }
    }

    /// Whom entries of `core`'s own queues wake. Owners below are those of the NIC's queues.
    fn owner(&self, core: usize) -> Owner {
        Owner(if self.is_helped() { core } else { THREADS + core } as u16)
    }

    fn parts(&self) -> Result<Parts, RunError> {
        let mut settings = self.settings.clone().with("cores", self.queues()).with("nics", 1);
        // Each NIC knows its own tasks.
        if let Some(Value::Text(name)) = self.settings.get("flexnic_entries") {
            settings = settings.with("flexnic_entries", name.replace(MACHINE, &(self.number + 1).to_string()));
        }
        let plan = assembly::HostPlan {
            settings: &settings,
            adapters: Adapters { count: 1, ports: 1, cores: self.queues() },
            spare_buffers: SPARE_BUFFERS,
            costs: driver_costs(&self.hardware),
            pool_work: self.hardware.core.pool,
            descriptor_read: self.hardware.nic.descriptor_read,
            emulator_fills: false,
            ledgers: false,
            seed: self.seed,
        };
        let mut laid = plan.lay_out::<Sim>()?;
        let cores: Vec<CoreParts<Sim>> = (0..self.queues()).map(|_| laid.next_core()).collect();
        let space = &mut laid.space;
        let mut inlets = BTreeMap::new();
        for (number, &task) in self.tasks.iter().enumerate() {
            let owner = self.owner(self.first_core() + number);
            inlets.insert(task, QueuePlace::new(space, self.options.storm_queue_entries, owner)?);
        }
        let (threads, ways) = if self.is_helped() {
            (None, cores.into_iter().map(|parts| Way::Nic(Box::new(parts))).collect())
        } else {
            let (threads, ways) = self.threads(cores, &inlets, space)?;
            (Some(threads), ways)
        };
        let workers = self.workers(&inlets, ways, space);
        let mut nics = laid.take_nics(vec![Chain::new(PortId(0))], |_| nic_spec(&self.hardware, 0));
        Ok(Parts { nic: nics.remove(0), threads, workers, pool: laid.pool, space: laid.space })
    }

    fn workers(&self, inlets: &BTreeMap<u32, QueuePlace>, ways: Vec<Way>, space: &mut AddressSpace) -> Vec<Worker> {
        let each = self.tasks.iter().zip(ways);
        let worker = |(&task, way): (&u32, Way)| {
            let plan = WorkerPlan {
                task,
                machine: self.number,
                layout: self.options.storm_layout,
                semaphore: self.semaphore(),
                here: inlets.clone(),
            };
            let job = Job::new(task, &self.options, space, self.seed);
            Worker::new(plan, job, Receiver::new(inlets[&task]), way)
        };
        each.map(worker).collect()
    }

    fn semaphore(&self) -> Cycles {
        Cycles(self.options.storm_semaphore_cycles.into())
    }

    /// Both threads, and the workers' ways to them.
    fn threads(
        &self,
        cores: Vec<CoreParts<Sim>>,
        inlets: &BTreeMap<u32, QueuePlace>,
        space: &mut AddressSpace,
    ) -> Result<((Demultiplexer, Multiplexer), Vec<Way>), RunError> {
        let (mut drivers, mut outs) = (Vec::new(), Vec::new());
        for CoreParts { drivers: own, transmit, pool } in cores {
            drivers.extend(own);
            outs.extend(transmit.into_iter().next().map(|transmit| Out { transmit, pool }));
        }
        let no_queue = || BuildError::NoQueue(self.settings.interface());
        let (out, back) = (outs.pop().ok_or_else(no_queue)?, outs.pop().ok_or_else(no_queue)?);
        let lines = space.data(MACHINES as u64 * CACHE_LINE_BYTES, CACHE_LINE_BYTES);
        let thread = Thread {
            machine: self.number,
            layout: self.options.storm_layout,
            windows: Windows { of: Rc::new(RefCell::default()), at: lines },
            stack: Cycles(self.options.storm_stack_cycles.into()),
            semaphore: self.semaphore(),
        };
        let places: Result<Vec<_>, _> = self
            .tasks
            .iter()
            .map(|_| QueuePlace::new(space, self.options.storm_queue_entries, self.owner(1)))
            .collect();
        let places = places?;
        let outlets = places.iter().map(|&place| Receiver::new(place)).collect();
        let longest = Time::from_seconds(self.options.storm_batch_ms * 1e-3);
        let demultiplexer = Demultiplexer::new(thread.clone(), drivers, back, inlets.clone());
        let multiplexer = Multiplexer::new(thread, out, outlets, self.options.storm_batch, longest);
        Ok(((demultiplexer, multiplexer), places.into_iter().map(Way::Threads).collect()))
    }

    fn host(&self) -> Result<(Host, Software), RunError> {
        let mut parts = self.parts()?;
        let mut machine = Lent::new(SimHost::new(&self.hardware, &parts.space));
        let mut port = Lent::new(DmaPort::new(&self.hardware.pcie, 0));
        self.start(&mut parts, &mut machine, &mut port);
        // The switch's port that the machine is at.
        let mut plan = self.settings.read::<LinkOptions>().plan(&self.settings.read());
        let SwitchOptions { link_queue_kib, .. } = self.settings.read();
        let queue = nicforge_units::Bytes((link_queue_kib as u64) << 10);
        plan.bottleneck =
            plan.bottleneck.or(Some(Bottleneck { rate: self.hardware.nic.port, queue, mark_above: None }));
        let incoming: Link<Frame> = Link::new(&plan, self.seed.wrapping_mul(4).wrapping_add(self.number as u64));
        let device = RingDevice::new(parts.nic, port).at_link(incoming);
        let workers: Vec<SharedWorker> =
            parts.workers.into_iter().map(|worker| Rc::new(RefCell::new(worker))).collect();
        let mut programs: Vec<Box<dyn Program>> = Vec::new();
        if let Some((demultiplexer, multiplexer)) = parts.threads {
            programs.push(Box::new(demultiplexer));
            programs.push(Box::new(multiplexer));
        }
        let programs_of =
            workers.iter().map(|worker| -> Box<dyn Program> { Box::new(WorkerProgram(Rc::clone(worker))) });
        programs.extend(programs_of);
        let mut cores: Vec<Core> = programs
            .into_iter()
            .enumerate()
            .map(|(number, program)| Core::new(core_of(&self.hardware, number), program))
            .collect();
        let first_player = cores.len();
        cores.extend(self.players());
        let of_queues = if self.is_helped() { 0 } else { THREADS };
        let owners = std::iter::repeat_n(0, of_queues).chain(0..cores.len()).collect();
        let players = first_player..cores.len();
        let mut host = Host::new(machine, vec![Box::new(device)], cores).with_owners(owners);
        // Owners of memory lines are numbered as cores where the NIC helps.
        players.for_each(|core| host.plays(core, 0, core));
        Ok((host, Software { workers, pool: parts.pool }))
    }

    /// The cores that play the NIC, if any do: one receives, the other sends.
    fn players(&self) -> Vec<Core> {
        let programs: [Box<dyn Program>; 2] =
            [Box::new(EmulatorProgram::new(0, self.queues() as u16)), Box::new(SenderProgram::new(0))];
        let elsewhere = self.settings.emulator_cores_here() == 0;
        let player = |(number, program)| {
            let mut core = core_of(&self.hardware, self.tasks.len() + number);
            if elsewhere {
                core.be_behind_link(self.hardware.other_socket.latency);
            }
            Core::new(core, program)
        };
        programs.into_iter().take(self.players).enumerate().map(player).collect()
    }

    /// Fills rings before time begins.
    fn start(&self, parts: &mut Parts, machine: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) {
        let mut core = Lent::new(SimCore::untimed(&self.hardware.core));
        let mut cpu = SimCpu::on(machine, &mut core);
        parts.pool.start(&mut *cpu);
        if let Some((demultiplexer, _)) = &mut parts.threads {
            demultiplexer.start(&mut cpu);
        }
        parts.workers.iter_mut().for_each(|worker| worker.start(&mut cpu));
        drop(cpu);
        // No core sleeps yet.
        machine.memory.take_wakes();
        let written: BTreeMap<u32, u64> = core.take_mmio().map(|write| (write.register.index, write.value)).collect();
        for (index, value) in written {
            parts.nic.write_register(&mut SimDma::on(machine, port, Time::ZERO), index, value);
        }
    }
}
