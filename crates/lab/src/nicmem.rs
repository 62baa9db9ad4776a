//! Which packet buffers lie in memory of a NIC, and who may name them; the same on both grounds.

use nicforge_interfaces::NicMemory;
use nicforge_interfaces::describe::SplitShape;
use nicforge_interfaces::options::RxRing;
use nicforge_nic::transmit::TransmitDriver;
use nicforge_nic::{Allocation, Application, KeyTable, Nicmem, NicmemError, Pool, PoolCache, room_for};
use nicforge_nic::{NicmemOptions, PoolOptions, TransmitOptions};
use nicforge_platform::AddressSpace;
use nicforge_units::Cycles;

use crate::packet_loop::Burst;
use crate::settings::Settings;

/// Memory that one NIC gives to software, and the packet buffers on it.
pub struct AdapterMemory {
    nicmem: Nicmem,
    pool: Option<Pool>,
    /// What else it is used for: values of a key-value store's hot items, copies.
    areas: Vec<Allocation>,
}

impl Settings {
    /// How frames are cut in two, where they are.
    pub fn split(&self) -> Option<SplitShape> {
        self.shape()?.split
    }

    /// Whether transmit descriptors hold headers.
    pub fn inlines_on_transmit(&self) -> bool {
        self.read::<TransmitOptions>().tx_inline || self.split().is_some_and(|split| split.inlines)
    }

    /// Queues of a NIC with `queues` whose payload goes to nicmem.
    fn nicmem_users(&self, queues: usize) -> usize {
        let split = self.shape_of(queues).and_then(|shape| shape.split);
        split.map_or(0, |split| split.on_nicmem)
    }

    /// Whether any queue's packets are there.
    pub(crate) fn has_packets_in_nicmem(&self) -> bool {
        self.nicmem_users(self.queues()) > 0
    }

    /// Whether NICs with `queues` queues give memory to anybody.
    fn uses_nicmem(&self, queues: usize) -> bool {
        let others = self.hot_area_bytes(1) + self.copied_bytes();
        self.nicmem_users(queues) > 0 || others > 0
    }
}

impl AdapterMemory {
    /// Reserves what NIC `device` with `queues` queues gives. Before anything else takes from
    /// `space`.
    pub fn reserve(space: &mut AddressSpace, settings: &Settings, device: usize, queues: usize) -> AdapterMemory {
        let gives = settings.uses_nicmem(queues);
        let bytes = if gives { settings.read::<NicmemOptions>().nicmem_kib * 1024 } else { 0 };
        AdapterMemory { nicmem: Nicmem::new(space, device as u8, bytes), pool: None, areas: Vec::new() }
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
        let PoolOptions { pool_cache, pool_order, buffer_bytes } = settings.read();
        let entries = settings.read::<RxRing>().rx_entries + settings.read::<TransmitOptions>().tx_entries;
        let each = entries + 2 * pool_cache + 2 * settings.read::<Burst>().burst;
        let wanted = (settings.nicmem_users(queues) * each) as u64;
        let room = room_for(buffer_bytes as u64);
        let buffers = wanted.min(self.nicmem.available() / room);
        if buffers > 0 {
            let bytes = buffers * room;
            let memory = self.nicmem.alloc_nicmem(Application::default(), bytes)?;
            let pool = Pool::over_nicmem(space, memory, room);
            self.pool = Some(pool.in_order(pool_order));
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

    /// What an interface needs to know of it.
    pub fn of_interface(&self) -> NicMemory {
        NicMemory { pool: self.pool, keys: self.keys(), application: Application::default() }
    }

    /// A core's level of the pools: `cache`, and one of the buffers here.
    pub fn cache(
        &self,
        space: &mut AddressSpace,
        cache: PoolCache,
        settings: &Settings,
        queues: usize,
        work: Cycles,
    ) -> PoolCache {
        let Some(pool) = self.pool else {
            return cache;
        };
        let users = settings.nicmem_users(queues).max(1);
        let size = pool.level_size(settings.read::<PoolOptions>().pool_cache, users);
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
