//! Lays out one host: NICs, their interface, and cores that take packets from their queues. Every kind of run on
//! either ground assembles its hosts by this.
//!
//! The order in which memory is handed out is part of a result, as it decides which cache sets are used.

mod error;

use std::collections::VecDeque;
use std::ops::Range;

use nicforge_apps::{AppConfig, AppGround, Place as AppPlace, SharedTables};
use nicforge_interfaces::emulated::{self, EmulatedOptions};
use nicforge_interfaces::{Halves, KnownGround, Plan};
use nicforge_nic::stage::Chain;
use nicforge_nic::transmit::{TransmitDriver, TxRing};
use nicforge_nic::{
    Allocation, DriverCosts, DriverHalf, Ledger, Nic, NicSpec, NicmemError, Pool, PoolCache, PoolOptions, PoolSize,
    ReceiveHalf, RssOptions, TransmitOptions, registers,
};
use nicforge_options::Values;
use nicforge_platform::{Addr, AddressSpace, Ground, Owner, Register, SpaceError};
use nicforge_units::{Bytes, Cycles};

use crate::nicmem::AdapterMemory;
use crate::packet_loop::{Burst, PacketLoop};
use crate::registry::Registry;
use crate::settings::Settings;

pub use error::BuildError;

/// A host's adapters, all alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adapters {
    /// How many there are.
    pub count: usize,
    /// NICs on each, which share its memory.
    pub ports: usize,
    /// Cores that take the packets of all its NICs.
    pub cores: usize,
}

/// What a host is laid out from.
pub(crate) struct HostPlan<'a> {
    /// What the scenario says.
    pub settings: &'a Settings,
    /// The adapters.
    pub adapters: Adapters,
    /// Packet buffers of each core beside those of rings and of its level of the pool.
    pub spare_buffers: usize,
    /// What the drivers' instructions cost.
    pub costs: DriverCosts,
    /// What a level of the pool costs.
    pub pool_work: Cycles,
    /// Bytes of descriptors that a NIC fetches by one read.
    pub descriptor_read: Bytes,
    /// Whether a core that plays a NIC fills physical rings itself.
    pub emulator_fills: bool,
    /// Whether cores may die, so that somebody has to know who holds which buffer.
    pub ledgers: bool,
    /// Decides what random choices draw.
    pub seed: u64,
}

/// What a core polls and sends by.
pub(crate) struct CoreParts<G: Ground> {
    /// Its queue on each NIC of its adapter.
    pub drivers: Vec<Box<dyn DriverHalf<G::Cpu>>>,
    /// Its transmit queue on each NIC of the host.
    pub transmit: Vec<TransmitDriver>,
    /// Its level of the pools.
    pub pool: PoolCache,
}

/// The software of a core.
pub(crate) struct Software<G: Ground> {
    /// What it runs.
    pub packets: PacketLoop<G::Cpu>,
    /// Where the application's own tables lie.
    pub tables: Range<u64>,
}

/// A host's parts, and where they lie.
pub(crate) struct LaidOut<'a, G: Ground> {
    plan: HostPlan<'a>,
    /// What was handed out.
    pub space: AddressSpace,
    /// The packet buffers in host memory.
    pub pool: Pool,
    /// Memory of each adapter.
    pub nicmem: Vec<AdapterMemory>,
    /// Areas of adapters' memory for hot items of a store.
    hot: Vec<Allocation>,
    /// An area of the first adapter's memory that copies use.
    pub copied: Option<Allocation>,
    /// Who holds which buffer of each pool, `pool` first; empty where no core may die.
    pub ledgers: Vec<Ledger>,
    /// Where a core plays NICs and fills physical rings: for each, its level of the pool.
    pub fills: Vec<PoolCache>,
    /// Tables of the application that all cores share.
    shared: SharedTables,
    tx_rings: Vec<Vec<TxRing>>,
    halves: Vec<Box<dyn ReceiveHalf<G::Dma>>>,
    /// Drivers of each core, by core.
    drivers: VecDeque<Vec<Box<dyn DriverHalf<G::Cpu>>>>,
}

impl Adapters {
    fn nics(self) -> usize {
        self.count * self.ports
    }

