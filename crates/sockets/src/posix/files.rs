//! `sendfile`, and sockets that turn out to be the kernel's.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::data::{partial, put, sendable, wait_space};
use super::link::{borrowed, owned};
use super::options;
use super::socket::Socket;
use super::table;
use crate::shared::Ring;

/// Bytes of one read.
const PART: usize = 128 << 10;

/// Sends from a file straight into the transmit ring. With `offset` the file's own position stays.
pub fn send_file(
    number: i32,
    socket: &Socket,
    file: i32,
    mut offset: Option<&mut i64>,
    count: usize,
) -> Result<usize, Errno> {
    let mut sent = 0;
    while sent < count {
        if sent > 0 && socket.has_error() {
            break;
        }
        if let Err(cause) = sendable(number, socket) {
            return partial(sent, cause);
        }
        let mut end = false;
        let result = put(socket, (count - sent).min(PART), |at, len| {
            // SAFETY: the lock on the ring's head is held, and these bytes are free: nobody else touches them.
            let space = unsafe { socket.memory.slice_mut(Ring::Transmit, at, len) };
            let read = match &offset {
                Some(offset) => rustix::io::pread(borrowed(file), &mut space[..], **offset as u64)?,
                None => rustix::io::read(borrowed(file), &mut space[..])?,
            };
            end = read == 0;
            Ok(read)
        });
        let put = match result {
            Ok(put) => put,
            Err(cause) => return partial(sent, cause),
        };
        sent += put;
        if let Some(offset) = &mut offset {
            **offset += put as i64;
        }
        if end {
            break;
        }
        if put == 0
            && let Err(cause) = wait_space(number, socket, false)
        {
            return partial(sent, cause);
        }
    }
    Ok(sent)
}

/// Puts a kernel socket in the place of ours, with its options: its address is the kernel's.
pub fn to_kernel(number: i32, socket: &Socket) -> Result<(), Errno> {
    let kernel = options::oracle(socket)?;
    use std::os::fd::AsRawFd;
    options::replay(socket, kernel.as_raw_fd());
    let descriptor = borrowed(number);
    let blocking = rustix::fs::fcntl_getfl(descriptor)?;
    if blocking.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(&kernel, OFlags::NONBLOCK)?;
    }
    let close_on_exec = rustix::io::fcntl_getfd(descriptor)?.contains(rustix::io::FdFlags::CLOEXEC);
    let flags = if close_on_exec { rustix::io::DupFlags::CLOEXEC } else { rustix::io::DupFlags::empty() };
    let mut place = std::mem::ManuallyDrop::new(owned(number));
    rustix::io::dup3(&kernel, &mut place, flags)?;
    table::take(number);
    Ok(())
}
