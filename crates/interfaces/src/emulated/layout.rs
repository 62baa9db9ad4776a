//! What lies in memory, beside that of the wrapped interface: physical rings.
//!
//! A physical ring is a private ring ([`crate::priv_ring::layout`]) with a completion ring. The
//! device reads its descriptors and writes its completions, each of which names the buffer that the
//! frame lies in; the emulating core does the opposite.
//!
//! Each group of queues whose empty buffers may mix ([`Supply`](crate::describe::Supply)) has a physical ring of as many
//! entries, so that no group waits for buffers behind frames of another (rxBisect paper, section 5).
//!
//! Registers: those of the wrapped interface are words in the device's memory that the emulating
//! core reads. `first_doorbell + r` is the doorbell of physical ring `r`.

use nicforge_platform::Register;

use crate::priv_ring::layout::Ring;

/// A physical ring, as the emulating core and whoever fills it at first see it.
#[derive(Clone, Copy, Debug)]
pub struct Physical {
    /// Its descriptors.
    pub ring: Ring,
    /// Tells the device the tail.
    pub doorbell: Register,
}
