//! Waiting for descriptors: `poll` and `epoll`.

use super::*;

fn patience(timeout_ms: c_int) -> Option<Time> {
    (timeout_ms >= 0).then(|| Time::from_ms(timeout_ms as u64))
}

pub unsafe extern "C" fn poll(userdata: *mut c_void, fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
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

pub unsafe extern "C" fn epoll_create(userdata: *mut c_void, size: c_int) -> c_int {
    if size <= 0 {
        return fail(Errno::INVALID);
    }
    with(unsafe { shared(userdata) }, |world| reserve(world.sockets.epoll_create()))
}

pub unsafe extern "C" fn epoll_ctl(
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

pub unsafe extern "C" fn epoll_wait(
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
