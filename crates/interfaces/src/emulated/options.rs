//! Options of emulation, and what an emulated NIC says about itself.

use nicforge_options::{Allowed, choice, options};

use super::Emulated;
use crate::describe::{Buffers, Describe, Queues, Shape};

choice! {
    /// A socket, seen from the NICs.
    pub enum Socket {
        /// The other one.
        Other = "other",
        /// Theirs.
        Same = "same",
    }
}

options! {
    /// Which NIC cores play, and where.
    pub struct EmulatedOptions {
        /// What interface `emulated` emulates, by a core for each NIC beside `cores`; by two, of which one sends, where it runs a program
        /// (`flexnic`).
        emulates: String = "rx_bisect".to_owned(), "", Allowed::Named("interface"),
            source "rxBisect paper, section 5";
        /// Where the cores that play NICs are: on the other socket, from where they use the same memory but
        /// none of its caches, or beside the cores that run the application.
        emulator_socket: Socket = Socket::Other, "", Allowed::Choice(&["same", "other"]),
            source "rxBisect paper, section 5: on another node than the workers, figure 8";
        /// Instructions of the NIC's program for a packet, where cores play that, too (Soft-FlexNIC).
        emulator_program_cycles: u32 = 150, "cycles", Allowed::Whole(0, 1_000_000),
            source "estimate: a parser of three headers, two look-ups, a deparser";
    }
}

impl Describe for Emulated {
    const NAME: &'static str = "emulated";
    const ABOUT: &'static str = "another interface, whose NIC is played by a core";
    const PLAYED: Result<(), &'static str> = Err("a core plays its NIC already");
    type Options = EmulatedOptions;

    fn inner(options: &EmulatedOptions) -> Option<String> {
        Some(options.emulates.clone())
    }

    fn shape(_options: &EmulatedOptions, queues: &Queues<'_>) -> Shape {
        let inner = queues.inner.cloned().unwrap_or_else(|| Shape::of_rings(queues, 0, 1));
        let physical: Vec<usize> = inner.supplies.iter().map(|supply| supply.entries.next_power_of_two()).collect();
        let entries: usize = physical.iter().sum();
        Shape {
            // The emulated rings and the physical ones.
            buffers: Buffers { receive: inner.buffers.receive + entries.div_ceil(queues.each.max(1)), ..inner.buffers },
            empty: inner.empty + entries,
            ready: None,
            supplies: Vec::new(),
            registers: inner.registers + physical.len(),
            played: true,
            ..inner
        }
    }
}
