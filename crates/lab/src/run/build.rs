//! Assembles a world from a machine and settings: the one place that knows all parts.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use nicforge_apps::options::{FlowTableOptions, HotItemsFrom, HotOptions, HotSketchOptions};
use nicforge_apps::{AppConfig, Flow};
use nicforge_interfaces::sh_ring_dynamic::Control;
use nicforge_nic::stage::Chain;
use nicforge_nic::{DriverCosts, Nic, NicSpec, Pool, PortId};
use nicforge_platform::sim::{DmaPort, Hardware, Host as SimHost, Lent, SimCore, SimCpu, SimDma, SimMemory};
use nicforge_platform::{AddressSpace, HostBytes, Sim};
use nicforge_stages::Start;
use nicforge_units::{Frequency, Time};
use nicforge_wire::headers::ip_protocol;
use nicforge_wire::rss::IndirectionTable;

use super::app::app_config;
use super::co_runner::co_runners;
use super::hot_area::preload_hot;
use super::interface::heuristic;
use super::plan::plan;
use super::requests::preload_pairs;
use super::stages::{add_stages, processor_of};
use super::traffic::{flows_of, line_of, queue_of, rss_of, traffic_source};
use super::{RunError, RunIo};
use crate::assembly::{Adapters, HostPlan, Software};
use crate::machine::Machine;
use crate::packet_loop::{Burst, PacketLoop};
use crate::run::options::{Arrival, Arrivals, Clock, Llc, Measurement, Rate, TargetTime, TimelineOptions};
use crate::settings::Settings;
use crate::world::control::{ControlCore, Switches};
use crate::world::device::Device;
use crate::world::generator::Generator;
use crate::world::probe::SharedProbe;
use crate::world::program::Program;
use crate::world::sink::Sink;
use crate::world::{
    Core, EmulatorProgram, End, Host, Observer, Outside, PacketProgram, Place, RingDevice, SenderProgram, World,
};

/// A world that is ready to run, and what is needed to judge it afterwards.
pub struct Built {
    /// The world at time 0.
    pub world: World,
    /// The pools, to count their buffers.
    pub pools: Vec<Pool>,
    /// What records the time line, if one is asked for.
    pub probe: Option<SharedProbe>,
    /// What the control core decided.
    pub switches: Switches,
    /// The machine with the settings' changes.
    pub hardware: Hardware,
    /// Cores that each NIC's frames are spread over.
    pub queues: usize,
    /// Whether the first core of each NIC is a target, with load of its own.
    pub has_target: bool,
}

/// The machine with what the settings change.
pub(super) fn hardware_of(machine: &Machine, settings: &Settings) -> Hardware {
    let mut hardware = machine.hardware.clone();
    hardware.io_ways = settings.read::<Llc>().io_ways;
    hardware.nics = settings.nics();
    hardware.cores = settings.all_cores();
    if let Some(ghz) = settings.read::<Clock>().cpu_ghz {
        hardware.core.frequency = Frequency::from_ghz(ghz);
    }
    hardware
}

pub(crate) fn nic_spec(hardware: &Hardware, port: usize) -> NicSpec {
    let nic = &hardware.nic;
    NicSpec {
        port: PortId(port as u8),
        rate: nic.port,
        wire_overhead: nic.wire_overhead,
        rx_fifo: nic.rx_fifo,
        rx_pipeline: nic.rx_pipeline,
        tx_pipeline: nic.tx_pipeline,
        tx_buffer: nic.tx_buffer,
        tx_resume_room: nic.tx_resume_room,
        tx_deschedule_reads: nic.tx_deschedule_reads,
        descriptor_read: nic.descriptor_read,
    }
}

/// A core that runs an application, before time begins.
pub(super) struct PacketCore {
    /// The core.
    pub core: Lent<SimCore>,
    /// What runs on it.
    pub software: PacketLoop<SimCpu>,
}

/// Everything between the wires, before time begins.
pub(super) struct Parts {
    pub space: AddressSpace,
    nics: Vec<(Nic<SimDma>, Lent<DmaPort>)>,
    cores: Vec<PacketCore>,
    co_runners: Vec<Core>,
    pools: Vec<Pool>,
    /// What fills the stages' tables.
    starts: Vec<Start<Sim>>,
}

/// What a host is made of.
struct HostParts {
    nics: Vec<(Nic<SimDma>, Lent<DmaPort>)>,
    cores: Vec<PacketCore>,
    co_runners: Vec<Core>,
}

