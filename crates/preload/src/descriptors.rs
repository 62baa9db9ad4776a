//! Copies, flags and ends of descriptors.

use libc::{c_int, c_uint, c_ulong};
use nicforge_sockets::kernel::program;
use nicforge_sockets::layout::State;
use nicforge_sockets::posix::{data, link, options, process, table};
use rustix::io::Errno;
use std::os::fd::AsRawFd;

use crate::{fail, kernel, ours};

/// Forgets a number that closes, and says so to the service.
fn closing(number: c_int) {
    if let Some(socket) = table::take(number) {
        process::announce(&socket);
    }
}

/// `close(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn close(number: c_int) -> c_int {
    let ours = ours(number).is_some();
    if (ours || table::protected(number)) && process::own_tables() {
        if !ours {
            // The library's own; programs that close everything believe that it is closed.
            return 0;
        }
        closing(number);
    }
    if program::is_used(number) && process::own_tables() {
        program::forget(number);
    }
    kernel!(SYS_close, number) as c_int
}

/// `close_range(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    if first > last {
        return fail(Errno::INVAL) as c_int;
    }
    if flags & CLOSE_RANGE_CLOEXEC != 0 || !process::own_tables() {
        return kernel!(SYS_close_range, first, last, flags) as c_int;
    }
    for number in table::numbers().filter(|number| (first..=last).contains(&(*number as c_uint))) {
        closing(number);
    }
    let mut from = first;
    for own in table::protected_numbers() {
        let own = own as c_uint;
        if own < from || own > last {
            continue;
        }
        if own > from && kernel!(SYS_close_range, from, own - 1, flags) < 0 {
            return -1;
        }
        from = own + 1;
    }
    if from > last {
        return 0;
    }
    kernel!(SYS_close_range, from, last, flags) as c_int
}

/// `closefrom(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn closefrom(first: c_int) {
    close_range(first.max(0) as c_uint, c_uint::MAX, 0);
}

/// `dup(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup(number: c_int) -> c_int {
    copied(number, kernel!(SYS_dup, number) as c_int)
}

/// Notes a copy.
fn copied(number: c_int, copy: c_int) -> c_int {
    if copy >= 0 && (program::is_used(number) || program::is_used(copy)) && process::own_tables() {
        program::copied(number, copy);
    }
    if copy >= 0
        && let Some(socket) = ours(number)
        && process::own_tables()
    {
        table::set(copy, socket);
    }
    copy
}

/// `dup2(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup2(number: c_int, to: c_int) -> c_int {
    if number == to {
        return kernel!(SYS_dup2, number, to) as c_int;
    }
    onto(number, to, 0)
}

/// `dup3(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup3(number: c_int, to: c_int, flags: c_int) -> c_int {
    if number == to {
        return fail(Errno::INVAL) as c_int;
    }
    onto(number, to, flags)
}

fn onto(number: c_int, to: c_int, flags: c_int) -> c_int {
    if !process::own_tables() {
        return kernel!(SYS_dup3, number, to, flags) as c_int;
    }
    if table::protected(to) {
        link::evict(to);
    }
    let before = ours(to).is_some();
    let result = kernel!(SYS_dup3, number, to, flags) as c_int;
    if result >= 0 {
        if before {
            closing(to);
        }
        copied(number, to);
    }
    result
}

/// `fcntl(2)`. The third argument travels in a register whatever its type.
#[unsafe(no_mangle)]
pub extern "C" fn fcntl(number: c_int, command: c_int, argument: c_ulong) -> c_int {
    let result = kernel!(SYS_fcntl, number, command, argument) as c_int;
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) { copied(number, result) } else { result }
}

/// `fcntl64`.
#[unsafe(no_mangle)]
pub extern "C" fn fcntl64(number: c_int, command: c_int, argument: c_ulong) -> c_int {
    fcntl(number, command, argument)
}

/// Requests about network interfaces, `SIOCADDRT` to the end of the private ones.
const INTERFACE_REQUESTS: std::ops::Range<c_ulong> = 0x890b..0x8a00;
const SIOCATMARK: c_ulong = 0x8905;

/// `ioctl(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(number: c_int, request: c_ulong, argument: *mut c_int) -> c_int {
    let Some(socket) = ours(number) else { return kernel!(SYS_ioctl, number, request, argument) as c_int };
    let value = match request {
        libc::FIONREAD if socket.state() == State::Listening => return fail(Errno::INVAL) as c_int,
        libc::FIONREAD => data::receivable(&socket) as c_int,
        libc::TIOCOUTQ => data::unsent(&socket) as c_int,
        SIOCATMARK => 0,
        request if INTERFACE_REQUESTS.contains(&request) => {
            return match options::oracle(&socket) {
                Ok(kernel) => kernel!(SYS_ioctl, kernel.as_raw_fd(), request, argument) as c_int,
                Err(cause) => fail(cause) as c_int,
            };
        }
        _ => return kernel!(SYS_ioctl, number, request, argument) as c_int,
    };
    if argument.is_null() {
        return fail(Errno::FAULT) as c_int;
    }
    // SAFETY: these requests take a pointer to an int.
    unsafe { *argument = value };
    0
}
