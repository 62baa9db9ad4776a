//! Calls that make, bind, listen, accept, connect and close.

use nicforge_units::Time;

use super::{Errno, Family, Fd, File, Half, Kind, Socket, SocketName, Sockets};
use crate::conn::{State, Tuning};
use crate::ring::Buffers;
use crate::stack::ConnectionId;

/// Largest backlog (`net.core.somaxconn`).
const BACKLOG_MOST: i32 = 4096;

impl<B: Buffers> Sockets<B> {
    /// A stream socket.
    pub fn socket(&mut self, family: Family, non_blocking: bool) -> Fd {
        let tuning = Tuning::new(self.stack.config());
        self.add(File::Socket(Box::new(Socket {
            family,
            kind: Kind::Fresh,
            tuning,
            non_blocking,
            bound: (None, 0),
            reuse_address: false,
            reuse_port: false,
            v6_only: false,
            linger: None,
            connect_reported: false,
            shut_read: false,
            shut_write: false,
            receive_timeout: None,
            send_timeout: None,
            zero_copy: false,
            pending_error: None,
        })))
    }

    fn check_family(&self, fd: Fd, name: &SocketName) -> Result<(), Errno> {
        let socket = self.socket_ref(fd)?;
        match socket.family {
            Family::V4 if !name.ip.is_ipv4() => Err(Errno::NO_FAMILY),
            Family::V6 if name.ip.is_ipv4() => Err(Errno::NO_FAMILY),
            Family::V6 if socket.v6_only && name.plain().0.is_some_and(|ip| ip.is_ipv4()) => {
                Err(Errno::NETWORK_UNREACHABLE)
            }
            _ => Ok(()),
        }
    }

    /// Gives a socket its own address.
    pub fn bind(&mut self, fd: Fd, name: SocketName) -> Result<(), Errno> {
        self.check_family(fd, &name)?;
        let socket = self.socket_ref(fd)?;
        if socket.kind != Kind::Fresh || socket.bound.1 != 0 {
            return Err(Errno::INVALID);
        }
        let (ip, port) = name.plain();
        if ip.is_some_and(|ip| !self.stack.host().owns(ip)) {
            return Err(Errno::ADDRESS_UNAVAILABLE);
        }
        let (reuse, reuse_port) = (socket.reuse_address, socket.reuse_port);
        if port != 0 && !reuse_port && self.stack.is_port_taken(ip, port, reuse) {
            return Err(Errno::ADDRESS_IN_USE);
        }
        let port = if port == 0 { self.stack.free_port(ip).ok_or(Errno::ADDRESS_IN_USE)? } else { port };
        self.socket_mut(fd)?.bound = (ip, port);
        Ok(())
    }

    /// Takes connections.
    pub fn listen(&mut self, fd: Fd, backlog: i32) -> Result<(), Errno> {
        let socket = self.socket_ref(fd)?;
        let backlog = if backlog < 0 { BACKLOG_MOST } else { backlog.min(BACKLOG_MOST) } as usize;
        match socket.kind {
            Kind::Listening(id) => {
                self.stack.set_backlog(id, backlog);
                return Ok(());
            }
            Kind::Connection(_) => return Err(Errno::INVALID),
            Kind::Fresh => {}
        }
        let (local, mut port) = socket.bound;
        let (tuning, reuse_port) = (socket.tuning.clone(), socket.reuse_port);
        if port == 0 {
            port = self.stack.free_port(local).ok_or(Errno::ADDRESS_IN_USE)?;
        }
        let id = self.stack.listen(local, port, backlog, tuning, reuse_port)?;
        self.listener_owners.insert(id, fd);
        let socket = self.socket_mut(fd)?;
        socket.kind = Kind::Listening(id);
        socket.bound.1 = port;
        Ok(())
    }

    /// The oldest connection that waits, as a new descriptor.
    pub fn accept(&mut self, fd: Fd, non_blocking: bool) -> Result<Fd, Errno> {
        let socket = self.socket_ref(fd)?;
        let Kind::Listening(listener) = socket.kind else { return Err(Errno::INVALID) };
        let parent = socket.clone();
        let id = self.stack.accept(listener).ok_or(Errno::AGAIN)?;
        let tuning = self.stack.connection(id).map_or(parent.tuning.clone(), |connection| connection.tuning.clone());
        let child = Socket {
            kind: Kind::Connection(id),
            tuning,
            non_blocking,
            connect_reported: true,
            pending_error: None,
            ..parent
        };
        let fd = self.add(File::Socket(Box::new(child)));
        self.owners.insert(id, fd);
        Ok(fd)
    }

