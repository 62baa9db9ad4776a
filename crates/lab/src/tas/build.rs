//! Two hosts on a link: clients on one, the server on the other, each with a service between its NIC and its
//! applications.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::stage::Chain;
use nicforge_nic::{Nic, Pool, PortId};
use nicforge_platform::sim::{DmaPort, Hardware, Host as SimHost, Lent, SimCore, SimCpu, SimDma};
use nicforge_platform::{AddressSpace, Owner, Sim};
use nicforge_units::{Cycles, Time};
use nicforge_wire::link::Link;
use nicforge_wire::rss::IndirectionTable;
use nicforge_wire::traffic::FlowTuple;

use super::app::{Role, RpcApp, RpcPlan};
use super::crew::{Crew, SharedCrew};
use super::options::{RpcOptions, TasOptions};
use super::program::{AppProgram, ServiceProgram, SharedApp, SharedService};
use super::queue::{Place as QueuePlace, Receiver, Sender};
use super::service::{Context, Costs, Service, ServicePlan, Wire};
use crate::assembly::{self, Adapters, BuildError, CoreParts};
use crate::machine::Machine;
use crate::run::options::Clock;
use crate::run::{RunError, core_of, driver_costs, nic_spec, queue_of, rss_of};
use crate::settings::Settings;
use crate::systems::options::{LinkOptions, TcpOptions};
use crate::world::sink::Sink;
use crate::world::{Core, End, Host, Outside, Place, RingDevice, World};

/// Where the server takes connections.
const PORT: u16 = 5000;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Of the client's connections; one each.
const FIRST_CLIENT_PORT: u16 = 40_000;
/// Buffers beside those of rings and of the core's cache.
const SPARE_BUFFERS: usize = 512;

/// A host's software.
pub struct Software {
    /// The flow-groups of its service.
    pub groups: Vec<SharedService>,
    /// The cores that serve them.
    pub crew: SharedCrew,
    /// Its applications.
    pub apps: Vec<SharedApp>,
    /// Its packet buffers.
    pub pool: Pool,
}

/// A world of two hosts; the first is the server.
pub struct Rpcs {
    /// The world.
    pub world: World,
    /// The software of each host.
    pub software: Vec<Software>,
    /// The machine.
    pub hardware: Hardware,
}

/// Builds the world of one point.
pub fn build(machine: &Machine, settings: &Settings, seed: u64) -> Result<Rpcs, RunError> {
    let mut hardware = machine.hardware.clone();
    hardware.nics = 1;
    let fast = settings.read::<TasOptions>().tas_fast_cores;
    hardware.cores = fast + settings.read::<RpcOptions>().rpc_app_cores;
    if let Some(ghz) = settings.read::<Clock>().cpu_ghz {
        hardware.core.frequency = nicforge_units::Frequency::from_ghz(ghz);
    }
    let plan = HostPlan { settings, hardware: &hardware, fast, seed };
    let (server, server_software) = plan.host(Role::Server)?;
    let (client, client_software) = plan.host(Role::Client)?;
    server_software.groups.iter().for_each(|group| group.borrow_mut().listen(PORT));
    connect(settings, &client_software.groups);
    let ends = vec![vec![End::Peer(Place { host: 1, number: 0 })], vec![End::Peer(Place { host: 0, number: 0 })]];
    let outside = Outside { sink: Sink::new(0, false, false), generators: Vec::new() };
    let mut world = World::new(vec![server, client], ends, outside, Vec::new());
    for host in 0..2 {
        for number in 0..hardware.cores {
            world.begin(Place { host, number }, Time::ZERO);
        }
    }
    Ok(Rpcs { world, software: vec![server_software, client_software], hardware })
}

/// Opens all connections, each from the flow-group to which RSS steers what comes back.
fn connect(settings: &Settings, groups: &[SharedService]) {
    let (rss, table) = (rss_of(settings), IndirectionTable::spread_over(groups.len() as u16));
    for number in 0..settings.read::<RpcOptions>().rpc_connections {
        let port = FIRST_CLIENT_PORT + number as u16;
        let back = FlowTuple { source: SERVER, destination: CLIENT, source_port: PORT, destination_port: port };
        let group = &groups[usize::from(queue_of(&back, &rss, &table))];
        group.borrow_mut().connect(port, (SERVER, PORT), Time::ZERO);
    }
}

struct HostPlan<'a> {
    settings: &'a Settings,
    hardware: &'a Hardware,
    /// Fast-path cores at most, and flow-groups.
    fast: usize,
    seed: u64,
}

/// What lies in a host's memory.
struct Parts {
    nic: Nic<SimDma>,
    groups: Vec<Service<SimCpu>>,
    apps: Vec<RpcApp>,
    pool: Pool,
    space: AddressSpace,
}

