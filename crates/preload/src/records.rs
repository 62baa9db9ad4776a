//! Types of TLS records, as control messages of `sendmsg` and `recvmsg` carry them.

use libc::{c_int, msghdr};
use nicforge_sockets::posix::data::Buffers;
use nicforge_sockets::posix::socket::Socket;
use nicforge_sockets::posix::tls;
use nicforge_sockets::tls::{SOL_TLS, TLS_GET_RECORD_TYPE, TLS_SET_RECORD_TYPE};
use rustix::io::Errno;

/// Receives bytes of one record, with its type in a control message where there is room for it.
///
/// # Safety
/// The message's control buffer is writable for as many bytes as it says.
pub unsafe fn receive_record(
    number: c_int,
    socket: &Socket,
    list: Buffers<'_>,
    flags: c_int,
    message: &mut msghdr,
) -> Result<usize, Errno> {
    // SAFETY: computes a length.
    let (space, len) = unsafe { (libc::CMSG_SPACE(1) as usize, libc::CMSG_LEN(1) as usize) };
    let has_room = !message.msg_control.is_null() && message.msg_controllen >= len;
    let record = tls::receive(number, socket, list, flags, has_room)?;
    message.msg_namelen = 0;
    message.msg_flags = 0;
    if record.bytes == 0 || !has_room {
        message.msg_controllen = 0;
        return Ok(record.bytes);
    }
    message.msg_controllen = space.min(message.msg_controllen);
    // SAFETY: the control buffer has room for a header and a byte.
    unsafe {
        let control = libc::CMSG_FIRSTHDR(message);
        if !control.is_null() {
            (*control).cmsg_level = SOL_TLS;
            (*control).cmsg_type = TLS_GET_RECORD_TYPE;
            (*control).cmsg_len = len as _;
            libc::CMSG_DATA(control).write(record.kind);
        }
    }
    Ok(record.bytes)
}

/// Type of the record that a message is to become.
///
/// # Safety
/// The program's message with its control messages.
pub unsafe fn record_type(message: *const msghdr) -> u8 {
    // SAFETY: control messages, walked as the C library's macros do.
    unsafe {
        if (*message).msg_controllen < size_of::<libc::cmsghdr>() {
            return tls::DATA;
        }
        let mut control = libc::CMSG_FIRSTHDR(message);
        while !control.is_null() {
            if ((*control).cmsg_level, (*control).cmsg_type) == (SOL_TLS, TLS_SET_RECORD_TYPE)
                && (*control).cmsg_len as usize > libc::CMSG_LEN(0) as usize
            {
                return libc::CMSG_DATA(control).read();
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
    tls::DATA
}
