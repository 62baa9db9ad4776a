//! packetdrill's calls, each a few lines around [`nicforge_tcp::socket`].

mod data;
mod device;
mod options;
mod ready;

use std::ffi::{c_int, c_longlong, c_uint, c_ulong, c_void};

use libc::{
    epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval, timezone,
};
use nicforge_tcp::socket::{EpollEvent, EpollOperation, Errno, Family, Fd, Half, Interest, ReceiveFlags, SendFlags};
use nicforge_units::Time;

use crate::abi::Interface;
use crate::message::{gather, input, output, pieces, read_name, write_name};
use crate::wait::returned_at;
use crate::world::{Shared, World};
pub use data::send_file;
use data::*;
use device::*;
pub use options::option;
use options::*;
use ready::*;

/// The table that packetdrill gets.
pub fn table(userdata: *mut c_void) -> Interface {
    Interface {
        userdata,
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt,
        setsockopt,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    }
}

/// # Safety
///
/// `userdata` is what [`table`] was given and `free` has not been called.
unsafe fn shared<'a>(userdata: *mut c_void) -> &'a Shared {
    // SAFETY: see above; the box lives until `free`.
    unsafe { &*userdata.cast::<Shared>() }
}

fn fail<T: From<i8>>(error: Errno) -> T {
    // SAFETY: the C library gives every thread a valid place for its error number.
    unsafe { *libc::__errno_location() = error.0 };
    T::from(-1)
}

fn number<T: From<i8>>(outcome: Result<T, Errno>) -> T {
    outcome.unwrap_or_else(fail)
}

fn done(outcome: Result<(), Errno>) -> c_int {
    number(outcome.map(|()| 0))
}

fn size(outcome: Result<usize, Errno>) -> ssize_t {
    match outcome {
        Ok(len) => len as ssize_t,
        Err(error) => fail(error),
    }
}

/// Calls `action` with the world, then lets others see what changed.
fn with<T>(shared: &Shared, action: impl FnOnce(&mut World) -> T) -> T {
    let mut world = shared.lock();
    let result = action(&mut world);
    drop(shared.settle(world));
    result
}

pub fn owns(shared: &Shared, fd: c_int) -> bool {
    shared.lock().sockets.owns(Fd(fd))
}

unsafe extern "C" fn free(userdata: *mut c_void) {
    crate::INSTANCE.store(std::ptr::null_mut(), std::sync::atomic::Ordering::Release);
    // SAFETY: packetdrill calls this once, after all other calls have returned.
    drop(unsafe { Box::from_raw(userdata.cast::<Shared>()) });
}

unsafe extern "C" fn socket(userdata: *mut c_void, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: packetdrill passes what it was given; so in every call below.
    let shared = unsafe { shared(userdata) };
    let family = match domain {
        libc::AF_INET => Family::V4,
        libc::AF_INET6 => Family::V6,
        _ => return fail(Errno::NO_FAMILY),
    };
    if kind & 0xf != libc::SOCK_STREAM || !matches!(protocol, 0 | libc::IPPROTO_TCP) {
        return fail(Errno::NO_PROTOCOL);
    }
    with(shared, |world| {
        world.refresh();
        reserve(world.sockets.socket(family, kind & libc::SOCK_NONBLOCK != 0))
    })
}

unsafe extern "C" fn bind(userdata: *mut c_void, fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: `address` has `len` bytes, as for the system call.
    let (shared, name) = unsafe { (shared(userdata), read_name(address, len)) };
    let name = match name {
        Ok(Some(name)) => name,
        Ok(None) => return fail(Errno::NO_FAMILY),
        Err(error) => return fail(error),
    };
    with(shared, |world| done(world.sockets.bind(Fd(fd), name)))
}

unsafe extern "C" fn listen(userdata: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    with(unsafe { shared(userdata) }, |world| done(world.sockets.listen(Fd(fd), backlog)))
}

unsafe extern "C" fn accept(userdata: *mut c_void, fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    let shared = unsafe { shared(userdata) };
    let blocks = waits(shared, fd, 0);
    let outcome = maybe_wait(shared, blocks, None, |world| world.sockets.accept(Fd(fd), false));
    let new = match outcome {
        Ok(new) => new,
        Err(error) => return fail(error),
    };
    if let Ok(name) = shared.lock().sockets.peer_name(new) {
        // SAFETY: the caller's place for an address, as for the system call.
        unsafe { write_name(&name, address, len) };
    }
    reserve(new)
}

/// Takes the number in the kernel's table, too: packetdrill closes what a script left open by the C library.
fn reserve(fd: Fd) -> c_int {
    // SAFETY: plain system calls on descriptors of our own.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        let placed = libc::fcntl(null, libc::F_DUPFD_CLOEXEC, fd.0);
        libc::close(null);
        if placed != fd.0 {
            libc::close(placed);
        }
    }
    fd.0
}

/// Whether a call on `fd` waits.
fn waits(shared: &Shared, fd: c_int, flags: c_int) -> bool {
    flags & libc::MSG_DONTWAIT == 0 && !shared.lock().sockets.is_non_blocking(Fd(fd)).unwrap_or(true)
}

fn maybe_wait<T>(
    shared: &Shared,
    blocks: bool,
    patience: Option<Time>,
    mut attempt: impl FnMut(&mut World) -> Result<T, Errno>,
) -> Result<T, Errno> {
    if blocks { shared.until_done(patience, attempt) } else { with(shared, &mut attempt) }
}

unsafe extern "C" fn connect(userdata: *mut c_void, fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: `address` has `len` bytes, as for the system call.
    let (shared, name) = unsafe { (shared(userdata), read_name(address, len)) };
    let blocks = waits(shared, fd, 0);
    let begun = with(shared, |world| match name? {
        Some(name) => world.sockets.connect(Fd(fd), name, world.now),
        None => world.sockets.disconnect(Fd(fd), world.now),
    });
    if begun != Err(Errno::IN_PROGRESS) || !blocks {
        return done(begun);
    }
    done(shared.until_done(None, |world| match world.sockets.connect_outcome(Fd(fd))? {
        None => Err(Errno::AGAIN),
        Some(outcome) => {
            world.sockets.note_connected(Fd(fd))?;
            outcome
        }
    }))
}

unsafe extern "C" fn close(userdata: *mut c_void, fd: c_int) -> c_int {
    // SAFETY: the number is the one that `reserve` took.
    unsafe { libc::close(fd) };
    with(unsafe { shared(userdata) }, |world| done(world.sockets.close(Fd(fd), world.now)))
}

unsafe extern "C" fn shutdown(userdata: *mut c_void, fd: c_int, how: c_int) -> c_int {
    let half = match how {
        libc::SHUT_RD => Half::Read,
        libc::SHUT_WR => Half::Write,
        libc::SHUT_RDWR => Half::Both,
        _ => return fail(Errno::INVALID),
    };
    with(unsafe { shared(userdata) }, |world| done(world.sockets.shutdown(Fd(fd), half, world.now)))
}

unsafe extern "C" fn pipe(_userdata: *mut c_void, _fds: *mut c_int) -> c_int {
    fail(Errno::NOT_IMPLEMENTED)
}

unsafe extern "C" fn splice(
    _userdata: *mut c_void,
    _from: c_int,
    _from_offset: *mut loff_t,
    _to: c_int,
    _to_offset: *mut loff_t,
    _len: size_t,
    _flags: c_uint,
) -> c_int {
    fail(Errno::NOT_IMPLEMENTED)
}
