//! The memory that device and workers share, addressed by offset.

use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytemuck::Pod;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::LiveError;
use crate::Addr;

#[cfg(not(miri))]
const HUGE_PAGE_BYTES: u64 = 2 << 20;

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
        let len = len.next_multiple_of(4096);
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
        Ok(Region {
            base: base.cast(),
            len,
            pages: Pages::Ordinary,
            mapping: Arc::new(Mapping {
                base,
                len: len as usize,
                file: file.into(),
            }),
        })
    }

    /// `len` bytes of zeroed memory, in huge pages when the system has enough of them.
    #[cfg(not(miri))]
    pub fn new(len: u64) -> Result<Region, LiveError> {
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
        let file = rustix::fs::memfd_create("nicforge", flags)
            .map_err(LiveError::of("creating shared memory"))?;
        ftruncate(&file, len).map_err(LiveError::of(format!("{len} bytes of shared memory")))?;
        fcntl_add_seals(&file, SEALS).map_err(LiveError::of("sealing shared memory"))?;
        Region::map(file, len, pages)
    }

    /// The region behind `file`, which another process made; at least `len` bytes long.
    pub fn attach(file: OwnedFd, len: u64) -> Result<Region, LiveError> {
        let size = fstat(&file)
            .map_err(LiveError::of("looking at shared memory"))?
            .st_size as u64;
        if size < len {
            let wrong = format!("has {size} bytes and not {len}");
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
        let bytes = usize::try_from(len)
            .map_err(|_| LiveError::Region(format!("of {len} bytes is larger than memory")))?;
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let base = base.map_err(LiveError::of(format!("mapping {len} bytes")))?;
        if pages == Pages::Ordinary {
            // SAFETY: the range is the mapping just made. Advice only: where the system does not
            // take it, nothing changes.
            let _ = unsafe { madvise(base, bytes, Advice::LinuxHugepage) };
        }
        Ok(Region {
            base: base.cast(),
            len,
            pages,
            mapping: Arc::new(Mapping {
                base,
                len: bytes,
                file,
            }),
        })
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

    /// The file, to hand over to another process.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.mapping.file.as_fd()
    }

    /// The address of `len` bytes at `at`, all inside.
    ///
    /// # Panics
    /// Beyond the end: a broken invariant of the caller, who checks what others wrote before.
    #[inline]
    fn pointer(&self, at: Addr, len: usize) -> *mut u8 {
        let len = len as u64;
        assert!(
            len <= self.len && at.0 <= self.len - len,
            "{len} bytes at {at:?}, beyond the {} of the region",
            self.len
        );
        // SAFETY: the assertion says that the offset and the bytes behind it are in the mapping.
        unsafe { self.base.add(at.0 as usize) }
    }

    /// Where `at` is in this process, for a hint to the cache; never to be read.
    #[inline]
    pub(super) fn hint(&self, at: Addr) -> *const u8 {
        self.base.wrapping_add(at.0 as usize)
    }

    /// Says that the line at `at` is going to be written here: the processor may take it from others'
    /// caches ahead of time. Any address may be said.
    #[inline]
    pub(super) fn expect_write(&self, at: Addr) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let at = self.hint(at);
            // SAFETY: a prefetch changes no memory and no register and cannot fault, whatever the
            // address. (The intrinsic takes the line for reading only, without a target feature.)
            unsafe {
                std::arch::asm!(
                    "prefetchw byte ptr [{at}]",
                    at = in(reg) at,
                    options(nostack, preserves_flags, readonly)
                );
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// A word that several agents write, at a multiple of 8.
    #[inline]
    pub fn word(&self, at: Addr) -> &AtomicU64 {
        assert!(at.0.is_multiple_of(8), "a word at {at:?} is not aligned");
        // SAFETY: in bounds and aligned (the mapping begins at a page); atomics may be shared by
        // any number of agents, also with other processes, and the mapping outlives `self`.
        unsafe { &*self.pointer(at, 8).cast::<AtomicU64>() }
    }

    /// Half a word that several agents write, at a multiple of 4: what a futex takes.
    #[inline]
    pub fn half_word(&self, at: Addr) -> &AtomicU32 {
        assert!(at.0.is_multiple_of(4), "a word at {at:?} is not aligned");
        // SAFETY: as for `word`.
        unsafe { &*self.pointer(at, 4).cast::<AtomicU32>() }
    }

    /// Reads a value. Aligned words are read in one piece: others may write them meanwhile.
    #[inline]
    pub fn load<T: Pod>(&self, at: Addr) -> T {
        if size_of::<T>() == 8 && at.0.is_multiple_of(8) {
            let word = self.word(at).load(Ordering::Relaxed);
            return bytemuck::pod_read_unaligned(bytemuck::bytes_of(&word));
        }
        let from = self.pointer(at, size_of::<T>());
        // SAFETY: in bounds; any bytes are a `T`, as it is `Pod`; no alignment is needed. Who
        // reads more than a word has seen it announced, so nobody honest writes it now.
        unsafe { from.cast::<T>().read_unaligned() }
    }

    /// Writes a value, aligned words in one piece.
    #[inline]
    pub fn store<T: Pod>(&self, at: Addr, value: T) {
        if size_of::<T>() == 8 && at.0.is_multiple_of(8) {
            let word: u64 = bytemuck::pod_read_unaligned(bytemuck::bytes_of(&value));
            self.word(at).store(word, Ordering::Relaxed);
            return;
        }
        let to = self.pointer(at, size_of::<T>());
        // SAFETY: in bounds, no alignment needed; it is the writer's turn by the ring's protocol.
        unsafe { to.cast::<T>().write_unaligned(value) }
    }

    /// Copies out of the region.
    #[inline]
    pub fn read(&self, from: Addr, into: &mut [u8]) {
        let from = self.pointer(from, into.len());
        // SAFETY: in bounds; `into` is a reference to memory outside of the mapping, for nobody
        // can have a reference into it at the same time as the caller has the device. If another
        // process writes meanwhile, the bytes are undecided, and they are only ever data here.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }

    /// Copies into the region.
    #[inline]
    pub fn write(&self, to: Addr, bytes: &[u8]) {
        let to = self.pointer(to, bytes.len());
        // SAFETY: as for `read`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Bytes in place, for whoever owns them.
    ///
    /// # Safety
    /// No other agent writes them while the slice lives: they are a packet in the caller's hands.
    #[inline]
    pub unsafe fn slice(&self, at: Addr, len: usize) -> &[u8] {
        // SAFETY: in bounds; that nobody writes is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.pointer(at, len), len) }
    }

    /// Bytes in place, for whoever owns them.
    ///
    /// # Safety
    /// No other agent reads or writes them while the slice lives.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut(&self, at: Addr, len: usize) -> &mut [u8] {
        // SAFETY: in bounds; that nobody else has them is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(at, len), len) }
    }
}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives the last region.
        let _ = unsafe { munmap(self.base, self.len) };
    }
}
