//! Connections between applications of one service: bytes move in memory.
//!
//! The state machine is TCP's as applications see it (half-close, reset, refusal, backlog), without segments.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use nicforge_units::Time;
use rustix::io::Errno;
use slab::Slab;

use super::{Accepted, Event, Id, Info, Setting, Transport};

/// Bytes on their way in one direction.
const PIPE_BYTES: usize = 256 << 10;

/// One end of a connection.
#[derive(Debug)]
struct End {
    id: Id,
    local: SocketAddr,
    remote: SocketAddr,
    /// The other end, until it is forgotten.
    peer: Option<usize>,
    /// Bytes that came and were not received.
    inbox: VecDeque<u8>,
    /// The other end sends nothing more.
    peer_finished: bool,
    /// This end sends nothing more.
    finished: bool,
    failed: bool,
    /// The socket above has gone.
    released: bool,
    /// The peer found the inbox full and waits.
    starved: bool,
    closed_told: bool,
}

#[derive(Debug)]
struct Listener {
    id: Id,
    at: SocketAddr,
    backlog: usize,
    waiting: VecDeque<Id>,
}

/// Loopback transport.
#[derive(Debug, Default)]
pub struct Loopback {
    ends: Slab<End>,
    listeners: Slab<Listener>,
    by_port: BTreeMap<u16, Vec<usize>>,
    events: Vec<Event>,
    serial: u64,
}

/// A name: serial number, index, and a last bit that listeners have.
fn name(serial: u64, index: usize, listener: bool) -> Id {
    Id(serial << 24 | (index as u64) << 1 | u64::from(listener))
}

fn index(id: Id) -> usize {
    (id.0 as usize >> 1) & 0x7f_ffff
}

impl Loopback {
    fn listener_for(&self, to: SocketAddr) -> Option<usize> {
        let at_port = self.by_port.get(&to.port())?;
        let exact = at_port.iter().find(|index| self.listeners[**index].at.ip() == to.ip());
        let any = |index: &&usize| {
            let ip = self.listeners[**index].at.ip();
            ip.is_unspecified() && ip.is_ipv4() == to.is_ipv4()
        };
        exact.or_else(|| at_port.iter().find(any)).copied()
    }

    /// Where the connection of this name is, if it still is.
    fn find(&self, id: Id) -> Option<usize> {
        self.ends.get(index(id)).filter(|end| end.id == id).map(|_| index(id))
    }

    fn new_end(&mut self, local: SocketAddr, remote: SocketAddr) -> usize {
        self.serial += 1;
        let entry = self.ends.vacant_entry();
        let at = entry.key();
        entry.insert(End {
            id: name(self.serial, at, false),
            local,
            remote,
            peer: None,
            inbox: VecDeque::new(),
            peer_finished: false,
            finished: false,
            failed: false,
            released: false,
            starved: false,
            closed_told: false,
        });
        at
    }

    /// Ends a connection. A reset after the peer's FIN is a broken pipe, as in Linux.
    fn fail(&mut self, index: usize, cause: Errno) {
        let pipe = cause == Errno::CONNRESET && self.ends[index].peer_finished;
        let cause = if pipe { Errno::PIPE } else { cause };
        let end = &mut self.ends[index];
        if !end.failed {
            end.failed = true;
            end.peer = None;
            self.events.push(Event::Failed(self.ends[index].id, cause));
            if self.ends[index].released {
                self.ends.remove(index);
            }
        }
    }

    /// Tells each end once when both directions are done.
    fn settle(&mut self, index: usize) {
        let Some(end) = self.ends.get_mut(index) else { return };
        if !(end.finished && end.peer_finished) {
            return;
        }
        let drained = end.peer.and_then(|peer| self.ends.get(peer)).is_none_or(|peer| peer.inbox.is_empty());
        let end = &mut self.ends[index];
        if drained && end.released {
            if let Some(peer) = self.ends.remove(index).peer
                && let Some(peer) = self.ends.get_mut(peer)
            {
                peer.peer = None;
            }
        } else if drained && end.inbox.is_empty() && !end.closed_told {
            end.closed_told = true;
            self.events.push(Event::Closed(self.ends[index].id));
        }
    }
}

impl Transport for Loopback {
    fn owns(&self, address: IpAddr) -> bool {
        address.is_loopback()
    }

    fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        // As Linux does: 127.0.0.1 talks to all of 127/8.
        match to {
            IpAddr::V4(v4) if v4.is_loopback() => Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
            other => Some(other),
        }
    }

    fn listen(&mut self, at: SocketAddr, backlog: usize, _max_segment: u16) -> Result<Id, Errno> {
        self.serial += 1;
        let entry = self.listeners.vacant_entry();
        let index = entry.key();
        let id = name(self.serial, index, true);
        entry.insert(Listener { id, at, backlog, waiting: VecDeque::new() });
        self.by_port.entry(at.port()).or_default().push(index);
        Ok(id)
    }

    fn accept(&mut self, listener: Id) -> Option<Accepted> {
        let listener = self.listeners.get_mut(index(listener))?;
        while let Some(waiting) = listener.waiting.pop_front() {
            if let Some(end) = self.ends.get(index(waiting)).filter(|end| end.id == waiting) {
                return Some(Accepted { id: end.id, local: end.local, remote: end.remote });
            }
        }
        None
    }

    fn unlisten(&mut self, listener: Id) {
        let listener = self.listeners.remove(index(listener));
        if let Some(at_port) = self.by_port.get_mut(&listener.at.port()) {
            at_port.retain(|index| self.listeners.contains(*index));
            if at_port.is_empty() {
                self.by_port.remove(&listener.at.port());
            }
        }
        for waiting in listener.waiting {
            self.abort(waiting);
        }
    }

    fn connect(&mut self, from: SocketAddr, to: SocketAddr, _max_segment: u16) -> Result<Id, Errno> {
        let ours = self.new_end(from, to);
        let id = self.ends[ours].id;
        match self.listener_for(to) {
            None => self.fail(ours, Errno::CONNREFUSED),
            // A full backlog drops the SYN; here it simply waits longer, up to a bound.
            Some(listener) if self.listeners[listener].waiting.len() > self.listeners[listener].backlog + 4096 => {
                self.fail(ours, Errno::TIMEDOUT);
            }
            Some(listener) => {
                let theirs = self.new_end(to, from);
                self.ends[ours].peer = Some(theirs);
                self.ends[theirs].peer = Some(ours);
                self.listeners[listener].waiting.push_back(self.ends[theirs].id);
                self.events.push(Event::Incoming(self.listeners[listener].id));
                self.events.push(Event::Connected(id));
            }
        }
        Ok(id)
    }

    fn send(&mut self, id: Id, bytes: &[u8], _more: bool) -> usize {
        let Some(at) = self.find(id) else { return 0 };
        let end = &self.ends[at];
        if end.finished || end.failed {
            return 0;
        }
        let Some(peer) = end.peer else { return 0 };
        let inbox = &mut self.ends[peer];
        if inbox.released {
            // Data for a closed socket: its stack answers with a reset.
            self.fail(at, Errno::CONNRESET);
            return 0;
        }
        let taken = bytes.len().min(PIPE_BYTES - inbox.inbox.len());
        if taken < bytes.len() {
            inbox.starved = true;
        }
        if taken > 0 {
            inbox.inbox.extend(&bytes[..taken]);
            self.events.push(Event::Readable(self.ends[peer].id));
        }
        taken
    }

    fn receive(&mut self, id: Id, bytes: &mut [u8]) -> usize {
        let Some(at) = self.find(id) else { return 0 };
        let end = &mut self.ends[at];
        let taken = bytes.len().min(end.inbox.len());
        let (front, back) = end.inbox.as_slices();
        let first = taken.min(front.len());
        bytes[..first].copy_from_slice(&front[..first]);
        bytes[first..taken].copy_from_slice(&back[..taken - first]);
        end.inbox.drain(..taken);
        if taken > 0
            && std::mem::take(&mut end.starved)
            && let Some(peer) = end.peer
        {
            self.events.push(Event::Writable(self.ends[peer].id));
        }
        if taken > 0 && self.ends[at].inbox.is_empty() {
            if let Some(peer) = self.ends[at].peer {
                self.settle(peer);
            }
            self.settle(at);
        }
        taken
    }

    fn finished(&self, id: Id) -> bool {
        self.find(id).map(|at| &self.ends[at]).is_some_and(|end| end.peer_finished && end.inbox.is_empty())
    }

    fn finish(&mut self, id: Id) {
        let Some(at) = self.find(id) else { return };
        let end = &mut self.ends[at];
        if end.finished || end.failed {
            return;
        }
        end.finished = true;
        if let Some(peer) = end.peer {
            self.ends[peer].peer_finished = true;
            self.events.push(Event::Readable(self.ends[peer].id));
            self.settle(peer);
        }
        self.settle(at);
    }

    fn abort(&mut self, id: Id) {
        let Some(at) = self.find(id) else { return };
        let end = self.ends.remove(at);
        if let Some(peer) = end.peer
            && self.ends.contains(peer)
        {
            self.fail(peer, Errno::CONNRESET);
        }
    }

    fn release(&mut self, id: Id) {
        let Some(at) = self.find(id) else { return };
        let end = &mut self.ends[at];
        end.released = true;
        if end.failed || end.closed_told {
            let peer = self.ends.remove(at).peer;
            if let Some(peer) = peer.and_then(|peer| self.ends.get_mut(peer)) {
                peer.peer = None;
            }
            return;
        }
        self.finish(id);
        self.settle(at);
    }

    fn set(&mut self, _: Id, _: Setting) {}

    fn info(&self, id: Id) -> Info {
        let Some(at) = self.find(id) else { return Info::default() };
        let end = &self.ends[at];
        let unacknowledged = end.peer.and_then(|peer| self.ends.get(peer)).map_or(0, |peer| peer.inbox.len() as u32);
        let state = match (end.finished, end.peer_finished) {
            _ if end.failed => "CLOSED",
            (false, false) => "ESTABLISHED",
            (false, true) => "CLOSE-WAIT",
            (true, false) => "FIN-WAIT-2",
            (true, true) => "CLOSED",
        };
        // Linux's loopback has 65483 bytes a segment.
        Info { mss: 65483, window: PIPE_BYTES as u64, unacknowledged, state, ..Info::default() }
    }

    fn poll(&mut self, _: Time, events: &mut Vec<Event>) -> bool {
        let any = !self.events.is_empty();
        events.append(&mut self.events);
        any
    }

    fn deadline(&self) -> Option<Time> {
        if self.events.is_empty() { None } else { Some(Time::ZERO) }
    }
}
