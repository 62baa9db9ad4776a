//! A host: connections and listeners behind one function for frames in and one for frames out.
//!
//! [`Stack::receive`] takes a frame, [`Stack::transmit`] is called until it returns nothing, [`Stack::on_timer`] when
//! [`Stack::poll_at`] has come. Payload lies in rings that a [`Buffers`] provides. Nothing here allocates per segment;
//! rare answers (ARP, ICMP, RST of closed ports) wait in a bounded queue of frames.

mod calls;
mod cookie;
mod counters;
mod demux;
mod frames;
mod host;
mod icmp;
mod input;
mod listen;
mod neighbour;
mod output;
mod request;
pub mod secret;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use nicforge_units::Time;
use thiserror::Error;

use crate::config::Config;
use crate::conn::{Connection, State};
use crate::ring::Buffers;
use demux::{Deadline, Owner};
use listen::{Listener, Request};
use neighbour::Neighbours;
use secret::Secret;

pub use counters::StackCounters;
pub use host::{Address, HostConfig, Medium};
pub use input::{Arrival, Envelope};
pub use output::{Departure, Outgoing};

/// Frames of our own that may wait: answers to strangers are dropped beyond it.
const ANSWERS_MOST: usize = 256;

/// Addresses and ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FourTuple {
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
}

/// A connection of a stack. It stays valid until [`Stack::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    index: u32,
    generation: u32,
}

impl ConnectionId {
    /// A small number that no other connection has at the same time.
    pub fn number(self) -> usize {
        self.index as usize
    }
}

/// A listener of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId {
    index: u32,
    generation: u32,
}

/// What happened that an application may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection became readable or writable, opened, closed or failed.
    Changed(ConnectionId),
    /// New data or a FIN arrived on a connection.
    Arrived(ConnectionId),
    /// A listener has a connection to accept.
    Accepted(ListenerId),
}

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StackError {
    /// The port is taken, or all ephemeral ports are.
    #[error("the port is in use")]
    PortInUse,
    /// The address is not the host's.
    #[error("the address is not one of the host's")]
    NotOurs,
    /// There is no route to the peer.
    #[error("there is no route to the peer")]
    NoRoute,
    /// The same connection exists.
    #[error("the connection exists")]
    Exists,
    /// The buffers gave no ring.
    #[error("no memory for buffers")]
    NoMemory,
    /// The identifier names nothing.
    #[error("there is no such connection or listener")]
    Gone,
}

struct Entry<R> {
    connection: Connection,
    tuple: FourTuple,
    rx: Option<R>,
    tx: Option<R>,
    /// Waits in the accept queue of this listener.
    waits_at: Option<ListenerId>,
    /// Is in the queue of those that may have something to send.
    queued: bool,
    /// Earliest deadline of it in the heap.
    armed: Option<Time>,
    /// The application has let go of it.
    released: bool,
    readable_seen: u32,
    state_seen: State,
    next_hop: Option<IpAddr>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// A host with one interface.
pub struct Stack<B: Buffers> {
    host: HostConfig,
    config: Arc<Config>,
    buffers: B,
    secret: Secret,
    connections: Vec<Slot<Entry<B::Ring>>>,
    free: Vec<u32>,
    listeners: Vec<Slot<Listener>>,
    requests: HashMap<FourTuple, Request, Secret>,
    request_order: u64,
    table: HashMap<FourTuple, u32, Secret>,
    ready: VecDeque<u32>,
    deadlines: BinaryHeap<Deadline>,
    /// Payload that the first of those has sent in its turn.
    turn: u32,
    answers: VecDeque<Vec<u8>>,
    neighbours: Neighbours,
    events: VecDeque<Event>,
    counters: StackCounters,
    identification: u16,
    arrived: Option<Arrival>,
    /// The frame's TCP checksum is its sender's NIC's to make.
    is_begun: bool,
}

impl<B: Buffers> Stack<B> {
    /// A host without connections. `seed` is the only source of its secrets.
    pub fn new(host: HostConfig, config: Config, buffers: B, seed: [u8; 16]) -> Stack<B> {
        let secret = Secret::new(seed);
        Stack {
            host,
            config: Arc::new(config),
            buffers,
            secret,
            connections: Vec::new(),
            free: Vec::new(),
            listeners: Vec::new(),
            requests: HashMap::with_hasher(secret),
            request_order: 0,
            table: HashMap::with_hasher(secret),
            ready: VecDeque::new(),
            deadlines: BinaryHeap::new(),
            turn: 0,
            answers: VecDeque::new(),
            neighbours: Neighbours::default(),
            events: VecDeque::new(),
            counters: StackCounters::default(),
            identification: 0,
            arrived: None,
            is_begun: false,
        }
    }

