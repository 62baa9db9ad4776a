//! rxBisect: rings that allocate buffers and rings that receive packets, apart from each other
//! (rxBisect paper, section 4).
//!
//! ```text
//!   driver ── empty buffers ──► Ax ring ── read in batches ──► NIC      own Ax first, then any
//!   driver ── Ax tail, Bx head (doorbells) ──────────────────► NIC      that is associated
//!   driver ◄─ Bx ring ◄── packet, and which Ax entry held its buffer ── NIC
//!   other driver ◄─ its Bx ring ◄── consumption notice, if the Ax ring is its ── NIC
//! ```
//!
//! An own ring comes first also where its next descriptor is on its way; with `own_first` off, only where the NIC has
//! it at hand, so that no frame waits for one while another ring has one here (README.md).
//!
//! | file | what it says |
//! | --- | --- |
//! | layout.rs | what lies in memory, registers |
//! | topology.rs | which rings there are and how they belong together; what is refused |
//! | policy.rs | which other Ax ring lends a buffer |
//! | sizing.rs | the paper's advice on sizes, as warnings |
//! | nic.rs, driver.rs | the two halves |

mod driver;
mod groups;
mod layout;
mod nic;
mod options;
mod policy;
mod sizing;
#[cfg(test)]
mod tests;
mod topology;

use nicforge_nic::completion_ring;
use nicforge_platform::{AddressSpace, Register};
use nicforge_units::Time;

pub use driver::Driver;
pub use groups::RingGroups;
pub use nic::{BX_FULL, NicHalf};
pub use options::{AxOwn, Notices, RxBisectOptions};
pub use policy::AxChoice;
pub use sizing::{Sizing, burst_warning, sizing_warnings};
pub use topology::{AssociationSet, AxRing, BxRing, MemoryDomain, Topology, TopologyError};

use crate::priv_ring::fetch::Fetcher;
use crate::priv_ring::layout::Ring;
use crate::{Built, Interface, InterfaceError, KnownGround, Plan};

/// When the NIC writes a Bx entry that tells of a consumed buffer and of no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumption {
    /// At once, in parallel to the packet's own entry.
    Parallel,
    /// With the next packet's entry for the same Bx ring, or this long after it was due (paper,
    /// section 4.4: adjacent entries go by one transaction).
    Batched(Time),
}

/// What rxBisect has besides what all interfaces have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Allocation rings; 0: as many as `links`, or where these are not said either, one for each queue.
    pub ax_rings: usize,
    /// The Bx ring that each allocation ring is linked to; empty: those of queues at even distances.
    pub links: Vec<usize>,
    /// The allocation rings that each Bx ring is associated with; empty: those of its set.
    pub associations: Vec<Vec<usize>>,
    /// Entries of each allocation ring.
    pub ax_entries: usize,
    /// Entries of each reception ring.
    pub bx_entries: usize,
    /// Disjoint sets into which queues are divided: each has its own Ax rings.
    pub association_sets: usize,
    /// Which Ax ring lends a buffer when a core's own has none.
    pub choice: AxChoice,
    /// Whether a packet waits for an own descriptor on its way rather than take another's at hand.
    pub own_first: bool,
    /// When consumption notices are written.
    pub consumption: Consumption,
    /// Decides what the random choice draws.
    pub seed: u64,
}

impl Options {
    /// Allocation rings of a NIC with `queues` queues.
    pub fn rings(&self, queues: usize) -> usize {
        match (self.ax_rings, self.links.len()) {
            (0, 0) => queues,
            (0, linked) => linked,
            (rings, _) => rings,
        }
    }
}

/// Builds both halves for all queues of one NIC: a Bx ring for each, and Ax rings as the plan says.
pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let options = plan.values.read::<RxBisectOptions>().to_build(plan.seed);
    let topology = Topology::of(plan.owners.len(), &options);
    build_with(plan, &topology, &options, space)
}

/// Builds both halves with rings as `topology` says; its sizes count, not those of `options`.
/// There is a driver for each Bx ring, which keeps all Ax rings filled that are linked to it.
pub fn build_with(
    plan: &Plan,
    topology: &Topology,
    options: &Options,
    space: &mut AddressSpace,
) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let linked = topology.check(plan.owners.len())?;
    let first = plan.first_position;
    let register = |index: usize| Register { device: plan.device, index: index as u32 };
    let mut fetchers = Vec::new();
    let mut filled_by: Vec<Vec<driver::Ax>> = vec![Vec::new(); topology.bx.len()];
    for (number, ax) in topology.ax.iter().enumerate() {
        Plan::check_ring("ax_entries", ax.entries)?;
        let ring = Ring::new(space, ax.entries as u64, first).with_room(plan.pool.room());
        fetchers.push((Fetcher::new(ring, plan.descriptor_read), linked[number]));
        filled_by[linked[number]].push(driver::Ax::new(number as u16, ring, register(number)));
    }
    let mut receivers = Vec::new();
    let mut drivers = Vec::new();
    for (number, (bx, filled)) in topology.bx.iter().zip(filled_by).enumerate() {
        Plan::check_ring("bx_entries", bx.entries)?;
        let (writer, reader) = completion_ring(space, bx.entries, plan.owners[number])?;
        let doorbell = register(topology.ax.len() + number);
        drivers.push(Driver::new(filled, reader, doorbell, first, plan.costs));
        let batch = plan.descriptor_read;
        receivers.push(nic::Bx::new(writer, number, bx, first, &linked, batch));
    }
    let half = NicHalf::new(fetchers, receivers, plan.pool, options);
    Ok((half, drivers))
}

/// Interface `rx_bisect`.
#[derive(Clone, Copy, Debug)]
pub struct RxBisect;

impl Interface for RxBisect {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}
