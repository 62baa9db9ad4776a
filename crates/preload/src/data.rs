//! Sending and receiving.

use std::ffi::c_void;

use libc::{c_int, c_uint, iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};
use nicforge_sockets::posix::data::{Buffers, receive, transmit};
use nicforge_sockets::posix::{files, socket, tls};
use rustix::io::Errno;

use crate::records::{receive_record, record_type};
use crate::{counted, counted_or_signal, fail, kernel, ours, under};

/// A program's buffer as a list of one.
fn one(buffer: *const c_void, len: size_t) -> [iovec; 1] {
    [iovec { iov_base: buffer.cast_mut(), iov_len: len }]
}

/// A program's list of buffers.
///
/// # Safety
/// `list` is valid for `count` entries.
pub(crate) unsafe fn many<'a>(list: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    if count > libc::UIO_MAXIOV as usize {
        return Err(Errno::INVAL);
    }
    if count == 0 {
        return Ok(&[]);
    }
    if list.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(list, count) })
}

/// `read(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(number: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    let Some(socket) = ours(number) else { return kernel!(SYS_read, number, buffer, len) as ssize_t };
    let buffer = one(buffer, len);
    // SAFETY: the program's buffer.
    counted(receive(number, &socket, unsafe { Buffers::new(&buffer) }, 0))
}

/// `readv(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(number: c_int, list: *const iovec, count: c_int) -> ssize_t {
    let Some(socket) = ours(number) else { return kernel!(SYS_readv, number, list, count) as ssize_t };
    // SAFETY: the program's buffers.
    let list = unsafe { many(list, count as usize).map(|list| Buffers::new(list)) };
    counted(list.and_then(|list| receive(number, &socket, list, 0)))
}

/// `write(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(number: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    let Some(socket) = ours(number) else {
        // SAFETY: the same contract.
        return unsafe { under::write(number, buffer, len) };
    };
    let buffer = one(buffer, len);
    // SAFETY: the program's buffer.
    counted_or_signal(transmit(number, &socket, unsafe { Buffers::new(&buffer) }, 0), 0)
}

/// `writev(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(number: c_int, list: *const iovec, count: c_int) -> ssize_t {
    let Some(socket) = ours(number) else {
        // SAFETY: the same contract.
        return unsafe { under::writev(number, list, count) };
    };
    // SAFETY: the program's buffers.
    let list = unsafe { many(list, count as usize).map(|list| Buffers::new(list)) };
    counted_or_signal(list.and_then(|list| transmit(number, &socket, list, 0)), 0)
}

/// `recv(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(number: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the same contract, without an address.
    unsafe { recvfrom(number, buffer, len, flags, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// `recvfrom(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    number: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    let Some(socket) = ours(number) else {
        return kernel!(SYS_recvfrom, number, buffer, len, flags, from, from_len) as ssize_t;
    };
    let buffer = one(buffer, len);
    // SAFETY: the program's buffer.
    let result = receive(number, &socket, unsafe { Buffers::new(&buffer) }, flags);
    if result.is_ok() && !from.is_null() && !from_len.is_null() {
        // TCP gives no address.
        // SAFETY: the program's pointer.
        unsafe { *from_len = 0 };
    }
    counted(result)
}

/// `send(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(number: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the same contract, without an address.
    unsafe { sendto(number, buffer, len, flags, std::ptr::null(), 0) }
}

/// `sendto(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    number: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    let Some(socket) = ours(number) else {
        // SAFETY: the same contract.
        return unsafe { under::sendto(number, buffer, len, flags, to, to_len) };
    };
    if flags & libc::MSG_FASTOPEN != 0 {
        return fail(Errno::OPNOTSUPP) as ssize_t;
    }
    let buffer = one(buffer, len);
    // SAFETY: the program's buffer.
    counted_or_signal(transmit(number, &socket, unsafe { Buffers::new(&buffer) }, flags), flags)
}