    /// Options of new connections.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes the options of connections that begin from now on.
    pub fn set_config(&mut self, config: Config) {
        self.config = Arc::new(config);
    }

    /// Changes the MTU for connections that begin from now on.
    pub fn set_mtu(&mut self, mtu: u16) {
        self.host.mtu = mtu;
    }

    /// Addresses and links.
    pub fn host(&self) -> &HostConfig {
        &self.host
    }

    /// Counters.
    pub fn counters(&self) -> &StackCounters {
        &self.counters
    }

    /// What happened since the last call, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Stack::on_timer`] wants to be called, if nothing else happens first.
    pub fn poll_at(&self) -> Option<Time> {
        self.deadlines.peek().map(|deadline| deadline.at)
    }

    /// Lets all timers fire that are due.
    pub fn on_timer(&mut self, now: Time) {
        while let Some(deadline) = self.deadlines.peek().copied().filter(|deadline| deadline.at <= now) {
            self.deadlines.pop();
            match deadline.owner {
                Owner::Connection(index) => self.connection_timer(index, deadline.at, now),
                Owner::Request(order) => self.request_timer(order, now),
                Owner::Neighbours => self.neighbour_timer(deadline.at, now),
            }
        }
    }

    fn connection_timer(&mut self, index: u32, at: Time, now: Time) {
        let Some(entry) = self.entry_at(index) else { return };
        if entry.armed != Some(at) {
            return;
        }
        entry.armed = None;
        if entry.connection.deadline().is_some_and(|due| due <= now) {
            entry.connection.on_timer(now);
        }
        self.after(index);
    }

    fn entry_at(&mut self, index: u32) -> Option<&mut Entry<B::Ring>> {
        self.connections.get_mut(index as usize)?.value.as_mut()
    }

    fn entry(&self, id: ConnectionId) -> Option<&Entry<B::Ring>> {
        let slot = self.connections.get(id.index as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == id.generation)
    }

    fn entry_mut(&mut self, id: ConnectionId) -> Option<&mut Entry<B::Ring>> {
        let slot = self.connections.get_mut(id.index as usize)?;
        let generation = slot.generation;
        slot.value.as_mut().filter(|_| generation == id.generation)
    }

    fn id_of(&self, index: u32) -> ConnectionId {
        ConnectionId { index, generation: self.connections[index as usize].generation }
    }

    /// Bookkeeping after anything touched a connection: output queue, deadline, events, removal.
    fn after(&mut self, index: u32) {
        let id = self.id_of(index);
        let Some(entry) = self.entry_at(index) else { return };
        let readable = entry.connection.readable() + u32::from(entry.connection.is_read_closed());
        let arrived = readable > entry.readable_seen;
        entry.readable_seen = readable;
        let state = entry.connection.state();
        let changed = state != entry.state_seen || entry.connection.space_came();
        entry.state_seen = state;
        let queue = !std::mem::replace(&mut entry.queued, true);
        let deadline = entry.connection.deadline().filter(|due| entry.armed.is_none_or(|armed| *due < armed));
        if let Some(at) = deadline {
            entry.armed = Some(at);
        }
        let quiet = entry.released || entry.waits_at.is_some();
        if queue {
            self.ready.push_back(index);
        }
        if let Some(at) = deadline {
            self.deadlines.push(Deadline { at, owner: Owner::Connection(index) });
        }
        if !quiet {
            if arrived {
                self.events.push_back(Event::Arrived(id));
            } else if changed {
                self.events.push_back(Event::Changed(id));
            }
        }
    }

    /// Removes a connection that has ended and that nobody holds.
    fn collect(&mut self, index: u32) {
        let Some(entry) = self.entry_at(index) else { return };
        let state = entry.connection.state();
        if state == State::TimeWait && entry.released {
            // Old segments need numbers and clocks, no buffers.
            (entry.rx, entry.tx) = (None, None);
        }
        if state != State::Closed {
            return;
        }
        let tuple = entry.tuple;
        let released = entry.released;
        if self.table.get(&tuple) == Some(&index) {
            self.table.remove(&tuple);
        }
        if released {
            let slot = &mut self.connections[index as usize];
            slot.value = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(index);
        }
    }
}
