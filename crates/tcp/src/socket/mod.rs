//! Sockets: the calls, options and errors that programs know, over a [`Stack`].
//!
//! Nothing here blocks. A call that would block returns [`Errno::AGAIN`], [`Sockets::connect`] returns
//! [`Errno::IN_PROGRESS`]; whoever offers blocking calls waits for [`Sockets::readiness`] to change and calls again.
//! A preloaded library and packetdrill's library share this layer.

mod data;
mod epoll;
mod errno;
mod info;
mod name;
mod open;
mod option;

use std::net::IpAddr;

use nicforge_units::Time;

use crate::conn::{State, Tuning};
use crate::ring::Buffers;
use crate::stack::{ConnectionId, Event, ListenerId, Stack};

pub use data::{ReceiveFlags, SendFlags};
pub use epoll::{EpollEvent, EpollOperation, Interest};
pub use errno::Errno;
pub use name::SocketName;
pub use option::{level, name as option_name};

/// A descriptor of this layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fd(pub i32);

/// Address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, and IPv4 by mapped addresses.
    V6,
}

/// Which half a `shutdown` closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Receiving.
    Read,
    /// Sending.
    Write,
    /// Both.
    Both,
}

/// What a descriptor is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Data, a connection to accept, or the end of the stream.
    pub readable: bool,
    /// Room to write, or a write would fail at once.
    pub writable: bool,
    /// Urgent data.
    pub urgent: bool,
    /// The peer sends no more.
    pub read_closed: bool,
    /// Both directions have ended.
    pub hung_up: bool,
    /// An error waits.
    pub error: bool,
}

/// What a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Neither connected nor listening.
    Fresh,
    Listening(ListenerId),
    Connection(ConnectionId),
}

/// A socket.
#[derive(Clone, Debug)]
struct Socket {
    family: Family,
    kind: Kind,
    tuning: Tuning,
    non_blocking: bool,
    bound: (Option<IpAddr>, u16),
    reuse_address: bool,
    reuse_port: bool,
    v6_only: bool,
    linger: Option<Time>,
    /// The outcome of a connect was reported.
    connect_reported: bool,
    shut_read: bool,
    shut_write: bool,
    receive_timeout: Option<Time>,
    send_timeout: Option<Time>,
    zero_copy: bool,
    pending_error: Option<Errno>,
}

enum File {
    Socket(Box<Socket>),
    Epoll(epoll::Epoll),
}

/// The descriptors of one application over one stack.
pub struct Sockets<B: Buffers> {
    /// The host below.
    pub stack: Stack<B>,
    files: Vec<Option<File>>,
    first: i32,
    /// Application of a connection.
    owners: std::collections::BTreeMap<ConnectionId, Fd>,
    listener_owners: std::collections::BTreeMap<ListenerId, Fd>,
    /// Grows with everything that may have made a descriptor ready.
    changes: u64,
}

impl<B: Buffers> Sockets<B> {
    /// No descriptors yet; numbers begin at `first`.
    pub fn new(stack: Stack<B>, first: i32) -> Sockets<B> {
        Sockets {
            stack,
            files: Vec::new(),
            first,
            owners: Default::default(),
            listener_owners: Default::default(),
            changes: 0,
        }
    }

    /// Whether `fd` is one of ours.
    pub fn owns(&self, fd: Fd) -> bool {
        self.file(fd).is_some()
    }

    /// Takes the stack's events to the descriptors they belong to. To be called after frames, timers and calls.
    pub fn dispatch(&mut self) {
        while let Some(event) = self.stack.next_event() {
            self.changes += 1;
            let fd = match event {
                Event::Changed(id) | Event::Arrived(id) => self.owners.get(&id),
                Event::Accepted(id) => self.listener_owners.get(&id),
            };
            if let Some(fd) = fd.copied() {
                self.wake_watchers(fd);
            }
        }
    }

