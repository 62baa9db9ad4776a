//! Calls that move data.

use super::*;

fn receive(shared: &Shared, fd: c_int, out: &mut [u8], flags: c_int) -> Result<usize, Errno> {
    if flags & libc::MSG_ERRQUEUE != 0 {
        return Err(Errno::AGAIN);
    }
    let how = ReceiveFlags { peek: flags & libc::MSG_PEEK != 0, discard: flags & libc::MSG_TRUNC != 0 };
    let patience = shared.lock().sockets.timeouts(Fd(fd))?.0;
    let all = flags & libc::MSG_WAITALL != 0;
    let mut have = 0;
    maybe_wait(shared, waits(shared, fd, flags), patience, |world| {
        let len = world.sockets.recv(Fd(fd), &mut out[have..], how, world.now);
        match len {
            Ok(0) => Ok(have),
            Ok(len) if all && have + len < out.len() => {
                have += len;
                Err(Errno::AGAIN)
            }
            Ok(len) => Ok(have + len),
            Err(Errno::AGAIN) => Err(Errno::AGAIN),
            Err(_) if have > 0 => Ok(have),
            Err(error) => Err(error),
        }
    })
}

fn transmit(shared: &Shared, fd: c_int, bytes: &[u8], flags: c_int) -> Result<usize, Errno> {
    let how = SendFlags {
        more: flags & libc::MSG_MORE != 0,
        urgent: flags & libc::MSG_OOB != 0,
        zero_copy: flags & libc::MSG_ZEROCOPY != 0,
    };
    let patience = shared.lock().sockets.timeouts(Fd(fd))?.1;
    let blocks = waits(shared, fd, flags);
    let mut sent = 0;
    maybe_wait(shared, blocks, patience, |world| match world.sockets.send(Fd(fd), &bytes[sent..], how, world.now) {
        Ok(len) => {
            sent += len;
            if sent < bytes.len() && blocks { Err(Errno::AGAIN) } else { Ok(sent) }
        }
        Err(error) if sent > 0 && (error != Errno::AGAIN || !blocks) => Ok(sent),
        Err(error) => Err(error),
    })
}

pub unsafe extern "C" fn read(userdata: *mut c_void, fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    unsafe { recv(userdata, fd, buffer, count, 0) }
}

pub unsafe extern "C" fn readv(userdata: *mut c_void, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's vector, as for the system call.
    unsafe { receive_vector(userdata, fd, vector, count as usize, 0) }
}

/// # Safety
///
/// As for `readv`.
unsafe fn receive_vector(
    userdata: *mut c_void,
    fd: c_int,
    vector: *const iovec,
    count: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller keeps the contract of `readv`.
    let (shared, pieces) = unsafe { (shared(userdata), pieces(vector, count)) };
    let pieces = match pieces {
        Ok(pieces) => pieces,
        Err(error) => return fail(error),
    };
    let total = pieces.iter().map(|piece| piece.iov_len).sum();
    let mut bytes = vec![0; total];
    let len = match receive(shared, fd, &mut bytes, flags) {
        Ok(len) => len,
        Err(error) => return fail(error),
    };
    let mut rest = &bytes[..len];
    for piece in pieces {
        // SAFETY: each piece names writable bytes of the caller.
        let Ok(place) = (unsafe { output(piece.iov_base, piece.iov_len) }) else { return fail(Errno::FAULT) };
        let part = rest.len().min(place.len());
        place[..part].copy_from_slice(&rest[..part]);
        rest = &rest[part..];
    }
    len as ssize_t
}

pub unsafe extern "C" fn recv(
    userdata: *mut c_void,
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's buffer, as for the system call.
    let (shared, out) = unsafe { (shared(userdata), output(buffer, len)) };
    match out {
        Ok(out) => size(receive(shared, fd, out, flags)),
        Err(error) => fail(error),
    }
}

pub unsafe extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    _address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    if !address_len.is_null() {
        // SAFETY: the caller's place; a stream has no address to report.
        unsafe { *address_len = 0 };
    }
    unsafe { recv(userdata, fd, buffer, len, flags) }
}

pub unsafe extern "C" fn recvmsg(userdata: *mut c_void, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return fail(Errno::FAULT);
    }
    // SAFETY: the caller's message, as for the system call.
    unsafe {
        let message = &mut *message;
        (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
        receive_vector(userdata, fd, message.msg_iov, message.msg_iovlen, flags)
    }
}

pub unsafe extern "C" fn write(userdata: *mut c_void, fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    unsafe { send(userdata, fd, buffer, count, 0) }
}

pub unsafe extern "C" fn writev(userdata: *mut c_void, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's vector, as for the system call.
    let (shared, bytes) = unsafe { (shared(userdata), gather(vector, count as usize)) };
    size(bytes.and_then(|bytes| transmit(shared, fd, &bytes, 0)))
}

pub unsafe extern "C" fn send(
    userdata: *mut c_void,
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's buffer, as for the system call.
    let (shared, bytes) = unsafe { (shared(userdata), input(buffer, len)) };
    size(bytes.and_then(|bytes| transmit(shared, fd, bytes, flags)))
}

pub unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    _address: *const sockaddr,
    _address_len: socklen_t,
) -> ssize_t {
    if flags & libc::MSG_FASTOPEN != 0 {
        return fail(Errno::NOT_SUPPORTED);
    }
    unsafe { send(userdata, fd, buffer, len, flags) }
}

/// # Safety
///
/// `offset` is null or valid, as for `sendfile`.
pub unsafe fn send_file(shared: &Shared, to: c_int, from: c_int, offset: *mut libc::off_t, count: usize) -> ssize_t {
    let mut bytes = vec![0; count.min(1 << 24)];
    let place = bytes.as_mut_ptr().cast::<c_void>();
    // SAFETY: `bytes` has the room that is asked for; `offset` as the caller says.
    let len = unsafe {
        if offset.is_null() {
            libc::read(from, place, bytes.len())
        } else {
            libc::pread(from, place, bytes.len(), *offset)
        }
    };
    let Ok(len) = usize::try_from(len) else { return -1 };
    let sent = size(transmit(shared, to, &bytes[..len], 0));
    if sent > 0 && !offset.is_null() {
        // SAFETY: as the caller says.
        unsafe { *offset += sent as libc::off_t };
    }
    sent
}

pub unsafe extern "C" fn sendmsg(userdata: *mut c_void, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return fail(Errno::FAULT);
    }
    // SAFETY: the caller's message, as for the system call.
    let (shared, bytes) = unsafe {
        let message = &*message;
        (shared(userdata), gather(message.msg_iov, message.msg_iovlen))
    };
    size(bytes.and_then(|bytes| transmit(shared, fd, &bytes, flags)))
}
