//! Sockets of the kernel whose records a NIC under the kernel's TCP encrypts: what they send. Everything else is the kernel's.

use std::ffi::c_void;

use libc::{c_int, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use nicforge_sockets::kernel::program;
use nicforge_sockets::posix::data::Buffers;
use nicforge_sockets::posix::tls::DATA;

use crate::records::record_type;
use crate::{counted_or_signal, done, kernel};

/// `write` of a descriptor of the kernel.
///
/// # Safety
/// As of the C library.
pub unsafe fn write(number: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    if program::get(number).is_none() {
        return kernel!(SYS_write, number, buffer, len) as ssize_t;
    }
    // SAFETY: the same contract.
    unsafe { writev(number, &iovec { iov_base: buffer.cast_mut(), iov_len: len }, 1) }
}

/// `writev` of a descriptor of the kernel.
///
/// # Safety
/// As of the C library.
pub unsafe fn writev(number: c_int, list: *const iovec, count: c_int) -> ssize_t {
    let Some(socket) = program::get(number) else { return kernel!(SYS_writev, number, list, count) as ssize_t };
    // SAFETY: the program's buffers.
    let list = unsafe { crate::data::many(list, count as usize).map(|list| Buffers::new(list)) };
    counted_or_signal(list.and_then(|list| socket.transmit(number, list, 0, DATA)), 0)
}

/// `sendto` of a descriptor of the kernel.
///
/// # Safety
/// As of the C library.
pub unsafe fn sendto(
    number: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    let Some(socket) = program::get(number) else {
        return kernel!(SYS_sendto, number, buffer, len, flags, to, to_len) as ssize_t;
    };
    let list = [iovec { iov_base: buffer.cast_mut(), iov_len: len }];
    // SAFETY: the program's buffer.
    counted_or_signal(socket.transmit(number, unsafe { Buffers::new(&list) }, flags, DATA), flags)
}

/// `sendmsg` of a descriptor of the kernel.
///
/// # Safety
/// As of the C library.
pub unsafe fn sendmsg(number: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let Some(socket) = program::get(number).filter(|_| !message.is_null()) else {
        return kernel!(SYS_sendmsg, number, message, flags) as ssize_t;
    };
    // SAFETY: the program's message, its buffers and its control messages.
    let (list, kind) = unsafe {
        let list = crate::data::many((*message).msg_iov, (*message).msg_iovlen).map(|list| Buffers::new(list));
        (list, record_type(message))
    };
    counted_or_signal(list.and_then(|list| socket.transmit(number, list, flags, kind)), flags)
}

/// `sendfile` to a descriptor of the kernel.
///
/// # Safety
/// As of the C library.
pub unsafe fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    let Some(socket) = program::get(to) else { return kernel!(SYS_sendfile, to, from, offset, count) as ssize_t };
    // SAFETY: the program's pointer, or null.
    counted_or_signal(socket.send_file(to, from, unsafe { offset.as_mut() }, count, 0), 0)
}

/// `setsockopt` of a descriptor of the kernel.
///
/// # Safety
/// As of the C library.
pub unsafe fn setsockopt(number: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int {
    // SAFETY: the same contract.
    match unsafe { program::set(number, level, name, value, len) } {
        Some(result) => done(result),
        None => kernel!(SYS_setsockopt, number, level, name, value, len) as c_int,
    }
}
