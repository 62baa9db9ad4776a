//! Making, naming and connecting sockets; options.

use std::ffi::c_void;

use libc::{c_int, sockaddr, socklen_t};
use nicforge_sockets::posix::{accept, address, files, gone, link, options, policy, socket};
use rustix::io::Errno;

use crate::{done, fail, kernel, ours, under};

/// Bits of a socket's type that are its flags.
const FLAGS: c_int = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// TCP over IP is ours when a service is named.
fn wanted(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    matches!(domain, libc::AF_INET | libc::AF_INET6)
        && kind & !FLAGS == libc::SOCK_STREAM
        && matches!(protocol, 0 | libc::IPPROTO_TCP)
        && link::path().is_some()
}

/// `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if !wanted(domain, kind, protocol) {
        return kernel!(SYS_socket, domain, kind, protocol) as c_int;
    }
    let result =
        socket::create(domain == libc::AF_INET6, kind & libc::SOCK_NONBLOCK != 0, kind & libc::SOCK_CLOEXEC != 0);
    result.unwrap_or_else(|cause| fail(gone::down(cause)) as c_int)
}

/// `bind(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(number: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    let Some(socket) = ours(number) else { return kernel!(SYS_bind, number, to, len) as c_int };
    // SAFETY: the program's pointer and its length.
    match unsafe { address::read(to, len) } {
        Ok(at) if policy::kernels(at.ip()) => match files::to_kernel(number, &socket) {
            Ok(()) => kernel!(SYS_bind, number, to, len) as c_int,
            Err(cause) => fail(cause) as c_int,
        },
        Ok(at) => done(gone::moved(number, &socket).and_then(|socket| socket::bind(&socket, at))),
        Err(cause) => fail(cause) as c_int,
    }
}

/// `listen(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn listen(number: c_int, backlog: c_int) -> c_int {
    match ours(number) {
        Some(socket) => done(gone::moved(number, &socket).and_then(|socket| socket::listen(number, &socket, backlog))),
        None => kernel!(SYS_listen, number, backlog) as c_int,
    }
}

/// `accept(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(number: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the same contract.
    unsafe { accept4(number, to, len, 0) }
}

/// `accept4(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(number: c_int, to: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    let Some(socket) = ours(number) else { return kernel!(SYS_accept4, number, to, len, flags) as c_int };
    if flags & !FLAGS != 0 {
        return fail(Errno::INVAL) as c_int;
    }
    let (nonblocking, close_on_exec) = (flags & libc::SOCK_NONBLOCK != 0, flags & libc::SOCK_CLOEXEC != 0);
    match accept::accept(number, &socket, nonblocking, close_on_exec) {
        Ok((new, remote)) => {
            if let Some(remote) = remote {
                // SAFETY: the program's pointers.
                unsafe { address::write(remote, to, len) };
            }
            new
        }
        Err(cause) => fail(cause) as c_int,
    }
}

/// `connect(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(number: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    let Some(socket) = ours(number) else { return kernel!(SYS_connect, number, to, len) as c_int };
    // SAFETY: the program's pointer and its length.
    match unsafe { address::read(to, len) } {
        Ok(at) if policy::kernels(nicforge_sockets::address::plain(at).ip()) => {
            match files::to_kernel(number, &socket) {
                Ok(()) => kernel!(SYS_connect, number, to, len) as c_int,
                Err(cause) => fail(cause) as c_int,
            }
        }
        Ok(at) => done(gone::moved(number, &socket).and_then(|socket| socket::connect(number, &socket, at))),
        Err(cause) => fail(cause) as c_int,
    }
}

/// `shutdown(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn shutdown(number: c_int, how: c_int) -> c_int {
    match ours(number) {
        Some(socket) => done(socket::shutdown(number, &socket, how)),
        None => kernel!(SYS_shutdown, number, how) as c_int,
    }
}

/// `getsockname(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(number: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    let Some(socket) = ours(number) else { return kernel!(SYS_getsockname, number, to, len) as c_int };
    if to.is_null() || len.is_null() {
        return fail(Errno::FAULT) as c_int;
    }
    // SAFETY: the program's pointers.
    unsafe { address::write(socket::local(&socket), to, len) };
    0
}

/// `getpeername(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(number: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    let Some(socket) = ours(number) else { return kernel!(SYS_getpeername, number, to, len) as c_int };
    match socket::remote(&socket) {
        Ok(_) if to.is_null() || len.is_null() => fail(Errno::FAULT) as c_int,
        Ok(remote) => {
            // SAFETY: the program's pointers.
            unsafe { address::write(remote, to, len) };
            0
        }
        Err(cause) => fail(cause) as c_int,
    }
}

/// `setsockopt(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    match ours(number) {
        // SAFETY: the same contract.
        Some(socket) => done(unsafe { options::set(number, &socket, level, name, value, len) }),
        // SAFETY: the same contract.
        None => unsafe { under::setsockopt(number, level, name, value, len) },
    }
}

/// `getsockopt(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    match ours(number) {
        // SAFETY: the same contract.
        Some(socket) => done(unsafe { options::get(number, &socket, level, name, value, len) }),
        None => kernel!(SYS_getsockopt, number, level, name, value, len) as c_int,
    }
}
