//! What a bench is made of.

use nicforge_nic::{DriverCosts, KeyTable, Pool};
use nicforge_options::Values;
use nicforge_platform::Owner;
use nicforge_units::{Bytes, Time};

use super::frames::frame_len_max;
use crate::Plan;
use crate::nm_nfv::{self, Split};
use crate::rx_bisect::{self, AxChoice, Consumption};

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
        match interface {
            "nm_nfv" | "nm_nfv_minus" => (in_rings * self.nicmem_share) as u64,
            _ => 0,
        }
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
            rx_entries: self.rx_entries,
            sharing: self.sharing,
            list_batch: self.list_batch,
            first_position: self.first_position,
            pool,
            descriptor_read: Bytes(512),
            costs: DriverCosts::default(),
            bisect: self.bisect(),
            nicmem: nm_nfv::Options {
                split: self.split,
                rx_inline: self.rx_inline,
                pool: near,
                keys,
                ..nm_nfv::Options::default()
            },
            emulates: super::find(self.emulates).ok(),
            emulator: Owner(self.queues as u16),
            values: Values::default()
                .with("rx_entries", self.rx_entries)
                .with("sharing", self.sharing)
                .with("list_batch", self.list_batch),
            emulator_fills: false,
        }
    }

    /// Buffers that the pool of a bench for `interface` has.
    pub fn buffers(&self, interface: &str) -> usize {
        let in_rings = self.queues * self.rx_entries;
        let more = match interface {
            "sh_ring_dynamic" => in_rings,
            // Two for each frame, and enough to bring those on nicmem out.
            "split" | "nm_nfv" | "nm_nfv_minus" => 2 * in_rings + self.spare,
            // Two sets of rings, and as many physical ones.
            "emulated" if self.emulates == "sh_ring_dynamic" => 3 * in_rings,
            // One physical ring may stand for all.
            "emulated" => in_rings.next_power_of_two(),
            _ => 0,
        };
        in_rings + more + self.spare
    }

    /// Ax rings as large as private ones, one for each queue.
    pub fn bisect(&self) -> rx_bisect::Options {
        rx_bisect::Options {
            ax_rings: 0,
            links: Vec::new(),
            associations: Vec::new(),
            association_sets: 1,
            ax_entries: self.rx_entries,
            bx_entries: self.rx_entries * self.bx_per_ax,
            choice: AxChoice::Random,
            own_first: true,
            consumption: Consumption::Batched(Time::from_us(1)),
            seed: 1,
        }
    }
}
