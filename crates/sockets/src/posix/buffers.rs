//! Buffers of programs.

use rustix::io::Errno;

/// A program's buffers, as `readv` and `sendmsg` take them.
#[derive(Clone, Copy, Debug)]
pub struct Buffers<'a>(&'a [libc::iovec]);

impl<'a> Buffers<'a> {
    /// Buffers of a program.
    ///
    /// # Safety
    /// Each is null, or valid for its length: readable to send from, writable to receive into. A program that passes
    /// others to the kernel gets EFAULT; here it gets that for null only, and the signal for the rest.
    pub unsafe fn new(buffers: &'a [libc::iovec]) -> Buffers<'a> {
        Buffers(buffers)
    }

    /// Refuses null pointers as the kernel does.
    pub(crate) fn check(&self) -> Result<(), Errno> {
        let is_null = |buffer: &libc::iovec| buffer.iov_base.is_null() && buffer.iov_len > 0;
        if self.0.iter().any(is_null) { Err(Errno::FAULT) } else { Ok(()) }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        self.0.iter().fold(0, |sum: usize, buffer| sum.saturating_add(buffer.iov_len))
    }

    /// Calls `each` with the parts of `len` bytes after the first `skip`, and where each lies among them.
    pub(crate) fn parts(&self, mut skip: usize, len: usize, mut each: impl FnMut(*mut u8, usize, usize)) {
        let mut done = 0;
        for buffer in self.0 {
            let skipped = skip.min(buffer.iov_len);
            skip -= skipped;
            let part = (buffer.iov_len - skipped).min(len - done);
            if part > 0 {
                each(buffer.iov_base.cast::<u8>().wrapping_add(skipped), part, done);
                done += part;
            }
        }
    }
}
