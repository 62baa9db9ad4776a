//! Two hosts on a link: clients on one, the server on the other, each with a service between its NIC and its
//! applications.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::{DriverCosts, Nic, Pool};
use nicforge_platform::sim::{DmaPort, Hardware, Host as SimHost, Lent, SimCore, SimCpu, SimDma};
use nicforge_platform::{AddressSpace, Owner, Sim};
use nicforge_tcp::Config;
use nicforge_units::{Cycles, Time};
use nicforge_wire::link::Link;

use super::app::{Role, RpcApp};
use super::crew::{Crew, SharedCrew};
use super::linux::{LinuxOptions, LinuxProgram, map_of};
use super::options::{Carrier, RpcOptions, TasOptions};
use super::program::{AppProgram, Map, ServiceProgram, SharedApp, SharedService};
use super::queue::{Place as QueuePlace, Receiver, Sender};
use super::service::{Context, STORAGE_PORT, Service, Wire};
pub use super::software::{Carried, Software};
use super::source::Source;
use crate::assembly::{self, Adapters, BuildError, CoreParts};
use crate::machine::Machine;
use crate::run::options::Clock;
use crate::run::{RunError, core_of, driver_costs, nic_spec};
use crate::settings::Settings;
use crate::systems::options::{LinkOptions, TcpOptions};
use crate::world::sink::Sink;
use crate::world::{Core, End, Host, Outside, Place, RingDevice, World};

/// Where the server takes connections.
pub(super) const PORT: u16 = 5000;
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub(super) const TARGET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
/// A handshake's segment is sent again after this time at first, half of it less or more (TAS, FlexTOE).
const HANDSHAKE_RETRY: Time = Time::from_ms(10);
/// Buffers beside those of rings and of the core's cache.
const SPARE_BUFFERS: usize = 512;

/// A world of a server, its clients, and perhaps its target, in this order.
pub struct Rpcs {
    /// The world.
    pub world: World,
    /// The software of each host.
    pub software: Vec<Software>,
    /// The host that figures are of.
    pub measured: usize,
    /// Its machine.
    pub hardware: Hardware,
}

/// Builds the world of one point.
pub fn build(machine: &Machine, settings: &Settings, seed: u64) -> Result<Rpcs, RunError> {
    let mut hardware = machine.hardware.clone();
    hardware.nics = 1;
    if let Some(ghz) = settings.read::<Clock>().cpu_ghz {
        hardware.core.frequency = nicforge_units::Frequency::from_ghz(ghz);
    }
    let rpc: RpcOptions = settings.read();
    let of = |is_free: bool| if is_free { free(&hardware) } else { hardware.clone() };
    let (servers, clients) = (of(rpc.rpc_free_server), of(rpc.rpc_free_clients));
    let plan = |role, carrier, hardware| HostPlan::new(machine, settings, hardware, (role, carrier), seed);
    let server = plan(Role::Server, rpc.server(), &servers);
    let (mut hosts, mut software) = (Vec::new(), Vec::new());
    let mut add = |(host, its): (Host, Software)| {
        hosts.push(host);
        software.push(its);
    };
    add(server.host()?);
    add(plan(Role::Client, rpc.clients(), &clients).host()?);
    if server.has_target() {
        add(HostPlan::target(machine, settings, &free(&hardware), seed).host()?);
        software[2].listen(STORAGE_PORT, rpc.rpc_app_cores);
        software[0].connect_target(settings);
    }
    software[0].listen(PORT, rpc.rpc_connections);
    software[1].connect(settings);
    let peer = |host| vec![End::Peer(Place { host, number: 0 })];
    let ends = if hosts.len() == 2 { vec![peer(1), peer(0)] } else { vec![vec![End::Switch]; hosts.len()] };
    let outside = Outside { sink: Sink::new(0, false, false), generators: Vec::new() };
    let mut world = World::new(hosts, ends, outside, Vec::new());
    for host in 0..world.hosts.len() {
        for number in 0..world.hosts[host].cores.len() {
            world.begin(Place { host, number }, Time::ZERO);
        }
    }
    let measured = usize::from(rpc.rpc_free_server);
    Ok(Rpcs { world, software, measured, hardware })
}

