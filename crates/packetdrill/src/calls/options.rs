//! Options and requests.

use super::*;

pub unsafe extern "C" fn fcntl(userdata: *mut c_void, fd: c_int, command: c_int, value: c_int) -> c_int {
    with(unsafe { shared(userdata) }, |world| match command {
        libc::F_GETFL => {
            let flag = |non_blocking| libc::O_RDWR | if non_blocking { libc::O_NONBLOCK } else { 0 };
            number(world.sockets.is_non_blocking(Fd(fd)).map(flag))
        }
        libc::F_SETFL => done(world.sockets.set_non_blocking(Fd(fd), value & libc::O_NONBLOCK != 0)),
        _ => fail(Errno::INVALID),
    })
}

pub unsafe extern "C" fn ioctl(userdata: *mut c_void, fd: c_int, request: c_ulong, value: *mut c_void) -> c_int {
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

pub unsafe extern "C" fn getsockopt(
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

pub unsafe extern "C" fn setsockopt(
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
