//! Tests of what is special to rxBisect; the shared suite covers the rest.
//!
//! | file | what is shown |
//! | --- | --- |
//! | delivery.rs | which entries are written when, and how many |
//! | choice.rs | own descriptors and others', at hand and on their way |
//! | borrowing.rs | whose buffer is used; applications apart; rings of other numbers |
//! | stalls.rs | a core that stops stops nobody; every size of both rings |
//! | refusals.rs | rings that cannot belong together |

mod borrowing;
mod choice;
mod delivery;
mod refusals;
mod stalls;

use nicforge_nic::DropCause;
use nicforge_units::Time;

use super::{AxChoice, Consumption, MemoryDomain, Options, Topology, TopologyError, build_with};
use crate::Halves;
use crate::suite::{Bench, Ground, Setup};

const NO_BUFFER: Result<(), DropCause> = Err(DropCause::NO_DESCRIPTOR);
const BX_FULL: Result<(), DropCause> = Err(super::BX_FULL);
const TIMEOUT: Time = Time::from_us(3);
const BATCHED: Consumption = Consumption::Batched(TIMEOUT);
const CHOICES: [AxChoice; 3] = [AxChoice::Random, AxChoice::RoundRobin, AxChoice::Fullest];
/// Whether own descriptors on their way come before others' at hand: `ax_own = "at_hand"`, and the default.
const OWN_FIRST: [bool; 2] = [false, true];

/// What scenarios have where they say nothing else.
fn options(choice: AxChoice, consumption: Consumption) -> Options {
    Options {
        ax_rings: 0,
        links: Vec::new(),
        associations: Vec::new(),
        association_sets: 1,
        ax_entries: 0,
        bx_entries: 0,
        choice,
        own_first: true,
        consumption,
        seed: 5,
    }
}

/// A running bench with rings as `topology` has them, and plenty of buffers.
fn bench<G: Ground>(topology: &Topology, choice: AxChoice, consumption: Consumption) -> Bench<G> {
    bench_of(topology, options(choice, consumption))
}

/// The same with other options.
fn bench_of<G: Ground>(topology: &Topology, options: Options) -> Bench<G> {
    let in_rings: usize = topology.ax.iter().map(|ring| ring.entries).sum();
    let waiting: usize = topology.bx.iter().map(|ring| ring.entries).sum();
    bench_with(topology, options, in_rings + waiting + 128, 0)
}

/// The same with `buffers` buffers and rings that count from `first`.
fn bench_with<G: Ground>(topology: &Topology, options: Options, buffers: usize, first: u64) -> Bench<G> {
    let setup = Setup {
        queues: topology.bx.len(),
        rx_entries: 0,
        spare: buffers,
        cache: 8,
        first_position: first,
        ..Setup::default()
    };
    let mut bench = Bench::built("rx_bisect", &setup, |plan, space| {
        let (nic, drivers) = build_with(plan, topology, &options, space).unwrap();
        Halves::new(nic, drivers)
    });
    bench.start();
    bench
}

/// Entries of each Bx ring that software has not consumed, those promised included.
fn waiting<G: Ground>(bench: &Bench<G>) -> Vec<u64> {
    let queues = 0..bench.drivers.len() as u16;
    queues.map(|queue| bench.nic.waiting(queue).entries).collect()
}
