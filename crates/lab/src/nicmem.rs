//! Which packet buffers lie in memory of a NIC, and who may name them; the same on both grounds.

use nicforge_interfaces::nm_nfv::{Options, Split};
use nicforge_nic::transmit::TransmitDriver;
use nicforge_nic::{Allocation, Application, KeyTable, Nicmem, NicmemError, Pool, PoolCache, PoolOrder, room_for};
use nicforge_platform::AddressSpace;
use nicforge_units::Cycles;

use crate::settings::Settings;

/// Interfaces that put a frame's headers and its payload into two buffers.
pub const SPLITTING: [&str; 3] = ["nm_nfv", "nm_nfv_minus", "split"];
/// Those of them that put payload into memory of the NIC.
pub const ON_NICMEM: [&str; 2] = ["nm_nfv", "nm_nfv_minus"];

/// Memory that one NIC gives to software, and the packet buffers on it.
pub struct NearMemory {
    nicmem: Nicmem,
    pool: Option<Pool>,
    /// What else it is used for: values of a key-value store's hot items, copies.
    areas: Vec<Allocation>,
}

impl Settings {
    /// Whether frames take two buffers.
    pub fn splits_frames(&self) -> bool {
        SPLITTING.contains(&self.interface.as_str())
    }

    /// Whether transmit descriptors hold headers.
    pub fn inlines_on_transmit(&self) -> bool {
        self.tx_inline || self.interface == "nm_nfv"
    }

    /// Queues of a NIC with `queues` whose payload goes to nicmem.
    fn nicmem_users(&self, queues: usize) -> usize {
        match ON_NICMEM.contains(&self.interface.as_str()) {
            true => self.nicmem_queues.unwrap_or(queues).min(queues),
            false => 0,
        }
    }

    /// Whether any queue's packets are there.
    pub(crate) fn has_packets_in_nicmem(&self) -> bool {
        self.nicmem_users(self.cores / self.nics) > 0
    }

    /// Memory of each of `nics` NICs for values of hot items.
    pub(crate) fn hot_area_bytes(&self, nics: usize) -> u64 {
        match self.app == "kvs" && self.kvs_hot_values == "nicmem" {
            true => self.kvs_hot_kib * 1024 / nics as u64,
            false => 0,
        }
    }

    /// Memory of the first NIC that a co-runner copies to or from.
    pub(crate) fn copied_bytes(&self) -> u64 {
        match self.copy.as_str() {
            "host_to_nicmem" | "nicmem_to_host" => self.copy_kib * 1024,
            _ => 0,
        }
    }

    /// Whether NICs with `queues` queues give memory to anybody.
    fn uses_nicmem(&self, queues: usize) -> bool {
        let others = self.hot_area_bytes(1) + self.copied_bytes();
        self.nicmem_users(queues) > 0 || others > 0
    }
}

/// Which buffers the level that cores share gives out.
pub(crate) fn pool_order(settings: &Settings) -> PoolOrder {
    PoolOrder::named(&settings.pool_order).unwrap_or_default()
}

impl NearMemory {
    /// Reserves what NIC `device` with `queues` queues gives. Before anything else takes from
    /// `space`.
    pub fn reserve(space: &mut AddressSpace, settings: &Settings, device: usize, queues: usize) -> NearMemory {
        let bytes = match settings.uses_nicmem(queues) {
            true => settings.nicmem_kib * 1024,
            false => 0,
        };
        NearMemory { nicmem: Nicmem::new(space, device as u8, bytes), pool: None, areas: Vec::new() }
    }

    /// The same for every NIC of a run in the simulation.
    pub fn reserve_all(space: &mut AddressSpace, settings: &Settings) -> Vec<NearMemory> {
        let queues = settings.cores / settings.nics;
        (0..settings.nics).map(|device| NearMemory::reserve(space, settings, device, queues)).collect()
    }

    /// Takes `bytes` for something else than packet buffers; nothing where that is 0. Before
    /// [`make_pool`](Self::make_pool), which takes what is left.
    ///
    /// # Errors
    /// There is not so much.
    pub fn make_area(&mut self, bytes: u64) -> Result<Option<Allocation>, NicmemError> {
        if bytes == 0 {
            return Ok(None);
        }
        let memory = self.nicmem.alloc_nicmem(Application::default(), bytes)?;
        self.areas.push(memory);
        Ok(Some(memory))
    }

    /// Makes packet buffers: as many as rings and cores of `queues` queues can hold, or as there
    /// is room for.
    ///
    /// # Errors
    /// The NIC's memory is held by others already.
    pub fn make_pool(
        &mut self,
        space: &mut AddressSpace,
        settings: &Settings,
        queues: usize,
    ) -> Result<(), NicmemError> {
        let each = settings.rx_entries + settings.tx_entries + 2 * settings.pool_cache + 2 * settings.burst;
        let wanted = (settings.nicmem_users(queues) * each) as u64;
        let room = room_for(settings.buffer_bytes as u64);
        let buffers = wanted.min(self.nicmem.available() / room);
        if buffers > 0 {
            let bytes = buffers * room;
            let memory = self.nicmem.alloc_nicmem(Application::default(), bytes)?;
            let pool = Pool::over_nicmem(space, memory, room);
            self.pool = Some(pool.in_order(pool_order(settings)));
        }
        Ok(())
    }

    /// The buffers, if there are any.
    pub fn pool(&self) -> Option<Pool> {
        self.pool
    }

    /// What the NIC checks descriptors by.
    pub fn keys(&self) -> KeyTable {
        self.nicmem.keys()
    }

    /// What the interface is told.
    pub fn options(&self, settings: &Settings) -> Options {
        Options {
            split: match settings.split_at {
                0 => Split::Headers,
                bytes => Split::At(bytes),
            },
            rx_inline: settings.rx_inline,
            pool: self.pool,
            keys: self.keys(),
            application: Application::default(),
            queues: settings.nicmem_queues,
        }
    }

    /// A core's level of the pools: `cache`, and one of the buffers here, which at most half of the
    /// cores of `queues` queues can empty.
    pub fn cache(
        &self,
        space: &mut AddressSpace,
        cache: PoolCache,
        (settings, queues): (&Settings, usize),
        work: Cycles,
    ) -> PoolCache {
        let Some(pool) = self.pool else {
            return cache;
        };
        let users = settings.nicmem_users(queues).max(1);
        let size = settings.pool_cache.min(pool.count() / (2 * users));
        cache.with_nicmem(PoolCache::new(space, pool, size, work))
    }

    /// Lets `transmit` send what lies here.
    pub fn register(&self, transmit: &mut TransmitDriver) {
        let of_packets = self.pool.and_then(|pool| pool.nicmem());
        for memory in of_packets.into_iter().chain(self.areas.iter().copied()) {
            transmit.register_memory(memory);
        }
    }
}
