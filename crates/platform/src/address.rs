//! Addresses, and who gets which part of the address space.
//!
//! An address is an offset, the same in every process and on both grounds, so that no
//! result depends on where an allocator put something.

use std::ops::Add;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use nicforge_units::CACHE_LINE_BYTES;

use crate::Run;

/// A byte offset in host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Addr(pub u64);

impl Addr {
    /// The number of the cache line that holds this address.
    pub const fn line(self) -> u64 {
        self.0 / CACHE_LINE_BYTES
    }
}

impl Add<u64> for Addr {
    type Output = Addr;
    fn add(self, bytes: u64) -> Addr {
        Addr(self.0 + bytes)
    }
}

/// The core that is woken when the NIC publishes into a piece of control memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u16);

impl Owner {
    /// No core sleeps on it.
    pub const NOBODY: Owner = Owner(u16::MAX);
}

/// Where control memory (rings that a device publishes into) ends and data memory begins.
pub const CONTROL_BYTES: u64 = 64 << 20;

/// What can go wrong while handing out address space.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SpaceError {
    /// Rings are too many or too large.
    #[error("rings need more than the {CONTROL_BYTES} bytes of control memory: use fewer or smaller rings")]
    ControlFull,
}

/// Hands out addresses before a run; holds no bytes itself.
///
/// Control memory `[0, CONTROL_BYTES)` is for words that a device publishes (completions),
/// each with the core that watches them; everything else is data memory.
#[derive(Debug)]
pub struct AddressSpace {
    control_end: u64,
    data_end: u64,
    owners: Vec<(Addr, u64, Owner)>,
    nicmem: Vec<NicmemRange>,
    paged: Vec<PagedRange>,
    registered: Registered,
}

/// Memory that software registered with devices: what an address that a program on a device computes may reach. All clones
/// are one list, as software may register memory after the device was laid out.
#[derive(Clone, Debug, Default)]
pub struct Registered(Arc<Mutex<Vec<Run>>>);

impl Registered {
    /// The pieces registered so far, in the order of their addresses.
    pub fn pieces(&self) -> Vec<Run> {
        let mut pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        pieces.sort_by_key(|piece| piece.at);
        pieces
    }
}

/// Memory of a NIC that software may use, as a range of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicmemRange {
    /// Where it begins.
    pub at: Addr,
    /// Bytes.
    pub len: u64,
    /// Whose memory it is.
    pub device: u8,
}

impl NicmemRange {
    /// Whether `line` is one of its lines.
    #[inline]
    pub fn holds_line(&self, line: u64) -> bool {
        line >= self.at.line() && line < (self.at + self.len).line()
    }
}

/// Bytes of a small page.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of a page table's entry.
const PAGE_ENTRY_BYTES: u64 = 8;

/// Memory in pages of 4 KiB, whose addresses cores look up in a table of pages. All other memory is in pages so
/// large that a TLB knows all of them, as DPDK takes it from the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedRange {
    /// Where it begins, at a page.
    pub at: Addr,
    /// Pages.
    pub pages: u64,
    /// Where its table begins.
    pub table: Addr,
}

impl PagedRange {
    /// The line of the table with the entry of page `page` of the range.
    #[inline]
    pub fn entry_line(&self, page: u64) -> u64 {
        (self.table + page * PAGE_ENTRY_BYTES).line()
    }
}

impl Default for AddressSpace {
    fn default() -> Self {
        AddressSpace {
            // Address 0 stays unused, so that a zeroed descriptor never names a buffer.
            control_end: CACHE_LINE_BYTES,
            data_end: CONTROL_BYTES,
            owners: Vec::new(),
            nicmem: Vec::new(),
            paged: Vec::new(),
            registered: Registered::default(),
        }
    }
}

impl AddressSpace {
    /// `len` bytes of data memory, aligned to `align` (a power of two, at least one line).
    pub fn data(&mut self, len: u64, align: u64) -> Addr {
        let align = align.max(CACHE_LINE_BYTES);
        let at = self.data_end.next_multiple_of(align);
        self.data_end = at + len;
        Addr(at)
    }

