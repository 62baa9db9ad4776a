//! TCP itself: a host of the project's own TCP in virtual time, one for each connection.
//!
//! The bytes of a stream lie in modelled memory (send_buffer.rs, receive_queue.rs): TCP takes and gives headers only,
//! and its rings have a size but no bytes.

use std::net::Ipv4Addr;

use nicforge_tcp::Config;
use nicforge_tcp::config::BufferSizes;
use nicforge_tcp::conn::{Connection, State, Tuning};
use nicforge_tcp::ring::{Buffers, ByteRing};
use nicforge_tcp::segment::{Ecn, Header};
use nicforge_tcp::stack::{
    Address, Arrival, ConnectionId, Departure, Envelope, HostConfig, ListenerId, Outgoing, Stack,
};
use nicforge_units::Time;
use nicforge_wire::headers::{IPV4_MIN_HEADER_LEN, Ipv4View, ip_protocol};

/// Largest IPv4 and TCP headers together.
pub const HEADERS_MAX: usize = 120;
/// Bits of network prefix: all hosts of a run are neighbours.
const PREFIX_BITS: u8 = 8;
const HOPS: u8 = 64;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address.
    pub address: Ipv4Addr,
    /// Port.
    pub port: u16,
}

/// A segment that TCP wants sent.
#[derive(Clone, Debug)]
pub struct Emitted {
    headers: [u8; HEADERS_MAX],
    headers_len: usize,
    /// Bytes of payload.
    pub payload: u32,
}

impl Emitted {
    /// IPv4 and TCP headers, checksums left out.
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.headers_len]
    }
}

/// The protocol engine of one connection.
pub struct Engine {
    stack: Stack<Elsewhere>,
    tuning: Tuning,
    connection: Option<ConnectionId>,
    listener: Option<ListenerId>,
    emitted: Vec<Emitted>,
    identification: u16,
    /// Bytes that the present call took.
    taken: u32,
}

impl Engine {
    /// A closed connection of `local`, with room for `window` bytes each way. `seed` makes the first sequence number.
    pub fn new(local: Endpoint, mtu: usize, window: u32, config: Config, nagle: bool, seed: u64) -> Engine {
        let mut host = HostConfig::ip(vec![Address::new(local.address, PREFIX_BITS)]);
        host.mtu = mtu.min(usize::from(u16::MAX)) as u16;
        // Buffers do not grow, and a window is a multiple of as little as that allows.
        let config = Config { receive: BufferSizes { most: window, ..config.receive }, ..config };
        // A ring takes half of what a socket counts.
        let tuning = Tuning {
            no_delay: !nagle,
            receive_buffer: window.saturating_mul(2),
            send_buffer: window,
            ..Tuning::new(&config)
        };
        let mut seeds = [0; 16];
        seeds[..8].copy_from_slice(&seed.to_le_bytes());
        Engine {
            stack: Stack::new(host, config, Elsewhere, seeds),
            tuning,
            connection: None,
            listener: None,
            emitted: Vec::new(),
            identification: 0,
            taken: 0,
        }
    }

    /// Waits for a peer on `port`.
    pub fn listen(&mut self, port: u16) {
        // The stack has no other listener.
        self.listener = self.stack.listen(None, port, 1, self.tuning.clone(), false).ok();
    }

    /// Opens the connection: its first segment is due at once.
    pub fn connect(&mut self, local: Endpoint, remote: Endpoint, now: Time) {
        let (from, to) = ((Some(local.address.into()), local.port), (remote.address.into(), remote.port));
        // The stack has no other connection, and all hosts are neighbours.
        self.connection = self.stack.connect(from, to, self.tuning.clone(), now).ok();
    }

    /// State of the connection; a listener has none.
    pub fn state(&self) -> Option<State> {
        self.connection().map(Connection::state)
    }

    fn connection(&self) -> Option<&Connection> {
        self.connection.and_then(|id| self.stack.connection(id))
    }

    /// Whether bytes may go both ways.
    pub fn is_established(&self) -> bool {
        self.state() == Some(State::Established)
    }

    /// Whether the connection is being opened or closed: a segment of its own is on its way, or asked for again.
    pub fn is_under_way(&self) -> bool {
        match self.state() {
            Some(state) => !matches!(state, State::Closed | State::Established | State::CloseWait | State::FinWait2),
            // A listener with a half-open connection has a timer.
            None => self.stack.poll_at().is_some(),
        }
    }

    /// A segment came in: `headers`, and `payload` bytes behind them. Returns whether its payload is part of the
    /// stream.
    pub fn receive(&mut self, now: Time, headers: &[u8], payload: u32) -> bool {
        let Ok(ip) = Ipv4View::new(headers) else {
            return false;
        };
        let envelope = Envelope {
            source: ip.source().into(),
            destination: ip.destination().into(),
            ecn: Ecn::from_tos(ip.type_of_service()),
            from: None,
        };
        let Ok(header) = Header::parse(&headers[ip.header_len()..]) else {
            return false;
        };
        let header = Header { payload_len: payload, ..header };
        let arrival = self.stack.receive_header(&envelope, &header, now);
        if self.connection.is_none() {
            self.connection = self.listener.and_then(|listener| self.stack.accept(listener));
        }
        while self.stack.next_event().is_some() {}
        matches!(arrival, Some(Arrival { placement, .. }) if placement.len > 0)
    }

