//! Where everything of a live run lies, and what works on it.
//!
//! That is a function of the configuration alone, so that another process that has it finds its
//! way in the same region.

use std::rc::Rc;

use nicforge_apps::{AppConfig, AppError, AppGround, Apps, Place};
use nicforge_interfaces::{Halves, KnownGround, Plan, emulated};
use nicforge_nic::stage::{Chain, STAGE_REGISTERS};
use nicforge_nic::transmit::{TransmitDriver, TxRing};
use nicforge_nic::{
    DriverCosts, DriverHalf, Ledger, Nic, NicSpec, NicmemError, Pool, PoolCache, PoolOptions, PortId, ReceiveHalf,
    TransmitOptions, registers,
};
use nicforge_platform::live::Shape;
use nicforge_platform::{Addr, AddressSpace, Dma, Ground, Live, Owner, Register, SpaceError};
use nicforge_stages::{BuiltStage, StageError, StageGround, Start};
use nicforge_units::{BitRate, Bytes, Cycles, Time};

use super::config::LiveConfig;
use super::idle::IdleOptions;
use super::worker::WorkerParts;
use crate::nicmem::NearMemory;
use crate::packet_loop::{Burst, PacketLoop};
use crate::run::stages::{BEHIND_RESPONDER, plan_of as stage_plan};
use crate::run::{RunError, Surroundings, heuristic, plan_of, receive_buffers};
use crate::settings::Settings;

/// What limits a NIC here is the machine, so the model's own limits are beyond reach.
const NO_LIMIT: Bytes = Bytes(1 << 50);
const NO_RATE_LIMIT: BitRate = BitRate::from_bits_per_second(1_000_000_000_000_000);
/// Descriptors are copied this many bytes at a time.
const DESCRIPTOR_READ: Bytes = Bytes(512);

/// What a layout follows from.
#[derive(Clone)]
pub struct Blueprint {
    /// Interface, sizes, number of workers.
    pub config: LiveConfig,
    /// The application.
    pub app: AppConfig,
}

/// Where everything lies, and what works on it; no memory yet.
pub struct Layout<G: Ground = Live> {
    /// All that was handed out.
    pub space: AddressSpace,
    /// What lies behind it.
    pub shape: Shape,
    /// The packet buffers.
    pub pool: Pool,
    /// Those in memory of the NIC, if there are any.
    pub near: Option<Pool>,
    /// One for each port.
    pub nics: Vec<Nic<G::Dma>>,
    /// Who holds which buffer of each pool, `pool` first; empty where no worker may die.
    pub ledgers: Vec<Ledger>,
    /// What the workers are made of, in order.
    pub workers: Vec<WorkerParts<G::Cpu>>,
    /// What fills the stages' tables.
    pub starts: Vec<Start<G>>,
    /// Where a core plays NICs: for each, its level of the pool, to fill physical rings from.
    pub fills: Vec<PoolCache>,
}

impl Blueprint {
    /// Lays everything out.
    ///
    /// # Errors
    /// What the interface or the application cannot be built with.
    pub fn lay_out(&self) -> Result<Layout, RunError> {
        self.lay_out_on()
    }

