//! Private receive rings: each core has a ring of empty buffers and a completion ring of its
//! own, as today's NICs do (rxBisect, section 2; shRing, section 4.1).
//!
//! ```text
//!   driver ── descriptors ──► ring in host memory ── read in batches ──► NIC
//!   driver ── doorbell (tail) ─────────────────────────────────────────► NIC
//!   driver ◄─ completion ring (control memory) ◄── one entry per frame ── NIC
//! ```

mod driver;
pub(crate) mod fetch;
pub(crate) mod layout;
pub(crate) mod nic;
mod options;
pub(crate) mod supply;
#[cfg(test)]
mod tests;

use nicforge_nic::completion_ring;
use nicforge_platform::{AddressSpace, Register};

pub use driver::Driver;
pub use fetch::Fetcher;
pub use layout::{Ring, RxDescriptor};
pub use nic::NicHalf;

use crate::options::RxRing;
use crate::{Built, Interface, InterfaceError, KnownGround, Plan};

/// Builds both halves for all queues of one NIC.
pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let RxRing { rx_entries } = plan.values.read();
    Plan::check_ring("rx_entries", rx_entries)?;
    let mut queues = Vec::new();
    let mut drivers = Vec::new();
    for (queue, &owner) in plan.owners.iter().enumerate() {
        let ring = Ring::new(space, rx_entries as u64, plan.first_position).with_room(plan.pool.room());
        let (writer, reader) = completion_ring(space, rx_entries, owner)?;
        queues.push(nic::Queue::new(ring, plan.descriptor_read, writer));
        let doorbell = Register { device: plan.device, index: queue as u32 };
        drivers.push(Driver::new(space, ring, reader, doorbell, plan.costs));
    }
    let half = NicHalf::new(queues, plan.pool);
    Ok((half, drivers))
}

/// Interface `priv_ring`.
#[derive(Clone, Copy, Debug)]
pub struct PrivRing;

impl Interface for PrivRing {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}
