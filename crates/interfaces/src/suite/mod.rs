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
//! | in_front.rs | a stage of another crate in front of every interface |
//! | stalls.rs | cores that stop and go at random |
//!
//! An interface inherits all of it by its line in the registry; one of another crate goes through it by [`check`]. What
//! is special to one stands in its own tests.rs.
//!
//! TCP on the NIC (`tasnic`) hands streams to applications instead of frames to drivers, so it is no interface of the
//! registry. `lab/src/tasnic/tests/suite.rs` says for each property of these files which test holds it on either ground,
//! or why it does not apply.

// As a library only `check` and `in_front` are reachable; what the tests of the shipped interfaces use besides is idle there.
#![cfg_attr(not(test), allow(dead_code, unused_imports))]

mod audit;
mod bench;
mod delivery;
mod emulator;
mod frames;
mod ground;
mod hostile;
mod in_front;
mod limits;
#[cfg(target_os = "linux")]
mod live;
mod properties;
mod restart;
mod setup;
mod stages;
mod stalls;

pub(crate) use bench::Bench;
pub use in_front::{Exchange, InFront, PORT, Received, in_front};

pub(crate) use ground::{Flat, Ground, Sim};
#[cfg(target_os = "linux")]
pub(crate) use live::Live;
pub(crate) use nicforge_platform::Calls;
pub(crate) use setup::Setup;
pub(crate) use stalls::Stalls;

use std::cell::RefCell;

use crate::emulated::played_by_cores;
use nicforge_platform::AddressSpace;

use crate::{Halves, Interface, InterfaceEntry, InterfaceError, Interfaces, KnownGround, Plan};

/// The names of all interfaces of rings.
pub(crate) fn names() -> Vec<&'static str> {
    Interfaces::shipped().of_rings()
}

thread_local! {
    /// Interfaces of other crates that go through the suite on this thread.
    static OUTSIDE: RefCell<Interfaces> = RefCell::default();
}

/// Builds interface `name`.
///
/// # Errors
/// There is none of this name; else see [`Interface::build`].
pub(crate) fn build<G: KnownGround>(
    name: &str,
    plan: &Plan,
    space: &mut AddressSpace,
) -> Result<Halves<G>, InterfaceError> {
    find(name)?.build(plan, space)?.rings()
}

/// Interface `name`, shipped or of another crate.
fn find(name: &str) -> Result<InterfaceEntry, InterfaceError> {
    OUTSIDE.with_borrow(|outside| outside.find(name)).or_else(|_| Interfaces::shipped().find(name))
}

/// One property that holds for every interface, as a test on each ground.
struct Check {
    name: &'static str,
    on_sim: fn(&'static str),
    on_plain_memory: fn(&'static str),
    #[cfg(target_os = "linux")]
    on_live: fn(&'static str),
}

/// Runs interface `I`, of whatever crate, through the suite on every ground; where a core can play its NIC, with that,
/// too. Interfaces without [`Recoverable`](nicforge_nic::Recoverable) leave out the tests of queues that restart. Prints
/// the test that runs on standard error.
///
/// # Panics
/// A property does not hold. The last line on standard error names it.
pub fn check<I: Interface>() {
    OUTSIDE.with_borrow_mut(|outside| {
        outside.add::<I>();
    });
    run_all(I::NAME);
    // What a core plays whole only simulated worlds have.
    if I::PLAYED.is_ok() && !I::PLAYED_WHOLE {
        run_all(format!("emulated/{}", I::NAME).leak());
    }
}

fn run_all(interface: &'static str) {
    let restarts = Bench::<Flat>::down(interface, &Setup::default()).nic.recovery().is_some();
    let recovery = if restarts { restart::CHECKS } else { &[] };
    for check in [delivery::CHECKS, hostile::CHECKS, limits::CHECKS, properties::CHECKS, stages::CHECKS, recovery]
        .into_iter()
        .flatten()
    {
        let say = |ground: &str| eprintln!("{interface}: {} on {ground}", check.name);
        say("the sim ground");
        (check.on_sim)(interface);
        say("plain memory");
        (check.on_plain_memory)(interface);
        #[cfg(target_os = "linux")]
        {
            say("the live ground");
            (check.on_live)(interface);
        }
    }
}

/// All interfaces; `emulated/x` is `emulated` around `x`, one for each that a core can play.
fn interfaces() -> Vec<&'static str> {
    let others = names().into_iter().filter(|name| *name != "emulated");
    let played = played_by_cores().into_iter().map(|name| &*format!("emulated/{name}").leak());
    others.chain(played).collect()
}

/// Runs `$test::<Ground>(interface)` for every interface on every ground.
macro_rules! for_all {
    ($($test:ident,)*) => {
        /// The properties of this file.
        pub(super) const CHECKS: &[super::Check] = &[$(super::Check {
            name: stringify!($test),
            on_sim: $test::<super::Sim>,
            on_plain_memory: $test::<super::Flat>,
            #[cfg(target_os = "linux")]
            on_live: $test::<super::Live>,
        },)*];

        $(#[cfg(test)] mod $test {
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
