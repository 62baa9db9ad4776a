//! `libnicforge_sockets.so`: the socket calls of programs, over the service's stack.
//!
//! Each function has the name and the contract of the C library's. It asks the table whose descriptor it got; what is
//! not ours goes to the kernel by the system call of the same name. `poll`, `select` and `epoll` are not here: ours are
//! descriptors that the kernel can wait for.
#![allow(unsafe_code, reason = "functions with the C library's names, called by C programs with raw pointers")]

mod data;
mod descriptors;
mod fortified;
mod life;
mod names;
mod records;
mod under;

use libc::{c_int, c_long, ssize_t};
use nicforge_sockets::posix::{socket::Socket, table};
use rustix::io::Errno;

/// A system call, which sets errno itself.
macro_rules! kernel {
    ($name:ident $(, $argument:expr)*) => {
        // SAFETY: the program's own arguments, which the kernel checks.
        unsafe { libc::syscall(libc::$name $(, $argument)*) }
    };
}
pub(crate) use kernel;

/// Sets errno and returns -1.
fn fail(cause: Errno) -> c_long {
    // SAFETY: the location of this thread's errno is always valid.
    unsafe { *libc::__errno_location() = cause.raw_os_error() };
    -1
}

/// A call's result in C's form.
fn done(result: Result<(), Errno>) -> c_int {
    result.map_or_else(|cause| fail(cause) as c_int, |()| 0)
}

/// A count of bytes in C's form.
fn counted(result: Result<usize, Errno>) -> ssize_t {
    result.map_or_else(|cause| fail(cause) as ssize_t, |count| count as ssize_t)
}

/// A count of sent bytes; a broken pipe raises the signal unless the call forbids it.
fn counted_or_signal(result: Result<usize, Errno>, flags: c_int) -> ssize_t {
    if result == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: raising a signal in this thread, as the kernel would.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    counted(result)
}

/// The socket of a number, if it is ours.
#[inline]
fn ours(number: c_int) -> Option<std::sync::Arc<Socket>> {
    table::get(number)
}