/// `recvmsg(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(number: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let Some(socket) = ours(number) else {
        let result = kernel!(SYS_recvmsg, number, message, flags) as ssize_t;
        if result >= 0 {
            // SAFETY: the kernel has filled the message in.
            unsafe { adopt_received(message) };
        }
        return result;
    };
    if message.is_null() {
        return fail(Errno::FAULT) as ssize_t;
    }
    // SAFETY: the program's message and its buffers.
    unsafe {
        let list = many((*message).msg_iov, (*message).msg_iovlen).map(|list| Buffers::new(list));
        if tls::decrypts(&socket) {
            return counted(list.and_then(|list| receive_record(number, &socket, list, flags, &mut *message)));
        }
        let result = list.and_then(|list| receive(number, &socket, list, flags));
        if result.is_ok() {
            (*message).msg_namelen = 0;
            (*message).msg_controllen = 0;
            (*message).msg_flags = 0;
        }
        counted(result)
    }
}

/// Makes descriptors ours that another process sent over a Unix socket.
///
/// # Safety
/// The kernel has filled the message in.
unsafe fn adopt_received(message: *const msghdr) {
    // SAFETY: control messages that the kernel wrote, walked as the C library's macros do.
    unsafe {
        if (*message).msg_controllen < size_of::<libc::cmsghdr>() {
            return;
        }
        let mut control = libc::CMSG_FIRSTHDR(message);
        while !control.is_null() {
            if ((*control).cmsg_level, (*control).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = (*control).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let numbers = libc::CMSG_DATA(control).cast::<c_int>();
                for index in 0..bytes / size_of::<c_int>() {
                    socket::adopt(numbers.add(index).read_unaligned());
                }
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
}

/// `sendmsg(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(number: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let Some(socket) = ours(number) else {
        // SAFETY: the same contract.
        return unsafe { under::sendmsg(number, message, flags) };
    };
    if message.is_null() {
        return fail(Errno::FAULT) as ssize_t;
    }
    // SAFETY: the program's message and its buffers.
    let list = unsafe { many((*message).msg_iov, (*message).msg_iovlen).map(|list| Buffers::new(list)) };
    if tls::encrypts(&socket) {
        // SAFETY: the program's message with its control messages.
        let kind = unsafe { record_type(message) };
        let sent = list.and_then(|list| tls::transmit(number, &socket, list, flags, kind));
        return counted_or_signal(sent, flags);
    }
    counted_or_signal(list.and_then(|list| transmit(number, &socket, list, flags)), flags)
}

/// `recvmmsg(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    number: c_int,
    list: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if ours(number).is_none() {
        return kernel!(SYS_recvmmsg, number, list, count, flags, timeout) as c_int;
    }
    let mut flags = flags;
    for index in 0..count as usize {
        // SAFETY: the program's list of `count` messages.
        let received = unsafe {
            let message = list.add(index);
            let received = recvmsg(number, &mut (*message).msg_hdr, flags & !libc::MSG_WAITFORONE);
            if received >= 0 {
                (*message).msg_len = received as c_uint;
            }
            received
        };
        if received <= 0 {
            return if index > 0 { index as c_int } else { received.min(1) as c_int };
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
    }
    count as c_int
}

/// `sendmmsg(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(number: c_int, list: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    if ours(number).is_none() {
        return kernel!(SYS_sendmmsg, number, list, count, flags) as c_int;
    }
    for index in 0..count as usize {
        // SAFETY: the program's list of `count` messages.
        let sent = unsafe {
            let message = list.add(index);
            let sent = sendmsg(number, &(*message).msg_hdr, flags);
            if sent >= 0 {
                (*message).msg_len = sent as c_uint;
            }
            sent
        };
        if sent < 0 {
            return if index > 0 { index as c_int } else { -1 };
        }
    }
    count as c_int
}

/// `sendfile(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    if ours(from).is_some() {
        return fail(Errno::INVAL) as ssize_t;
    }
    let Some(socket) = ours(to) else {
        // SAFETY: the same contract.
        return unsafe { under::sendfile(to, from, offset, count) };
    };
    // SAFETY: the program's pointer, or null.
    counted_or_signal(files::send_file(to, &socket, from, unsafe { offset.as_mut() }, count), 0)
}

/// `sendfile64`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    // SAFETY: the same contract.
    unsafe { sendfile(to, from, offset, count) }
}

/// `splice(2)`: programs fall back to reading and writing on EINVAL.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut off_t,
    to: c_int,
    to_offset: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    if ours(from).is_some() || ours(to).is_some() {
        return fail(Errno::INVAL) as ssize_t;
    }
    kernel!(SYS_splice, from, from_offset, to, to_offset, len, flags) as ssize_t
}
