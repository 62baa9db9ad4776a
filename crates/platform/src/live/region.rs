//! The memory that device and workers share, addressed by offset.

use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nicforge_units::CACHE_LINE_BYTES;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::fs::{fallocate, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::LiveError;
use crate::Addr;

mod access;

#[cfg(not(miri))]
const HUGE_PAGE_BYTES: u64 = 2 << 20;
const WORD_BYTES: u64 = 8;
/// What values and frames have at most. So much of every mapping, at its end, is nobody's: a short
/// access that begins before is inside, wherever it ends.
const SHORT: u64 = 128 << 10;
/// Bytes zeroed at a time.
const ZEROS: usize = 4096;
/// What the system calls files of ordinary memory.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;
/// Words of a line.
pub(super) const LINE_WORDS: usize = (CACHE_LINE_BYTES / WORD_BYTES) as usize;

/// What the region's memory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages of the system's pool.
    Huge,
    /// Ordinary pages, which the system may join to huge ones.
    Ordinary,
}

/// A run of shared memory; clones are the same memory. It never moves, grows or shrinks: the file
/// is sealed, so that no process that has it can make an access fail.
///
/// Where it is stands in the value itself, which cores and devices own: what they write through it
/// cannot change that, so that it need not be read again for each access.
#[derive(Clone, Debug)]
pub struct Region {
    base: *mut u8,
    /// Bytes there are, without the [`SHORT`] ones behind them.
    len: u64,
    pages: Pages,
    mapping: Arc<Mapping>,
}

/// What goes when the last clone does.
#[derive(Debug)]
struct Mapping {
    base: *mut c_void,
    len: usize,
    file: OwnedFd,
}

// SAFETY: `base` points to a mapping that lives as long as the value, and all access goes
// through raw copies and atomics, never through references that are held across calls, except
// for slices that the `Cpu` contract hands out for memory whose owner the caller is.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}
// SAFETY: nothing is read or written through it; it is only unmapped, once, by the last owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Region {
    /// Memory of this process alone: Miri knows no other.
    #[cfg(miri)]
    pub fn new(len: u64) -> Result<Region, LiveError> {
        let len = (len + SHORT).next_multiple_of(4096);
        let file = std::fs::File::open("/dev/null").map_err(LiveError::of("/dev/null"))?;
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let mapping = Mapping { base, len: len as usize, file: file.into() };
        Ok(Region::over(mapping, Pages::Ordinary))
    }

    /// `len` bytes of zeroed memory, in huge pages when the system has enough of them.
    #[cfg(not(miri))]
    pub fn new(len: u64) -> Result<Region, LiveError> {
        let len = len + SHORT;
        match Region::with_pages(len.next_multiple_of(HUGE_PAGE_BYTES), Pages::Huge) {
            Ok(region) => Ok(region),
            // No huge pages set aside, or not enough: that is the usual case and no failure.
            Err(_) => Region::with_pages(len.next_multiple_of(4096), Pages::Ordinary),
        }
    }

    #[cfg_attr(miri, expect(dead_code))]
    fn with_pages(len: u64, pages: Pages) -> Result<Region, LiveError> {
        let huge = match pages {
            Pages::Huge => MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
            Pages::Ordinary => MemfdFlags::empty(),
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | huge;
        let file = rustix::fs::memfd_create("nicforge", flags).map_err(LiveError::of("creating shared memory"))?;
        ftruncate(&file, len).map_err(LiveError::of(format!("{len} bytes of shared memory")))?;
        fcntl_add_seals(&file, SEALS).map_err(LiveError::of("sealing shared memory"))?;
        Region::map(file, len, pages)
    }

    /// The region behind `file`, which another process made; at least `len` bytes long.
    pub fn attach(file: OwnedFd, len: u64) -> Result<Region, LiveError> {
        let size = fstat(&file).map_err(LiveError::of("looking at shared memory"))?.st_size as u64;
        let wanted = len + SHORT;
        if size < wanted {
            let wrong = format!("has {size} bytes and not {wanted}");
            return Err(LiveError::Region(wrong));
        }
        let seals = fcntl_get_seals(&file).map_err(LiveError::of("looking at shared memory"))?;
        if !seals.contains(SEALS) {
            return Err(LiveError::Region("is not sealed".into()));
        }
        Region::map(file, size, Pages::Ordinary)
    }

    fn map(file: OwnedFd, len: u64, pages: Pages) -> Result<Region, LiveError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let bytes =
            usize::try_from(len).map_err(|_| LiveError::Region(format!("of {len} bytes is larger than memory")))?;
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, &file, 0) };
        let base = base.map_err(LiveError::of(format!("mapping {len} bytes")))?;
        if pages == Pages::Ordinary {
            // SAFETY: the range is the mapping just made. Advice only: where the system does not
            // take it, nothing changes.
            let _ = unsafe { madvise(base, bytes, Advice::LinuxHugepage) };
        }
        let len = bytes;
        Ok(Region::over(Mapping { base, len, file }, pages))
    }

    fn over(mapping: Mapping, pages: Pages) -> Region {
        let len = mapping.len as u64 - SHORT;
        Region { base: mapping.base.cast(), len, pages, mapping: Arc::new(mapping) }
    }

    /// Bytes there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none; never so.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What the memory is made of.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Zeroes `range`, which nobody else reads or writes meanwhile. Ordinary pages go back to the system, which gives
    /// new ones where somebody writes: that is as fast as what was written there is little.
    ///
    /// # Errors
    /// The system refuses.
    pub fn clear(&self, range: Range<u64>) -> Result<(), LiveError> {
        let failed = || LiveError::of("clearing shared memory");
        if range.is_empty() {
            return Ok(());
        }
        let of_system = fstatfs(self.file()).map_err(failed())?.f_type;
        // Huge pages of a pool that is empty by then would not come back.
        if of_system == TMPFS {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            return fallocate(self.file(), hole, range.start, range.end - range.start).map_err(failed());
        }
        let zeros = [0; ZEROS];
        for at in range.clone().step_by(ZEROS) {
            let len = (range.end - at).min(ZEROS as u64) as usize;
            self.write(Addr(at), &zeros[..len]);
        }
        Ok(())
    }

    /// The file, to hand over to another process.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.mapping.file.as_fd()
    }
}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives the last region.
        let _ = unsafe { munmap(self.base, self.len) };
    }
}