/// Builds the world of one point.
pub fn build(machine: &Machine, settings: &Settings, seed: u64, io: &RunIo) -> Result<Built, RunError> {
    let hardware = hardware_of(machine, settings);
    let mut parts = plan(machine, settings, &hardware, seed)?;
    let mut memory_system = Lent::new(memory_system(&parts.space, &hardware)?);
    for ((device, index), value) in fill(&mut parts, settings, seed, &mut memory_system, &hardware)? {
        let (nic, port) = &mut parts.nics[usize::from(device)];
        nic.write_register(&mut SimDma::on(&mut memory_system, port, Time::ZERO), index, value);
    }
    let line = line_of(&hardware);
    let queues = settings.queues() as u16;
    let generators = (0..settings.nics()).map(|port| {
        let source = traffic_source(settings, line, seed, port, queues, io.pcap_out.is_none())?;
        Ok::<_, RunError>(Generator::new(source, line))
    });
    let outside = Outside {
        generators: generators.collect::<Result<Vec<_>, _>>()?,
        sink: Sink::new(
            settings.cores(),
            io.pcap_out.is_some(),
            settings.read::<Arrivals>().arrival == Arrival::PingPong,
        )
        .behind(Time::from_seconds(settings.read::<Rate>().generator_us / 1e6)),
    };
    let host_parts = HostParts { nics: parts.nics, cores: parts.cores, co_runners: parts.co_runners };
    let host = host_of(host_parts, memory_system, settings, &hardware);
    let polling_starts = Time::from_seconds(settings.read::<Measurement>().polling_starts_ms / 1e3);
    let ends = vec![vec![End::Outside; settings.nics()]];
    let (mut observers, switches) = (Vec::<Box<dyn Observer>>::new(), Switches::default());
    if let Some(heuristic) = heuristic(settings) {
        let control = Control::new(heuristic);
        observers.push(Box::new(ControlCore::new(control, hardware.pcie.mmio_write, switches.clone())));
    }
    let probe = settings.read::<TimelineOptions>().timeline_ms.map(|ms| SharedProbe::new(Time::from_seconds(ms / 1e3)));
    observers.extend(probe.clone().map(|probe| Box::new(probe) as Box<dyn Observer>));
    let mut world = World::new(vec![host], ends, outside, observers).polling_from(polling_starts);
    // Cores that poll wait for a packet; all others begin.
    for number in settings.cores()..world.hosts[0].cores.len() {
        world.begin(Place { host: 0, number }, Time::ZERO);
    }
    Ok(Built {
        world,
        pools: parts.pools,
        probe,
        switches,
        hardware,
        queues: settings.queues(),
        has_target: has_target(settings),
    })
}

/// The host: cores that run the application, co-runners, and cores that play its NICs.
fn host_of(parts: HostParts, machine: Lent<SimHost>, settings: &Settings, hardware: &Hardware) -> Host {
    let device = |(nic, port)| -> Box<dyn Device> { Box::new(RingDevice::new(nic, port)) };
    let devices: Vec<Box<dyn Device>> = parts.nics.into_iter().map(device).collect();
    let starts = Time::from_seconds(settings.read::<Measurement>().polling_starts_ms / 1e3);
    let packets = parts.cores.into_iter().map(|PacketCore { core, software }| {
        Core::new(core, Box::new(PacketProgram::new(software))).starting_at(starts)
    });
    let mut cores: Vec<Core> = packets.chain(parts.co_runners).collect();
    let first_player = cores.len();
    // Those that send, where there are any, come behind those that receive.
    let (nics, emulators) = (settings.nics(), settings.emulator_cores());
    let players = (0..emulators).map(|number| {
        let (device, sends) = (number % nics, number >= nics);
        let mut core = core_of(hardware, settings.cores() + number);
        if settings.emulator_cores_here() == 0 {
            core.be_behind_link(hardware.other_socket.latency);
        }
        let queues = devices[device].rings().map_or(0, |device| device.nic.receive.queues());
        let program: Box<dyn Program> = match sends {
            true => Box::new(SenderProgram::new(device)),
            false => Box::new(EmulatorProgram::new(device, queues)),
        };
        Core::new(core, program)
    });
    cores.extend(players.collect::<Vec<_>>());
    let mut host = Host::new(machine, devices, cores);
    for number in 0..emulators {
        host.plays(first_player + number, number % nics, settings.cores() + number);
    }
    host
}

/// Whether one core per NIC is a target before the run ends.
fn has_target(settings: &Settings) -> bool {
    // A replay has no window: it ends when all is done.
    let begins = settings.replays() || settings.read::<TargetTime>().target_begins_ms < settings.ends_ms();
    begins && settings.has_target()
}

/// Caches, and zeroed memory for all of `space`.
fn memory_system(space: &AddressSpace, hardware: &Hardware) -> Result<SimHost, RunError> {
    let needs = space.end();
    let refused = |cause| RunError::Memory { needs, cause };
    let memory = HostBytes::try_zeroed(needs).map_err(refused)?;
    // What the model keeps of each line is made later, where nothing can be refused any more.
    HostBytes::try_zeroed(SimHost::table_bytes(needs)).map_err(refused)?;
    memory.use_large_pages();
    Ok(SimHost::with_memory(hardware, space, SimMemory::with_bytes(space, memory)))
}

/// The last value written to each register, by device and index.
type Written = BTreeMap<(u8, u32), u64>;

