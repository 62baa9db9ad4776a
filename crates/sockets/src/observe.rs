//! Asks a service what it does, and sets limits: the other end of `nicforge ss`.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::control::{Request, RequestMessage, ask, receive, reply, retry, send};
use crate::service::{ApplicationView, HostView, Limits, SocketView, View};
use crate::watch::event::Event;
use crate::watch::filter::{Filter, FilterError};
use crate::watch::{CaptureHeader, FILTER_BYTES};

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
    /// The filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The filter is too long.
    #[error("a filter of more than {FILTER_BYTES} bytes")]
    LongFilter,
    /// The service has no port whose frames could be seen.
    #[error("the service at {0} has no network: connections within it move in memory, without frames")]
    NoNetwork(String),
    /// Somebody else's.
    #[error("only root and the service's user see its frames")]
    NotAllowed,
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
    /// The host behind the port, where the service has one.
    pub host: Option<HostView>,
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
                View::Socket(socket) => seen.sockets.push(*socket),
                View::Host(host) => seen.host = Some(host),
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

/// An observer's end.
#[derive(Debug)]
pub struct Observing {
    control: OwnedFd,
    bytes: Vec<u8>,
}

fn observe(path: &Path, request: Request, most: u32, filter: &str) -> Result<Observing, ObserveError> {
    let lost = |cause| ObserveError::NoService { path: path.display().to_string(), cause };
    // Read here as well, for an error that says where.
    Filter::parse(filter)?;
    if filter.len() > FILTER_BYTES {
        return Err(ObserveError::LongFilter);
    }
    let control = connect(path).map_err(lost)?;
    let request = RequestMessage { request: request as u32, value: most, ..RequestMessage::default() };
    let message = [bytemuck::bytes_of(&request), filter.as_bytes()].concat();
    send(control.as_fd(), &message, &[], SendFlags::empty()).map_err(lost)?;
    match reply(control.as_fd()) {
        Ok(_) => Ok(Observing { control, bytes: vec![0; MESSAGE_BYTES] }),
        Err(Errno::NETDOWN) => Err(ObserveError::NoNetwork(path.display().to_string())),
        Err(Errno::PERM) => Err(ObserveError::NotAllowed),
        Err(cause) => Err(lost(cause)),
    }
}

/// Longest message to an observer: a frame of 64 KiB and what stands before it.
const MESSAGE_BYTES: usize = 66_000;

/// Observes the frames that a filter wants, up to `most` bytes of each.
pub fn capture(path: &Path, filter: &str, most: u32) -> Result<Observing, ObserveError> {
    observe(path, Request::Capture, most, filter)
}

/// Observes what happens to the segments that a filter wants.
pub fn trace(path: &Path, filter: &str) -> Result<Observing, ObserveError> {
    observe(path, Request::Trace, 0, filter)
}

impl Observing {
    /// Waits for a message; nothing when the service has gone or a signal came.
    fn message(&mut self) -> Option<&[u8]> {
        let received = receive(self.control.as_fd(), &mut self.bytes, RecvFlags::empty()).ok()?;
        self.bytes.get(..received.len).filter(|bytes| !bytes.is_empty())
    }

    /// The next frame. Nothing at the end, or when a signal came.
    pub fn frame(&mut self) -> Option<(CaptureHeader, &[u8])> {
        let (header, frame) = self.message()?.split_at_checked(size_of::<CaptureHeader>())?;
        Some((bytemuck::pod_read_unaligned(header), frame))
    }

    /// The next event of a trace. Nothing at the end, or when a signal came.
    pub fn event(&mut self) -> Option<Result<Event, ObserveError>> {
        Some(serde_json::from_slice(self.message()?).map_err(ObserveError::from))
    }
}
