//! What a bench is made of.

use nicforge_nic::{DriverCosts, Pool};
use nicforge_platform::Owner;
use nicforge_units::{Bytes, Time};

use crate::Plan;
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
    /// Buffers beyond those that fill the rings.
    pub spare: usize,
    /// Buffers that each core's level of the pool keeps.
    pub cache: usize,
    /// Where ring positions begin.
    pub first_position: u64,
    /// What interface `emulated` emulates.
    pub emulates: &'static str,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            queues: 2,
            rx_entries: 64,
            sharing: 8,
            spare: 128,
            cache: 16,
            first_position: 0,
            emulates: "rx_bisect",
        }
    }
}

impl Setup {
    /// The plan of an interface that takes its buffers from `pool`.
    pub fn plan(&self, pool: Pool) -> Plan {
        Plan {
            device: 0,
            owners: (0..self.queues).map(|queue| Owner(queue as u16)).collect(),
            rx_entries: self.rx_entries,
            sharing: self.sharing,
            first_position: self.first_position,
            pool,
            descriptor_read: Bytes(512),
            costs: DriverCosts::default(),
            bisect: self.bisect(),
            emulates: self.emulates.into(),
            emulator: Owner(self.queues as u16),
        }
    }

    /// Buffers that the pool of a bench for `interface` has.
    pub fn buffers(&self, interface: &str) -> usize {
        let in_rings = self.queues * self.rx_entries;
        let more = match interface {
            "sh_ring_dynamic" => in_rings,
            // One physical ring may stand for all.
            "emulated" => in_rings.next_power_of_two(),
            _ => 0,
        };
        in_rings + more + self.spare
    }

    /// Both kinds of rings as large as private ones.
    fn bisect(&self) -> rx_bisect::Options {
        rx_bisect::Options {
            ax_entries: self.rx_entries,
            bx_entries: self.rx_entries,
            choice: AxChoice::Random,
            consumption: Consumption::Batched(Time::from_us(1)),
            seed: 1,
        }
    }
}