impl HostPlan<'_> {
    fn parts(&self, role: Role) -> Result<Parts, RunError> {
        let settings = self.settings.clone().with("cores", self.fast);
        let plan = assembly::HostPlan {
            settings: &settings,
            adapters: Adapters { count: 1, ports: 1, cores: self.fast },
            spare_buffers: SPARE_BUFFERS,
            costs: driver_costs(self.hardware),
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
        let (contexts, apps) = self.contexts(role, &mut laid.space)?;
        let each = wires.into_iter().zip(contexts).enumerate();
        let groups = each
            .map(|(group, (wire, contexts))| Service::new(&self.service(role, group), wire, contexts, &mut laid.space));
        let groups = groups.collect();
        let chain = Chain::new(PortId(0));
        let mut nics = laid.take_nics(vec![chain], |_| nic_spec(self.hardware, 0));
        Ok(Parts { nic: nics.remove(0), groups, apps, pool: laid.pool, space: laid.space })
    }

    fn service(&self, role: Role, group: usize) -> ServicePlan {
        let tas: TasOptions = self.settings.read();
        let seed = self.seed.wrapping_mul(2) + u64::from(role == Role::Server);
        ServicePlan {
            group,
            address: if role == Role::Server { SERVER } else { CLIENT },
            config: self.settings.read::<TcpOptions>().config(),
            ring: tas.tas_buffer_kib << 10,
            connections: self.settings.read::<RpcOptions>().rpc_connections,
            costs: Costs { segment: Cycles(tas.tas_segment_cycles.into()), entry: Cycles(tas.tas_entry_cycles.into()) },
            seed: seed ^ (group as u64) << 48,
        }
    }

    /// Both queues between each application core and each flow-group, from both sides.
    fn contexts(&self, role: Role, space: &mut AddressSpace) -> Result<(Vec<Vec<Context>>, Vec<RpcApp>), RunError> {
        let (rpc, tas): (RpcOptions, TasOptions) = (self.settings.read(), self.settings.read());
        let plan = RpcPlan {
            bytes: rpc.rpc_bytes,
            in_flight: rpc.rpc_in_flight,
            work: Cycles(rpc.rpc_work_cycles.into()),
            call: Cycles(tas.tas_call_cycles.into()),
            entry: Cycles(tas.tas_entry_cycles.into()),
        };
        let mut contexts: Vec<Vec<Context>> = (0..self.fast).map(|_| Vec::new()).collect();
        let mut apps = Vec::new();
        for core in self.fast..self.hardware.cores {
            let (mut receivers, mut senders) = (Vec::new(), Vec::new());
            for (group, contexts) in contexts.iter_mut().enumerate() {
                let inbound = QueuePlace::new(space, tas.tas_queue_entries, Owner(core as u16))?;
                let outbound = QueuePlace::new(space, tas.tas_queue_entries, Owner(group as u16))?;
                contexts.push(Context { out: Sender::new(inbound), back: Receiver::new(outbound) });
                receivers.push(Receiver::new(inbound));
                senders.push(Sender::new(outbound));
            }
            apps.push(RpcApp::new(role, plan, receivers, senders));
        }
        Ok((contexts, apps))
    }

    fn host(&self, role: Role) -> Result<(Host, Software), RunError> {
        let mut parts = self.parts(role)?;
        let mut machine = Lent::new(SimHost::new(self.hardware, &parts.space));
        let mut port = Lent::new(DmaPort::new(&self.hardware.pcie, 0));
        self.start(&mut parts, &mut machine, &mut port);
        let link: LinkOptions = self.settings.read();
        let plan = link.plan(&self.settings.read());
        let number = u64::from(role == Role::Server);
        let incoming: Link<Frame> = Link::new(&plan, self.seed.wrapping_mul(2).wrapping_add(number));
        let device = RingDevice::new(parts.nic, port).at_link(incoming);
        let groups: Vec<SharedService> = parts.groups.into_iter().map(|group| Rc::new(RefCell::new(group))).collect();
        let every = Time::from_seconds(self.settings.read::<TasOptions>().tas_decide_us * 1e-6);
        let crew = Rc::new(RefCell::new(Crew::new(self.fast, every)));
        let apps: Vec<SharedApp> = parts.apps.into_iter().map(|app| Rc::new(RefCell::new(app))).collect();
        let fast = (0..self.fast).map(|number| {
            let program = ServiceProgram::new(number, Rc::clone(&crew), groups.clone());
            Core::new(core_of(self.hardware, number), Box::new(program))
        });
        let others = apps.iter().enumerate().map(|(number, app)| {
            let program = AppProgram::new(Rc::clone(app), groups.clone());
            Core::new(core_of(self.hardware, self.fast + number), Box::new(program))
        });
        let cores = fast.chain(others).collect();
        Ok((Host::new(machine, vec![Box::new(device)], cores), Software { groups, crew, apps, pool: parts.pool }))
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
        for (index, value) in written {
            parts.nic.write_register(&mut SimDma::on(machine, port, Time::ZERO), index, value);
        }
    }
}
