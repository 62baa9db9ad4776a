//! Calls that move data.

use nicforge_units::Time;

use super::{Errno, Fd, Kind, Sockets};
use crate::conn::State;
use crate::ring::Buffers;

/// How data is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlags {
    /// More follows (`MSG_MORE`).
    pub more: bool,
    /// The last byte is urgent (`MSG_OOB`).
    pub urgent: bool,
    /// The buffer is lent (`MSG_ZEROCOPY`).
    pub zero_copy: bool,
}

/// How data is received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveFlags {
    /// It stays (`MSG_PEEK`).
    pub peek: bool,
    /// It is thrown away (`MSG_TRUNC`).
    pub discard: bool,
}

impl<B: Buffers> Sockets<B> {
    /// Sends as much of `bytes` as there is room for. [`Errno::AGAIN`] when that is nothing.
    pub fn send(&mut self, fd: Fd, bytes: &[u8], flags: SendFlags, now: Time) -> Result<usize, Errno> {
        if let Some(error) = self.take_error(fd)? {
            return Err(error);
        }
        let socket = self.socket_ref(fd)?;
        let Kind::Connection(id) = socket.kind else { return Err(Errno::PIPE) };
        if socket.shut_write {
            return Err(Errno::PIPE);
        }
        let connection = self.stack.connection(id).ok_or(Errno::PIPE)?;
        match connection.state() {
            State::SynSent | State::SynReceived => return Err(Errno::AGAIN),
            _ if !connection.can_send() => return Err(Errno::PIPE),
            _ => {}
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let urgent = flags.urgent;
        let sent = self.stack.send(id, bytes, flags.more, now)?;
        if sent < bytes.len() {
            self.stack.with(id, |connection| connection.wait_for_space());
        }
        if urgent && sent == bytes.len() {
            self.stack.with(id, |connection| connection.mark_urgent());
        }
        if sent == 0 { Err(Errno::AGAIN) } else { Ok(sent) }
    }

    /// Receives what there is, up to the length of `out`. Zero is the end; [`Errno::AGAIN`] when there is nothing.
    pub fn recv(&mut self, fd: Fd, out: &mut [u8], flags: ReceiveFlags, now: Time) -> Result<usize, Errno> {
        let socket = self.socket_ref(fd)?;
        let Kind::Connection(id) = socket.kind else { return Err(Errno::NOT_CONNECTED) };
        let shut = socket.shut_read;
        let connection = self.stack.connection(id).ok_or(Errno::NOT_CONNECTED)?;
        let (readable, closed, state) = (connection.readable(), connection.is_read_closed(), connection.state());
        let ended_in_order = connection.is_peer_done();
        if readable > 0 && !out.is_empty() {
            if flags.discard {
                let len = out.len().min(readable as usize);
                self.stack.discard(id, len as u32, now);
                return Ok(len);
            }
            let len = if flags.peek { self.stack.peek(id, out)? } else { self.stack.recv(id, out, now)? };
            return Ok(len);
        }
        if out.is_empty() {
            return Ok(0);
        }
        if let Some(error) = self.take_error(fd)? {
            return Err(error);
        }
        if shut || ended_in_order || (closed && state != State::Closed) {
            return Ok(0);
        }
        match state {
            State::Closed => Ok(0),
            _ => Err(Errno::AGAIN),
        }
    }

    /// Bytes to read before the end or the urgent mark (`SIOCINQ`).
    pub fn unread(&self, fd: Fd) -> Result<u32, Errno> {
        let socket = self.socket_ref(fd)?;
        match socket.kind {
            Kind::Listening(_) => Err(Errno::INVALID),
            Kind::Fresh => Ok(0),
            Kind::Connection(id) => {
                let connection = self.stack.connection(id);
                let open =
                    connection.filter(|connection| !matches!(connection.state(), State::SynSent | State::SynReceived));
                Ok(open.map_or(0, |connection| connection.readable()))
            }
        }
    }

    /// Bytes that the peer has not acknowledged, or only those not sent (`SIOCOUTQ`, `SIOCOUTQNSD`).
    pub fn unsent(&self, fd: Fd, only_unsent: bool) -> Result<u32, Errno> {
        let socket = self.socket_ref(fd)?;
        let Kind::Connection(id) = socket.kind else {
            return if matches!(socket.kind, Kind::Listening(_)) { Err(Errno::INVALID) } else { Ok(0) };
        };
        Ok(self.stack.connection(id).map_or(0, |connection| {
            let protocol = &connection.flow.protocol;
            protocol.tx_avail + if only_unsent { 0 } else { protocol.tx_sent }
        }))
    }
}
