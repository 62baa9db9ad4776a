//! From a machine and the settings of a point to systems on their links.

use std::net::Ipv4Addr;

use nicforge_apps::{AppConfig, PortMap};
use nicforge_interfaces::InterfaceEntry;
use nicforge_interfaces::kernel::Frame;
use nicforge_interfaces::kernel::conventional::Conventional;
use nicforge_nic::DriverCosts;
use nicforge_options::Values;
use nicforge_platform::Addr;
use nicforge_units::{Bytes, Cycles, Frequency};
use nicforge_wire::link::Link;

use super::attachment::Attachment;
use super::process::{AnyProcess, Clients, Direction, Files, Initiator, REQUEST_ROOM, Server, Share, Stream, Target};
use super::stack::{ConnectionPlan, Endpoint, KernelCosts};
use super::system::{BuiltSystem, System, SystemPlan};
use crate::BuildError;
use crate::machine::{Integrated, Machine, Placement};
use crate::run::RunError;
use crate::run::options::Workload;
use crate::run::options::{Clock, Run};
use crate::settings::Settings;
use crate::systems::options::{Iscsi, LinkOptions, Sockets, Streams, SystemOptions, TcpOptions, Web};
use crate::world::generator::Generator;
use crate::world::sink::Sink;
use crate::world::{End, Outside, Place, World};

/// Largest IP packet (integrated_nic, section 4.3).
const MTU: usize = 1500;
/// The first port of those that wait for connections, one for each.
const LISTENING_PORT: u16 = 5000;
/// The first port of those that open them.
const OPENING_PORT: u16 = 30000;

/// Buffers of processes begin at multiples of it.
const BUFFER_ALIGNMENT: u64 = 16_384;
/// Flows that a gateway has room for.
const GATEWAY_FLOWS: u64 = 65_536;

/// A world of hosts with kernels; the first is the one that is looked at.
pub struct Systems {
    /// The world.
    pub world: World,
    /// The kernel of each host.
    pub systems: Vec<System>,
}

impl Systems {
    /// `built`, whose wires end as `ends` says.
    fn new(built: Vec<BuiltSystem>, ends: Vec<Vec<End>>) -> Systems {
        let (hosts, systems): (Vec<_>, Vec<_>) = built.into_iter().map(|built| (built.host, built.system)).unzip();
        let outside = Outside { sink: Sink::new(0, false, false), generators: Vec::<Generator>::new() };
        let mut world = World::new(hosts, ends, outside, Vec::new());
        for (host, system) in systems.iter().enumerate() {
            for (number, &begins) in system.begins.iter().enumerate() {
                world.begin(Place { host, number }, begins);
            }
        }
        Systems { world, systems }
    }
}

/// Device `number` of host `host`, at the end of a wire.
fn to(host: usize, number: usize) -> End {
    End::Peer(Place { host, number })
}

/// What all systems of a point are made from.
struct Parts<'a> {
    machine: &'a Integrated,
    placement: &'a Placement,
    settings: &'a Settings,
    seed: u64,
}

/// The systems of a point; the first is the one that is looked at.
pub fn build(machine: &Machine, settings: &Settings, seed: u64) -> Result<Systems, RunError> {
    let no_placement = || RunError::NoPlacement {
        machine: machine.name.clone(),
        placement: settings.read::<SystemOptions>().placement.clone(),
    };
    let integrated = machine.integrated.as_ref().ok_or_else(no_placement)?;
    let placement = integrated.placement(&settings.read::<SystemOptions>().placement);
    let parts = Parts { machine: integrated, placement: placement.ok_or_else(no_placement)?, settings, seed };
    match settings.read::<Run>().workload {
        Workload::NatGateway => {
            let gateway = parts.gateway(machine)?;
            let (client, server) = (parts.stressor(1, true)?, parts.stressor(2, false)?);
            let ends = vec![vec![to(1, 0), to(2, 0)], vec![to(0, 0)], vec![to(0, 1)]];
            Ok(Systems::new(vec![gateway, client, server], ends))
        }
        _ => {
            let systems = vec![parts.looked_at(machine)?, parts.stressor(1, false)?];
            Ok(Systems::new(systems, vec![vec![to(1, 0)], vec![to(0, 0)]]))
        }
    }
}

/// The end of a connection that a process plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// That of the system which is looked at, or of the client behind a gateway.
    Near,
    /// The other one.
    Far,
}

