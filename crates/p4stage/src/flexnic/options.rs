//! The interface's description and options.

use nicforge_interfaces::describe::{Describe, Queues, Shape, Supply};
use nicforge_interfaces::options::RxRing;
use nicforge_options::{Allowed, options};

use super::FlexNic;
use super::layout::HOST_REGISTERS;

/// Entries of the physical ring of a NIC that cores play.
const SOFT_RING: usize = 512;

options! {
    /// NICs whose program does the DMA.
    pub struct FlexNicOptions {
        embed ring: RxRing;
        /// The P4-16 program of package `FlexNIC` that each NIC runs.
        flexnic_program: Option<String> = None, "", Allowed::File, default "queues of whole frames";
        /// Entries of its tables, as `nicforge p4 run --entries` takes them.
        flexnic_entries: Option<String> = None, "", Allowed::File, default "none";
        /// The NIC's pipelines, as `nicforge p4 explain --target` takes them; a packet takes the cycles that the program needs there.
        flexnic_target: Option<String> = None, "", Allowed::File, default "small pipelines";
        /// Runs the reference interpreter instead of compiled code.
        flexnic_interpret: bool = false, "", Allowed::Flag;
    }
}

impl Describe for FlexNic {
    const NAME: &'static str = "flexnic";
    const ABOUT: &'static str = "software-defined queues that a P4 program fills, which does the DMA";
    const PLAYED: Result<(), &'static str> = Ok(());
    // The program reads frames, and writes what it likes.
    const PLAYED_WHOLE: bool = true;
    type Options = FlexNicOptions;

    fn shape(options: &FlexNicOptions, queues: &Queues<'_>) -> Shape {
        Shape {
            // Frames are copied out of the physical ring, so all queues may have the same.
            supplies: vec![Supply { queues: (0..queues.each).collect(), entries: SOFT_RING }],
            registers: (1 + HOST_REGISTERS) * queues.each + 1,
            ..Shape::of_rings(queues, options.ring.rx_entries, 1)
        }
    }
}
