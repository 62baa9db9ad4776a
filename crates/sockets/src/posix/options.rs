//! Socket options with the kernel's answers: a kernel socket that is made for the call judges each value, and gives it
//! back in the form that programs expect.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::link::borrowed;
use super::lock::lock;
use super::socket::Socket;
use super::tls;
use crate::layout::{Kind, OPTION_BYTES, OPTIONS, OptionSlot, State};
use crate::queue::Message;

/// A kernel socket of the same family.
pub fn oracle(socket: &Socket) -> Result<OwnedFd, Errno> {
    let family = if socket.v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

fn slots(socket: &Socket) -> &[OptionSlot] {
    let count = socket.page().application.option_count.load(Ordering::Acquire) as usize;
    &socket.page().options[..count.min(OPTIONS)]
}

fn find(socket: &Socket, level: i32, name: i32) -> Option<&OptionSlot> {
    slots(socket).iter().find(|slot| {
        slot.level.load(Ordering::Relaxed) == level as u32 && slot.name.load(Ordering::Relaxed) == name as u32
    })
}

fn value(slot: &OptionSlot) -> ([u8; OPTION_BYTES], usize) {
    let mut bytes = [0; OPTION_BYTES];
    for (byte, stored) in bytes.iter_mut().zip(&slot.value) {
        *byte = stored.load(Ordering::Relaxed);
    }
    (bytes, (slot.len.load(Ordering::Relaxed) as usize).min(OPTION_BYTES))
}

/// A stored option as a number.
pub fn number(socket: &Socket, level: i32, name: i32) -> Option<i32> {
    let (bytes, len) = value(find(socket, level, name)?);
    (len >= 4).then(|| i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn store(socket: &Socket, level: i32, name: i32, bytes: &[u8]) {
    let own = &socket.page().application;
    let _held = lock(&own.option_lock);
    let slot = match find(socket, level, name) {
        Some(slot) => slot,
        None => {
            let count = own.option_count.load(Ordering::Relaxed) as usize;
            // More options than slots: the value holds for the stack, and reads as the default.
            let Some(slot) = socket.page().options.get(count) else { return };
            slot.level.store(level as u32, Ordering::Relaxed);
            slot.name.store(name as u32, Ordering::Relaxed);
            own.option_count.store(count as u32 + 1, Ordering::Release);
            slot
        }
    };
    for (stored, byte) in slot.value.iter().zip(bytes) {
        stored.store(*byte, Ordering::Relaxed);
    }
    slot.len.store(bytes.len() as u32, Ordering::Release);
}

/// Copies all options.
pub fn copy(from: &Socket, to: &Socket) {
    for slot in slots(from) {
        let (bytes, len) = value(slot);
        let (level, name) = (slot.level.load(Ordering::Relaxed) as i32, slot.name.load(Ordering::Relaxed) as i32);
        store(to, level, name, &bytes[..len]);
        announce(to, level, name, &bytes[..len]);
    }
}

/// Gives all stored options to a kernel socket that takes this one's place.
pub fn replay(socket: &Socket, onto: i32) {
    for slot in slots(socket) {
        let (bytes, len) = value(slot);
        let (level, name) = (slot.level.load(Ordering::Relaxed) as i32, slot.name.load(Ordering::Relaxed) as i32);
        // SAFETY: the kernel reads `len` bytes of a buffer that holds them. The option was accepted before.
        unsafe { libc::syscall(libc::SYS_setsockopt, onto, level, name, bytes.as_ptr(), len as libc::socklen_t) };
    }
}

/// Timeouts work on the descriptor itself, on which calls wait.
fn native(level: i32, name: i32) -> bool {
    const SO_RCVTIMEO_NEW: i32 = 66;
    const SO_SNDTIMEO_NEW: i32 = 67;
    level == libc::SOL_SOCKET
        && matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO | SO_RCVTIMEO_NEW | SO_SNDTIMEO_NEW | libc::SO_COOKIE)
}

/// What the stack does not have.
fn absent(level: i32, name: i32) -> bool {
    match level {
        libc::SOL_SOCKET => matches!(name, libc::SO_ZEROCOPY | libc::SO_ATTACH_FILTER | libc::SO_TIMESTAMPING),
        libc::IPPROTO_TCP => matches!(name, libc::TCP_MD5SIG | libc::TCP_REPAIR | libc::TCP_FASTOPEN),
        _ => false,
    }
}

/// What servers set for each connection, and what the kernel takes with any number: it needs no judge.
fn is_switch(level: i32, name: i32) -> bool {
    match level {
        libc::SOL_SOCKET => matches!(name, libc::SO_KEEPALIVE | libc::SO_REUSEADDR),
        libc::IPPROTO_TCP => matches!(name, libc::TCP_NODELAY | libc::TCP_CORK),
        _ => false,
    }
}

fn outcome(result: libc::c_long) -> Result<(), Errno> {
    if result >= 0 {
        return Ok(());
    }
    // SAFETY: the location of this thread's errno is always valid.
    Err(Errno::from_raw_os_error(unsafe { *libc::__errno_location() }))
}

/// `setsockopt`.
///
/// # Safety
/// `given` and `len` are as a program passes them to `setsockopt`.
pub unsafe fn set(
    fd: i32,
    socket: &Socket,
    level: i32,
    name: i32,
    given: *const libc::c_void,
    len: libc::socklen_t,
) -> Result<(), Errno> {
    if tls::is_about(level, name) {
        // SAFETY: the program's pointer, for as many bytes as it says.
        return unsafe { tls::set(socket, level, name, given, len) };
    }
    if absent(level, name) {
        return Err(Errno::NOPROTOOPT);
    }
    if native(level, name) {
        // SAFETY: the program's pointer, which the kernel checks.
        return outcome(unsafe { libc::syscall(libc::SYS_setsockopt, fd, level, name, given, len) });
    }
    if is_switch(level, name) && len as usize >= size_of::<i32>() {
        // SAFETY: the program's pointer, for as many bytes as it says.
        let on = unsafe { given.cast::<i32>().read_unaligned() } != 0;
        let bytes = i32::from(on).to_ne_bytes();
        store(socket, level, name, &bytes);
        announce(socket, level, name, &bytes);
        return Ok(());
    }
    let judge = oracle(socket)?;
    let mut bytes = [0u8; OPTION_BYTES];
    let mut got = OPTION_BYTES as libc::socklen_t;
    // SAFETY: the program's pointer, which the kernel checks, and a buffer of the length that is given.
    unsafe {
        outcome(libc::syscall(libc::SYS_setsockopt, judge.as_raw_fd(), level, name, given, len))?;
        let read = libc::syscall(libc::SYS_getsockopt, judge.as_raw_fd(), level, name, bytes.as_mut_ptr(), &mut got);
        if read < 0 {
            // Options that can only be set.
            return Ok(());
        }
    }
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_MAXSEG) {
        // A socket without one gives the default for it, which is no bound.
        // SAFETY: the judge took the value, so the program's pointer has the bytes of an integer.
        bytes[..4].copy_from_slice(&unsafe { given.cast::<i32>().read_unaligned() }.to_ne_bytes());
    }
    let bytes = &bytes[..(got as usize).min(OPTION_BYTES)];
    store(socket, level, name, bytes);
    announce(socket, level, name, bytes);
    Ok(())
}

/// Tells the service of an option that the stack has to know.
fn announce(socket: &Socket, level: i32, name: i32, bytes: &[u8]) {
    let tcp = level == libc::IPPROTO_TCP
        && matches!(
            name,
            libc::TCP_NODELAY
                | libc::TCP_CORK
                | libc::TCP_KEEPIDLE
                | libc::TCP_KEEPINTVL
                | libc::TCP_KEEPCNT
                | libc::TCP_USER_TIMEOUT
                | libc::TCP_MAXSEG
        );
    let socket_level = level == libc::SOL_SOCKET && matches!(name, libc::SO_KEEPALIVE | libc::SO_LINGER);
    if !tcp && !socket_level {
        return;
    }
    let mut word = [0; 8];
    let len = bytes.len().min(8);
    word[..len].copy_from_slice(&bytes[..len]);
    let option = (level as u32) << 16 | (name as u32 & 0xffff);
    let word = u64::from_ne_bytes(word);
    // The value is stored; a stack that has gone shows at the next call that moves data.
    let _ = socket.tell(Message { rx_bump: option, word, ..Message::new(Kind::Option, socket.flow) });
}

/// `getsockopt`.
///
/// # Safety
/// `to` and `len` are as a program passes them to `getsockopt`.
pub unsafe fn get(
    fd: i32,
    socket: &Socket,
    level: i32,
    name: i32,
    to: *mut libc::c_void,
    len: *mut libc::socklen_t,
) -> Result<(), Errno> {
    if native(level, name) {
        // SAFETY: the program's pointers, which the kernel checks.
        return outcome(unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, name, to, len) });
    }
    let number = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => Some(error(fd, socket)),
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => Some(i32::from(socket.state() == State::Listening)),
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) if socket.state() == State::Connected => {
            Some(socket.page().service.figures.mss.load(Ordering::Relaxed) as i32).filter(|mss| *mss > 0)
        }
        _ => None,
    };
    if let Some(number) = number {
        // SAFETY: the program's pointers.
        return unsafe { give(&number.to_ne_bytes(), to, len) };
    }
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_INFO) {
        // SAFETY: the program's pointers.
        return unsafe { give(&super::info::bytes(socket), to, len) };
    }
    let judge = oracle(socket)?;
    if let Some(slot) = find(socket, level, name) {
        let (bytes, used) = value(slot);
        let bytes = halved(level, name, bytes);
        // SAFETY: a buffer of the length that is given.
        unsafe { libc::syscall(libc::SYS_setsockopt, judge.as_raw_fd(), level, name, bytes.as_ptr(), used) };
    }
    // SAFETY: the program's pointers, which the kernel checks.
    outcome(unsafe { libc::syscall(libc::SYS_getsockopt, judge.as_raw_fd(), level, name, to, len) })
}

