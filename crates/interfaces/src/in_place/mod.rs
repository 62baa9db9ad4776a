//! One ring for both ways: the NIC writes what it received over the descriptor that it used, as
//! Intel's 82599 does (data sheet, chapter 7.1: read and write-back formats).
//!
//! ```text
//!   driver ── descriptor ─►┐                    ┌─ read in batches ──► NIC
//!                          ring, 32 bytes an entry
//!   driver ◄─ completion ──┘                    └◄─ one per frame ──── NIC
//! ```

mod driver;
mod layout;
mod nic;
mod options;
#[cfg(test)]
mod tests;

use nicforge_platform::{AddressSpace, Register};

pub use driver::{Driver, Entries, EntryDriver, InPlaceEntries};
pub use layout::Descriptor;
pub use nic::NicHalf;

use crate::options::RxRing;
use crate::priv_ring::layout::Ring;
use crate::{Built, Interface, InterfaceError, KnownGround, Plan};

/// Builds both halves for all queues of one NIC.
pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let RxRing { rx_entries } = plan.values.read();
    Plan::check_ring("rx_entries", rx_entries)?;
    let entries = rx_entries as u64;
    let mut queues = Vec::new();
    let mut drivers = Vec::new();
    for (queue, &owner) in plan.owners.iter().enumerate() {
        let base = space.control(entries * layout::ENTRY_BYTES, owner)?;
        let ring = Ring::at(base, entries, plan.first_position);
        let doorbell = Register { device: plan.device, index: queue as u32 };
        queues.push(nic::Queue::new(ring, plan.descriptor_read));
        drivers.push(Driver::new(space, ring, doorbell, plan.costs));
    }
    Ok((NicHalf::new(queues, plan.pool), drivers))
}

/// Interface `in_place`.
#[derive(Clone, Copy, Debug)]
pub struct InPlace;

impl Interface for InPlace {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}
