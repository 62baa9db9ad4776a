//! Where a connection of the kernel's TCP is.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nicforge_l5p::context::FlowKey;
use nicforge_l5p::sequence::Seq;
use rustix::io::Errno;

// linux/tcp.h; libc has the first only.
const TCP_REPAIR_ON: c_int = 1;
const TCP_REPAIR_OFF_WITHOUT_PROBE: c_int = -1;
const TCP_SEND_QUEUE: c_int = 2;

/// The direction of a connection that leaves.
pub fn outward(connection: BorrowedFd<'_>) -> Result<FlowKey, Errno> {
    let end = |address: rustix::net::SocketAddrAny| SocketAddr::try_from(address).map_err(|_| Errno::OPNOTSUPP);
    let local = end(rustix::net::getsockname(connection)?)?;
    let remote = end(rustix::net::getpeername(connection)?.ok_or(Errno::NOTCONN)?)?;
    Ok(FlowKey::between(local, remote))
}

/// The sequence number that the next byte written gets. The kernel tells it while a socket is under repair, which takes
/// the right to administer the network. What an acknowledgment would have sent meanwhile waits for the next one.
pub fn next_sequence(connection: BorrowedFd<'_>) -> Result<Seq, Errno> {
    let is_reused = rustix::net::sockopt::socket_reuseaddr(connection)?;
    set(connection, libc::TCP_REPAIR, TCP_REPAIR_ON)?;
    let number = set(connection, libc::TCP_REPAIR_QUEUE, TCP_SEND_QUEUE).and_then(|()| queue_sequence(connection));
    set(connection, libc::TCP_REPAIR, TCP_REPAIR_OFF_WITHOUT_PROBE)?;
    // The end of a repair takes this away, and a server that starts again would find its port in use.
    rustix::net::sockopt::set_socket_reuseaddr(connection, is_reused)?;
    number
}

/// Lets a connection leave by one device only, whatever routes say later.
pub fn bind_to_device(connection: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    // SAFETY: the option takes bytes, which live until the call returns.
    let result = unsafe {
        let (name, len) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
        libc::setsockopt(connection.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name, len)
    };
    if result == 0 { Ok(()) } else { Err(last()) }
}

fn set(connection: BorrowedFd<'_>, name: c_int, value: c_int) -> Result<(), Errno> {
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the option takes an int, which lives until the call returns.
    let result =
        unsafe { libc::setsockopt(connection.as_raw_fd(), libc::IPPROTO_TCP, name, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(last()) }
}

fn queue_sequence(connection: BorrowedFd<'_>) -> Result<Seq, Errno> {
    let (mut number, mut len) = (0u32, size_of::<u32>() as libc::socklen_t);
    // SAFETY: the option gives an int, and there is room for one.
    let result = unsafe {
        let into = (&raw mut number).cast();
        libc::getsockopt(connection.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, into, &raw mut len)
    };
    if result == 0 { Ok(Seq(number)) } else { Err(last()) }
}

fn last() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