/// Fills tables and rings before time begins; returns the register writes of drivers.
fn fill(
    parts: &mut Parts,
    settings: &Settings,
    seed: u64,
    machine: &mut Lent<SimHost>,
    hardware: &Hardware,
) -> Result<Written, RunError> {
    let mut core = Lent::new(SimCore::untimed(&hardware.core));
    let mut turn = SimCpu::on(machine, &mut core);
    let cpu = &mut *turn;
    for pool in &parts.pools {
        pool.start(cpu);
    }
    for core in &mut parts.cores {
        core.software.app.start(cpu);
    }
    if settings.read::<FlowTableOptions>().preload_flows && settings.makes_up_frames() {
        preload(settings, seed, &mut parts.cores, cpu)?;
    }
    if settings.app_shape().requests.is_some() {
        preload_pairs(settings, seed, &mut parts.cores, cpu)?;
        let given = settings.read::<HotOptions>().kvs_hot_items == HotItemsFrom::Given;
        if given || settings.read::<HotSketchOptions>().kvs_hot_preload {
            preload_hot(settings, seed, &mut parts.cores, cpu)?;
        }
    }
    for start in std::mem::take(&mut parts.starts) {
        start(cpu)?;
    }
    for core in &mut parts.cores {
        core.software.start(cpu);
    }
    drop(turn);
    // No core sleeps yet.
    machine.memory.take_wakes();
    for (at, len) in parts.pools.iter().map(Pool::memory) {
        machine.memory.unwritten(at, len);
    }
    let writes = core.take_mmio();
    Ok(writes.map(|write| ((write.register.device, write.register.index), write.value)).collect())
}

/// A NIC on each adapter, with cores of its own.
fn host_plan<'a>(settings: &'a Settings, hardware: &Hardware, seed: u64) -> HostPlan<'a> {
    HostPlan {
        settings,
        adapters: Adapters { count: settings.nics(), ports: 1, cores: settings.queues() },
        spare_buffers: 2 * settings.read::<Burst>().burst,
        costs: driver_costs(hardware),
        pool_work: hardware.core.pool,
        descriptor_read: hardware.nic.descriptor_read,
        emulator_fills: false,
        ledgers: false,
        seed,
    }
}

/// What drivers' instructions cost.
pub(crate) fn driver_costs(hardware: &Hardware) -> DriverCosts {
    let core = &hardware.core;
    DriverCosts { rx_packet: core.rx_packet, tx_packet: core.tx_packet, burst: core.burst }
}

/// Hands out the address space, and makes everything that lies in it.
pub(super) fn parts(machine: &Machine, settings: &Settings, hardware: &Hardware, seed: u64) -> Result<Parts, RunError> {
    let queues = settings.queues();
    let mut config = app_config(machine, settings, seed)?;
    let mut laid = host_plan(settings, hardware, seed).lay_out::<Sim>()?;
    laid.tell(&mut config);
    let of_target = AppConfig { target_begins: Some(settings.target_begins()), ..config.clone() };
    let app = |core: usize| if core.is_multiple_of(queues) { &of_target } else { &config };
    let software = laid.software(&config, app)?.into_iter().enumerate();
    let cores = software
        .map(|(number, Software { packets: software, .. })| PacketCore { core: core_of(hardware, number), software });
    let cores = cores.collect();
    let co_runners = co_runners(settings, hardware, &mut laid.space, seed, laid.copied);
    let (mut chains, mut starts) = (Vec::new(), Vec::new());
    for device in 0..settings.nics() {
        let mut chain = Chain::new(PortId(device as u8));
        chain.set_processor(processor_of(settings));
        starts.extend(add_stages::<Sim>(&mut chain, settings, seed, device, &mut laid.space)?);
        chains.push(chain);
    }
    let mut nics = laid.take_nics(chains, |device| nic_spec(hardware, device));
    laid.steer(&config, &mut nics)?;
    let with_port = |(device, nic)| (nic, Lent::new(DmaPort::new(&hardware.pcie, device)));
    let nics = nics.into_iter().enumerate().map(with_port).collect();
    Ok(Parts { nics, cores, co_runners, pools: laid.pools().collect(), starts, space: laid.space })
}

pub(crate) fn core_of(hardware: &Hardware, number: usize) -> Lent<SimCore> {
    let pcie = &hardware.pcie;
    Lent::new(SimCore::new(number, &hardware.core, pcie.mmio_write, pcie.mmio_read))
}

/// Puts all flows into the tables of the cores that they are steered to, as after a long run.
fn preload(settings: &Settings, seed: u64, cores: &mut [PacketCore], cpu: &mut SimCpu) -> Result<(), RunError> {
    let queues = settings.queues();
    let rss = rss_of(settings);
    let steering = IndirectionTable::spread_over(queues as u16);
    for port in 0..settings.nics() {
        let flows = flows_of(settings, seed, port)?;
        for flow in 0..flows.count() {
            let tuple = flows.tuple(flow);
            let queue = usize::from(queue_of(&tuple, &rss, &steering));
            let from = SocketAddrV4::new(tuple.source, tuple.source_port);
            let to = SocketAddrV4::new(tuple.destination, tuple.destination_port);
            let app = &mut cores[port * queues + queue].software.app;
            // A flow that finds no room is not known when its first packet comes, which then
            // meets the same drop and is counted there.
            let _ = app.learn(cpu, &Flow { source: from, destination: to, protocol: ip_protocol::UDP });
        }
    }
    Ok(())
}