    fn all_cores(self) -> usize {
        self.count * self.cores
    }

    /// The first core of NIC `device`'s adapter.
    fn first_core(self, device: usize) -> usize {
        device / self.ports * self.cores
    }
}

impl<'a> HostPlan<'a> {
    /// Lays out all but the software of cores.
    ///
    /// # Errors
    /// What the interface cannot be built with, and memory that is not there.
    pub fn lay_out<G: KnownGround>(self) -> Result<LaidOut<'a, G>, BuildError> {
        let (settings, adapters) = (self.settings, self.adapters);
        let mut space = AddressSpace::default();
        let users = adapters.ports * adapters.cores;
        let mut nicmem: Vec<AdapterMemory> =
            (0..adapters.count).map(|number| AdapterMemory::reserve(&mut space, settings, number, users)).collect();
        let hot = self.hot_areas(&mut nicmem)?;
        let copied = nicmem.first_mut().map(|first| first.make_area(settings.copied_bytes())).transpose()?;
        let pool = self.packet_pool(&mut space);
        for nicmem in &mut nicmem {
            nicmem.make_pool(&mut space, settings, users)?;
        }
        let pools = std::iter::once(pool).chain(nicmem.iter().filter_map(AdapterMemory::pool));
        let pools = if self.ledgers { pools.collect() } else { Vec::new() };
        let ledgers = pools.into_iter().map(|pool| Ledger::new(&mut space, pool)).collect();
        let rings = (0..adapters.nics()).map(|_| self.tx_rings(&mut space));
        let tx_rings = rings.collect::<Result<Vec<_>, _>>()?;
        let mut laid = LaidOut {
            drivers: (0..adapters.all_cores()).map(|_| Vec::new()).collect(),
            plan: self,
            space,
            pool,
            nicmem,
            hot,
            copied: copied.flatten(),
            ledgers,
            fills: Vec::new(),
            shared: SharedTables::default(),
            tx_rings,
            halves: Vec::new(),
        };
        for device in 0..adapters.nics() {
            laid.add_interface(device)?;
        }
        Ok(laid)
    }

    fn registry(&self) -> &'a Registry {
        self.settings.catalogue().registry()
    }

    /// Areas of adapters' memory for hot items of a store, one for each NIC that has any.
    fn hot_areas(&self, nicmem: &mut [AdapterMemory]) -> Result<Vec<Allocation>, NicmemError> {
        let bytes = self.settings.hot_area_bytes(self.adapters.nics());
        let mut areas = Vec::new();
        for nicmem in nicmem {
            for _ in 0..self.adapters.ports {
                areas.extend(nicmem.make_area(bytes)?);
            }
        }
        Ok(areas)
    }

    /// As many buffers as a scenario says, else for all rings and cores.
    pub fn packet_buffers(&self) -> usize {
        let empty = self.settings.shape().map_or(0, |shape| self.adapters.nics() * shape.empty);
        if let Some(buffers) = self.settings.read::<PoolSize>().buffers(empty) {
            return buffers;
        }
        let in_rings = receive_buffers(self.settings) + self.settings.read::<TransmitOptions>().tx_entries;
        let in_caches = 2 * self.settings.read::<PoolOptions>().pool_cache;
        self.adapters.all_cores() * (self.adapters.ports * in_rings + in_caches + self.spare_buffers)
    }

    fn packet_pool(&self, space: &mut AddressSpace) -> Pool {
        let PoolOptions { pool_order, buffer_bytes, .. } = self.settings.read();
        Pool::with_room(space, self.packet_buffers(), buffer_bytes).in_order(pool_order)
    }

    /// A transmit ring of one NIC for every core.
    fn tx_rings(&self, space: &mut AddressSpace) -> Result<Vec<TxRing>, SpaceError> {
        let entries = self.settings.read::<TransmitOptions>().tx_entries;
        let inlines = self.settings.inlines_on_transmit();
        (0..self.adapters.all_cores()).map(|_| TxRing::with(space, entries, inlines)).collect()
    }

    /// What the interface of NIC `device` is built from.
    fn interface_plan(&self, device: usize, pool: Pool, nicmem: &AdapterMemory) -> Plan {
        let (settings, adapters) = (self.settings, self.adapters);
        let owner = |queue| Owner((adapters.first_core(device) + queue) as u16);
        let emulates = &settings.read::<EmulatedOptions>().emulates;
        Plan {
            device: device as u8,
            owners: (0..adapters.cores).map(owner).collect(),
            pool,
            descriptor_read: self.descriptor_read,
            first_position: 0,
            costs: self.costs,
            nicmem: nicmem.of_interface(),
            emulates: self.registry().interfaces.find(emulates).ok(),
            // The cores that play NICs come after all others.
            emulator: Owner((adapters.all_cores() + device) as u16),
            values: Values::clone(settings),
            seed: self.seed,
            emulator_fills: self.emulator_fills,
            kernel: None,
        }
    }
}

