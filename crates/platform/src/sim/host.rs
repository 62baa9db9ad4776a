//! The host that cores and devices share: its bytes and its memory system.

use nicforge_units::CACHE_LINE_BYTES;

use super::lines::Line;
use super::link::Link;
use super::locks::Locks;
use super::nicmem::NicmemMap;
use super::paged::PagedMap;
use super::{Hardware, Hierarchy, SimMemory};
use crate::tracer::Tracer;
use crate::{Addr, AddressSpace};

/// Bytes of a line.
const LINE: usize = CACHE_LINE_BYTES as usize;

/// Memory contents and memory timing of one machine.
pub struct Host {
    /// The bytes.
    pub memory: SimMemory,
    /// The caches and DRAM.
    pub hierarchy: Hierarchy,
    /// The link to each device.
    pub(super) links: Vec<Link>,
    /// Who holds which lock when.
    pub(super) locks: Locks,
    /// Which addresses are memory of a device.
    pub(super) nicmem: NicmemMap,
    /// Which addresses are in small pages.
    pub(super) paged: PagedMap,
    /// Follows packets, if that is asked for.
    pub tracer: Option<Box<Tracer>>,
}

impl Host {
    /// A cold, zeroed host with room for all that `space` handed out.
    pub fn new(hardware: &Hardware, space: &AddressSpace) -> Host {
        Host::with_memory(hardware, space, SimMemory::new(space))
    }

    /// How many bytes the model keeps of the lines of `bytes` of address space, beside their contents:
    /// a word of the LLC and one of who shares each.
    pub fn table_bytes(bytes: u64) -> u64 {
        let lines = bytes.div_ceil(nicforge_units::CACHE_LINE_BYTES);
        lines * (size_of::<Line>() + size_of::<u16>()) as u64
    }

    /// A cold host whose memory was filled before the run.
    pub fn with_memory(hardware: &Hardware, space: &AddressSpace, memory: SimMemory) -> Host {
        Host {
            memory,
            hierarchy: Hierarchy::new(hardware, space.end()),
            links: (0..hardware.nics).map(|_| Link::new(&hardware.pcie)).collect(),
            locks: Locks::default(),
            nicmem: NicmemMap::new(space, hardware.nic.nicmem_access),
            paged: PagedMap::new(space, hardware.core.tlb_pages),
            tracer: None,
        }
    }

    /// Core `core` accesses the line at `at` soon: this process prefetches its bytes and what the model knows of it.
    /// The model charges nothing.
    #[inline]
    pub fn expect_access(&self, core: usize, at: Addr) {
        self.memory.expect(at.line());
        self.hierarchy.expect_in_l2(core, at.line());
    }

    /// The bytes of the line at `at`, if there is such a place.
    #[inline]
    pub fn line(&self, at: Addr) -> Option<&[u8; LINE]> {
        self.memory.get(at, LINE)?.first_chunk()
    }
}
