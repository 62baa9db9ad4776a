//! What applications and the service share: context queues, socket pages, payload rings, the status page.
//!
//! Every field has one writer; of a service that has gone, a process of the application closes the state. The service never reads back what an application can write, except for the entries of
//! a context queue, each of which it validates, and the bytes of a transmit ring.
//!
//! | memory | holds | who has it |
//! | --- | --- | --- |
//! | context | two queues of [`Entry`], application to service (ATX) and back (ARX) | one process |
//! | socket | [`SocketPage`], receive ring, transmit ring | every process that has the descriptor |
//! | status | [`StatusPage`] | every application, read-only |

use std::mem::size_of;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// Version of everything in this file and of the control messages.
pub const VERSION: u32 = 5;

/// Entries of one context queue.
pub const QUEUE_ENTRIES: usize = 4096;
/// Bytes of a context: both queues.
pub const CONTEXT_BYTES: usize = 2 * QUEUE_ENTRIES * size_of::<Entry>();
/// Bytes before a socket's receive ring.
pub const PAGE_BYTES: usize = 4096;
/// Options that a socket remembers.
pub const OPTIONS: usize = 40;
/// Bytes of an option's value that a socket remembers.
pub const OPTION_BYTES: usize = 20;
/// Tokens that may wait in a descriptor; its buffer has room for many more.
pub const TOKENS: u32 = 16;

/// One entry of a context queue, 32 B as in FlexTOE's. `kind` is written last; zero is a free entry.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Entry {
    /// ATX: bytes that the application has taken from the receive ring, or which option. ARX: bytes added to it.
    pub rx_bump: AtomicU32,
    /// ATX: bytes added to the transmit ring. ARX: bytes freed in it.
    pub tx_bump: AtomicU32,
    /// The flow, as the service named it.
    pub flow: AtomicU32,
    /// ATX: number of the entry within its queue, for traces.
    pub sequence: AtomicU32,
    /// ATX: the flow's key or an option's value where the kind needs it, low half. ARX: the application's opaque value, low half.
    pub low: AtomicU32,
    /// The high half.
    pub high: AtomicU32,
    /// [`FLAG_FINISHED`], [`FLAG_FAILED`], [`FLAG_CONNECTED`].
    pub flags: AtomicU32,
    /// [`Kind`] as a number.
    pub kind: AtomicU32,
}

const _: () = assert!(size_of::<Entry>() == 32);

/// ARX: the peer sends nothing more.
pub const FLAG_FINISHED: u32 = 1;
/// ARX: the connection failed; the page has the error.
pub const FLAG_FAILED: u32 = 2;
/// ARX: the connection is established.
pub const FLAG_CONNECTED: u32 = 4;
/// More bytes follow at once (`MSG_MORE`): a last segment that is not full waits for them.
pub const FLAG_MORE: u32 = 8;

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// ATX and ARX: rings moved by `rx_bump` and `tx_bump`.
    Bump = 1,
    /// ATX: this process has the flow, proven by its key.
    Attach = 2,
    /// ATX: this process took a connection from its listener, proven by its key.
    Accepted = 3,
    /// ATX: this process closes its descriptor; the last close is then orderly.
    Close = 4,
    /// ATX: data is left and the descriptor must become readable again.
    Rearm = 5,
    /// ATX: no more data follows (FIN).
    Finish = 6,
    /// ATX: the application neither reads nor writes any more: data that still comes resets the connection.
    Deaf = 7,
    /// ARX: a listener has a connection to accept.
    Incoming = 8,
    /// ATX: option `rx_bump` (level in the upper half, name in the lower) has the value that the word has.
    Option = 9,
}

