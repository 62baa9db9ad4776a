//! Memory that another program made and shares with us: a data plane over memif, a hypervisor over
//! vhost-user.
//!
//! The other program writes to it whenever it likes, and may lie about it. So every place is checked
//! against the mapping's bounds, bytes are copied out before they are read, words are atomics,
//! and a file that shrinks below the mapping does not end this process (fault.rs).

mod fault;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU16, AtomicU32};

use rustix::fs::{fstat, fstatfs};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

pub use fault::Watch;

/// Largest part of a file that is mapped: what one program gives to its network, or to a guest.
const BYTES_MAX: u64 = 1 << 40;
// From linux/magic.h.
const TMPFS: u64 = 0x0102_1994;
const HUGETLBFS: u64 = 0x9584_58f6;

/// Why memory of another program is refused.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// It is longer than the file behind it, or than anything is.
    #[error("the peer shares {len} bytes at {offset} of a file of {file} bytes")]
    Length {
        /// Where in the file.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// Bytes of the file.
        file: u64,
    },
    /// Behind other files a page may take for ever to come.
    #[error("the peer shares a file that is no memory (memfd, tmpfs or huge pages)")]
    NoMemory,
    /// The system's reason.
    #[error("the memory of the peer cannot be mapped: {0}")]
    System(#[from] io::Error),
}

impl From<rustix::io::Errno> for ForeignError {
    fn from(cause: rustix::io::Errno) -> ForeignError {
        ForeignError::System(cause.into())
    }
}

/// Checks that `len` bytes from `offset` on of `file` are memory.
///
/// # Errors
/// They are not, or there are fewer.
pub fn check_file(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<(), ForeignError> {
    let kind = fstatfs(file)?.f_type as u64;
    if kind != TMPFS && kind != HUGETLBFS {
        return Err(ForeignError::NoMemory);
    }
    let bytes = fstat(file)?.st_size as u64;
    let fits = offset.checked_add(len).is_some_and(|end| end <= bytes);
    if fits && len > 0 && len <= BYTES_MAX { Ok(()) } else { Err(ForeignError::Length { offset, len, file: bytes }) }
}

/// A mapping of memory that another program shares; it goes with the value.
#[derive(Debug)]
pub struct ForeignMemory {
    base: *mut u8,
    len: usize,
    /// Goes before the mapping.
    watch: Option<Watch>,
}

// SAFETY: the mapping belongs to the value, and threads do not matter to it.
unsafe impl Send for ForeignMemory {}

impl ForeignMemory {
    /// The first `len` bytes of `file`.
    ///
    /// # Errors
    /// The file has fewer bytes, is no memory, or cannot be mapped.
    pub fn map(file: BorrowedFd<'_>, len: u64) -> Result<ForeignMemory, ForeignError> {
        check_file(file.as_fd(), 0, len)?;
        let len = usize::try_from(len).map_err(|_| ForeignError::NoMemory)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0) }?;
        // SAFETY: the mapping is new, and `drop` drops the watch before it goes.
        let watch = unsafe { Watch::over(base as usize, len) }?;
        Ok(ForeignMemory { base: base.cast(), len, watch: Some(watch) })
    }

    /// Whether the file lost bytes that are mapped; zeros stand in their place since.
    pub fn is_broken(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::is_broken)
    }

    /// Bytes of it.
    pub fn len(&self) -> usize {
        self.len
    }

    fn place(&self, at: usize, len: usize) -> Option<*mut u8> {
        let fits = len <= self.len && at <= self.len - len;
        // SAFETY: `at` is within the mapping, as was just looked at.
        fits.then(|| unsafe { self.base.add(at) })
    }

    /// Copies `len` bytes at `at` behind what `into` holds; whether they are all inside.
    pub fn copy_out(&self, at: usize, len: usize, into: &mut Vec<u8>) -> bool {
        let Some(from) = self.place(at, len) else {
            return false;
        };
        into.reserve(len);
        // SAFETY: `len` bytes are in the mapping, and the vector has reserved room for as many behind
        // its end. The peer may write meanwhile; then the copy holds old and new bytes, of which any are
        // bytes. Nobody holds a reference into the mapping.
        unsafe {
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr().add(into.len()), len);
            into.set_len(into.len() + len);
        }
        true
    }

    /// Copies `bytes` to `at`; whether there is room for all.
    pub fn copy_in(&self, at: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.place(at, bytes.len()) else {
            return false;
        };
        // SAFETY: as many bytes are in the mapping, to which nobody holds a reference, and `bytes` are
        // none of it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        true
    }

    /// The word at `at`, if it is inside and aligned.
    pub fn word(&self, at: usize) -> Option<&AtomicU32> {
        let word = self.place(at, 4)?.cast::<AtomicU32>();
        // SAFETY: in bounds and aligned, and atomics may be shared with anybody.
        word.is_aligned().then(|| unsafe { &*word })
    }

    /// The half word at `at`, if it is inside and aligned.
    pub fn half(&self, at: usize) -> Option<&AtomicU16> {
        let word = self.place(at, 2)?.cast::<AtomicU16>();
        // SAFETY: as above.
        word.is_aligned().then(|| unsafe { &*word })
    }
}

impl Drop for ForeignMemory {
    fn drop(&mut self) {
        self.watch = None;
        // SAFETY: this value made the mapping, and no reference into it outlives the value.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}
