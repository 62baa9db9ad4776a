//! Receiving in programs built with `_FORTIFY_SOURCE`.

use std::ffi::c_void;

use libc::{c_int, size_t, sockaddr, socklen_t, ssize_t};

use crate::data::{read, recv, recvfrom};

/// `read` of programs built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(number: c_int, buffer: *mut c_void, len: size_t, room: size_t) -> ssize_t {
    fortify(len, room);
    // SAFETY: the same contract.
    unsafe { read(number, buffer, len) }
}

/// `recv` of programs built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    number: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    fortify(len, room);
    // SAFETY: the same contract.
    unsafe { recv(number, buffer, len, flags) }
}

/// `recvfrom` of programs built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    number: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    fortify(len, room);
    // SAFETY: the same contract.
    unsafe { recvfrom(number, buffer, len, flags, from, from_len) }
}

/// Ends the program, as the C library does, before a buffer overflows.
fn fortify(len: size_t, room: size_t) {
    if len > room {
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}
