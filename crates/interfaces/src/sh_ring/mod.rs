//! Shared receive rings (shRing, chapter 5): the cores of a group share one ring of empty
//! buffers, and each learns by a completion ring of its own which packets are for it.
//!
//! ```text
//!   drivers of N cores ── descriptors, one doorbell ──► shared ring ── read in runs ──► NIC
//!   each driver ◄─ its completion ring ◄────────── one entry per frame, steered by RSS ── NIC
//! ```
//!
//! Three variants, by how descriptors get back to the NIC: [`mod@array`], [`list`] and
//! [`batched_list`].

mod driver;
mod feed;
mod layout;
mod nic;
mod options;
mod repost;
#[cfg(test)]
mod tests;

use nicforge_nic::completion_ring;
use nicforge_platform::{AddressSpace, Register};

pub use driver::Driver;
pub use layout::{BatchDescriptor, Descriptor};
pub use nic::NicHalf;
pub use options::{BatchedListOptions, SharedRing};

use crate::options::RxRing;
use crate::{Built, Interface, InterfaceError, KnownGround, Plan};
use layout::{Order, Ring, SLOTS_MAX};

/// RxArr: descriptors are used in the order of the ring; a bitmap says which are ready again.
pub mod array {
    use super::*;

    /// Builds both halves for all queues of one NIC.
    pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
        build_from(plan, space, 0)
    }

    /// As [`build`], with receive registers from `first_register` on.
    pub(crate) fn build_from(
        plan: &Plan,
        space: &mut AddressSpace,
        first_register: u32,
    ) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
        super::build(plan, space, Order::Array, 1, first_register)
    }
}

/// RxList: each descriptor names the next, so that cores give them back in any order.
pub mod list {
    use super::*;

    /// Builds both halves for all queues of one NIC.
    pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
        super::build(plan, space, Order::List, 1, 0)
    }
}

/// Batched RxList: a descriptor takes several packets of one core.
pub mod batched_list {
    use super::*;

    /// Builds both halves for all queues of one NIC.
    pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
        let BatchedListOptions { list_batch, .. } = plan.values.read();
        if ![2, SLOTS_MAX].contains(&list_batch) {
            return Err(InterfaceError::ListBatch(list_batch));
        }
        super::build(plan, space, Order::List, list_batch as u64, 0)
    }

    /// Packets of a descriptor: `most`, but no more than leaves each of the `cores` of a ring of `entries`
    /// a descriptor to fill and another to go on with.
    pub fn batch(entries: u64, cores: u64, most: u64) -> u64 {
        let mut batch = most;
        while batch > 1 && entries / batch < 2 * cores {
            batch /= 2;
        }
        batch
    }
}

/// Builds both halves; `slots` is how many buffers a descriptor has at most, `first_register` the
/// register of the first ring.
fn build(
    plan: &Plan,
    space: &mut AddressSpace,
    order: Order,
    slots: u64,
    first_register: u32,
) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let SharedRing { ring: RxRing { rx_entries }, sharing } = plan.values.read();
    Plan::check_ring("rx_entries", rx_entries)?;
    if sharing == 0 {
        return Err(InterfaceError::NoSharing);
    }
    let mut queues = Vec::new();
    let mut feeds = Vec::new();
    let mut drivers = Vec::new();
    for (number, owners) in plan.owners.chunks(sharing).enumerate() {
        let cores = owners.len() as u64;
        let entries = rx_entries as u64;
        let slots = batched_list::batch(entries, cores, slots);
        let ring = Ring::new(space, order, entries, slots, plan.first_position).with_room(plan.pool.room());
        let doorbell = Register { device: plan.device, index: first_register + number as u32 };
        for (rank, &owner) in (0..).zip(owners) {
            // One core may get all that the ring holds.
            let (writer, reader) = completion_ring(space, rx_entries, owner)?;
            queues.push(nic::Queue::new(number, writer));
            let driver = Driver::new(ring, reader, doorbell, rank, cores, plan.costs);
            drivers.push(driver);
        }
        feeds.push(feed::Feed::new(ring, plan.descriptor_read.0 as usize));
    }
    Ok((NicHalf::new(queues, feeds, plan.pool), drivers))
}

/// Interface `sh_ring`.
#[derive(Clone, Copy, Debug)]
pub struct ShRing;

impl Interface for ShRing {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = array::build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}

/// Interface `sh_ring_list`.
#[derive(Clone, Copy, Debug)]
pub struct ShRingList;

impl Interface for ShRingList {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = list::build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}

/// Interface `sh_ring_batched_list`.
#[derive(Clone, Copy, Debug)]
pub struct ShRingBatchedList;

impl Interface for ShRingBatchedList {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = batched_list::build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}