impl Parts<'_> {
    fn attachment(&self) -> Attachment {
        let machine = self.machine;
        let ghz = self.settings.read::<Clock>().cpu_ghz;
        let clock = ghz.map_or(machine.frequency, Frequency::from_ghz);
        let mib = self.settings.read::<SystemOptions>().cache_mib;
        let cache = mib.map_or(machine.l2.size, |mib| Bytes((mib as u64) << 20));
        Attachment::new(machine, self.placement, clock, cache)
    }

    /// That of the system which is looked at.
    fn of_several_cores(&self) -> Attachment {
        let mut attachment = self.attachment();
        attachment.hardware.cores = self.settings.cores();
        attachment
    }

    fn costs(&self, attachment: &Attachment) -> KernelCosts {
        let clock = attachment.hardware.core.frequency;
        KernelCosts { controller: Cycles(clock.cycles_in(attachment.controller) as u64), ..self.machine.kernel.clone() }
    }

    fn work(&self, machine: &Machine, app: &str) -> Result<Cycles, RunError> {
        let work = machine.work_cycles.get(app);
        Ok(Cycles(
            *work.ok_or_else(|| BuildError::NoWorkCycles { machine: machine.name.clone(), app: app.to_string() })?,
        ))
    }

    /// The measured system's plan, without its links and its work.
    fn plan<'a>(&self, attachment: &'a Attachment) -> Result<SystemPlan<'a>, RunError> {
        Ok(SystemPlan {
            attachment,
            costs: self.costs(attachment),
            driver: self.machine.driver,
            interface: self.settings.catalogue().registry().interfaces.find(&self.settings.interface())?,
            values: Values::clone(self.settings),
            nic: self.machine.nic,
            sinic: self.machine.sinic.clone(),
            cores: self.settings.cores(),
            connections: Vec::new(),
            incoming: Vec::new(),
            process_bytes: 0,
            gateway: None,
        })
    }

    /// The system that is looked at.
    fn looked_at(&self, machine: &Machine) -> Result<BuiltSystem, RunError> {
        let attachment = self.of_several_cores();
        let work = match self.settings.read::<Run>().workload {
            Workload::WebServer => (self.work(machine, "web_server")?, self.work(machine, "web_dynamic")?),
            Workload::IscsiInitiator => (self.work(machine, "iscsi_read")?, Cycles(0)),
            // The benchmark's own loop is next to nothing (section 4.2.1).
            _ => (Cycles(0), Cycles(0)),
        };
        let cores = self.settings.cores();
        let plan = SystemPlan {
            connections: self.connections(0, 1, true, cores),
            incoming: vec![self.wire(0)],
            process_bytes: self.process_bytes(cores),
            ..self.plan(&attachment)?
        };
        BuiltSystem::new(plan, |core, memory| self.process(Role::Near, core, cores, memory, work))
    }

    /// A gateway, which translates addresses between its two NICs.
    fn gateway(&self, machine: &Machine) -> Result<BuiltSystem, RunError> {
        let attachment = self.of_several_cores();
        let mut config = AppConfig::new("nat", PortMap::paired(2)).with("table_entries", GATEWAY_FLOWS);
        config.work = self.work(machine, "nat")?;
        config.seed = self.seed;
        let plan =
            SystemPlan { incoming: vec![self.wire(0), self.wire(3)], gateway: Some(config), ..self.plan(&attachment)? };
        BuiltSystem::new(plan, |_, _| AnyProcess::None)
    }

    /// System `number`, which loads the one that is looked at: no work, a perfect memory, a
    /// conventional NIC without latencies.
    fn stressor(&self, number: u8, opens: bool) -> Result<BuiltSystem, RunError> {
        let attachment = Attachment::perfect(self.machine, self.placement);
        let none = Cycles(0);
        let costs = KernelCosts {
            interrupt: none,
            controller: none,
            controller_accesses: 0,
            rx_data: none,
            rx_ack: none,
            tx_data: none,
            tx_ack: none,
            forward: none,
            system_call: none,
            wake: none,
            copy_bytes_per_cycle: f64::INFINITY,
            poll_round: self.machine.kernel.poll_round,
        };
        let (role, peer) = match (opens, number) {
            // Behind a gateway, the client reads from the server at its far side.
            (true, _) => (Role::Near, 2),
            (false, 2) => (Role::Far, 1),
            (false, _) => (Role::Far, 0),
        };
        let plan = SystemPlan {
            attachment: &attachment,
            costs,
            driver: DriverCosts::default(),
            interface: InterfaceEntry::of::<Conventional>(),
            values: Values::default(),
            nic: self.machine.nic,
            sinic: self.machine.sinic.clone(),
            cores: 1,
            connections: self.connections(number, peer, opens, 1),
            incoming: vec![self.wire(u64::from(number))],
            process_bytes: self.process_bytes(1),
            gateway: None,
        };
        BuiltSystem::new(plan, |_, memory| self.process(role, 0, 1, memory, (none, none)))
    }

    fn call_bytes(&self) -> u64 {
        (self.settings.read::<Sockets>().call_kib as u64) << 10
    }

    fn socket_bytes(&self) -> u64 {
        (self.settings.read::<Sockets>().socket_kib as u64) << 10
    }

    /// Bytes of the buffers that a process's streams go through.
    fn stream_bytes(&self) -> u64 {
        Stream::memory_bytes(self.call_bytes(), self.socket_bytes())
    }

    /// Where a process's buffers are behind the first one's.
    fn apart(&self, core: usize) -> u64 {
        core as u64 * self.stream_bytes().next_multiple_of(BUFFER_ALIGNMENT)
    }

    fn read_bytes(&self) -> u64 {
        (self.settings.read::<Iscsi>().iscsi_read_kib as u64) << 10
    }

    fn files(&self) -> Files {
        Files::new(self.settings.read::<Web>().web_directories as u64, self.seed)
    }

    /// Bytes of memory that processes of `cores` cores need, at either end.
    fn process_bytes(&self, cores: usize) -> u64 {
        let outstanding = self.settings.read::<Iscsi>().iscsi_outstanding as u64;
        match self.settings.read::<Run>().workload {
            Workload::IscsiInitiator => Initiator::memory_bytes(self.read_bytes(), outstanding),
            Workload::WebServer => {
                let own = REQUEST_ROOM + self.call_bytes();
                self.files().bytes() + own * cores as u64
            }
            _ => self.apart(cores - 1) + self.stream_bytes(),
        }
    }

    /// The process of one of a system's cores.
    fn process(&self, role: Role, core: usize, cores: usize, memory: Addr, work: (Cycles, Cycles)) -> AnyProcess {
        let (connections, len) = (self.settings.read::<Streams>().streams, self.call_bytes());
        let share = Share { process: core, processes: cores, connections };
        let stream = |direction| {
            let buffers = memory + self.apart(core);
            AnyProcess::Stream(Stream::new(direction, share, buffers, len, self.socket_bytes(), work.0))
        };
        let outstanding = self.settings.read::<Iscsi>().iscsi_outstanding as u64;
        if core > 0 && core >= connections {
            return AnyProcess::None;
        }
        match (self.settings.read::<Run>().workload, role) {
            (Workload::IscsiInitiator, Role::Near) => {
                let bytes = self.read_bytes();
                AnyProcess::Initiator(Initiator::new(memory, bytes, outstanding, work.0))
            }
            (Workload::IscsiInitiator, Role::Far) => AnyProcess::Target(Target::new(memory, self.read_bytes())),
            (Workload::WebServer, Role::Near) => {
                let own = core as u64 * (REQUEST_ROOM + len);
                let requests_at = memory + self.files().bytes() + own;
                let server = Server::new(self.files(), memory, requests_at, connections, work);
                AnyProcess::Server(Box::new(server))
            }
            (Workload::WebServer, Role::Far) => {
                let clients = Clients::new(self.files(), memory, connections, len);
                AnyProcess::Clients(Box::new(clients))
            }
            (Workload::TcpTransmit, Role::Near) => stream(Direction::Out),
            (Workload::TcpTransmit, Role::Far) | (_, Role::Near) => stream(Direction::In),
            (_, Role::Far) => stream(Direction::Out),
        }
    }

    /// The connections between two systems, as the first of them has them; it `opens` them or
    /// waits for them.
    fn connections(&self, system: u8, peer: u8, opens: bool, cores: usize) -> Vec<ConnectionPlan> {
        let end = |system: u8, port: u16, number: u16| Endpoint {
            address: Ipv4Addr::new(10, 0, 0, system + 1),
            port: port + number,
        };
        let ports = if opens { (OPENING_PORT, LISTENING_PORT) } else { (LISTENING_PORT, OPENING_PORT) };
        let workload = self.settings.read::<Run>().workload;
        let streams = matches!(workload, Workload::TcpReceive | Workload::TcpTransmit | Workload::NatGateway);
        let plan = |number: u16| ConnectionPlan {
            local: end(system, ports.0, number),
            remote: end(peer, ports.1, number),
            opens,
            // Requests and answers do not wait for each other's acknowledgement.
            nagle: streams,
            buffer_bytes: self.socket_bytes(),
            tcp: self.settings.read::<TcpOptions>().config(),
            mtu: MTU,
            seed: self.seed ^ u64::from(number) << 8 ^ u64::from(system),
            nic: 0,
            core: Share::of(number.into(), cores),
        };
        let initiator = workload == Workload::IscsiInitiator;
        let count = if initiator { 1 } else { self.settings.read::<Streams>().streams as u16 };
        (0..count).map(plan).collect()
    }

    /// The link that ends at system `system`; 3 is that at the second NIC of a gateway.
    fn wire(&self, system: u64) -> Link<Frame> {
        let link: LinkOptions = self.settings.read();
        let plan = link.plan(&self.settings.read());
        Link::new(&plan, self.seed.wrapping_mul(2).wrapping_add(system))
    }
}