impl Kind {
    /// The kind with this number.
    pub fn of(number: u32) -> std::option::Option<Kind> {
        use Kind::*;
        [Bump, Attach, Accepted, Close, Rearm, Finish, Deaf, Incoming, Option]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// Where a socket is in its life, as the service last published it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Neither listening nor connected.
    Fresh = 0,
    /// Accepts connections.
    Listening = 1,
    /// SYN sent.
    Connecting = 2,
    /// Established, or closing.
    Connected = 3,
    /// Failed or closed; the page's `error` may say why.
    Closed = 4,
}

impl State {
    /// The state with this number; the page's writer may be hostile to itself, so every number has one.
    pub fn of(number: u32) -> State {
        use State::*;
        [Fresh, Listening, Connecting, Connected].into_iter().find(|s| *s as u32 == number).unwrap_or(Closed)
    }
}

/// First page of a socket's memory.
#[repr(C)]
#[derive(Debug)]
pub struct SocketPage {
    /// Written by the service.
    pub service: ServiceSide,
    /// Written by the application's processes.
    pub application: ApplicationSide,
    /// Options, written by the application's processes.
    pub options: [OptionSlot; OPTIONS],
}

const _: () = assert!(size_of::<SocketPage>() <= PAGE_BYTES);

/// What the service writes.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct ServiceSide {
    /// Bytes ever put into the receive ring.
    pub rx_head: AtomicU64,
    /// Bytes ever taken from the transmit ring.
    pub tx_tail: AtomicU64,
    /// [`State`] as a number.
    pub state: AtomicU32,
    /// 1: the peer's FIN follows the last byte of the receive ring.
    pub finished: AtomicU32,
    /// Error number that the next call returns, or 0. The call that returns it clears it.
    pub error: AtomicU32,
    /// The flow's name, for the context queues.
    pub flow: AtomicU32,
    /// Proves that a process has the socket.
    pub key: AtomicU64,
    /// Bytes of each ring, a power of two.
    pub ring_bytes: AtomicU32,
    /// 2 or 10: the family that the socket was made with.
    pub family: AtomicU32,
    /// Tokens that the service sent because data came, or is about to send.
    pub issued: AtomicU32,
    /// The service that made the socket, see [`StatusPage::instance`].
    pub instance: AtomicU64,
    /// Own address.
    pub local: Place,
    /// The peer's address.
    pub remote: Place,
    /// Figures for `TCP_INFO`.
    pub figures: Figures,
}

/// An IP address and port: an IPv4 address stands in the first four bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Place {
    /// The address, network order, in two words.
    pub address: [AtomicU64; 2],
    /// Port; the family (4 or 6, 0 for none) in the upper half.
    pub port: AtomicU32,
    /// Scope of an IPv6 link-local address.
    pub scope: AtomicU32,
}

/// What the service knows of a connection's path, for `TCP_INFO`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Figures {
    /// Smoothed round-trip time, µs.
    pub rtt_us: AtomicU32,
    /// Its variance, µs.
    pub rtt_variance_us: AtomicU32,
    /// Congestion window, segments.
    pub window_segments: AtomicU32,
    /// Maximum segment size, bytes.
    pub mss: AtomicU32,
    /// Segments retransmitted.
    pub retransmits: AtomicU32,
    /// Bytes sent and not acknowledged.
    pub unacknowledged: AtomicU32,
}

/// What the application's processes write.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct ApplicationSide {
    /// Bytes ever taken from the receive ring.
    pub rx_tail: AtomicU64,
    /// What of it the service knows.
    pub rx_bumped: AtomicU64,
    /// Bytes ever put into the transmit ring.
    pub tx_head: AtomicU64,
    /// Thread that reads, or 0.
    pub rx_lock: AtomicU32,
    /// Thread that writes, or 0.
    pub tx_lock: AtomicU32,
    /// Tokens that this side took from the descriptor.
    pub taken: AtomicU32,
    /// Tokens that this side asked for: each [`Kind::Rearm`] yields one.
    pub rearms: AtomicU32,
    /// 1: the program read or was told of some data and some was left; new data is then a new edge. The service clears
    /// it.
    pub partial: AtomicU32,
    /// Bit 0: reads no more, bit 1: writes no more.
    pub shut: AtomicU32,
    /// Backlog of a listener, for another service.
    pub backlog: AtomicU32,
    /// 1: the result of a connect was given.
    pub connect_reported: AtomicU32,
    /// Options in use.
    pub option_count: AtomicU32,
    /// Thread that changes options, or 0.
    pub option_lock: AtomicU32,
    /// Kernel TLS: bit 0 asked for, bit 1 what is sent is encrypted, bit 2 what comes is.
    pub tls: AtomicU32,
    /// Bytes that are left of the piece of a record that is being read.
    pub tls_left: AtomicU32,
    /// Type of that record.
    pub tls_type: AtomicU32,
}

/// One option with its value, as the kernel would return it.
#[repr(C)]
#[derive(Debug, Default)]
pub struct OptionSlot {
    /// Level, as `setsockopt` takes it.
    pub level: AtomicU32,
    /// Name.
    pub name: AtomicU32,
    /// Bytes of `value` in use.
    pub len: AtomicU32,
    /// The value.
    pub value: [AtomicU8; OPTION_BYTES],
}

/// One page that every application sees.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct StatusPage {
    /// 1 while the service sleeps: whoever adds an entry then rings the bell.
    pub asleep: AtomicU32,
    /// A number of its own for each service that ever runs: names of flows mean nothing to another one.
    pub instance: AtomicU64,
}
