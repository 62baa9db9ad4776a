//! packetdrill's calls, each a few lines around [`nicforge_tcp::socket`].

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

unsafe extern "C" fn read(userdata: *mut c_void, fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    unsafe { recv(userdata, fd, buffer, count, 0) }
}

unsafe extern "C" fn readv(userdata: *mut c_void, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
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

unsafe extern "C" fn recv(userdata: *mut c_void, fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the caller's buffer, as for the system call.
    let (shared, out) = unsafe { (shared(userdata), output(buffer, len)) };
    match out {
        Ok(out) => size(receive(shared, fd, out, flags)),
        Err(error) => fail(error),
    }
}

unsafe extern "C" fn recvfrom(
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

unsafe extern "C" fn recvmsg(userdata: *mut c_void, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return fail(Errno::FAULT);
    }
    // SAFETY: the caller's message, as for the system call.
    unsafe {
        let message = &mut *message;
        (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
        receive_vector(userdata, fd, message.msg_iov, message.msg_iovlen as usize, flags)
    }
}

unsafe extern "C" fn write(userdata: *mut c_void, fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    unsafe { send(userdata, fd, buffer, count, 0) }
}

unsafe extern "C" fn writev(userdata: *mut c_void, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's vector, as for the system call.
    let (shared, bytes) = unsafe { (shared(userdata), gather(vector, count as usize)) };
    size(bytes.and_then(|bytes| transmit(shared, fd, &bytes, 0)))
}

unsafe extern "C" fn send(
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

unsafe extern "C" fn sendto(
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

unsafe extern "C" fn sendmsg(userdata: *mut c_void, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return fail(Errno::FAULT);
    }
    // SAFETY: the caller's message, as for the system call.
    let (shared, bytes) = unsafe {
        let message = &*message;
        (shared(userdata), gather(message.msg_iov, message.msg_iovlen as usize))
    };
    size(bytes.and_then(|bytes| transmit(shared, fd, &bytes, flags)))
}

unsafe extern "C" fn fcntl(userdata: *mut c_void, fd: c_int, command: c_int, value: c_int) -> c_int {
    with(unsafe { shared(userdata) }, |world| match command {
        libc::F_GETFL => {
            let flag = |non_blocking| libc::O_RDWR | if non_blocking { libc::O_NONBLOCK } else { 0 };
            number(world.sockets.is_non_blocking(Fd(fd)).map(flag))
        }
        libc::F_SETFL => done(world.sockets.set_non_blocking(Fd(fd), value & libc::O_NONBLOCK != 0)),
        _ => fail(Errno::INVALID),
    })
}

unsafe extern "C" fn ioctl(userdata: *mut c_void, fd: c_int, request: c_ulong, value: *mut c_void) -> c_int {
    const SIOCINQ: c_ulong = 0x541b;
    const SIOCOUTQ: c_ulong = 0x5411;
    const SIOCOUTQNSD: c_ulong = 0x894b;
    let outcome = with(unsafe { shared(userdata) }, |world| match request {
        SIOCINQ => world.sockets.unread(Fd(fd)),
        SIOCOUTQ => world.sockets.unsent(Fd(fd), false),
        SIOCOUTQNSD => world.sockets.unsent(Fd(fd), true),
        _ => Err(Errno::INVALID),
    });
    match outcome {
        Err(error) => fail(error),
        Ok(_) if value.is_null() => fail(Errno::FAULT),
        Ok(bytes) => {
            // SAFETY: these requests take the address of an int.
            unsafe { value.cast::<c_int>().write(bytes as c_int) };
            0
        }
    }
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

unsafe extern "C" fn getsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's places, as for the system call.
    unsafe { option(shared(userdata), fd, level, name, value, len) }
}

/// # Safety
///
/// `len` is valid and `value` points to `*len` bytes, as for `getsockopt`.
pub unsafe fn option(
    shared: &Shared,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    if len.is_null() {
        return fail(Errno::FAULT);
    }
    // SAFETY: see above.
    let out = match unsafe { output(value, *len as usize) } {
        Ok(out) => out,
        Err(error) => return fail(error),
    };
    match with(shared, |world| world.sockets.option(Fd(fd), level, name, out, world.now)) {
        Ok(written) => {
            // SAFETY: `len` is valid.
            unsafe { *len = written as socklen_t };
            0
        }
        Err(error) => fail(error),
    }
}

unsafe extern "C" fn setsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the caller's value, as for the system call.
    let (shared, value) = unsafe { (shared(userdata), input(value, len as usize)) };
    with(shared, |world| done(value.and_then(|value| world.sockets.set_option(Fd(fd), level, name, value, world.now))))
}

fn patience(timeout_ms: c_int) -> Option<Time> {
    (timeout_ms >= 0).then(|| Time::from_ms(timeout_ms as u64))
}

unsafe extern "C" fn poll(userdata: *mut c_void, fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let shared = unsafe { shared(userdata) };
    if fds.is_null() && count > 0 {
        return fail(Errno::FAULT);
    }
    let fds: &mut [pollfd] = if count == 0 {
        &mut []
    } else {
        // SAFETY: not null, and the caller says how many there are.
        unsafe { std::slice::from_raw_parts_mut(fds, count as usize) }
    };
    let outcome = maybe_wait(shared, timeout != 0, patience(timeout), |world| {
        let mut ready = 0;
        for entry in fds.iter_mut() {
            let always = (libc::POLLERR | libc::POLLHUP) as u32;
            entry.revents = match world.sockets.readiness(Fd(entry.fd)) {
                Ok(readiness) => (readiness.bits() & (entry.events as u32 | always)) as i16,
                Err(_) => libc::POLLNVAL,
            };
            ready += i32::from(entry.revents != 0);
        }
        if ready > 0 { Ok(ready) } else { Err(Errno::AGAIN) }
    });
    number(none_when_late(outcome))
}

fn none_when_late(outcome: Result<c_int, Errno>) -> Result<c_int, Errno> {
    if outcome == Err(Errno::AGAIN) { Ok(0) } else { outcome }
}

unsafe extern "C" fn netdev_send(userdata: *mut c_void, packet: *const c_void, len: size_t) -> c_int {
    // SAFETY: packetdrill's packet.
    let (shared, packet) = unsafe { (shared(userdata), input(packet, len)) };
    with(shared, |world| done(packet.map(|packet| world.receive(packet))))
}

/// How long packetdrill may wait for a packet that never comes.
const PACKET_PATIENCE: Time = Time::from_ms(400_000);

unsafe extern "C" fn netdev_receive(
    userdata: *mut c_void,
    out: *mut c_void,
    len: *mut size_t,
    at: *mut c_longlong,
) -> c_int {
    let shared = unsafe { shared(userdata) };
    let world = shared.lock();
    let until = world.now + PACKET_PATIENCE;
    let mut world = shared.pass(shared.settle(world), until, true);
    let (time, packet) = world.out.pop_front().unwrap_or((world.now, Vec::new()));
    // SAFETY: packetdrill's places; the buffer has `*len` bytes.
    unsafe {
        let Ok(place) = output(out, *len) else { return fail(Errno::FAULT) };
        let part = packet.len().min(place.len());
        place[..part].copy_from_slice(&packet[..part]);
        *len = part;
        *at = (time.as_ps() / 1_000_000) as c_longlong;
    }
    0
}

unsafe extern "C" fn usleep(userdata: *mut c_void, us: c_uint) -> c_int {
    let shared = unsafe { shared(userdata) };
    let world = shared.lock();
    let until = world.now + Time::from_us(us.into());
    drop(shared.pass(shared.settle(world), until, false));
    0
}

unsafe extern "C" fn gettimeofday(userdata: *mut c_void, out: *mut timeval, _zone: *mut timezone) -> c_int {
    let shared = unsafe { shared(userdata) };
    let now = returned_at().unwrap_or_else(|| {
        let world = shared.lock();
        let now = world.now;
        // packetdrill spins on the clock shortly before an event: each look takes a microsecond.
        drop(shared.pass(world, now + Time::from_us(1), false));
        now
    });
    let us = now.as_ps() / 1_000_000;
    // SAFETY: packetdrill's place for the time.
    unsafe { out.write(timeval { tv_sec: (us / 1_000_000) as i64, tv_usec: (us % 1_000_000) as i64 }) };
    0
}

unsafe extern "C" fn epoll_create(userdata: *mut c_void, size: c_int) -> c_int {
    if size <= 0 {
        return fail(Errno::INVALID);
    }
    with(unsafe { shared(userdata) }, |world| reserve(world.sockets.epoll_create()))
}

unsafe extern "C" fn epoll_ctl(
    userdata: *mut c_void,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    let shared = unsafe { shared(userdata) };
    if event.is_null() && operation != libc::EPOLL_CTL_DEL {
        return fail(Errno::FAULT);
    }
    let interest = || {
        // SAFETY: not null, the caller's event.
        let event = unsafe { event.read_unaligned() };
        Interest { events: event.events, data: event.u64 }
    };
    let operation = match operation {
        libc::EPOLL_CTL_ADD => EpollOperation::Add(interest()),
        libc::EPOLL_CTL_MOD => EpollOperation::Change(interest()),
        libc::EPOLL_CTL_DEL => EpollOperation::Delete,
        _ => return fail(Errno::INVALID),
    };
    with(shared, |world| done(world.sockets.epoll_ctl(Fd(epoll), Fd(fd), operation)))
}

unsafe extern "C" fn epoll_wait(
    userdata: *mut c_void,
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let shared = unsafe { shared(userdata) };
    if most <= 0 {
        return fail(Errno::INVALID);
    }
    let mut found = vec![EpollEvent { events: 0, data: 0 }; most as usize];
    let outcome = maybe_wait(shared, timeout != 0, patience(timeout), |world| {
        let count = world.sockets.epoll_wait(Fd(epoll), &mut found)?;
        if count > 0 { Ok(count as c_int) } else { Err(Errno::AGAIN) }
    });
    let count = match none_when_late(outcome) {
        Ok(count) => count,
        Err(error) => return fail(error),
    };
    for (index, event) in found.iter().take(count as usize).enumerate() {
        // SAFETY: the caller has room for `most` events.
        unsafe { events.add(index).write_unaligned(epoll_event { events: event.events, u64: event.data }) };
    }
    count
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
