//! Tests that every interface of the registry runs through, on every ground.
//!
//! | file | what is shown |
//! | --- | --- |
//! | ground.rs, live.rs | the sim ground, plain memory and the live ground, behind one trait |
//! | setup.rs | ring sizes, cores, buffers of a bench |
//! | bench.rs | one NIC half and its drivers; after every step frames and buffers are counted |
//! | anew.rs | a queue whose software died works again with other software |
//! | audit.rs | at the end every buffer of the pool comes to light once |
//! | emulator.rs | the core that plays the NIC, where an interface wants one |
//! | frames.rs | frames that say who they are |
//! | delivery.rs | order, bytes, wrap-around, the same bytes from the same seed |
//! | limits.rs | full ring, empty pool, oversized frame |
//! | hostile.rs | descriptors that name no buffer, registers and doorbells that mean nothing |
//! | properties.rs | random traffic, stalls and switches of steering, every ring size |
//! | stages.rs | a stage between the wire and the interface, in both directions |
//! | stalls.rs | cores that stop and go at random |
//!
//! An interface inherits all of it by its line in the registry. What is special to one stands
//! in its own tests.rs.

mod anew;
mod audit;
mod bench;
mod delivery;
mod emulator;
mod frames;
mod ground;
mod hostile;
mod limits;
#[cfg(target_os = "linux")]
mod live;
mod properties;
mod setup;
mod stages;
mod stalls;

pub use bench::Bench;
pub use ground::{Flat, Ground, Sim};
#[cfg(target_os = "linux")]
pub use live::Live;
pub use nicforge_platform::Calls;
pub use setup::Setup;
pub use stalls::Stalls;

use crate::emulated::EMULATED;
use nicforge_platform::AddressSpace;

use crate::{Built, InterfaceError, Interfaces, KnownGround, Plan};

/// The names of all interfaces.
pub fn names() -> Vec<&'static str> {
    Interfaces::shipped().names()
}

/// Builds interface `name`.
pub fn build<G: KnownGround>(name: &str, plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
    Interfaces::shipped().find(name)?.build(plan, space)
}

/// All interfaces; `emulated/x` is `emulated` around `x`, one for each that a core can play.
fn interfaces() -> Vec<&'static str> {
    let others = names().into_iter().filter(|name| *name != "emulated");
    let played = EMULATED.map(|name| &*format!("emulated/{name}").leak());
    others.chain(played).collect()
}

/// Runs `$test::<Ground>(interface)` for every interface on every ground.
macro_rules! for_all {
    ($($test:ident,)*) => {
        $(mod $test {
            #[cfg(target_os = "linux")]
            use super::super::Live;
            use super::super::{Flat, Sim, interfaces};

            #[test]
            fn on_sim() {
                interfaces().into_iter().for_each(super::$test::<Sim>);
            }

            #[test]
            fn on_plain_memory() {
                interfaces().into_iter().for_each(super::$test::<Flat>);
            }

            #[cfg(target_os = "linux")]
            #[test]
            fn on_live() {
                interfaces().into_iter().for_each(super::$test::<Live>);
            }
        })*
    };
}
use for_all;
