//! Calls of applications: listen, accept, connect, send, receive, close.

use std::collections::VecDeque;
use std::net::IpAddr;

use nicforge_units::Time;

use super::listen::Listener;
use super::{ConnectionId, Entry, FourTuple, ListenerId, Slot, Stack, StackError};
use crate::conn::{Connection, Opening, Tuning};
use crate::ring::{Buffers, ByteRing};

impl<B: Buffers> Stack<B> {
    /// Takes connections to `port` of `local`, or of any address. `backlog` bounds both queues.
    pub fn listen(
        &mut self,
        local: Option<IpAddr>,
        port: u16,
        backlog: usize,
        tuning: Tuning,
        reuse_port: bool,
    ) -> Result<ListenerId, StackError> {
        if local.is_some_and(|local| !self.host.owns(local)) {
            return Err(StackError::NotOurs);
        }
        let clash = self.listeners.iter().filter_map(|slot| slot.value.as_ref()).any(|other| {
            let same = other.local.is_none() || local.is_none() || other.local == local;
            other.port == port && same && !(reuse_port && other.reuse_port)
        });
        if clash {
            return Err(StackError::PortInUse);
        }
        let listener = Listener { local, port, backlog, tuning, reuse_port, queue: VecDeque::new(), half_open: 0 };
        let index = match self.listeners.iter().position(|slot| slot.value.is_none()) {
            Some(index) => index,
            None => {
                self.listeners.push(Slot { generation: 0, value: None });
                self.listeners.len() - 1
            }
        };
        let slot = &mut self.listeners[index];
        slot.value = Some(listener);
        Ok(ListenerId { index: index as u32, generation: slot.generation })
    }

    /// Changes the backlog of a listener.
    pub fn set_backlog(&mut self, id: ListenerId, backlog: usize) {
        if let Some(listener) = self.listener_mut(id) {
            listener.backlog = backlog;
        }
    }

    /// Changes the options that new connections of a listener inherit.
    pub fn set_listener_tuning(&mut self, id: ListenerId, tuning: Tuning) {
        if let Some(listener) = self.listener_mut(id) {
            listener.tuning = tuning;
        }
    }

    /// Takes no more connections; those that wait are reset.
    pub fn unlisten(&mut self, id: ListenerId, now: Time) {
        let Some(listener) = self.listener_mut(id) else { return };
        let waiting: Vec<ConnectionId> = listener.queue.drain(..).collect();
        let slot = &mut self.listeners[id.index as usize];
        slot.value = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.requests.retain(|_, request| request.listener != id);
        for connection in waiting {
            self.abort(connection);
            self.release(connection, now);
        }
    }

    /// The oldest connection that waits at a listener.
    pub fn accept(&mut self, id: ListenerId) -> Option<ConnectionId> {
        let connection = self.listener_mut(id)?.queue.pop_front()?;
        if let Some(entry) = self.entry_mut(connection) {
            entry.waits_at = None;
        }
        Some(connection)
    }

    /// Connections that wait at a listener.
    pub fn waiting(&self, id: ListenerId) -> usize {
        self.listener(id).map_or(0, |listener| listener.queue.len())
    }

    /// Ports of listeners and connections are in use, except where all who hold one agree.
    pub fn is_port_taken(&self, local: Option<IpAddr>, port: u16, reuse: bool) -> bool {
        let by_listener = self.listeners.iter().filter_map(|slot| slot.value.as_ref()).any(|listener| {
            listener.port == port && (local.is_none() || listener.local.is_none() || listener.local == local)
        });
        let by_connection = !reuse && self.table.keys().any(|tuple| tuple.local_port == port);
        by_listener || by_connection
    }

    /// A port that nobody uses, for a socket that is bound without one.
    pub fn free_port(&mut self, local: Option<IpAddr>) -> Option<u16> {
        let any = IpAddr::from([0, 0, 0, 0]);
        let mut ports = self.secret.ports(local.unwrap_or(any), any, 0);
        ports.find(|port| !self.is_port_taken(local, *port, false))
    }

    /// Opens a connection to `remote`. Port 0 takes an ephemeral one.
    pub fn connect(
        &mut self,
        local: (Option<IpAddr>, u16),
        remote: (IpAddr, u16),
        tuning: Tuning,
        now: Time,
    ) -> Result<ConnectionId, StackError> {
        let source = local.0.or_else(|| self.host.source_for(remote.0)).ok_or(StackError::NoRoute)?;
        if source.is_ipv4() != remote.0.is_ipv4() {
            return Err(StackError::NoRoute);
        }
        if !self.host.owns(source) {
            return Err(StackError::NotOurs);
        }
        self.host.next_hop(remote.0).ok_or(StackError::NoRoute)?;
        let tuple = |port| FourTuple { local: source, remote: remote.0, local_port: port, remote_port: remote.1 };
        let local_port = if local.1 == 0 { self.ephemeral(tuple)? } else { local.1 };
        let tuple = tuple(local_port);
        if let Some(&index) = self.table.get(&tuple) {
            let reusable = self.entry_at(index).is_some_and(|entry| {
                entry.connection.state() == crate::conn::State::TimeWait && entry.connection.agreed().timestamps
            });
            if !reusable {
                return Err(StackError::Exists);
            }
            if let Some(entry) = self.entry_at(index) {
                entry.connection.end(None);
            }
            self.collect(index);
        }
        let opening = Opening {
            local_port,
            remote_port: remote.1,
            iss: self.secret.initial(&tuple, now),
            path_mss: self.host.path_mss(remote.0),
            ts_offset: self.secret.clock_offset(tuple.local, tuple.remote),
        };
        let connection = Connection::connect(&opening, tuning, self.config.clone(), now);
        let index = self.insert(connection, tuple, None)?;
        self.after(index);
        Ok(self.id_of(index))
    }

