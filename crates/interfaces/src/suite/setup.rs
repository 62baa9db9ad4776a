//! What a bench is made of.

use nicforge_nic::{DriverCosts, KeyTable, Pool};
use nicforge_options::Values;
use nicforge_platform::Owner;
use nicforge_units::Bytes;

use super::frames::frame_len_max;
use crate::describe::{Queues, Shape};
use crate::nm_nfv::Split;
use crate::rx_bisect::Notices;
use crate::{NicMemory, Plan};

/// What a bench is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Queues, each with a core.
    pub queues: usize,
    /// Entries of each receive ring.
    pub rx_entries: usize,
    /// Queues that share a ring, where the interface shares rings.
    pub sharing: usize,
    /// Entries of a Bx ring for each of an Ax ring's, where the interface has them. With one, who has used up
    /// its own buffers has a full Bx ring, and borrows none.
    pub bx_per_ax: usize,
    /// Packets of a descriptor of the batched list.
    pub list_batch: usize,
    /// Buffers beyond those that fill the rings.
    pub spare: usize,
    /// Bytes of frame that a buffer holds.
    pub room: usize,
    /// Buffers that each core's level of the pool keeps.
    pub cache: usize,
    /// Where ring positions begin.
    pub first_position: u64,
    /// What interface `emulated` emulates.
    pub emulates: &'static str,
    /// Buffers on nicmem for each entry of the rings, where the interface uses them: one half by
    /// default, so that both rings of a queue are in use.
    pub nicmem_share: f64,
    /// Where frames are split, and whether headers come in completions.
    pub split: Split,
    pub rx_inline: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            queues: 2,
            rx_entries: 64,
            sharing: 8,
            bx_per_ax: 1,
            list_batch: 4,
            spare: 128,
            room: frame_len_max(),
            cache: 16,
            first_position: 0,
            emulates: "rx_bisect",
            nicmem_share: 0.5,
            split: Split::Headers,
            rx_inline: false,
        }
    }
}

impl Setup {
    /// The name in the registry of interface `interface`, `emulated` for `emulated/x`, and this setup for it.
    pub fn around(&self, interface: &'static str) -> (&'static str, Setup) {
        let (name, emulates) = match interface.split_once('/') {
            Some((name, emulates)) => (name, emulates),
            None => (interface, self.emulates),
        };
        let setup = Setup { emulates, ..self.clone() };
        (name, setup)
    }

    /// Buffers on nicmem that a bench for `interface` has.
    pub fn near_buffers(&self, interface: &str) -> u64 {
        let in_rings = (self.queues * self.rx_entries) as f64;
        let uses = self.shape(interface).split.is_some_and(|split| split.on_nicmem > 0);
        if uses { (in_rings * self.nicmem_share) as u64 } else { 0 }
    }

    /// The rings of `interface`.
    fn shape(&self, interface: &str) -> Shape {
        let (values, queues) = (self.values(), Queues { nics: 1, each: self.queues, inner: None });
        let shape = |name: &str, inner: Option<&Shape>| {
            let entry = super::find(name).unwrap();
            entry.description.shape(&values, &Queues { inner, ..queues })
        };
        let inner = shape(self.emulates, None);
        shape(interface, Some(&inner))
    }

    /// What a scenario would say.
    fn values(&self) -> Values {
        let split_at = match self.split {
            Split::Headers => 0,
            Split::At(bytes) => bytes,
        };
        Values::default()
            .with("rx_entries", self.rx_entries)
            .with("sharing", self.sharing)
            .with("list_batch", self.list_batch)
            .with("emulates", self.emulates)
            .with("split_at", split_at)
            .with("rx_inline", self.rx_inline)
            // Ax rings as large as private ones, one for each queue.
            .with("ax_entries", self.rx_entries)
            .with("bx_entries", self.rx_entries * self.bx_per_ax)
            .with("consumption", Notices::Batched)
            .with("consumption_timeout_us", 1.0)
    }

    /// The plan of an interface that takes its buffers from `pool`.
    pub fn plan(&self, pool: Pool) -> Plan {
        self.plan_with(pool, None, KeyTable::default())
    }

    /// The same with those on nicmem from `near`.
    pub fn plan_with(&self, pool: Pool, near: Option<Pool>, keys: KeyTable) -> Plan {
        Plan {
            device: 0,
            owners: (0..self.queues).map(|queue| Owner(queue as u16)).collect(),
            first_position: self.first_position,
            pool,
            descriptor_read: Bytes(512),
            costs: DriverCosts::default(),
            nicmem: NicMemory { pool: near, keys, ..NicMemory::default() },
            emulates: super::find(self.emulates).ok(),
            emulator: Owner(self.queues as u16),
            values: self.values(),
            seed: 1,
            emulator_fills: false,
            kernel: None,
        }
    }

    /// Buffers that the pool of a bench for `interface` has.
    pub fn buffers(&self, interface: &str) -> usize {
        let shape = self.shape(interface);
        // Enough to bring those on nicmem out.
        let more = if shape.split.is_some() { self.queues * self.rx_entries + self.spare } else { 0 };
        self.queues * shape.buffers.receive + more + self.spare
    }
}
