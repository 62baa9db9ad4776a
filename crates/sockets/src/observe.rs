//! Asks a service what it does, and sets limits: the other end of `nicforge ss`.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::control::{Request, RequestMessage, ask, receive, retry, send};
use crate::service::{ApplicationView, Limits, SocketView, View};

/// The service did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// There is none.
    #[error("no service answers at {path}: {cause}")]
    NoService {
        /// Its path.
        path: String,
        /// Why.
        cause: Errno,
    },
    /// The process to limit is not one of the service's, or another user's.
    #[error("no process {0} of yours has sockets of the service")]
    NoProcess(u32),
    /// An answer that is none.
    #[error("the service's answer: {0}")]
    Answer(#[from] serde_json::Error),
}

/// Everything that a service shows.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Registered processes.
    pub applications: Vec<ApplicationView>,
    /// Sockets.
    pub sockets: Vec<SocketView>,
}

/// Longest line of an answer.
const LINE_BYTES: usize = 4096;

fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let control = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&control, &SocketAddrUnix::new(path)?)?;
    Ok(control)
}

/// Lists applications and sockets.
pub fn list(path: &Path) -> Result<Seen, ObserveError> {
    let lost = |cause| ObserveError::NoService { path: path.display().to_string(), cause };
    let control = connect(path).map_err(lost)?;
    let mut seen = Seen::default();
    let mut from = 0;
    loop {
        let request = RequestMessage { request: Request::List as u32, value: from, ..RequestMessage::default() };
        let sent = send(control.as_fd(), bytemuck::bytes_of(&request), &[], SendFlags::empty());
        sent.map_err(lost)?;
        loop {
            let mut line = [0; LINE_BYTES];
            let received = retry(|| receive(control.as_fd(), &mut line, RecvFlags::empty())).map_err(lost)?;
            if received.len == 0 {
                return Err(lost(Errno::CONNRESET));
            }
            match serde_json::from_slice(&line[..received.len])? {
                View::Application(application) => seen.applications.push(application),
                View::Socket(socket) => seen.sockets.push(socket),
                View::Next(next) => {
                    from = next;
                    break;
                }
                View::End => return Ok(seen),
            }
        }
    }
}

/// Limits the process `pid`. Root may limit every process, others their own.
pub fn limit(path: &Path, pid: u32, limits: Limits) -> Result<(), ObserveError> {
    let lost = |cause| ObserveError::NoService { path: path.display().to_string(), cause };
    let control = connect(path).map_err(lost)?;
    let rate = limits.bytes_per_second.map_or(0, |rate| rate.div_ceil(1024).clamp(1, u64::from(u32::MAX)));
    let connections = limits.connections.min(u32::MAX as usize) as u64;
    let request = RequestMessage {
        request: Request::Limit as u32,
        value: pid,
        extra: rate << 32 | connections,
        ..RequestMessage::default()
    };
    match ask(&control, &request, &[]) {
        Ok(_) => Ok(()),
        Err(Errno::SRCH) => Err(ObserveError::NoProcess(pid)),
        Err(cause) => Err(lost(cause)),
    }
}
