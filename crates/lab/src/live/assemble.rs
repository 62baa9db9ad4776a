//! Assembles a live run from its configuration.
//!
//! Where everything lies is a function of the configuration alone, so that another process that
//! has it finds its way in the same region.

use nicforge_apps::tables::PortPartition;
use nicforge_apps::{AnyApp, AppConfig, PortMap, SharedTables, read_routes};
use nicforge_interfaces::{AnyDriver, AnyNic, Plan, registry};
use nicforge_nic::transmit::{TransmitDriver, TxRing};
use nicforge_nic::{DriverCosts, Nic, NicSpec, Pool, PoolCache, PortId, PortRule, registers};
use nicforge_platform::live::ports::{CapturePort, PacketPort, Port, PortCounters, TapPort};
use nicforge_platform::live::{Bell, Control, LiveCpu, LiveDma, LiveError, Shape};
use nicforge_platform::{Addr, AddressSpace, Owner, Register};
use nicforge_units::{BitRate, Bytes, Cycles, Time};
use nicforge_wire::headers::MacAddress;

use super::config::{LiveConfig, Neighbour, PortConfig, PortKind};
use super::device::{Device, Manners};
use super::neighbour::{self, Own};
use super::worker::{Worker, WorkerParts};
use crate::packet_loop::PacketLoop;
use crate::run::{RunError, bisect, receive_buffers};
use crate::settings::Settings;

/// What limits a NIC here is the machine, so the model's own limits are beyond reach.
const NO_LIMIT: Bytes = Bytes(1 << 50);
const NO_RATE_LIMIT: BitRate = BitRate::from_bits_per_second(1_000_000_000_000_000);
/// Descriptors are copied this many bytes at a time.
const DESCRIPTOR_READ: Bytes = Bytes(512);

/// A live run that is ready to go.
pub struct Assembly {
    /// The device, all ports open.
    pub device: Device,
    /// The workers, in order.
    pub workers: Vec<Worker>,
    /// The pool, to count its buffers.
    pub pool: Pool,
    /// The region.
    pub control: Control,
    /// Wakes the device.
    pub bell: Bell,
}

/// Where everything lies, and what works on it; no memory yet.
struct Layout {
    space: AddressSpace,
    shape: Shape,
    pool: Pool,
    nics: Vec<Nic<AnyNic>>,
    workers: Vec<WorkerParts>,
}

/// Opens all ports and puts everything together.
///
/// # Errors
/// What the configuration names and is not there, or cannot be had.
pub fn assemble(config: &LiveConfig) -> Result<Assembly, RunError> {
    let mut ports = Vec::new();
    for port in &config.ports {
        ports.push(open(&port.kind)?);
    }
    let (map, own) = addresses(config, &mut ports)?;
    let app = app_config(config, map)?;
    let Layout {
        space,
        shape,
        pool,
        nics,
        mut workers,
    } = lay_out(config, &app, &own)?;
    let control = Control::new(&space, &shape)?;
    let bell = Bell::new()?;
    let cpu = |number| LiveCpu::new(control.clone(), bell.clone(), number);
    pool.start(&mut cpu(0));
    for (number, worker) in workers.iter_mut().enumerate() {
        worker.software.app.start(&mut cpu(number));
    }
    let workers = workers.into_iter().enumerate();
    let workers = workers.map(|(number, parts)| Worker::new(cpu(number), parts));
    let dma = LiveDma::new(control.clone(), &space);
    let shared = (control.clone(), bell.clone());
    let manners = Manners {
        idle: config.idle,
        when_full: config.when_full,
        window: window(&config.settings),
    };
    Ok(Assembly {
        workers: workers.collect(),
        device: Device::new(nics, ports, dma, shared, manners),
        pool,
        control,
        bell,
    })
}

/// How many frames of a port may wait for software at once: so few that none is dropped for want
/// of room in any ring.
fn window(settings: &Settings) -> usize {
    let receive = match settings.interface.as_str() {
        "rx_bisect" => settings.ax_entries.min(settings.bx_entries),
        _ => settings.rx_entries,
    };
    (receive.min(settings.tx_entries) / 2).max(1)
}

fn open(kind: &PortKind) -> Result<Box<dyn Port>, LiveError> {
    Ok(match kind {
        PortKind::Packet(name) => Box::new(PacketPort::open(name)?),
        PortKind::Tap(name) => Box::new(TapPort::open(name)?),
        PortKind::Capture(from, to) => Box::new(CapturePort::open(from.as_deref(), to.as_deref())?),
    })
}

/// The ports as applications see them, and their own addresses.
fn addresses(
    config: &LiveConfig,
    ports: &mut [Box<dyn Port>],
) -> Result<(PortMap, Vec<Own>), RunError> {
    let mut map = PortMap::paired(config.ports.len() as u8);
    let mut own = Vec::new();
    for ((set, port), seen) in config.ports.iter().zip(ports).zip(&mut map.0) {
        let hardware = port.hardware_address().map(MacAddress);
        seen.mac = set.mac.or(hardware).unwrap_or(seen.mac);
        seen.inside = set.inside.unwrap_or(seen.inside);
        if let Some(peer) = set.peer {
            seen.peer = PortId(peer as u8);
        }
        if let Some(next_hop) = set.next_hop {
            seen.next_hop = resolve(set, &mut **port, seen.mac, next_hop)?;
            // Questions are no frames of the run.
            *port.counters_mut() = PortCounters::default();
        }
        own.push((seen.mac, set.address));
    }
    Ok((map, own))
}

