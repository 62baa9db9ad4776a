//! Dynamic shRing (shRing, section 5.1.5): private rings and a shared ring side by side, of which
//! steering uses one set at a time, as a heuristic on a core of its own decides.
//!
//! ```text
//!               ┌─ table 0 ─► private set: a ring and a completion ring per core ──┐
//!  NIC ─ RSS ───┤                                                                  ├─► driver: drains
//!     ▲         └─ table 1 ─► shared set: a ring for all, completion rings ────────┘   one, then polls
//!     └─ steering register ◄── Control: throughput, memory, times between polls        the other
//! ```
//!
//! Both sets are those of the interfaces [`priv_ring`] and
//! [`sh_ring`].

mod control;
mod driver;
mod layout;
mod nic;
mod options;
#[cfg(test)]
mod tests;

use nicforge_platform::AddressSpace;

pub use control::{Control, Heuristic, Observation, Reading};
pub use driver::Driver;
pub use layout::{PRIVATE, SHARED};
pub use nic::NicHalf;
pub use options::DynamicOptions;

use crate::{Built, Interface, InterfaceError, KnownGround, Plan, priv_ring, sh_ring};

/// Builds both halves for all queues of one NIC.
pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let (private_nic, private) = priv_ring::build(plan, space)?;
    let first_register = plan.owners.len() as u32;
    let (shared_nic, shared) = sh_ring::array::build_from(plan, space, first_register)?;
    let both = private.into_iter().zip(shared);
    let drivers = both.map(|(private, shared)| Driver::new(private, shared));
    Ok((NicHalf::new(private_nic, shared_nic), drivers.collect()))
}

/// Interface `sh_ring_dynamic`.
#[derive(Clone, Copy, Debug)]
pub struct ShRingDynamic;

impl Interface for ShRingDynamic {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}
