//! What lies in memory, beside that of the wrapped interface: physical rings.
//!
//! A physical ring is a private ring ([`crate::priv_ring::layout`]) with a completion ring. The
//! device reads its descriptors and writes its completions, each of which names the buffer that the
//! frame lies in; the emulating core does the opposite.
//!
//! Registers: those of the wrapped interface are words in the device's memory that the emulating
//! core reads. `FIRST_PER_QUEUE × queues + r` is the doorbell of physical ring `r`.

use nicforge_platform::Register;

use crate::priv_ring::layout::Ring;

/// Registers per queue that are the wrapped interface's: none has more.
pub const FIRST_PER_QUEUE: u32 = 2;

/// A physical ring, as the emulating core and whoever fills it at first see it.
#[derive(Clone, Copy, Debug)]
pub struct Physical {
    /// Its descriptors.
    pub ring: Ring,
    /// Tells the device the tail.
    pub doorbell: Register,
}
