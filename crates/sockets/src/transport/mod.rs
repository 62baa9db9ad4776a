//! What the service needs of a TCP stack.

use std::net::{IpAddr, SocketAddr};

use nicforge_tcp::stack::StackCounters;
use nicforge_units::Time;
use rustix::io::Errno;

use crate::tls::CryptoInfo;
use serde::{Deserialize, Serialize};

use crate::watch::Watch;

mod figures;
pub mod groups;
pub mod loopback;
pub mod loss;
mod names;
pub mod network;
mod orphans;
mod pages;
pub mod route;
pub mod secure;
#[cfg(test)]
mod tests;

/// A connection or listener of a transport. A name is not used twice, so that a late event cannot meet another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

/// What happened since the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`Transport::accept`] of this listener returns something.
    Incoming(Id),
    /// A connect succeeded.
    Connected(Id),
    /// Bytes or the peer's FIN can be received.
    Readable(Id),
    /// [`Transport::send`] takes more, or less is unacknowledged.
    Writable(Id),
    /// The connection ended with this error: refused, reset, timed out. The transport forgets it on `release`.
    Failed(Id, Errno),
    /// Both directions have ended in order and everything is acknowledged.
    Closed(Id),
}

/// Figures of a whole stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Counters of frames and segments.
    pub counters: StackCounters,
    /// Connections, those in TIME-WAIT included.
    pub connections: usize,
    /// Orphans reset because there were too many.
    pub orphans_reset: u64,
    /// Frames that the port did not take or that it could not deliver.
    pub port_errors: u64,
    /// Frames lost by intent.
    pub lost: u64,
    /// Fast-path threads at work, the service's own included.
    pub threads: usize,
    /// What TLS on the NIC counted, by name.
    pub tls: Vec<(String, u64)>,
}

/// A connection that a listener yields.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// Its name.
    pub id: Id,
    /// Own end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
}

/// A property of a connection that a socket option sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Small segments leave at once.
    NoDelay(bool),
    /// Only full segments leave.
    Cork(bool),
    /// Probes after this time of silence, with this interval, so many.
    KeepAlive(Option<KeepAlive>),
    /// Unacknowledged data ends the connection after this time.
    UserTimeout(Option<Time>),
    /// Of a listener: the longest segment of connections that begin from now on, 0 for what the path takes.
    MaxSegment(u16),
}

/// Keep-alive probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before the first.
    pub idle: Time,
    /// Time between two.
    pub interval: Time,
    /// Probes without an answer before the connection fails.
    pub count: u32,
}

/// Figures of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Smoothed round-trip time.
    pub rtt: Time,
    /// Its variance.
    pub rtt_variance: Time,
    /// Congestion window in bytes.
    pub window: u64,
    /// Maximum segment size in bytes.
    pub mss: u32,
    /// Segments retransmitted.
    pub retransmits: u32,
    /// Bytes sent and not acknowledged.
    pub unacknowledged: u32,
    /// State by RFC 9293's name.
    pub state: &'static str,
    /// What `ss -tin` shows besides, where there are segments.
    pub segments: Option<Segments>,
}

/// Figures of a connection's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// Congestion control, by its name in Linux.
    #[serde(skip)]
    pub algorithm: &'static str,
    /// Shifts of the peer's and the own window.
    pub window_shifts: [u8; 2],
    /// Retransmission timeout, µs.
    pub timeout_us: u32,
    /// Least round-trip time, µs.
    pub least_rtt_us: u32,
    /// Slow-start threshold in segments; very large where there is none.
    pub threshold: u32,
    /// Bytes that left again.
    pub bytes_retransmitted: u64,
    /// Bytes that the peer acknowledged.
    pub bytes_acknowledged: u64,
    /// Segments that left, with and without data.
    pub out: u32,
    /// Segments that came.
    pub came: u32,
    /// Segments with data that left.
    pub data_out: u32,
    /// Segments with data that came.
    pub data_in: u32,
    /// Segments of those in flight that are taken for lost.
    pub lost: u32,
    /// Segments of those in flight that the peer has, out of order.
    pub sacked: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Segments that came out of order.
    pub out_of_order: u32,
    /// Segments that came and were dropped.
    pub dropped: u32,
    /// Bytes that wait for the window.
    pub not_sent: u32,
}

/// A TCP stack, as one thread sees it. All calls return at once; results come as events.
pub trait Transport {
    /// Whether `address` is one of the stack's own.
    fn owns(&self, address: IpAddr) -> bool;
    /// The own address from which `to` is reached.
    fn source_for(&self, to: IpAddr) -> Option<IpAddr>;
    /// The time of the calls that follow.
    fn set_time(&mut self, _now: Time) {}
    /// Listens at an address, which may be unspecified. Segments of its connections carry `max_segment` bytes at most
    /// (TCP_MAXSEG), or what the path takes where it is 0.
    fn listen(&mut self, at: SocketAddr, backlog: usize, max_segment: u16) -> Result<Id, Errno>;
    /// The next connection that a listener has completed.
    fn accept(&mut self, listener: Id) -> Option<Accepted>;
    /// Stops listening; connections that were not accepted are reset.
    fn unlisten(&mut self, listener: Id);
    /// Begins a connection. `max_segment` is as for [`listen`](Self::listen).
    fn connect(&mut self, from: SocketAddr, to: SocketAddr, max_segment: u16) -> Result<Id, Errno>;
    /// Takes bytes to send; returns how many. With `more` a last segment that is not full waits a while for others.
    fn send(&mut self, id: Id, bytes: &[u8], more: bool) -> usize;
    /// Gives received bytes; returns how many.
    fn receive(&mut self, id: Id, bytes: &mut [u8]) -> usize;
    /// Whether everything up to the peer's FIN has been received.
    fn finished(&self, id: Id) -> bool;
    /// Sends a FIN after what was taken.
    fn finish(&mut self, id: Id);
    /// Resets a connection, after what may leave of the bytes taken, and forgets it.
    fn abort(&mut self, id: Id);
    /// The owner is done: the stack ends the connection in the background (or forgets it when it has ended).
    fn release(&mut self, id: Id);
    /// Changes a property.
    fn set(&mut self, id: Id, setting: Setting);
    /// Encrypts one direction from here on. From then on [`send`](Self::send) takes and [`receive`](Self::receive) gives
    /// pieces of records. See [`secure::Secure::begin`].
    fn secure(&mut self, _id: Id, _way: secure::Way, _info: &CryptoInfo, _raw: &[u8]) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }
    /// Figures.
    fn info(&self, id: Id) -> Info;
    /// Receives, sends, fires timers. Returns whether there was anything to do.
    fn poll(&mut self, now: Time, events: &mut Vec<Event>) -> bool;
    /// Sends what calls since the last poll have made ready.
    fn flush(&mut self) {}
    /// When `poll` is due at the latest without other events.
    fn deadline(&self) -> Option<Time>;
    /// Whether more frames are likely to wait after a poll that found some.
    fn expects_more(&self) -> bool {
        false
    }
    /// Says that no frame waits: the next poll need not look.
    fn expect_none(&mut self) {}
    /// Says that its user is about to sleep until [`waker`](Self::waker) is readable; false if something is there.
    fn arm(&mut self) -> bool {
        true
    }
    /// Shows `add` all places where its frames can be observed; false where it has no frames.
    fn watch(&mut self, _add: &mut dyn FnMut(&mut Watch)) -> bool {
        false
    }
    /// Counters of its host, where it is one, with its connections and orphans.
    fn host(&self) -> Option<Host> {
        None
    }
    /// Descriptor whose readability makes `poll` due; none while the link is down.
    fn waker(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}
