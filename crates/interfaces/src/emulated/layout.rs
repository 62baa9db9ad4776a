//! What lies in memory, beside that of the wrapped interface: physical rings.
//!
//! A physical ring is a private ring ([`crate::priv_ring::layout`]) with a completion ring. The
//! device reads its descriptors and writes its completions, each of which names the buffer that the
//! frame lies in; the emulating core does the opposite.
//!
//! Registers: those of the wrapped interface are words in the device's memory that the emulating
//! core reads. `first_doorbell + r` is the doorbell of physical ring `r`.

use std::ops::Range;

use nicforge_platform::Register;

use crate::priv_ring::layout::Ring;
use crate::rx_bisect::{AssociationSet, Options, Topology};

/// The doorbell of the first physical ring: the registers before are the wrapped interface's. rxBisect
/// has one for each Ax and Bx ring, the others up to two for each core.
pub fn first_doorbell(queues: usize, bisect: &Options) -> u32 {
    (queues + bisect.rings(queues).max(queues)) as u32
}

/// A physical ring, as the emulating core and whoever fills it at first see it.
#[derive(Clone, Copy, Debug)]
pub struct Physical {
    /// Its descriptors.
    pub ring: Ring,
    /// Tells the device the tail.
    pub doorbell: Register,
}

/// A physical ring that an emulation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalRing {
    /// The queues whose frames come into it, by number; at least one.
    pub queues: Vec<usize>,
    /// Its entries, a power of two.
    pub entries: usize,
}

/// The physical rings behind `queues` queues of interface `emulates`, where receive rings have
/// `rx_entries` entries, of which `sharing` queues share one, or rxBisect has `bisect`.
///
/// Each is as large as the rings of empty buffers that it stands for. Queues whose buffers must not
/// mix have a ring each (rxBisect paper, section 5): those of private rings, and likewise those of
/// different shared rings and of different association sets. So none of them waits for buffers
/// behind frames of the others. Rings of one set of queues stand before those of the next.
pub fn physical_rings(
    emulates: &str,
    queues: usize,
    (rx_entries, sharing): (usize, usize),
    bisect: &Options,
) -> Vec<PhysicalRing> {
    let of_each = |queues: Range<usize>, number| {
        let queues: Vec<usize> = queues.collect();
        let ring = |queues: &[usize]| PhysicalRing { queues: queues.to_vec(), entries: rx_entries.next_power_of_two() };
        queues.chunks(number).map(ring).collect::<Vec<_>>()
    };
    let sharing = sharing.max(1);
    match emulates {
        "priv_ring" => of_each(0..queues, 1),
        // Two sets of queues.
        "sh_ring_dynamic" => {
            let shared = of_each(queues..2 * queues, sharing);
            [of_each(0..queues, 1), shared].concat()
        }
        "rx_bisect" => {
            let sets = Topology::of(queues, bisect).association_sets();
            let ring =
                |set: AssociationSet| PhysicalRing { entries: set.ax_entries.next_power_of_two(), queues: set.queues };
            sets.into_iter().map(ring).collect()
        }
        _ => of_each(0..queues, sharing),
    }
}
