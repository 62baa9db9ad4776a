//! Header and payload in two buffers, the payload in memory of the NIC: nmNFV (nicmem, sections
//! 2.2.1 and 2.2.2).
//!
//! ```text
//!                  ┌─ headers ══► host memory, or the completion ══► driver ─► application
//!   frame ─► split ┤                                                              │ headers
//!                  └─ payload ─► nicmem ······ never leaves the NIC ······► transmit engine ─► wire
//!                          └──► host memory, when nicmem is short (secondary ring)
//! ```
//!
//! The variants that the paper compares differ in where payload lies and in whether transmit
//! descriptors hold headers:
//!
//! | name | payload | headers in the transmit descriptor |
//! | --- | --- | --- |
//! | `split` | host memory | no |
//! | `nm_nfv_minus` | nicmem | no |
//! | `nm_nfv` | nicmem | yes (transmit rings belong to all interfaces: nic/src/transmit) |
//!
//! Headers in receive completions ([`Options::rx_inline`]) go with each of them.

mod driver;
mod layout;
mod nic;
mod options;
#[cfg(test)]
mod tests;

use nicforge_nic::{Application, KeyTable, Pool, inlining_completion_ring};
use nicforge_platform::{AddressSpace, Register};

pub use driver::Driver;
pub use layout::Buffer;
pub use nic::NicHalf;
pub use options::{NmNfvOptions, SplitOptions};

use crate::options::RxRing;
use crate::{Built, Interface, InterfaceError, KnownGround, NicMemory, Plan};
use driver::Side;
use layout::{PRIMARY, SECONDARY};

/// Where a frame is cut in two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// Where the headers end that the NIC has parsed.
    #[default]
    Headers,
    /// At a fixed offset, in bytes.
    At(usize),
}

/// What these interfaces have besides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where frames are cut.
    pub split: Split,
    /// Headers come in front of the completion.
    pub rx_inline: bool,
    /// Buffers on nicmem; without them all payload goes to host memory.
    pub pool: Option<Pool>,
    /// The keys that the NIC knows.
    pub keys: KeyTable,
    /// Whose the queues are.
    pub application: Application,
    /// So many of the queues, the first ones, use nicmem; all when unset.
    pub queues: Option<usize>,
}

impl Options {
    /// Those of `plan`.
    fn of(plan: &Plan) -> Options {
        let NmNfvOptions { split: SplitOptions { split_at, rx_inline, .. }, nicmem_queues, .. } = plan.values.read();
        let NicMemory { pool, keys, application } = plan.nicmem.clone();
        let split = if split_at == 0 { Split::Headers } else { Split::At(split_at) };
        Options { split, rx_inline, pool, keys, application, queues: nicmem_queues }
    }

    /// The buffers that queue `number` of `queues` may take from the pool when it starts.
    fn share(&self, number: usize, queues: usize) -> Option<(Pool, u64)> {
        let users = self.queues.unwrap_or(queues).min(queues);
        let pool = self.pool.filter(|_| number < users)?;
        Some((pool, pool.count() as u64 / users as u64))
    }
}

/// Builds both halves for all queues of one NIC.
pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let RxRing { rx_entries } = plan.values.read();
    Plan::check_ring("rx_entries", rx_entries)?;
    let options = &Options::of(plan);
    let (entries, queues) = (rx_entries as u64, plan.owners.len());
    let each = if options.rx_inline { 1 } else { 2 };
    let mut halves = Vec::new();
    let mut drivers = Vec::new();
    for (queue, &owner) in plan.owners.iter().enumerate() {
        // A driver may fill both rings: the completions of all have room.
        let room = 2 * rx_entries;
        let (writer, reader) = inlining_completion_ring(space, room, owner, options.rx_inline)?;
        let rings = [PRIMARY, SECONDARY].map(|_| {
            let first = plan.first_position;
            layout::ring(space, entries, each, first).with_room(plan.pool.room())
        });
        let sides = [PRIMARY, SECONDARY].map(|side| {
            let doorbell = Register { device: plan.device, index: (side * queues + queue) as u32 };
            Side::new(space, rings[side], each, doorbell)
        });
        halves.push(nic::Queue::new(rings, each, plan.descriptor_read, writer));
        let share = options.share(queue, queues);
        drivers.push(Driver::new(sides, reader, share, entries, plan.costs));
    }
    Ok((NicHalf::new(halves, plan.pool, options), drivers))
}

/// The same with all payload in host memory.
pub mod split {
    use super::{Driver, InterfaceError, NicHalf, NicMemory, Plan};
    use nicforge_platform::AddressSpace;

    /// Builds both halves for all queues of one NIC.
    pub fn build(plan: &Plan, space: &mut AddressSpace) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
        let nicmem = NicMemory { pool: None, ..plan.nicmem.clone() };
        let plan = Plan { nicmem, ..plan.clone() };
        super::build(&plan, space)
    }
}

/// Interface `nm_nfv`.
#[derive(Clone, Copy, Debug)]
pub struct NmNfv;

impl Interface for NmNfv {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}

/// Interface `nm_nfv_minus`.
#[derive(Clone, Copy, Debug)]
pub struct NmNfvMinus;

impl Interface for NmNfvMinus {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}

/// Interface `split`.
#[derive(Clone, Copy, Debug)]
pub struct SplitRings;

impl Interface for SplitRings {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = split::build(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}