/// Rate of the port of clients that cost nothing: the switch's.
const FREE_PORT_GBPS: f64 = 100.0;

/// The hardware of clients that cost nothing.
fn free(hardware: &Hardware) -> Hardware {
    let mut free = hardware.clone();
    let none = Cycles(0);
    free.core.frequency = nicforge_units::Frequency::INFINITE;
    (free.core.empty_poll, free.core.atomic, free.core.pool) = (none, none, none);
    (free.pcie.mmio_write, free.pcie.write_latency, free.pcie.read_round_trip) = (Time::ZERO, Time::ZERO, Time::ZERO);
    (free.nic.rx_pipeline, free.nic.tx_pipeline) = (Time::ZERO, Time::ZERO);
    free.nic.port = nicforge_units::BitRate::from_gbps(FREE_PORT_GBPS);
    free
}

/// One host of a point.
pub struct HostPlan<'a> {
    pub machine: &'a Machine,
    pub settings: &'a Settings,
    pub hardware: Hardware,
    pub role: Role,
    pub(super) carrier: Carrier,
    /// Fast-path cores at most, and flow-groups.
    fast: usize,
    pub(super) is_free: bool,
    /// It is a server's target.
    pub(super) is_target: bool,
    pub seed: u64,
}

/// What lies in a host's memory.
struct Parts {
    nic: Nic<SimDma>,
    groups: Vec<Service>,
    apps: Vec<RpcApp>,
    pool: Pool,
    space: AddressSpace,
}

