//! `sendfile`, and sockets that turn out to be the kernel's.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::data::{partial, put, sendable, wait_space};
use super::link::{borrowed, owned};
use super::options;
use super::socket::Socket;
use super::{table, tls};
use crate::shared::Ring;
use crate::tls::{PIECE_HEADER, PIECE_MOST, piece_header};

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
        let head = if tls::encrypts(socket) { PIECE_HEADER } else { 0 };
        let most = if head > 0 { PIECE_MOST } else { PART };
        let mut moved = 0;
        let result = put(socket, (count - sent).min(most) + head, false, |at, len| {
            if len <= head {
                return Ok(0);
            }
            // SAFETY: the lock on the ring's head is held, and these bytes are free: nobody else touches them.
            let space = unsafe { socket.memory.slice_mut(Ring::Transmit, at + head as u64, len - head) };
            let read = match &offset {
                Some(offset) => rustix::io::pread(borrowed(file), &mut space[..], **offset as u64)?,
                None => rustix::io::read(borrowed(file), &mut space[..])?,
            };
            end = read == 0;
            moved = read;
            if head == 0 || read == 0 {
                return Ok(read);
            }
            socket.memory.fill(Ring::Transmit, at, &piece_header(tls::DATA, read));
            Ok(head + read)
        });
        if let Err(cause) = result {
            return partial(sent, cause);
        }
        sent += moved;
        if let Some(offset) = &mut offset {
            **offset += moved as i64;
        }
        if end {
            break;
        }
        if moved == 0
            && let Err(cause) = wait_space(number, socket, false, head + 1)
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
