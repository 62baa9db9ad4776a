//! The conventional NIC of integrated_nic (sections 2.3, 3.2, 3.3 and 6.1.1): lists of
//! descriptors in host memory, scatter-gather DMA, interrupts held back by a timer, status by
//! register reads.
//!
//! ```text
//!   driver ── descriptors ─► list in host memory ── one at a time ──► NIC
//!   driver ── command (register write) ─────────────────────────────► NIC
//!   driver ◄─ status written back ◄─── data ◄── FIFO ◄─────────────── NIC
//!   driver ◄─ interrupt, 10 us after the first event ◄─────────────── NIC
//!   driver ── status (register read) ───────────────────────────────► NIC
//! ```
//!
//! It is a National DP83820 as M5 models it (section 3.2, figure 3.2; M5's `dev/ns_gige.cc`): each direction has a state
//! machine that reads a descriptor, moves a packet's data and writes the status, strictly one after the other, and waits
//! until each is complete: a write, too, until memory has answered. Both have one way to memory, which carries one
//! transfer at a time; where both wait for it, they take turns. A machine that finds a descriptor that is not given stops,
//! says so by an event, and goes on by a command.

mod driver;
mod interrupts;
mod layout;
mod nic;
#[cfg(test)]
mod tests;

use nicforge_platform::{Addr, AddressSpace, Owner};

pub use driver::Driver;
pub use layout::{Descriptor, Status, command, events, registers};
pub use nic::Nic;

use super::{KernelPlan, SharedLock};
use crate::describe::{Describe, ONLY_KERNELS, Queues, Shape, Software};
use crate::priv_ring::layout::Ring;
use crate::{Built, Interface, InterfaceError, KnownGround, Plan};
use layout::DESCRIPTOR_BYTES;

/// Builds both halves.
///
/// # Errors
/// When the lists have no valid size or find no room.
pub fn build(plan: &KernelPlan, space: &mut AddressSpace) -> Result<(Nic, Driver), InterfaceError> {
    Plan::check_ring("rx_entries", plan.rx_entries)?;
    Plan::check_ring("tx_entries", plan.tx_entries)?;
    // The NIC writes descriptors back, so the lists lie where it may publish. Nobody sleeps on
    // them: interrupts wake.
    let mut ring = |entries: usize| -> Result<Ring<Descriptor>, InterfaceError> {
        let base: Addr = space.control(entries as u64 * DESCRIPTOR_BYTES, Owner::NOBODY)?;
        Ok(Ring::at(base, entries as u64, 0))
    };
    let (rx, tx) = (ring(plan.rx_entries)?, ring(plan.tx_entries)?);
    let lock = SharedLock::new(space, plan.cores);
    Ok((Nic::new(plan, rx, tx), Driver::new(plan, rx, tx, lock)))
}

/// Interface `conventional`.
#[derive(Clone, Copy, Debug)]
pub struct Conventional;

impl Describe for Conventional {
    const NAME: &'static str = "conventional";
    const ABOUT: &'static str = "descriptor lists, scatter-gather DMA, interrupts held back by a timer";
    const PLAYED: Result<(), &'static str> = ONLY_KERNELS;
    const SOFTWARE: Software = Software::Kernel;
    type Options = ();

    fn shape(_options: &(), _queues: &Queues<'_>) -> Shape {
        Shape::without_rings()
    }
}

impl Interface for Conventional {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, driver) = build(plan.kernel()?, space)?;
        Ok(Built::whole(nic, driver))
    }
}