    /// `len` bytes of data memory in pages of 4 KiB, as an allocator of the language gives it, and the table of its pages.
    pub fn paged(&mut self, len: u64) -> Addr {
        let pages = len.div_ceil(PAGE_BYTES);
        let table = self.data(pages * PAGE_ENTRY_BYTES, CACHE_LINE_BYTES);
        let at = self.data(pages * PAGE_BYTES, PAGE_BYTES);
        self.paged.push(PagedRange { at, pages, table });
        at
    }

    /// All memory in pages of 4 KiB.
    pub fn paged_ranges(&self) -> &[PagedRange] {
        &self.paged
    }

    /// `len` bytes of control memory into which a device publishes for `owner`.
    pub fn control(&mut self, len: u64, owner: Owner) -> Result<Addr, SpaceError> {
        let at = self.control_end.next_multiple_of(CACHE_LINE_BYTES);
        if at + len > CONTROL_BYTES {
            return Err(SpaceError::ControlFull);
        }
        self.control_end = at + len;
        self.owners.push((Addr(at), len, owner));
        Ok(Addr(at))
    }

    /// `len` bytes (whole lines) of memory of NIC `device`. Reserve it for all NICs before
    /// anything else, so that one comparison tells it from host memory.
    pub fn nicmem(&mut self, device: u8, len: u64) -> Addr {
        let at = self.data(len.next_multiple_of(CACHE_LINE_BYTES), 4096);
        self.data_end = self.data_end.next_multiple_of(4096);
        self.nicmem.push(NicmemRange { at, len, device });
        at
    }

    /// Registers `len` bytes of data memory at `at` with the devices of this host.
    pub fn register(&mut self, at: Addr, len: usize) {
        self.registered.0.lock().unwrap_or_else(PoisonError::into_inner).push(Run { at, len });
    }

    /// All registered memory, that of later calls included.
    pub fn registered(&self) -> Registered {
        self.registered.clone()
    }

    /// Every NIC's memory.
    pub fn nicmem_ranges(&self) -> &[NicmemRange] {
        &self.nicmem
    }

    /// Bytes from address 0 to the end of what was handed out.
    pub fn end(&self) -> u64 {
        self.data_end
    }

    /// Bytes of control memory in use.
    pub fn control_end(&self) -> u64 {
        self.control_end
    }

    /// Every control range with the core that watches it.
    pub fn owners(&self) -> &[(Addr, u64, Owner)] {
        &self.owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_overlap_and_are_aligned() {
        let mut space = AddressSpace::default();
        let a = space.data(100, 64);
        let b = space.data(1, 4096);
        assert_eq!(a.0 % 64, 0);
        assert!(b.0 >= a.0 + 100 && b.0 % 4096 == 0);
        let c = space.control(64, Owner(3)).unwrap();
        assert!(c.0 > 0 && c.0 + 64 <= CONTROL_BYTES);
    }

    #[test]
    fn memory_of_nics_has_pages_of_its_own() {
        let mut space = AddressSpace::default();
        let first = space.nicmem(0, 100 << 10);
        let second = space.nicmem(1, 64);
        let data = space.data(64, 64);
        assert_eq!((first.0 % 4096, second.0 % 4096, data.0 % 4096), (0, 0, 0));
        let [of_0, of_1] = space.nicmem_ranges() else { panic!("two ranges") };
        assert_eq!((of_0.device, of_1.device), (0, 1));
        let last = (first + ((100 << 10) - 64)).line();
        assert!(of_0.holds_line(last) && !of_0.holds_line(last + 1));
        assert!(of_1.holds_line(second.line()) && !of_1.holds_line(data.line()));
    }

    #[test]
    fn control_memory_is_bounded() {
        let mut space = AddressSpace::default();
        assert_eq!(space.control(CONTROL_BYTES, Owner(0)), Err(SpaceError::ControlFull));
    }
}
