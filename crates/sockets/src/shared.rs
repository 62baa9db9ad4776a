//! Shared memory: mappings, and copies in and out of payload rings.

use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{CONTEXT_BYTES, Entry, PAGE_BYTES, QUEUE_ENTRIES, SocketPage, StatusPage};

/// A sealed file of zeroes that never changes its size, so that no access to its mapping can fail.
pub fn memory_file(name: &str, bytes: usize) -> Result<OwnedFd, Errno> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// The status page's file with the only writable mapping that it will ever have.
pub fn status_file() -> Result<(OwnedFd, StatusMemory), Errno> {
    let file = memfd_create("nicforge-status", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, PAGE_BYTES as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    let memory = StatusMemory::over(Mapping::new(file.as_fd())?)?;
    fcntl_add_seals(&file, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
    Ok((file, memory))
}

/// A shared mapping; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping stays where it is until dropped, and all access goes through atomics or raw copies.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all of a file. A file that could shrink is refused: an access behind its end would kill the process.
    pub fn new(file: BorrowedFd<'_>) -> Result<Mapping, Errno> {
        Mapping::with(file, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps a file for reading only.
    pub fn for_reading(file: BorrowedFd<'_>) -> Result<Mapping, Errno> {
        Mapping::with(file, ProtFlags::READ)
    }

    fn with(file: BorrowedFd<'_>, protection: ProtFlags) -> Result<Mapping, Errno> {
        if !fcntl_get_seals(file)?.contains(SealFlags::SHRINK) {
            return Err(Errno::INVAL);
        }
        let bytes = fstat(file)?.st_size as usize;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)? };
        Ok(Mapping { base: base.cast(), bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it outlives the value.
        let _ = unsafe { munmap(self.base.cast::<c_void>(), self.bytes) };
    }
}

/// Which of a socket's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Service to application.
    Receive,
    /// Application to service.
    Transmit,
}

/// A socket's memory: its page and its two rings.
#[derive(Debug)]
pub struct SocketMemory {
    mapping: Mapping,
    ring_bytes: usize,
}

impl SocketMemory {
    /// Bytes of a file for rings of `ring_bytes` each.
    pub const fn file_bytes(ring_bytes: usize) -> usize {
        PAGE_BYTES + 2 * ring_bytes
    }

    /// Maps a socket's file.
    pub fn new(file: impl AsFd) -> Result<SocketMemory, Errno> {
        let mapping = Mapping::new(file.as_fd())?;
        let ring_bytes = mapping.bytes.saturating_sub(PAGE_BYTES) / 2;
        if !ring_bytes.is_power_of_two() || mapping.bytes != SocketMemory::file_bytes(ring_bytes) {
            return Err(Errno::INVAL);
        }
        Ok(SocketMemory { mapping, ring_bytes })
    }

    /// The page.
    #[inline]
    pub fn page(&self) -> &SocketPage {
        // SAFETY: the mapping is longer than a page, page-aligned, and `SocketPage` consists of atomics only, for which
        // every bit pattern is valid and which other processes may change at any time.
        unsafe { &*self.mapping.base.cast::<SocketPage>() }
    }

    /// Bytes of each ring.
    #[inline]
    pub fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// Where `at` lies in a ring, and how many bytes follow before the ring's end.
    #[inline]
    fn place(&self, ring: Ring, at: u64) -> (*mut u8, usize) {
        let offset = at as usize & (self.ring_bytes - 1);
        let start = PAGE_BYTES + if ring == Ring::Receive { 0 } else { self.ring_bytes };
        // SAFETY: `offset` is less than the ring's size, and the mapping holds the page and both rings.
        (unsafe { self.mapping.base.add(start + offset) }, self.ring_bytes - offset)
    }

    /// Copies `len` bytes, at most a ring's, from `from` into a ring at `at`.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes.
    #[inline]
    pub unsafe fn fill_from(&self, ring: Ring, at: u64, from: *const u8, len: usize) {
        assert!(len <= self.ring_bytes);
        let (to, room) = self.place(ring, at);
        let first = len.min(room);
        // SAFETY: both parts lie in the ring (`first` up to its end, the rest from its start), `from` is the caller's
        // promise. Another process may write the same bytes: they are bytes, and nobody holds a reference to them.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, first);
            std::ptr::copy_nonoverlapping(from.add(first), self.place(ring, at + first as u64).0, len - first);
        }
    }

    /// Copies `len` bytes, at most a ring's, from a ring at `at` to `to`.
    ///
    /// # Safety
    /// `to` is writable for `len` bytes.
    #[inline]
    pub unsafe fn drain_to(&self, ring: Ring, at: u64, to: *mut u8, len: usize) {
        assert!(len <= self.ring_bytes);
        let (from, room) = self.place(ring, at);
        let first = len.min(room);
        // SAFETY: as in `fill_from`, the other way.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, first);
            std::ptr::copy_nonoverlapping(self.place(ring, at + first as u64).0, to.add(first), len - first);
        }
    }

    /// Copies bytes into a ring.
    #[inline]
    pub fn fill(&self, ring: Ring, at: u64, bytes: &[u8]) {
        // SAFETY: a slice is readable.
        unsafe { self.fill_from(ring, at, bytes.as_ptr(), bytes.len()) }
    }

    /// Copies bytes out of a ring.
    #[inline]
    pub fn drain(&self, ring: Ring, at: u64, bytes: &mut [u8]) {
        // SAFETY: a mutable slice is writable.
        unsafe { self.drain_to(ring, at, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Lets `put` write up to `len` bytes, at most a ring's, into a ring at `at`: to its end, then from its start, until
    /// it leaves room. Returns how many it wrote.
    ///
    /// `put` only writes: what a process that also maps the ring does to these bytes meanwhile is never read here.
    #[inline]
    pub fn fill_with(&self, ring: Ring, at: u64, len: usize, mut put: impl FnMut(&mut [u8]) -> usize) -> usize {
        assert!(len <= self.ring_bytes);
        let mut done = 0;
        while done < len {
            let (to, room) = self.place(ring, at + done as u64);
            let part = room.min(len - done);
            // SAFETY: in the ring by `place`. The slice lives for one call that copies bytes into it.
            let put = put(unsafe { std::slice::from_raw_parts_mut(to, part) }).min(part);
            done += put;
            if put < part {
                break;
            }
        }
        done
    }

    /// Lets `take` copy up to `len` bytes, at most a ring's, out of a ring at `at`, until it leaves some. Returns how many
    /// it took.
    ///
    /// `take` only copies: a process that changes its bytes meanwhile changes what is copied, and nothing else.
    #[inline]
    pub fn drain_with(&self, ring: Ring, at: u64, len: usize, mut take: impl FnMut(&[u8]) -> usize) -> usize {
        assert!(len <= self.ring_bytes);
        let mut done = 0;
        while done < len {
            let (from, room) = self.place(ring, at + done as u64);
            let part = room.min(len - done);
            // SAFETY: as above.
            let taken = take(unsafe { std::slice::from_raw_parts(from, part) }).min(part);
            done += taken;
            if taken < part {
                break;
            }
        }
        done
    }

    /// The bytes of a ring from `at`, up to `len` or the ring's end, in place.
    ///
    /// # Safety
    /// The caller owns these bytes by the positions: the service and other processes leave them alone while the
    /// slice lives.
    pub unsafe fn slice(&self, ring: Ring, at: u64, len: usize) -> &[u8] {
        let (from, room) = self.place(ring, at);
        // SAFETY: in the ring by `place`, and not written to by the caller's promise.
        unsafe { std::slice::from_raw_parts(from, len.min(room)) }
    }

    /// The same, to write.
    ///
    /// # Safety
    /// As of [`SocketMemory::slice`], and the caller has no other slice of the same bytes.
    #[expect(clippy::mut_from_ref, reason = "positions in shared memory, not the borrow, say who owns bytes of a ring")]
    pub unsafe fn slice_mut(&self, ring: Ring, at: u64, len: usize) -> &mut [u8] {
        let (to, room) = self.place(ring, at);
        // SAFETY: in the ring by `place`, and the caller's alone by its promise.
        unsafe { std::slice::from_raw_parts_mut(to, len.min(room)) }
    }
}

/// Which of a context's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// ATX.
    ToService,
    /// ARX.
    ToApplication,
}

/// A context's memory: its two queues.
#[derive(Debug)]
pub struct ContextMemory {
    mapping: Mapping,
}

impl ContextMemory {
    /// Maps a context's file.
    pub fn new(file: impl AsFd) -> Result<ContextMemory, Errno> {
        let mapping = Mapping::new(file.as_fd())?;
        if mapping.bytes != CONTEXT_BYTES {
            return Err(Errno::INVAL);
        }
        Ok(ContextMemory { mapping })
    }

    /// The entries of one queue.
    #[inline]
    pub fn queue(&self, direction: Direction) -> &[Entry] {
        let first = if direction == Direction::ToService { 0 } else { QUEUE_ENTRIES };
        // SAFETY: the mapping holds both queues, is page-aligned, and entries consist of atomics only.
        unsafe { std::slice::from_raw_parts(self.mapping.base.cast::<Entry>().add(first), QUEUE_ENTRIES) }
    }
}

/// The status page.
#[derive(Debug)]
pub struct StatusMemory {
    mapping: Mapping,
}

impl StatusMemory {
    /// Maps the file for a reader.
    pub fn for_reading(file: impl AsFd) -> Result<StatusMemory, Errno> {
        StatusMemory::over(Mapping::for_reading(file.as_fd())?)
    }

    fn over(mapping: Mapping) -> Result<StatusMemory, Errno> {
        if mapping.bytes != PAGE_BYTES {
            return Err(Errno::INVAL);
        }
        Ok(StatusMemory { mapping })
    }

    /// The page. A reader's process faults when it stores to it, so only the service does.
    #[inline]
    pub fn page(&self) -> &StatusPage {
        // SAFETY: the mapping is a page of atomics.
        unsafe { &*self.mapping.base.cast::<StatusPage>() }
    }
}
