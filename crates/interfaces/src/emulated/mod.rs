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
//! | layout.rs | which physical rings there are, registers |
//! | nic.rs | the device: frames into physical rings |
//! | emulator.rs, served.rs | the emulating core, and a physical ring as it serves it |
//! | way.rs | `Dma` over a core: what the wrapped NIC half runs on |
//! | whole.rs | a NIC that cores play whole, program and all |
//! | book.rs | who has which buffer, where software may die |
//! | driver.rs | the wrapped driver |

mod book;
mod core_dma;
mod driver;
mod emulator;
mod layout;
mod nic;
mod options;
mod served;
#[cfg(test)]
mod tests;
mod whole;

use std::any::Any;

use nicforge_nic::{ReceiveHalf, completion_ring};
use nicforge_platform::{AddressSpace, Ground, Owner, Register};
use nicforge_units::Cycles;

pub use core_dma::CoreDma;
pub use driver::Driver;
pub use emulator::{BURST, Emulator, Lost, Step};
pub use nic::NicHalf;
pub use options::{EmulatedOptions, Socket};
pub use whole::{TRANSMIT_ENTRIES, Whole};

use crate::describe::Supply;
use crate::priv_ring::layout::Ring;
use crate::priv_ring::nic::Queue;
use crate::registry::Played;
use crate::{Built, Interface, InterfaceError, Interfaces, KnownGround, Plan};
use emulator::Part;
use layout::Physical;

/// The names of all shipped interfaces whose NIC a core can play.
pub fn played_by_cores() -> Vec<&'static str> {
    let shipped = Interfaces::shipped();
    let played = shipped.entries().iter().filter(|entry| entry.played().is_ok());
    played.map(|entry| entry.name()).collect()
}

/// Interface `emulated`.
#[derive(Clone, Copy, Debug)]
pub struct Emulated;

impl Interface for Emulated {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build::<G>(plan, space)?;
        Ok(Built::new(nic, drivers))
    }
}

/// The NIC that a core plays, if `half` is one.
pub fn played<G: Ground>(half: &mut dyn ReceiveHalf<G::Dma>) -> Option<&mut NicHalf<G>> {
    let half: &mut dyn Any = half;
    half.downcast_mut()
}

/// Both halves for all queues of one NIC on ground `G`.
type Halves<G> = (NicHalf<G>, Vec<Driver<<G as Ground>::Cpu>>);

/// Builds both halves for all queues of one NIC.
fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Halves<G>, InterfaceError> {
    let Some(emulates) = &plan.emulates else {
        return Err(InterfaceError::Unknown(String::new()));
    };
    if let Err(why) = emulates.played() {
        return Err(InterfaceError::NotEmulated { wanted: emulates.name().to_owned(), why });
    }
    if plan.emulator == Owner::NOBODY {
        return Err(InterfaceError::NoEmulator);
    }
    if emulates.played_whole() && plan.emulator_fills {
        let (wanted, why) = (emulates.name().to_owned(), "cores play all of this NIC, which only simulated ones do");
        return Err(InterfaceError::NotEmulated { wanted, why });
    }
    let crate::Halves { nic: inner, drivers: inner_drivers } = emulates.build::<Played<G>>(plan, space)?.rings()?;
    let shape = plan.shape_of(emulates);
    // The registers before are the wrapped interface's.
    let first_doorbell = shape.registers as u32;
    let mut rings = Vec::new();
    let mut served = Vec::new();
    let mut ring_of = vec![0; usize::from(inner.queues())];
    let mut fills = vec![Vec::new(); plan.owners.len()];
    let mut rings_of_set = vec![0; inner.sets().len()];
    for (number, Supply { queues, entries }) in shape.supplies.into_iter().enumerate() {
        let entries = entries.next_power_of_two();
        Plan::check_ring("physical ring", entries)?;
        // A completion ring counts from multiples of twice its size.
        let first = plan.first_position & !(2 * entries as u64 - 1);
        let ring = Ring::new(space, entries as u64, first).with_room(plan.pool.room());
        let (writer, reader) = completion_ring(space, entries, plan.emulator)?;
        let physical =
            Physical { ring, doorbell: Register { device: plan.device, index: first_doorbell + number as u32 } };
        rings.push(Queue::new(ring, plan.descriptor_read, writer));
        served.push((physical, reader));
        if !plan.emulator_fills {
            // Its first buffers are those of a core that it serves.
            fills[queues[0] % plan.owners.len()].push(physical);
        }
        rings_of_set[queues[0] / plan.owners.len()] += 1;
        for queue in queues {
            ring_of[queue] = number;
        }
    }
    let drivers = inner_drivers.into_iter().zip(fills);
    let drivers = drivers.map(|(inner, fills)| Driver::new(inner, fills));
    let emulator = Emulator::new(served, &rings_of_set, plan.costs);
    let inner = if emulates.played_whole() {
        let EmulatedOptions { emulator_program_cycles, .. } = plan.values.read();
        Part::Whole(Box::new(Whole::new(inner, plan, Cycles(emulator_program_cycles.into()), space)))
    } else {
        Part::Half(inner)
    };
    let half = NicHalf::new(rings, ring_of, first_doorbell, plan, inner, emulator);
    Ok((half, drivers.collect()))
}