    /// As [`lay_out`](Self::lay_out), for workers of ground `G`.
    pub fn lay_out_on<G>(&self) -> Result<Layout<G>, RunError>
    where
        G: KnownGround + AppGround + StageGround,
    {
        let Blueprint { config, app } = self;
        let settings = &config.settings;
        let registry = settings.catalogue().registry();
        let (ports, count) = (config.ports.len(), settings.cores());
        let mut space = AddressSpace::default();
        let mut app = app.clone();
        let near = near_memory(&mut space, settings, ports, &mut app)?;
        let PoolOptions { pool_cache, pool_order, buffer_bytes } = settings.read();
        let burst = settings.read::<Burst>().burst;
        let per_port = receive_buffers(settings) + settings.read::<TransmitOptions>().tx_entries;
        let per_worker = ports * per_port + 2 * pool_cache + 2 * burst;
        let pool = Pool::with_room(&mut space, count * per_worker, buffer_bytes).in_order(pool_order);
        app.buffer_room = pool.room();
        let app = &app;
        let ledgers = ledgers(&mut space, config, std::iter::once(pool).chain(near.pool()));
        let (mut tx_rings, mut halves, mut fills) = (Vec::new(), Vec::new(), Vec::new());
        // Of each worker: its driver on every port.
        let mut drivers: Vec<Vec<Box<dyn DriverHalf<G::Cpu>>>> = (0..count).map(|_| Vec::new()).collect();
        for device in 0..ports {
            tx_rings.push(transmit_rings(&mut space, settings)?);
            let plan = plan_of(settings, &registry.interfaces, &surroundings(device, count), pool, &near);
            let entry = registry.interfaces.find(&settings.interface())?;
            let Halves::<G> { nic: mut half, drivers: of_queues } = entry.build(&plan, &mut space)?.rings()?;
            fills.extend(level_of_player::<G>(&mut space, &mut *half, &plan, ledgers.first()));
            halves.push(half);
            for (worker, driver) in drivers.iter_mut().zip(of_queues) {
                worker.push(driver);
            }
        }
        let shared = registry.apps.share(app, &mut space)?;
        let mut workers = Vec::new();
        for (number, drivers) in drivers.into_iter().enumerate() {
            let rings = tx_rings.iter().map(|rings| rings[number]);
            let transmit = transmit_drivers(&mut space, rings, number, &near);
            let cache = PoolCache::new(&mut space, pool, pool_cache, Cycles(0));
            let cache = near.cache(&mut space, cache, (settings, ports * count), Cycles(0));
            let cache = ledgers.iter().fold(cache, |cache, &ledger| cache.with_ledger(ledger, number));
            let tables = space.end();
            let app = registry.apps.build::<G>(app, Place { core: number, cores: count }, &mut space, &shared)?;
            workers.push(WorkerParts {
                tables: tables..space.end(),
                software: PacketLoop::new(drivers, transmit, cache, app, burst),
                idle: config.live.read::<IdleOptions>().idle,
                calls_every: heuristic(settings).map(|heuristic| heuristic.step),
            });
        }
        let (stages, starts) = stages_of::<G>(config, app, &mut space)?;
        let memory_end = Addr(space.end());
        let shape = shape(ports, count, &stages);
        let halves = halves.into_iter().zip(stages);
        let nics = halves.zip(&tx_rings).enumerate().map(|(device, ((half, stages), rings))| {
            let nic = Nic::new(&spec(device), half, rings, memory_end).with_nicmem(near.keys());
            steered(nic.with_stages(stages), &registry.apps, app, count)
        });
        Ok(Layout {
            nics: nics.collect::<Result<_, AppError>>()?,
            shape,
            starts,
            space,
            pool,
            near: near.pool(),
            ledgers,
            workers,
            fills,
        })
    }
}

/// `nic`, which steers as `app` of `apps` wants it on so many workers.
fn steered<D: Dma>(mut nic: Nic<D>, apps: &Apps, app: &AppConfig, workers: usize) -> Result<Nic<D>, AppError> {
    apps.steer(app, &mut nic.steering, 0, workers)?;
    Ok(nic)
}

/// What the interface of port `device` is built beside, where there are so many workers.
fn surroundings(device: usize, workers: usize) -> Surroundings {
    Surroundings {
        device,
        // No worker: the device's thread.
        emulator: Owner((workers + device) as u16),
        emulator_fills: true,
        first_core: 0,
        queues: workers,
        descriptor_read: DESCRIPTOR_READ,
        costs: DriverCosts::default(),
        seed: 1,
    }
}

/// Memory of the adapter with `ports` ports, and what `app` uses of it.
fn near_memory(
    space: &mut AddressSpace,
    settings: &Settings,
    ports: usize,
    app: &mut AppConfig,
) -> Result<NearMemory, NicmemError> {
    let queues = ports * settings.cores();
    let mut near = NearMemory::reserve(space, settings, 0, queues);
    for _ in 0..ports {
        let bytes = settings.hot_area_bytes(ports);
        app.hot.extend(near.make_area(bytes)?);
    }
    near.make_pool(space, settings, queues)?;
    Ok(near)
}

