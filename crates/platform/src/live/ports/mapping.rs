//! Memory that is shared with the kernel, by a socket.

use std::os::fd::BorrowedFd;

use rustix::io::Result;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping; it goes with the value.
#[derive(Debug)]
pub struct Mapping {
    /// Where it begins.
    pub base: *mut u8,
    /// How many bytes it has.
    pub len: usize,
}

// SAFETY: the mapping belongs to the value, and threads do not matter to it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// `len` bytes of this process.
    pub fn anonymous(len: usize) -> Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // The kernel shall not have to fetch pages; Miri has none to fetch.
        let flags = if cfg!(miri) { MapFlags::PRIVATE } else { MapFlags::PRIVATE | MapFlags::POPULATE };
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, flags) }?;
        Ok(Mapping { base: base.cast(), len })
    }

    /// `len` bytes at `place` of what `socket` shares with the kernel.
    pub fn of(socket: BorrowedFd<'_>, len: usize, place: u64) -> Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        let base = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, socket, place) }?;
        Ok(Mapping { base: base.cast(), len })
    }

    /// The address of `len` bytes at `at`, all inside.
    ///
    /// # Panics
    /// Beyond the end: the kernel, which says where frames lie, is trusted not to.
    pub fn pointer(&self, at: u64, len: usize) -> *mut u8 {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        assert!(len <= self.len && at <= self.len - len, "{len} bytes at {at}, beyond the {} of a mapping", self.len);
        // SAFETY: the assertion says that the offset and the bytes behind it are in the mapping.
        unsafe { self.base.add(at) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`. The kernel holds
        // pages that it still needs by itself.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}
