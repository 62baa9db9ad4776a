//! Machines whose NIC may sit in several places (integrated_nic, chapter 5): the numbers from
//! which caches, links and costs follow for each placement, clock and cache size.
//!
//! A machine file is of this kind when it has a section `[kernel]`. Caches and buses of such a
//! machine run at the cores' clock, so their latencies are in cycles.

mod read;

use nicforge_interfaces::sinic::Options;
use nicforge_nic::DriverCosts;
use nicforge_platform::sim::Hardware;
use nicforge_units::{BitRate, ByteRate, Bytes, Cycles, Frequency, Time};

pub(super) use read::IntegratedFile;

use crate::systems::attachment::Attachment;
use crate::systems::stack::KernelCosts;

/// A machine with places for its NICs.
#[derive(Clone, Debug, PartialEq)]
pub struct Integrated {
    /// Cores of a system.
    pub cores: usize,
    /// NICs of a system, at most.
    pub nics: usize,
    /// Clock, where a scenario does not say another.
    pub frequency: Frequency,
    /// How many independent misses overlap.
    pub mlp_independent: f64,
    /// How many misses of a copy overlap.
    pub mlp_streaming: f64,
    /// First-level data cache.
    pub l1: ClockedCache,
    /// Second-level cache; its size where a scenario does not say another.
    pub l2: ClockedCache,
    /// Memory and the buses on the die.
    pub memory: MemoryNumbers,
    /// Latencies of the bridges between buses, one way.
    pub bridges: Bridges,
    /// Off-chip links.
    pub pcie: Wire,
    /// The same.
    pub hypertransport: Wire,
    /// Every link.
    pub link: LinkNumbers,
    /// The NIC.
    pub nic: NicNumbers,
    /// What a SINIC is configured as.
    pub sinic: Options,
    /// What the kernel's instructions cost.
    pub kernel: KernelCosts,
    /// What the driver's instructions cost.
    pub driver: DriverCosts,
    /// Taking and giving a packet buffer.
    pub pool: Cycles,
    /// Asking the interrupt controller: the way to a chip beside the processor's.
    pub controller_bridges: u64,
    /// Where NICs may sit, by name.
    pub placements: Vec<(String, Placement)>,
}

/// A cache that runs at the cores' clock.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockedCache {
    /// Capacity.
    pub size: Bytes,
    /// Ways.
    pub ways: usize,
    /// Latency of a hit.
    pub hit: Cycles,
}

/// Memory and the buses on the die.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryNumbers {
    /// Latency with the controller on the die.
    pub on_chip: Time,
    /// Latency with the controller on another chip.
    pub off_chip: Time,
    /// Width of the bus between the second-level cache and the controller, per cycle.
    pub bytes_per_cycle: f64,
    /// Width of the bus between the caches, per cycle.
    pub cache_bytes_per_cycle: f64,
    /// How latency grows with load.
    pub queueing: f64,
}

/// Bridges between buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridges {
    /// Between the die and the chips around it.
    pub cpu_die: Time,
    /// In the chip set.
    pub chipset: Time,
    /// To an I/O bus.
    pub io: Time,
}

/// A link off the die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Rate per direction.
    pub rate: BitRate,
    /// Header and framing of one transaction.
    pub overhead: Bytes,
}

/// What all links have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkNumbers {
    /// Most payload of one transaction.
    pub transaction: Bytes,
    /// Read requests in flight.
    pub tags: usize,
    /// How far memory may fall behind posted writes.
    pub posted_slack: Time,
}

/// The NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicNumbers {
    /// The port's rate.
    pub port: BitRate,
    /// What a frame takes on the wire beside its bytes.
    pub wire_overhead: Bytes,
    /// Receive FIFO.
    pub rx_fifo: Bytes,
    /// Transmit FIFO.
    pub tx_fifo: Bytes,
    /// Interrupts come so long after the first event.
    pub interrupt_delay: Time,
    /// A chip beside the processor takes so long to answer a register access.
    pub response: Time,
    /// Descriptors of the receive list.
    pub rx_entries: usize,
    /// Descriptors of the transmit list.
    pub tx_entries: usize,
}

/// Where a NIC sits: what lies between it and the core, and where its data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Bridges of each kind between core and NIC.
    pub cpu_die_bridges: u64,
    /// The same.
    pub chipset_bridges: u64,
    /// The same.
    pub io_bridges: u64,
    /// PCI Express links on the way.
    pub pcie: u64,
    /// HyperTransport links on the way.
    pub hypertransport: u64,
    /// Whether the memory controller is off the die; then DMA does not cross to the die.
    pub off_chip_memory: bool,
    /// Whether registers are on the bus between the caches, not on that behind them.
    pub registers_at_cache: bool,
    /// Whether data goes by the bus between the caches.
    pub data_at_cache: bool,
    /// Lines of each DMA write that go to the second-level cache; the others go to memory.
    pub lines_to_cache: u64,
}

/// All lines of a DMA write.
pub const ALL_LINES: u64 = 1_000_000;

impl Integrated {
    /// The numbers of a placement.
    pub fn placement(&self, name: &str) -> Option<&Placement> {
        let found = self.placements.iter().find(|(known, _)| known == name);
        found.map(|(_, placement)| placement)
    }

    /// The hardware in the first placement, which a point has that does not name another.
    pub(super) fn plain(&self) -> Hardware {
        // A machine of this kind has at least one.
        let (_, placement) = &self.placements[0];
        Attachment::new(self, placement, self.frequency, self.l2.size).hardware
    }
}

/// A rate of `bytes` per cycle.
pub(crate) fn per_cycle(bytes: f64, clock: Frequency) -> ByteRate {
    ByteRate::from_gb_per_second(bytes * clock.as_hertz() as f64 / 1e9)
}

#[cfg(test)]
mod tests;