    /// Begins to connect: [`Errno::IN_PROGRESS`] until [`Sockets::connect_outcome`] says more.
    pub fn connect(&mut self, fd: Fd, name: SocketName, now: Time) -> Result<(), Errno> {
        let socket = self.socket_ref(fd)?;
        match socket.kind {
            Kind::Listening(_) => return Err(Errno::IS_CONNECTED),
            // Whoever was told of a connection keeps it, even after its end.
            Kind::Connection(_) if socket.connect_reported => return Err(Errno::IS_CONNECTED),
            Kind::Connection(_) => {
                return match self.connect_outcome(fd)? {
                    None => Err(Errno::ALREADY),
                    Some(outcome) => {
                        self.socket_mut(fd)?.connect_reported = true;
                        outcome
                    }
                };
            }
            Kind::Fresh => {}
        }
        self.check_family(fd, &name)?;
        let (ip, port) = name.plain();
        let loopback = self.stack.host().addresses.iter().find(|address| address.ip.is_ipv4() == name.ip.is_ipv4());
        let ip = ip.or(loopback.map(|address| address.ip)).ok_or(Errno::NETWORK_UNREACHABLE)?;
        if port == 0 {
            return Err(Errno::REFUSED);
        }
        let socket = self.socket_ref(fd)?;
        let (bound, tuning) = (socket.bound, socket.tuning.clone());
        let id = self.stack.connect(bound, (ip, port), tuning, now)?;
        self.owners.insert(id, fd);
        let socket = self.socket_mut(fd)?;
        socket.kind = Kind::Connection(id);
        socket.connect_reported = false;
        Err(Errno::IN_PROGRESS)
    }

    /// How a connect ended: nothing while it is under way. An error is taken.
    pub fn connect_outcome(&mut self, fd: Fd) -> Result<Option<Result<(), Errno>>, Errno> {
        Ok(match self.state_of(fd)? {
            None | Some(State::SynSent | State::SynReceived) => None,
            Some(State::Closed) => {
                let error = self.take_error(fd)?.unwrap_or(Errno::ABORTED);
                self.forget_connection(fd)?;
                Some(Err(error))
            }
            Some(_) => Some(Ok(())),
        })
    }

    /// A blocking connect has seen its outcome.
    pub fn note_connected(&mut self, fd: Fd) -> Result<(), Errno> {
        self.socket_mut(fd)?.connect_reported = true;
        Ok(())
    }

    /// A connect that failed leaves a socket that may try again.
    fn forget_connection(&mut self, fd: Fd) -> Result<(), Errno> {
        if let Kind::Connection(id) = self.socket_ref(fd)?.kind {
            self.owners.remove(&id);
            self.stack.release(id, Time::ZERO);
            self.socket_mut(fd)?.kind = Kind::Fresh;
        }
        Ok(())
    }

    /// Closes a descriptor; a connection ends in its own time.
    pub fn close(&mut self, fd: Fd, now: Time) -> Result<(), Errno> {
        let index = self.index(fd).ok_or(Errno::BAD_FD)?;
        let file = self.files.get_mut(index).and_then(Option::take).ok_or(Errno::BAD_FD)?;
        self.unwatch(fd);
        let File::Socket(socket) = file else { return Ok(()) };
        match socket.kind {
            Kind::Fresh => {}
            Kind::Listening(id) => {
                self.listener_owners.remove(&id);
                self.stack.unlisten(id, now);
            }
            Kind::Connection(id) => {
                self.owners.remove(&id);
                self.close_connection(id, &socket, now);
            }
        }
        Ok(())
    }

    fn close_connection(&mut self, id: ConnectionId, socket: &Socket, now: Time) {
        if socket.linger == Some(Time::ZERO) {
            self.stack.abort(id);
        }
        self.stack.release(id, now);
    }

    /// Disconnects (`connect` with `AF_UNSPEC`): the connection is reset, the socket may connect again.
    pub fn disconnect(&mut self, fd: Fd, now: Time) -> Result<(), Errno> {
        if let Kind::Connection(id) = self.socket_ref(fd)?.kind {
            self.owners.remove(&id);
            self.stack.abort(id);
            self.stack.release(id, now);
            let socket = self.socket_mut(fd)?;
            socket.kind = Kind::Fresh;
            (socket.shut_read, socket.shut_write) = (false, false);
        }
        Ok(())
    }

    /// Closes one or both halves.
    pub fn shutdown(&mut self, fd: Fd, half: Half, now: Time) -> Result<(), Errno> {
        let state = self.state_of(fd)?;
        let Kind::Connection(id) = self.socket_ref(fd)?.kind else { return Err(Errno::NOT_CONNECTED) };
        if state.is_none_or(|state| state == State::Closed) {
            return Err(Errno::NOT_CONNECTED);
        }
        let socket = self.socket_mut(fd)?;
        socket.shut_read |= half != Half::Write;
        socket.shut_write |= half != Half::Read;
        if half != Half::Read {
            self.stack.shut_write(id, now);
        }
        self.changes += 1;
        self.wake_watchers(fd);
        Ok(())
    }
}