impl<'a> HostPlan<'a> {
    fn new(
        machine: &'a Machine,
        settings: &'a Settings,
        hardware: &Hardware,
        (role, carrier): (Role, Carrier),
        seed: u64,
    ) -> HostPlan<'a> {
        let rpc: RpcOptions = settings.read();
        let fast = settings.read::<TasOptions>().tas_fast_cores;
        let (fast, beside) = match carrier {
            Carrier::Linux => (rpc.rpc_app_cores, 0),
            Carrier::Tas => (fast, fast),
            Carrier::Tasnic => (fast, 1),
        };
        let hardware = Hardware { cores: beside + rpc.rpc_app_cores, ..hardware.clone() };
        let is_free = if role == Role::Client { rpc.rpc_free_clients } else { rpc.rpc_free_server };
        HostPlan { machine, settings, hardware, role, carrier, fast, is_free, is_target: false, seed }
    }

    /// The target of a server, which costs nothing: one application, and a drive.
    fn target(machine: &'a Machine, settings: &'a Settings, hardware: &Hardware, seed: u64) -> HostPlan<'a> {
        let plan = HostPlan::new(machine, settings, hardware, (Role::Server, Carrier::Tas), seed);
        let hardware = Hardware { cores: plan.fast + 1, ..plan.hardware };
        HostPlan { hardware, is_free: true, is_target: true, ..plan }
    }

    /// Flow-groups of its service.
    pub(super) fn groups(&self) -> usize {
        self.fast
    }

    /// The host's address.
    pub fn address(&self) -> Ipv4Addr {
        match self.role {
            _ if self.is_target => TARGET,
            Role::Server => SERVER,
            Role::Client => CLIENT,
        }
    }

    /// Its number among seeds.
    pub(super) fn seed_number(&self) -> u64 {
        u64::from(self.role == Role::Server) + u64::from(self.is_target)
    }

    /// The link that ends at it.
    pub fn incoming(&self) -> Link<Frame> {
        let link: LinkOptions = self.settings.read();
        let link = if self.meets_faults() { link } else { link.without_faults() };
        let seed = self.seed.wrapping_mul(2).wrapping_add(self.seed_number());
        Link::new(&link.plan(&self.settings.read()), seed)
    }

    fn host(&self) -> Result<(Host, Software), RunError> {
        match self.carrier {
            Carrier::Tas | Carrier::Linux => self.service_host(),
            Carrier::Tasnic => crate::tasnic::build::host(self),
        }
    }

    fn parts(&self) -> Result<Parts, RunError> {
        let settings = self.settings.clone().with("cores", self.fast);
        let plan = assembly::HostPlan {
            settings: &settings,
            adapters: Adapters { count: 1, ports: 1, cores: self.fast },
            spare_buffers: SPARE_BUFFERS,
            costs: if self.is_free { DriverCosts::default() } else { driver_costs(&self.hardware) },
            pool_work: self.hardware.core.pool,
            descriptor_read: self.hardware.nic.descriptor_read,
            emulator_fills: false,
            ledgers: false,
            seed: self.seed,
        };
        let mut laid = plan.lay_out::<Sim>()?;
        let mut wires = Vec::new();
        for _ in 0..self.fast {
            let CoreParts { drivers, transmit, pool } = laid.next_core();
            let mut halves = drivers.into_iter().zip(transmit);
            let (driver, transmit) = halves.next().ok_or_else(|| BuildError::NoQueue(settings.interface()))?;
            wires.push(Wire { driver, transmit, pool });
        }
        let applications = self.hardware.cores - if self.carrier == Carrier::Linux { 0 } else { self.fast };
        let sources = self.sources(&mut laid.space, applications);
        let (contexts, apps) = self.contexts(&mut laid.space, &sources)?;
        let buffers = self.buffers(&mut laid.space);
        let each = wires.into_iter().zip(contexts).enumerate();
        let groups = each.map(|(group, (wire, contexts))| {
            let source = sources.get(group).copied().unwrap_or(Source::Memory);
            Service::new(&self.service(group, source, buffers), wire, contexts, &mut laid.space)
        });
        let groups = groups.collect();
        let chain = self.chain(&mut laid.space)?;
        let mut nics = laid.take_nics(vec![chain], |_| nic_spec(&self.hardware, 0));
        Ok(Parts { nic: nics.remove(0), groups, apps, pool: laid.pool, space: laid.space })
    }

    /// TCP's options. A lost handshake is repeated soon, so that all connections are open when a window begins.
    pub fn tcp_config(&self) -> Config {
        Config { rto_initial: HANDSHAKE_RETRY, handshake_spread: true, ..self.settings.read::<TcpOptions>().config() }
    }

    /// Both queues between each application core and each flow-group, from both sides.
    fn contexts(
        &self,
        space: &mut AddressSpace,
        sources: &[Source],
    ) -> Result<(Vec<Vec<Context>>, Vec<RpcApp>), RunError> {
        let tas: TasOptions = self.settings.read();
        let mut contexts: Vec<Vec<Context>> = (0..self.fast).map(|_| Vec::new()).collect();
        let mut apps = Vec::new();
        let kernel = self.carrier == Carrier::Linux;
        let drive = self.drive();
        for (core, source) in (if kernel { 0 } else { self.fast }..).zip(sources) {
            let (mut receivers, mut senders) = (Vec::new(), Vec::new());
            let groups = contexts.iter_mut().enumerate();
            for (group, contexts) in groups.filter(|(group, _)| !kernel || *group == core) {
                let inbound = QueuePlace::new(space, tas.tas_queue_entries, Owner(core as u16))?;
                let outbound = QueuePlace::new(space, tas.tas_queue_entries, Owner(group as u16))?;
                contexts.push(Context { out: Sender::new(inbound), back: Receiver::new(outbound) });
                receivers.push(Receiver::new(inbound));
                senders.push(Sender::new(outbound));
            }
            let app = RpcApp::new(self.role, self.rpcs(*source), receivers, senders);
            apps.push(app.reading(self.reads(drive.as_ref())));
        }
        Ok((contexts, apps))
    }

    fn service_host(&self) -> Result<(Host, Software), RunError> {
        let mut parts = self.parts()?;
        let mut machine = Lent::new(SimHost::new(&self.hardware, &parts.space));
        if self.is_free {
            machine.hierarchy.be_perfect();
        }
        let mut port = Lent::new(DmaPort::new(&self.hardware.pcie, 0));
        self.start(&mut parts, &mut machine, &mut port);
        let device = RingDevice::new(parts.nic, port).at_link(self.incoming());
        let groups: Vec<SharedService> = parts.groups.into_iter().map(|group| Rc::new(RefCell::new(group))).collect();
        let every = Time::from_seconds(self.settings.read::<TasOptions>().tas_decide_us * 1e-6);
        let crew = Rc::new(RefCell::new(Crew::new(self.fast, every)));
        let apps: Vec<SharedApp> = parts.apps.into_iter().map(|app| Rc::new(RefCell::new(app))).collect();
        let cores = if self.carrier == Carrier::Linux {
            self.kernel_cores(&groups, &apps)
        } else {
            self.service_cores(&groups, &crew, &apps)
        };
        let carried = Carried::Service { groups, crew, pool: parts.pool };
        Ok((Host::new(machine, vec![Box::new(device)], cores), Software { carried, apps }))
    }

    /// Cores that each run a kernel and an application.
    fn kernel_cores(&self, groups: &[SharedService], apps: &[SharedApp]) -> Vec<Core> {
        let linux: LinuxOptions = self.settings.read();
        let wake = Cycles(if self.is_free { 0 } else { linux.linux_wake_cycles.into() });
        let core = |(number, (group, app)): (usize, (&SharedService, &SharedApp))| {
            let program = LinuxProgram::new(Rc::clone(group), Rc::clone(app), map_of(group), wake);
            Core::new(core_of(&self.hardware, number), Box::new(program))
        };
        groups.iter().zip(apps).enumerate().map(core).collect()
    }

    /// Cores that run the fast path, and behind them those of applications.
    fn service_cores(&self, groups: &[SharedService], crew: &SharedCrew, apps: &[SharedApp]) -> Vec<Core> {
        let fast = (0..self.fast).map(|number| {
            let program = ServiceProgram::new(number, Rc::clone(crew), groups.to_vec()).moderated(self.moderation());
            Core::new(core_of(&self.hardware, number), Box::new(program))
        });
        let mapped = groups.to_vec();
        let map: Map = Rc::new(move |name| mapped.get(name.group())?.borrow().shared(name.flow()));
        fast.chain(self.app_cores(apps, self.fast, &map)).collect()
    }

    /// Cores from `first` on that run `apps`.
    pub fn app_cores(&self, apps: &[SharedApp], first: usize, map: &Map) -> Vec<Core> {
        let core = |(number, app): (usize, &SharedApp)| {
            let program = AppProgram::new(Rc::clone(app), Rc::clone(map));
            Core::new(core_of(&self.hardware, first + number), Box::new(program))
        };
        apps.iter().enumerate().map(core).collect()
    }

    /// Fills rings before time begins.
    fn start(&self, parts: &mut Parts, machine: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) {
        let mut core = Lent::new(SimCore::untimed(&self.hardware.core));
        let mut cpu = SimCpu::on(machine, &mut core);
        parts.pool.start(&mut *cpu);
        parts.groups.iter_mut().for_each(|group| group.start(&mut cpu));
        drop(cpu);
        // No core sleeps yet.
        machine.memory.take_wakes();
        let written: BTreeMap<u32, u64> = core.take_mmio().map(|write| (write.register.index, write.value)).collect();
        let memory = self.offload_window(&parts.space);
        for (index, value) in memory.into_iter().chain(written) {
            parts.nic.write_register(&mut SimDma::on(machine, port, Time::ZERO), index, value);
        }
    }
}
