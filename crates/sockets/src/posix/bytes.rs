//! Sending and receiving for callers in Rust.

use rustix::io::Errno;

use super::data::{Buffers, receive, transmit};
use super::socket::Socket;

/// Sends a slice.
pub fn send_slice(number: i32, socket: &Socket, bytes: &[u8], flags: i32) -> Result<usize, Errno> {
    let list = [libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }];
    // SAFETY: the slice lives through the call, which only reads it.
    transmit(number, socket, unsafe { Buffers::new(&list) }, flags)
}

/// Receives into a slice.
pub fn receive_slice(number: i32, socket: &Socket, bytes: &mut [u8], flags: i32) -> Result<usize, Errno> {
    let list = [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }];
    // SAFETY: the slice lives through the call and is the caller's alone.
    receive(number, socket, unsafe { Buffers::new(&list) }, flags)
}
