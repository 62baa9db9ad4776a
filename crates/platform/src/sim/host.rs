//! The host that cores and devices share: its bytes and its memory system.

use super::{Hardware, Hierarchy, SimMemory};
use crate::AddressSpace;

/// Memory contents and memory timing of one machine.
pub struct Host {
    /// The bytes.
    pub memory: SimMemory,
    /// The caches and DRAM.
    pub hierarchy: Hierarchy,
}

impl Host {
    /// A cold, zeroed host with room for all that `space` handed out.
    pub fn new(hardware: &Hardware, space: &AddressSpace) -> Host {
        Host {
            memory: SimMemory::new(space),
            hierarchy: Hierarchy::new(hardware, space.end()),
        }
    }
}