impl<G: Ground> LaidOut<'_, G> {
    /// Packet buffers of the host and of all adapters.
    pub fn pools(&self) -> impl Iterator<Item = Pool> {
        std::iter::once(self.pool).chain(self.nicmem.iter().filter_map(AdapterMemory::pool))
    }

    /// Tells `app` where its part of NICs' memory lies, and how long frames may be.
    pub fn tell(&self, app: &mut AppConfig) {
        app.hot.extend_from_slice(&self.hot);
        app.buffer_room = self.pool.room();
    }

    /// What the next core polls and sends by, in order. There must be one.
    pub fn next_core(&mut self) -> CoreParts<G> {
        let number = self.plan.adapters.all_cores() - self.drivers.len();
        let drivers = self.drivers.pop_front().unwrap_or_default();
        let transmit = (0..self.tx_rings.len()).map(|device| self.transmit_driver(device, number)).collect();
        let (settings, adapters, work) = (self.plan.settings, self.plan.adapters, self.plan.pool_work);
        let size = self.pool.level_size(settings.read::<PoolOptions>().pool_cache, adapters.all_cores());
        let cache = PoolCache::new(&mut self.space, self.pool, size, work);
        let nicmem = &self.nicmem[number / adapters.cores];
        let cache = nicmem.cache(&mut self.space, cache, settings, adapters.ports * adapters.cores, work);
        let pool = self.ledgers.iter().fold(cache, |cache, &ledger| cache.with_ledger(ledger, number));
        CoreParts { drivers, transmit, pool }
    }

    /// The NICs, with `chains` of stages. Nothing may be handed out any more.
    pub fn take_nics(&mut self, chains: Vec<Chain<G::Dma>>, spec: impl Fn(usize) -> NicSpec) -> Vec<Nic<G::Dma>> {
        let memory_end = Addr(self.space.end());
        let RssOptions { rss_key } = self.plan.settings.read();
        let mut nics = Vec::new();
        for ((half, rings), chain) in self.halves.drain(..).zip(&self.tx_rings).zip(chains) {
            let device = nics.len();
            let keys = self.nicmem[device / self.plan.adapters.ports].keys();
            // A NIC that cores play whole serves transmit rings itself.
            let mut half = half;
            let whole = emulated::played::<G>(&mut *half).and_then(|played| played.whole_mut());
            let rings: &[TxRing] = match whole {
                None => rings,
                Some(whole) => {
                    whole.serve(rings, memory_end);
                    whole.nic.set_rss_key(&rss_key);
                    &[]
                }
            };
            let nic = Nic::new(&spec(device), half, rings, memory_end);
            nics.push(nic.with_nicmem(keys).with_rss_key(&rss_key).with_stages(chain));
        }
        nics
    }

    /// Each of `nics` steers as `app` wants it, whose [software](Self::software) is laid out.
    ///
    /// # Errors
    /// What the application cannot be built with.
    pub fn steer(&self, app: &AppConfig, nics: &mut [Nic<G::Dma>]) -> Result<(), BuildError> {
        let (apps, adapters) = (&self.plan.registry().apps, self.plan.adapters);
        for (device, nic) in nics.iter_mut().enumerate() {
            let whole = emulated::played::<G>(&mut *nic.receive).and_then(|played| played.whole_mut());
            let steering = whole.map_or(&mut nic.steering, |whole| &mut whole.nic.steering);
            apps.steer(app, &self.shared, steering, adapters.first_core(device), adapters.all_cores())?;
        }
        Ok(())
    }

    fn transmit_driver(&mut self, device: usize, core: usize) -> TransmitDriver {
        let doorbell = Register { device: device as u8, index: registers::TRANSMIT + core as u32 };
        let ring = self.tx_rings[device][core];
        let mut transmit = TransmitDriver::new(&mut self.space, ring, doorbell, self.plan.costs);
        self.nicmem[device / self.plan.adapters.ports].register(&mut transmit);
        transmit
    }
}