    fn ephemeral(&mut self, tuple: impl Fn(u16) -> FourTuple) -> Result<u16, StackError> {
        let probe = tuple(0);
        let mut ports = self.secret.ports(probe.local, probe.remote, probe.remote_port);
        let listening = |stack: &Self, port| {
            stack.listeners.iter().filter_map(|slot| slot.value.as_ref()).any(|listener| listener.port == port)
        };
        ports
            .find(|port| !self.table.contains_key(&tuple(*port)) && !listening(self, *port))
            .ok_or(StackError::PortInUse)
    }

    pub(super) fn insert(
        &mut self,
        connection: Connection,
        tuple: FourTuple,
        waits_at: Option<ListenerId>,
    ) -> Result<u32, StackError> {
        let rx = self.buffers.ring(connection.flow.post.rx_size).ok_or(StackError::NoMemory)?;
        let tx = self.buffers.ring(connection.flow.post.tx_size).ok_or(StackError::NoMemory)?;
        let entry = Entry {
            state_seen: connection.state(),
            next_hop: self.host.next_hop(tuple.remote),
            connection,
            tuple,
            rx: Some(rx),
            tx: Some(tx),
            waits_at,
            queued: false,
            armed: None,
            released: false,
            readable_seen: 0,
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.connections.push(Slot { generation: 0, value: None });
                (self.connections.len() - 1) as u32
            }
        };
        self.connections[index as usize].value = Some(entry);
        self.table.insert(tuple, index);
        Ok(index)
    }

    /// A connection, to be looked at.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.entry(id).map(|entry| &entry.connection)
    }

    /// Addresses and ports of a connection.
    pub fn tuple(&self, id: ConnectionId) -> Option<FourTuple> {
        self.entry(id).map(|entry| entry.tuple)
    }

    /// The connection with these addresses and ports.
    pub fn find(&self, tuple: &FourTuple) -> Option<ConnectionId> {
        self.table.get(tuple).map(|&index| self.id_of(index))
    }

    /// The receive and the transmit ring of a connection, while it has them.
    pub fn rings(&self, id: ConnectionId) -> Option<(&B::Ring, &B::Ring)> {
        let entry = self.entry(id)?;
        entry.rx.as_ref().zip(entry.tx.as_ref())
    }

    /// Calls `change` with a connection and does what follows from it.
    pub fn with<T>(&mut self, id: ConnectionId, change: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let entry = self.entry_mut(id)?;
        let result = change(&mut entry.connection);
        self.after(id.index);
        Some(result)
    }

    /// Copies as much of `bytes` as there is room for into the transmit ring; returns how much that was.
    pub fn send(&mut self, id: ConnectionId, bytes: &[u8], more: bool, now: Time) -> Result<usize, StackError> {
        let entry = self.entry_mut(id).ok_or(StackError::Gone)?;
        let len = bytes.len().min(entry.connection.writable() as usize);
        if len > 0 {
            let Some(ring) = entry.tx.as_mut() else { return Ok(0) };
            ring.write(entry.connection.write_at(), &bytes[..len]);
            entry.connection.wrote(len as u32, more, now);
            self.after(id.index);
        }
        Ok(len)
    }

    /// Copies received data to `out` and removes it; returns how much that was.
    pub fn recv(&mut self, id: ConnectionId, out: &mut [u8], now: Time) -> Result<usize, StackError> {
        let len = self.peek(id, out)?;
        self.discard(id, len as u32, now);
        Ok(len)
    }

    /// Copies received data to `out` and keeps it.
    pub fn peek(&self, id: ConnectionId, out: &mut [u8]) -> Result<usize, StackError> {
        let entry = self.entry(id).ok_or(StackError::Gone)?;
        let len = out.len().min(entry.connection.readable() as usize);
        if let (Some(ring), true) = (entry.rx.as_ref(), len > 0) {
            ring.read(entry.connection.read_at(), &mut out[..len]);
        }
        Ok(len)
    }

    /// Removes `bytes` of received data.
    pub fn discard(&mut self, id: ConnectionId, bytes: u32, now: Time) {
        if let Some(entry) = self.entry_mut(id).filter(|_| bytes > 0) {
            entry.connection.consumed(bytes, now);
            entry.readable_seen = entry.connection.readable() + u32::from(entry.connection.is_read_closed());
            self.after(id.index);
        }
    }

    /// Sends a FIN after what was written.
    pub fn shut_write(&mut self, id: ConnectionId, now: Time) {
        self.with(id, |connection| connection.shut_write(now));
    }

    /// Resets a connection.
    pub fn abort(&mut self, id: ConnectionId) {
        self.with(id, Connection::abort);
    }

    /// The application closes its handle: the connection ends in its own time and its identifier names nothing more.
    pub fn release(&mut self, id: ConnectionId, now: Time) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.released = true;
        entry.waits_at = None;
        entry.connection.close(now);
        self.after(id.index);
    }

    /// Forgets a connection that another has taken over, without a segment.
    pub fn hand_over(&mut self, id: ConnectionId) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.released = true;
        entry.connection.end(None);
        self.collect(id.index);
    }

    /// The memory that connections get their rings from.
    pub fn buffers_mut(&mut self) -> &mut B {
        &mut self.buffers
    }

    /// Number of connections, those in TIME-WAIT included.
    pub fn connection_count(&self) -> usize {
        self.connections.len() - self.free.len()
    }
}