    /// Lets TCP send up to `room` segments that are due; [`take_emitted`](Self::take_emitted) has them.
    pub fn send_due(&mut self, now: Time, room: usize) {
        self.stack.on_timer(now);
        for _ in 0..room {
            match self.stack.transmit_header(now) {
                Some(Outgoing::Frame(packet)) => self.emit_packet(&packet),
                Some(Outgoing::Segment(departure)) => self.emit_segment(&departure),
                None => return,
            }
        }
    }

    /// An answer that no connection sends: headers only.
    fn emit_packet(&mut self, packet: &[u8]) {
        let headers_len = packet.len().min(HEADERS_MAX);
        let mut headers = [0; HEADERS_MAX];
        headers[..headers_len].copy_from_slice(&packet[..headers_len]);
        self.emitted.push(Emitted { headers, headers_len, payload: 0 });
    }

    fn emit_segment(&mut self, departure: &Departure) {
        let Some(tuple) = self.stack.tuple(departure.connection) else {
            return;
        };
        let (header, mut headers) = (&departure.emission.header, [0; HEADERS_MAX]);
        let (ip, tcp) = headers.split_at_mut(IPV4_MIN_HEADER_LEN);
        let payload = header.payload_len;
        let (Ok(tcp_len), Ok(mut view)) = (header.emit(tcp), Ipv4View::init(ip, IPV4_MIN_HEADER_LEN)) else {
            return;
        };
        let headers_len = IPV4_MIN_HEADER_LEN + tcp_len;
        self.identification = self.identification.wrapping_add(1);
        view.set_type_of_service(departure.emission.ecn as u8);
        view.set_total_len(headers_len as u16 + payload as u16);
        view.set_identification(self.identification);
        view.set_fragment(true, false, 0);
        view.set_time_to_live(HOPS);
        view.set_protocol(ip_protocol::TCP);
        if let (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) = (tuple.local, tuple.remote) {
            view.set_source(source);
            view.set_destination(destination);
        }
        self.emitted.push(Emitted { headers, headers_len, payload });
    }

    /// The segments that TCP wants sent; [`give_back`](Self::give_back) takes the list again.
    pub fn take_emitted(&mut self) -> Vec<Emitted> {
        std::mem::take(&mut self.emitted)
    }

    /// Takes back what [`take_emitted`](Self::take_emitted) gave, for further segments.
    pub fn give_back(&mut self, mut list: Vec<Emitted>) {
        list.clear();
        self.emitted = list;
    }

    /// When there is something to send, as far as is known now; [`Time::ZERO`] for at once.
    pub fn due(&self) -> Time {
        if self.stack.may_transmit() { Time::ZERO } else { self.stack.poll_at().unwrap_or(Time::NEVER) }
    }

    /// Bytes that were received in order and not yet taken.
    pub fn readable(&self) -> usize {
        self.connection().map_or(0, |connection| (connection.readable() - self.taken) as usize)
    }

    /// Bytes that the receive buffer has room for.
    pub fn receive_room(&self) -> usize {
        self.tuning.receive_ring() as usize - self.readable()
    }

    /// Takes `count` readable bytes.
    pub fn take(&mut self, count: usize) {
        self.taken += count as u32;
    }

    /// A call that reads has ended, or waits: TCP learns of what it took, acknowledges and opens the window
    /// (Linux: `tcp_cleanup_rbuf`, once for a call).
    pub fn end_read(&mut self, now: Time) {
        let taken = std::mem::take(&mut self.taken);
        if let Some(connection) = self.connection {
            self.stack.discard(connection, taken, now);
        }
    }

    /// Bytes that were written and are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.connection().map_or(0, |connection| (connection.flow.post.tx_size - connection.flow.tx_free()) as usize)
    }

    /// Bytes that the send buffer has room for.
    pub fn writable(&self) -> usize {
        if !self.is_established() {
            return 0;
        }
        self.connection().map_or(0, |connection| connection.writable() as usize)
    }

    /// Adds `count` bytes to the send buffer, at most as many as are writable. With `more` of the same call to come, a
    /// partial segment waits for it.
    pub fn put(&mut self, count: usize, more: bool, now: Time) {
        if let Some(connection) = self.connection {
            self.stack.with(connection, |connection| connection.wrote(count as u32, more, now));
        }
    }

    /// A call ended before all of it was written: nothing waits for more of it.
    pub fn end_call(&mut self) {
        if let Some(connection) = self.connection {
            self.stack.with(connection, |connection| connection.set_cork(false));
        }
    }
}

/// Rings whose bytes lie in modelled memory.
struct Elsewhere;

/// The size of such a ring, in bytes.
struct Size(u32);

impl Buffers for Elsewhere {
    type Ring = Size;

    fn ring(&mut self, size: u32) -> Option<Size> {
        Some(Size(size))
    }
}

impl ByteRing for Size {
    fn size(&self) -> u32 {
        self.0
    }

    fn write(&mut self, _at: u32, _bytes: &[u8]) {}

    fn read(&self, _at: u32, _out: &mut [u8]) {}
}