fn resolve(
    set: &PortConfig,
    port: &mut dyn Port,
    mac: MacAddress,
    next_hop: Neighbour,
) -> Result<MacAddress, RunError> {
    let (wanted, address) = match (next_hop, set.address) {
        (Neighbour::Mac(mac), _) => return Ok(mac),
        (Neighbour::Ip(wanted), Some(address)) => (wanted, address),
        // Without an address of its own the file was refused.
        (Neighbour::Ip(wanted), None) => (wanted, wanted),
    };
    neighbour::ask(port, (mac, address), wanted)?.ok_or_else(|| RunError::NoNeighbour {
        place: set.place.to_string(),
        address: wanted,
    })
}

fn app_config(config: &LiveConfig, map: PortMap) -> Result<AppConfig, RunError> {
    let settings = &config.settings;
    let mut app = AppConfig::new(&settings.app, map);
    app.table_entries = settings.table_entries;
    app.servers = settings.servers;
    app.reads = settings.reads;
    app.array = Bytes(u64::from(settings.array_mib) << 20);
    app.external_base = config.app.external_address.unwrap_or(app.external_base);
    app.external_addresses = Some(config.app.external_addresses.unwrap_or(1));
    app.service = config.app.service;
    app.server_base = config.app.server_address.unwrap_or(app.server_base);
    if let Some(file) = &settings.routes_file {
        app.routes = read_routes(file.as_ref())?.into();
    }
    Ok(app)
}

fn lay_out(config: &LiveConfig, app: &AppConfig, own: &[Own]) -> Result<Layout, RunError> {
    let settings = &config.settings;
    let (ports, count) = (config.ports.len(), settings.cores);
    let mut space = AddressSpace::default();
    let per_port = receive_buffers(settings) + settings.tx_entries;
    let per_worker = ports * per_port + 2 * settings.pool_cache + 2 * settings.burst;
    let pool = Pool::new(&mut space, count * per_worker);
    let mut tx_rings = Vec::new();
    let mut halves = Vec::new();
    // Of each worker: its driver on every port.
    let mut drivers: Vec<Vec<AnyDriver>> = (0..count).map(|_| Vec::new()).collect();
    for device in 0..ports {
        let rings = (0..count).map(|_| TxRing::new(&mut space, settings.tx_entries));
        tx_rings.push(rings.collect::<Result<Vec<_>, _>>()?);
        let plan = plan(settings, device as u8, pool);
        let (half, of_queues) = registry::build(&settings.interface, &plan, &mut space)?;
        halves.push(half);
        for (worker, driver) in drivers.iter_mut().zip(of_queues) {
            worker.push(driver);
        }
    }
    let shared = SharedTables::allocate(app, &mut space);
    let mut workers = Vec::new();
    for (number, drivers) in drivers.into_iter().enumerate() {
        let transmit = (0..ports).map(|device| {
            let doorbell = Register {
                device: device as u8,
                index: registers::TRANSMIT + number as u32,
            };
            let (ring, costs) = (tx_rings[device][number], DriverCosts::default());
            TransmitDriver::new(&mut space, ring, doorbell, costs)
        });
        let transmit = transmit.collect();
        let cache = PoolCache::new(&mut space, pool, settings.pool_cache, Cycles(0));
        let app = AnyApp::build(app, number, count, &mut space, &shared)?;
        workers.push(WorkerParts {
            software: PacketLoop::new(drivers, transmit, cache, app, settings.burst),
            own: own.to_vec(),
            idle: config.idle,
        });
    }
    let memory_end = Addr(space.end());
    let nics = halves.into_iter().zip(&tx_rings).enumerate();
    let rule = port_rule(app, count);
    let nics = nics.map(|(device, (half, rings))| {
        let mut nic = Nic::new(&spec(device), half, rings, memory_end);
        if let Some(rule) = rule {
            nic.steering.set_rule(rule);
        }
        nic
    });
    Ok(Layout {
        nics: nics.collect(),
        shape: shape(ports, count),
        space,
        pool,
        workers,
    })
}

/// Answers to a translated address find the worker that translated it.
fn port_rule(app: &AppConfig, workers: usize) -> Option<PortRule> {
    let ports = PortPartition::new(workers);
    (app.name == "nat").then(|| PortRule {
        first_address: app.external_base.to_bits(),
        addresses: app.external_addresses.unwrap_or(1),
        first_port: ports.first_port(),
        share: ports.share(),
    })
}

fn plan(settings: &Settings, device: u8, pool: Pool) -> Plan {
    Plan {
        device,
        owners: (0..settings.cores).map(|core| Owner(core as u16)).collect(),
        rx_entries: settings.rx_entries,
        sharing: settings.sharing,
        pool,
        descriptor_read: DESCRIPTOR_READ,
        first_position: 0,
        costs: DriverCosts::default(),
        bisect: bisect(settings, 1),
        emulates: settings.emulates.clone(),
        emulator: Owner::NOBODY,
    }
}

/// No interface has more than four receive registers for each queue; of the steering registers
/// drivers write only the one that selects a set.
fn shape(ports: usize, workers: usize) -> Shape {
    let queues = workers as u32;
    Shape {
        devices: ports,
        workers,
        banks: vec![
            (registers::RECEIVE, 4 * queues + 4),
            (registers::STEERING, 1),
            (registers::TRANSMIT, queues),
        ],
    }
}

fn spec(device: usize) -> NicSpec {
    NicSpec {
        port: PortId(device as u8),
        rate: NO_RATE_LIMIT,
        wire_overhead: Bytes(0),
        rx_fifo: NO_LIMIT,
        rx_pipeline: Time::ZERO,
        tx_pipeline: Time::ZERO,
        tx_buffer: NO_LIMIT,
        tx_resume_room: Bytes(0),
        tx_deschedule_reads: 0.0,
        descriptor_read: DESCRIPTOR_READ,
    }
}
