//! `accept`: connections come as messages in their listener's descriptor.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use bytemuck::Zeroable;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::link::{borrowed, link};
use super::socket::{Socket, nonblocking, set_flags};
use super::{gone, table};
use crate::control::{Arrival, receive};
use crate::layout::{Kind, State};
use crate::queue::Message;

/// `accept4`. Returns the new descriptor and the peer's address.
pub fn accept(
    number: i32,
    socket: &Arc<Socket>,
    nonblocking: bool,
    close_on_exec: bool,
) -> Result<(i32, Option<SocketAddr>), Errno> {
    spare_numbers(number)?;
    let (arrival, end, memory) = arrival(number, socket)?;
    let accepted = Socket::of(memory)?;
    set_flags(end.as_fd(), nonblocking, close_on_exec)?;
    // A connection whose service has gone meanwhile says so at its first call.
    if let Ok(link) = link()
        && link.instance == accepted.instance
    {
        let taken = Message { word: accepted.key, ..Message::new(Kind::Accepted, accepted.flow) };
        let _ = link.push(&[taken]);
        accepted.attach_to(&link);
    }
    let new = end.as_raw_fd();
    HIGHEST.fetch_max(new, Ordering::Relaxed);
    if !table::set(new, Arc::new(accepted)) {
        return Err(Errno::MFILE);
    }
    Ok((end.into_raw_fd(), arrival.remote.address()))
}

/// Waits, as the kernel would, for the next connection of a listener.
fn arrival(number: i32, socket: &Arc<Socket>) -> Result<(Arrival, OwnedFd, OwnedFd), Errno> {
    let mut socket = socket.clone();
    loop {
        if socket.state() != State::Listening {
            return Err(Errno::INVAL);
        }
        let mut arrival = Arrival::zeroed();
        match receive(borrowed(number), bytemuck::bytes_of_mut(&mut arrival), RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.len > 0 => {
                let Ok([end, memory]) = <[OwnedFd; 2]>::try_from(received.descriptors) else {
                    return Err(Errno::MFILE);
                };
                return Ok((arrival, end, memory));
            }
            Ok(_) | Err(Errno::CONNRESET | Errno::NOTSOCK) => {}
            Err(cause) => return Err(cause),
        }
        if socket.page().application.shut.load(Ordering::Acquire) != 0 {
            return Err(Errno::INVAL);
        }
        if !gone::listen_again(number, &socket)? {
            if nonblocking(number) {
                return Err(Errno::AGAIN);
            }
            gone::wait_for_service(number)?;
        }
        socket = table::get(number).ok_or(Errno::BADF)?;
    }
}

/// Highest number that a connection was accepted at.
static HIGHEST: AtomicI32 = AtomicI32::new(0);

/// A connection needs two numbers for a moment; one that finds none would be lost. Only looked for near the limit.
fn spare_numbers(number: i32) -> Result<(), Errno> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let highest = HIGHEST.load(Ordering::Relaxed).max(number) as u64;
    if highest + 64 > limit {
        let _first = rustix::io::fcntl_dupfd_cloexec(borrowed(number), 0)?;
        rustix::io::fcntl_dupfd_cloexec(borrowed(number), 0)?;
    }
    Ok(())
}