impl<G: KnownGround> LaidOut<'_, G> {
    /// Both halves of the interface of NIC `device`.
    fn add_interface(&mut self, device: usize) -> Result<(), BuildError> {
        let adapters = self.plan.adapters;
        let plan = self.plan.interface_plan(device, self.pool, &self.nicmem[device / adapters.ports]);
        let entry = self.plan.registry().interfaces.find(&self.plan.settings.interface())?;
        let Halves::<G> { nic: mut half, drivers } = entry.build(&plan, &mut self.space)?.rings()?;
        if self.plan.emulator_fills {
            self.fills.extend(level_of_player::<G>(&mut self.space, &mut *half, &plan, self.ledgers.first()));
        }
        self.halves.push(half);
        let first = adapters.first_core(device);
        for (core, driver) in self.drivers.range_mut(first..).zip(drivers) {
            core.push(driver);
        }
        Ok(())
    }
}

impl<G: KnownGround + AppGround> LaidOut<'_, G> {
    /// The software of all cores; `app` is the application of each.
    ///
    /// # Errors
    /// What an application cannot be built with.
    pub fn software<'c>(
        &mut self,
        shared_by: &AppConfig,
        app: impl Fn(usize) -> &'c AppConfig,
    ) -> Result<Vec<Software<G>>, BuildError> {
        let (apps, cores) = (&self.plan.registry().apps, self.plan.adapters.all_cores());
        self.shared = apps.share(shared_by, &mut self.space)?;
        let burst = self.plan.settings.read::<Burst>().burst;
        let mut software = Vec::with_capacity(cores);
        for core in 0..cores {
            let CoreParts { drivers, transmit, pool } = self.next_core();
            let begin = self.space.end();
            let app = apps.build::<G>(app(core), AppPlace { core, cores }, &mut self.space, &self.shared)?;
            let packets = PacketLoop::new(drivers, transmit, pool, app, burst);
            software.push(Software { packets, tables: begin..self.space.end() });
        }
        Ok(software)
    }
}

/// Buffers that receive rings may hold for each core.
pub(crate) fn receive_buffers(settings: &Settings) -> usize {
    let buffers = settings.shape().map(|shape| shape.buffers).unwrap_or_default();
    buffers.receive + buffers.more_in_transmit * settings.read::<TransmitOptions>().tx_entries
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

#[cfg(test)]
mod tests {
    use super::*;

    fn emulated() -> Settings {
        Settings::default().with("interface", "emulated").with("cores", 8).with("nics", 2)
    }

    /// Those of the emulated rings, and the physical ones' by what they stand for.
    #[test]
    fn an_emulated_nic_has_buffers_for_its_physical_rings() {
        // Four Ax rings of 128, a Bx ring of 1024, and a physical ring of 512 for four.
        assert_eq!(receive_buffers(&emulated()), 128 + 1024 + 128);
        assert_eq!(receive_buffers(&emulated().with("rx_entries", 8192)), 1280);
        // Two Ax rings for four cores; sixteen, four for each.
        assert_eq!(receive_buffers(&emulated().with("ax_rings", 2)), 128 + 1024 + 64);
        assert_eq!(receive_buffers(&emulated().with("ax_rings", 16)), 512 + 1024 + 512);
        let of = |emulates: &str| receive_buffers(&emulated().with("emulates", emulates).with("sharing", 2));
        assert_eq!([of("priv_ring"), of("sh_ring")], [1024 + 1024, 1024 + 512]);
        // Private rings and a shared one for two cores, and the same once more.
        assert_eq!(of("sh_ring_dynamic"), 2 * 1024 + 1024 + 512);
    }
}