/// Who has which buffer of `pools`, where workers may die.
fn ledgers(space: &mut AddressSpace, config: &LiveConfig, pools: impl Iterator<Item = Pool>) -> Vec<Ledger> {
    match config.attach() {
        Some(_) => pools.map(|pool| Ledger::new(space, pool)).collect(),
        None => Vec::new(),
    }
}

/// The transmit rings of one port.
fn transmit_rings(space: &mut AddressSpace, settings: &Settings) -> Result<Vec<TxRing>, SpaceError> {
    let (entries, inlines) = (settings.read::<TransmitOptions>().tx_entries, settings.inlines_on_transmit());
    let rings = (0..settings.cores()).map(|_| TxRing::with(space, entries, inlines));
    rings.collect()
}

/// The level of the pool of the core that plays `half`, if one does, which keeps `ledger`.
fn level_of_player<G: Ground>(
    space: &mut AddressSpace,
    half: &mut dyn ReceiveHalf<G::Dma>,
    plan: &Plan,
    ledger: Option<&Ledger>,
) -> Option<PoolCache> {
    let played = emulated::played::<G>(half)?;
    // One buffer at a time, so that none stays behind there.
    let cache = PoolCache::new(space, plan.pool, 1, Cycles(0));
    let Some(&ledger) = ledger else {
        return Some(cache);
    };
    played.keep_book(ledger, plan);
    Some(cache.with_ledger(ledger, plan.emulator.0.into()))
}

/// Worker `number`'s transmit driver on every port, where its rings are `rings`.
fn transmit_drivers(
    space: &mut AddressSpace,
    rings: impl Iterator<Item = TxRing>,
    number: usize,
    near: &NearMemory,
) -> Vec<TransmitDriver> {
    let driver = |(device, ring): (usize, TxRing)| {
        let doorbell = Register { device: device as u8, index: registers::TRANSMIT + number as u32 };
        let mut transmit = TransmitDriver::new(space, ring, doorbell, DriverCosts::default());
        near.register(&mut transmit);
        transmit
    };
    rings.enumerate().map(driver).collect()
}

/// No interface has more than four receive registers for each queue; of the steering registers
/// drivers write only the one that selects a set.
fn shape<D: Dma>(ports: usize, workers: usize, stages: &[Chain<D>]) -> Shape {
    let queues = workers as u32;
    let mut banks = vec![(registers::RECEIVE, 4 * queues + 4)];
    // The NICs of all ports have the same stages.
    let of_stages = (BEHIND_RESPONDER as u32..).zip(stages.iter().take(1).flat_map(Chain::registers));
    let of_stages = of_stages.filter(|(_, count)| *count > 0);
    banks.extend(of_stages.map(|(number, count)| (registers::STAGES + number * STAGE_REGISTERS, count)));
    banks.extend([(registers::STEERING, 1), (registers::TRANSMIT, queues)]);
    Shape { devices: ports, workers, banks }
}

/// The chains of all ports without their responders, and what fills the stages' tables.
type Chains<G> = (Vec<Chain<<G as Ground>::Dma>>, Vec<Start<G>>);

/// The stages of each port.
fn stages_of<G: StageGround>(
    config: &LiveConfig,
    app: &AppConfig,
    space: &mut AddressSpace,
) -> Result<Chains<G>, RunError> {
    let settings = &config.settings;
    let (names, mut starts) = (settings.stages(), Vec::new());
    let chains = (0..config.ports.len()).map(|port| {
        let mut chain = Chain::new(PortId(port as u8));
        let plan = stage_plan(settings, &app.ports, port, settings.cores(), Rc::new(()));
        for BuiltStage { stage, start } in
            settings.catalogue().registry().stages.build::<G>(&names, BEHIND_RESPONDER, &plan, space)?
        {
            chain.push(stage);
            starts.extend(start);
        }
        Ok::<_, StageError>(chain)
    });
    let chains = chains.collect::<Result<_, _>>()?;
    Ok((chains, starts))
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