/// The kernel doubles buffer sizes when they are set and returns the double.
fn halved(level: i32, name: i32, bytes: [u8; OPTION_BYTES]) -> [u8; OPTION_BYTES] {
    if level != libc::SOL_SOCKET || !matches!(name, libc::SO_RCVBUF | libc::SO_SNDBUF) {
        return bytes;
    }
    let mut half = bytes;
    let number = i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) / 2;
    half[..4].copy_from_slice(&number.to_ne_bytes());
    half
}

/// The error that waits, which is cleared here and on the descriptor.
fn error(fd: i32, socket: &Socket) -> i32 {
    let _ = rustix::net::sockopt::socket_error(borrowed(fd));
    if matches!(socket.state(), State::Connecting | State::Connected) && socket.is_lost(fd) {
        return socket.lose().raw_os_error();
    }
    if matches!(socket.state(), State::Connected | State::Closed) {
        socket.page().application.connect_reported.store(1, Ordering::Release);
    }
    socket.take_error().map_or(0, |cause| cause.raw_os_error())
}

/// Copies a value as `getsockopt` does: as much as fits, and the length of that.
///
/// # Safety
/// `len` is valid, and `to` for as many bytes as it says.
unsafe fn give(bytes: &[u8], to: *mut libc::c_void, len: *mut libc::socklen_t) -> Result<(), Errno> {
    if to.is_null() || len.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let part = (*len as usize).min(bytes.len());
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), part);
        *len = part as libc::socklen_t;
    }
    Ok(())
}
