//! An emulated NIC: a core plays another interface's NIC, between rings of the physical NIC and
//! rings that other cores know (rxBisect paper, section 5).
//!
//! ```text
//!   NIC ══ physical ring(s) ══ emulating core: the wrapped NIC half ══ its rings ══ its drivers
//! ```
//!
//! The emulating core moves pointers and never touches frames: a packet's buffer goes on to the
//! worker, and the buffer that the wrapped NIC would have used takes its place in the physical
//! ring. So twice as many buffers are in rings as without emulation, which is why emulated
//! interfaces are compared with emulated ones.
//!
//! | file | what it says |
//! | --- | --- |
//! | layout.rs | physical rings, registers |
//! | nic.rs | the device: frames into physical rings |
//! | emulator.rs | the emulating core |
//! | way.rs | `Dma` over a core: what the wrapped NIC half runs on |
//! | driver.rs | the wrapped driver |

mod driver;
mod emulator;
mod layout;
mod nic;
#[cfg(test)]
mod tests;
mod way;

use nicforge_nic::completion_ring;
use nicforge_platform::{AddressSpace, Owner, Register};

pub use driver::Driver;
pub use emulator::{Emulated, Emulator, Lost};
pub use nic::NicHalf;

use crate::priv_ring::layout::Ring;
use crate::priv_ring::nic::Queue;
use crate::{AnyNic, InterfaceError, Plan, registry};
use layout::{FIRST_PER_QUEUE, Physical};

/// Interfaces whose completions can name a buffer that is not their descriptor's.
pub const EMULATED: [&str; 5] = [
    "priv_ring",
    "rx_bisect",
    "sh_ring",
    "sh_ring_list",
    "sh_ring_batched_list",
];

/// How many queues each physical ring serves, and its entries: as many as the rings of empty
/// buffers that it stands for. Cores whose buffers must not mix have a ring each (paper, section
/// 5).
fn physical_rings(plan: &Plan) -> (usize, usize) {
    let queues = plan.owners.len();
    let (serves, entries) = match plan.emulates.as_str() {
        "priv_ring" => (1, plan.rx_entries),
        "rx_bisect" => (queues, queues * plan.bisect.ax_entries),
        _ => (plan.sharing, plan.rx_entries),
    };
    (serves.min(queues).max(1), entries.next_power_of_two())
}

/// Builds both halves for all queues of one NIC.
pub fn build(
    plan: &Plan,
    space: &mut AddressSpace,
) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    if !EMULATED.contains(&plan.emulates.as_str()) {
        let wanted = plan.emulates.clone();
        return Err(InterfaceError::NotEmulated { wanted });
    }
    if plan.emulator == Owner::NOBODY {
        return Err(InterfaceError::NoEmulator);
    }
    let (inner, inner_drivers) = registry::build(&plan.emulates, plan, space)?;
    let (serves, entries) = physical_rings(plan);
    Plan::check_ring("physical ring", entries)?;
    // A completion ring counts from multiples of twice its size.
    let first = plan.first_position & !(2 * entries as u64 - 1);
    let mut queues = Vec::new();
    let mut served = Vec::new();
    let mut fills = Vec::new();
    for number in 0..plan.owners.len().div_ceil(serves) {
        let ring = Ring::new(space, entries as u64, first).with_room(plan.pool.room());
        let (writer, reader) = completion_ring(space, entries, plan.emulator)?;
        let physical = Physical {
            ring,
            doorbell: Register {
                device: plan.device,
                index: FIRST_PER_QUEUE * plan.owners.len() as u32 + number as u32,
            },
        };
        queues.push(Queue::new(ring, plan.descriptor_read, writer));
        served.push((physical, reader));
        fills.push(physical);
    }
    let mut fills = fills.into_iter();
    let drivers = inner_drivers.into_iter();
    let drivers = drivers.map(|inner| Driver::new(inner, fills.next()));
    let emulator = Emulator::new(served, plan.costs);
    let half = NicHalf::new((queues, serves), plan.pool, inner, emulator);
    Ok((half, drivers.collect()))
}

impl AnyNic {
    /// The NIC that a core emulates, if it is one.
    pub fn emulated(&mut self) -> Option<&mut NicHalf> {
        match self {
            AnyNic::Emulated(half) => Some(half),
            _ => None,
        }
    }
}