    /// A number that grows whenever a descriptor may have become ready.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn index(&self, fd: Fd) -> Option<usize> {
        usize::try_from(fd.0.checked_sub(self.first)?).ok()
    }

    fn file(&self, fd: Fd) -> Option<&File> {
        self.files.get(self.index(fd)?)?.as_ref()
    }

    fn socket_ref(&self, fd: Fd) -> Result<&Socket, Errno> {
        match self.file(fd) {
            Some(File::Socket(socket)) => Ok(socket),
            Some(File::Epoll(_)) => Err(Errno::NOT_SOCKET),
            None => Err(Errno::BAD_FD),
        }
    }

    fn socket_mut(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        let index = self.index(fd).ok_or(Errno::BAD_FD)?;
        match self.files.get_mut(index).and_then(Option::as_mut) {
            Some(File::Socket(socket)) => Ok(socket),
            Some(File::Epoll(_)) => Err(Errno::NOT_SOCKET),
            None => Err(Errno::BAD_FD),
        }
    }

    fn add(&mut self, file: File) -> Fd {
        let index = match self.files.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.files.push(None);
                self.files.len() - 1
            }
        };
        self.files[index] = Some(file);
        Fd(self.first + index as i32)
    }

    fn connection_of(&self, fd: Fd) -> Result<Option<ConnectionId>, Errno> {
        Ok(match self.socket_ref(fd)?.kind {
            Kind::Connection(id) => Some(id),
            _ => None,
        })
    }

    fn state_of(&self, fd: Fd) -> Result<Option<State>, Errno> {
        let id = self.connection_of(fd)?;
        Ok(id.and_then(|id| self.stack.connection(id)).map(|connection| connection.state()))
    }

    /// Whether calls on the descriptor must not wait.
    pub fn is_non_blocking(&self, fd: Fd) -> Result<bool, Errno> {
        Ok(self.socket_ref(fd)?.non_blocking)
    }

    /// Sets whether calls must not wait (`O_NONBLOCK`).
    pub fn set_non_blocking(&mut self, fd: Fd, on: bool) -> Result<(), Errno> {
        self.socket_mut(fd)?.non_blocking = on;
        Ok(())
    }

    /// How long blocking calls wait at most: receiving, sending.
    pub fn timeouts(&self, fd: Fd) -> Result<(Option<Time>, Option<Time>), Errno> {
        let socket = self.socket_ref(fd)?;
        Ok((socket.receive_timeout, socket.send_timeout))
    }

    /// Takes the error of a connection, once (`SO_ERROR`).
    fn take_error(&mut self, fd: Fd) -> Result<Option<Errno>, Errno> {
        let socket = self.socket_mut(fd)?;
        if let Some(error) = socket.pending_error.take() {
            return Ok(Some(error));
        }
        let Kind::Connection(id) = socket.kind else { return Ok(None) };
        Ok(self.stack.with(id, |connection| connection.take_error()).flatten().map(Errno::from))
    }

    /// What the descriptor is ready for (`poll`).
    pub fn readiness(&self, fd: Fd) -> Result<Readiness, Errno> {
        let Some(File::Socket(socket)) = self.file(fd) else {
            return match self.file(fd) {
                Some(File::Epoll(epoll)) => Ok(Readiness { readable: self.has_ready(epoll), ..Readiness::default() }),
                _ => Err(Errno::BAD_FD),
            };
        };
        let id = match socket.kind {
            Kind::Fresh => return Ok(Readiness { writable: true, hung_up: true, ..Readiness::default() }),
            Kind::Listening(id) => {
                return Ok(Readiness { readable: self.stack.waiting(id) > 0, ..Readiness::default() });
            }
            Kind::Connection(id) => id,
        };
        let Some(connection) = self.stack.connection(id) else {
            return Ok(Readiness { hung_up: true, readable: true, writable: true, ..Readiness::default() });
        };
        let state = connection.state();
        let read_closed = connection.is_read_closed() || socket.shut_read;
        let write_closed = socket.shut_write || !connection.can_send();
        let open = !matches!(state, State::SynSent | State::SynReceived);
        let enough = connection.readable() >= socket.tuning.receive_low_water;
        Ok(Readiness {
            readable: read_closed || (open && enough),
            writable: open && (write_closed || connection.has_room()),
            urgent: connection.is_urgent(),
            read_closed,
            hung_up: state == State::Closed || (read_closed && write_closed),
            error: connection.has_error() || socket.pending_error.is_some(),
        })
    }
}
