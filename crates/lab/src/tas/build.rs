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

use super::app::{Role, RpcApp, RpcPlan};
use super::options::{RpcOptions, TasOptions};
use super::program::{AppProgram, ServiceProgram, SharedApp, SharedService};
use super::queue::{Place as QueuePlace, Receiver, Sender};
use super::service::{Context, Costs, Service, ServicePlan, Wire};
use crate::assembly::{self, Adapters, BuildError, CoreParts};
use crate::machine::Machine;
use crate::run::options::Clock;
use crate::run::{RunError, core_of, driver_costs, nic_spec};
use crate::settings::Settings;
use crate::systems::options::{LinkOptions, TcpOptions};
use crate::world::sink::Sink;
use crate::world::{Core, End, Host, Outside, Place, RingDevice, World};

/// Where the server takes connections.
const PORT: u16 = 5000;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Buffers beside those of rings and of the core's cache.
const SPARE_BUFFERS: usize = 512;

/// A host's software.
pub struct Software {
    /// Its service.
    pub service: SharedService,
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
    hardware.cores = 1 + settings.read::<RpcOptions>().rpc_app_cores;
    if let Some(ghz) = settings.read::<Clock>().cpu_ghz {
        hardware.core.frequency = nicforge_units::Frequency::from_ghz(ghz);
    }
    let plan = HostPlan { settings, hardware: &hardware, seed };
    let (server, server_software) = plan.host(Role::Server)?;
    let (client, client_software) = plan.host(Role::Client)?;
    server_software.service.borrow_mut().listen(PORT);
    client_software.service.borrow_mut().connect((SERVER, PORT), Time::ZERO);
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

struct HostPlan<'a> {
    settings: &'a Settings,
    hardware: &'a Hardware,
    seed: u64,
}

/// What lies in a host's memory.
struct Parts {
    nic: Nic<SimDma>,
    service: Service<SimCpu>,
    apps: Vec<RpcApp>,
    pool: Pool,
    space: AddressSpace,
}

impl HostPlan<'_> {
    fn parts(&self, role: Role) -> Result<Parts, RunError> {
        let plan = assembly::HostPlan {
            settings: self.settings,
            adapters: Adapters { count: 1, ports: 1, cores: 1 },
            spare_buffers: SPARE_BUFFERS,
            costs: driver_costs(self.hardware),
            pool_work: self.hardware.core.pool,
            descriptor_read: self.hardware.nic.descriptor_read,
            emulator_fills: false,
            ledgers: false,
            seed: self.seed,
        };
        let mut laid = plan.lay_out::<Sim>()?;
        let CoreParts { drivers, transmit, pool: cache } = laid.next_core();
        let mut wires = drivers.into_iter().zip(transmit);
        let (driver, transmit) = wires.next().ok_or_else(|| BuildError::NoQueue(self.settings.interface()))?;
        let (contexts, apps) = self.contexts(role, &mut laid.space)?;
        let wire = Wire { driver, transmit, pool: cache };
        let service = Service::new(&self.service(role), wire, contexts, &mut laid.space);
        let chain = Chain::new(PortId(0));
        let mut nics = laid.take_nics(vec![chain], |_| nic_spec(self.hardware, 0));
        Ok(Parts { nic: nics.remove(0), service, apps, pool: laid.pool, space: laid.space })
    }

    fn service(&self, role: Role) -> ServicePlan {
        let tas: TasOptions = self.settings.read();
        ServicePlan {
            address: if role == Role::Server { SERVER } else { CLIENT },
            config: self.settings.read::<TcpOptions>().config(),
            ring: tas.tas_buffer_kib << 10,
            connections: self.settings.read::<RpcOptions>().rpc_connections,
            costs: Costs { segment: Cycles(tas.tas_segment_cycles.into()), entry: Cycles(tas.tas_entry_cycles.into()) },
            seed: self.seed.wrapping_mul(2) + u64::from(role == Role::Server),
        }
    }

    /// Both queues of each application core, from both sides.
    fn contexts(&self, role: Role, space: &mut AddressSpace) -> Result<(Vec<Context>, Vec<RpcApp>), RunError> {
        let (rpc, tas): (RpcOptions, TasOptions) = (self.settings.read(), self.settings.read());
        let plan = RpcPlan {
            bytes: rpc.rpc_bytes,
            in_flight: rpc.rpc_in_flight,
            work: Cycles(rpc.rpc_work_cycles.into()),
            call: Cycles(tas.tas_call_cycles.into()),
            entry: Cycles(tas.tas_entry_cycles.into()),
        };
        let (mut contexts, mut apps) = (Vec::new(), Vec::new());
        for core in 1..=rpc.rpc_app_cores {
            let inbound = QueuePlace::new(space, tas.tas_queue_entries, Owner(core as u16))?;
            let outbound = QueuePlace::new(space, tas.tas_queue_entries, Owner(0))?;
            contexts.push(Context { out: Sender::new(inbound), back: Receiver::new(outbound) });
            apps.push(RpcApp::new(role, plan, Receiver::new(inbound), Sender::new(outbound)));
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
        let service = Rc::new(RefCell::new(parts.service));
        let apps: Vec<SharedApp> = parts.apps.into_iter().map(|app| Rc::new(RefCell::new(app))).collect();
        let fast = Core::new(core_of(self.hardware, 0), Box::new(ServiceProgram::new(Rc::clone(&service))));
        let others = apps.iter().enumerate().map(|(number, app)| {
            let program = AppProgram::new(Rc::clone(app), Rc::clone(&service));
            Core::new(core_of(self.hardware, number + 1), Box::new(program))
        });
        let cores = std::iter::once(fast).chain(others).collect();
        Ok((Host::new(machine, vec![Box::new(device)], cores), Software { service, apps, pool: parts.pool }))
    }

    /// Fills rings before time begins.
    fn start(&self, parts: &mut Parts, machine: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) {
        let mut core = Lent::new(SimCore::untimed(&self.hardware.core));
        let mut cpu = SimCpu::on(machine, &mut core);
        parts.pool.start(&mut *cpu);
        parts.service.start(&mut cpu);
        drop(cpu);
        // No core sleeps yet.
        machine.memory.take_wakes();
        let written: BTreeMap<u32, u64> = core.take_mmio().map(|write| (write.register.index, write.value)).collect();
        for (index, value) in written {
            parts.nic.write_register(&mut SimDma::on(machine, port, Time::ZERO), index, value);
        }
    }
}
