//! Where everything of a live run lies, and what works on it.
//!
//! That is a function of the configuration alone, so that another process that has it finds its
//! way in the same region.

use std::rc::Rc;

use nicforge_apps::{AppConfig, AppGround};
use nicforge_interfaces::KnownGround;
use nicforge_nic::stage::{Chain, STAGE_REGISTERS};
use nicforge_nic::{DriverCosts, Ledger, Nic, NicSpec, Pool, PoolCache, PortId, registers};
use nicforge_platform::live::Shape;
use nicforge_platform::{AddressSpace, Dma, Ground, Live};
use nicforge_stages::{StageGround, Start};
use nicforge_units::{BitRate, Bytes, Cycles, Time};

use super::config::LiveConfig;
use super::threads::ThreadOptions;
use super::worker::WorkerParts;
use crate::assembly::{Adapters, BuildError, HostPlan, LaidOut, Software};
use crate::nicmem::AdapterMemory;
use crate::packet_loop::Burst;
use crate::run::heuristic;
use crate::run::stages::{BEHIND_RESPONDER, build_stages, plan_of as stage_plan};

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
    pub nicmem: Option<Pool>,
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

impl<G: Ground> Layout<G> {
    /// Where everything lies, as text.
    pub fn places(&self) -> String {
        let Layout { space, shape, pool, nicmem, ledgers, workers, nics, .. } = self;
        let tables: Vec<_> = workers.iter().map(|worker| &worker.tables).collect();
        let queues: Vec<_> = nics.iter().map(|nic| (nic.receive.queues(), nic.receive.sets().to_vec())).collect();
        format!("{} {shape:?} {pool:?} {nicmem:?} {ledgers:?} {tables:?} {queues:?}", space.end())
    }
}

impl Blueprint {
    /// Lays everything out.
    ///
    /// # Errors
    /// What the interface or the application cannot be built with.
    pub fn lay_out(&self) -> Result<Layout, BuildError> {
        self.lay_out_on()
    }

    /// As [`lay_out`](Self::lay_out), for workers of ground `G`.
    pub fn lay_out_on<G>(&self) -> Result<Layout<G>, BuildError>
    where
        G: KnownGround + AppGround + StageGround,
    {
        let Blueprint { config, app } = self;
        let (settings, count) = (&config.settings, config.settings.cores());
        let plan = plan(config);
        let mut laid = plan.lay_out::<G>()?;
        let mut app = app.clone();
        laid.tell(&mut app);
        let workers =
            laid.software(&app, |_| &app)?.into_iter().map(|Software { packets: software, tables }| WorkerParts {
                tables,
                software,
                idle: config.live.read::<ThreadOptions>().idle,
                calls_every: heuristic(settings).map(|heuristic| heuristic.step),
            });
        let workers = workers.collect();
        let (mut chains, mut starts) = (Vec::new(), Vec::new());
        for port in 0..config.ports.len() {
            let mut chain = Chain::new(PortId(port as u8));
            let plan = stage_plan(settings, &app.ports, port, count, Rc::new(()));
            starts.extend(build_stages::<G>(&mut chain, settings, BEHIND_RESPONDER, &plan, &mut laid.space)?);
            chains.push(chain);
        }
        let shape = shape(config.ports.len(), count, &chains);
        let mut nics = laid.take_nics(chains, spec);
        laid.steer(&app, &mut nics)?;
        let nicmem = laid.nicmem.first().and_then(AdapterMemory::pool);
        let LaidOut { space, pool, ledgers, fills, .. } = laid;
        Ok(Layout { space, shape, pool, nicmem, nics, ledgers, workers, starts, fills })
    }
}

/// Workers take the frames of all ports, and ports share memory.
fn plan(config: &LiveConfig) -> HostPlan<'_> {
    let settings = &config.settings;
    HostPlan {
        settings,
        adapters: Adapters { count: 1, ports: config.ports.len(), cores: settings.cores() },
        spare_buffers: 2 * settings.read::<Burst>().burst,
        costs: DriverCosts::default(),
        pool_work: Cycles(0),
        descriptor_read: DESCRIPTOR_READ,
        emulator_fills: true,
        ledgers: config.attach().is_some(),
        seed: 1,
    }
}

/// How many packet buffers the pool of `config` has.
pub fn packet_buffers(config: &LiveConfig) -> usize {
    plan(config).packet_buffers()
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
