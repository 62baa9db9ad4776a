//! TCP itself: smoltcp, driven in virtual time, one instance for each connection.
//!
//! smoltcp decides what is sent and acknowledged. The bytes of a stream lie in modelled memory
//! (send_buffer.rs, receive_queue.rs), so smoltcp's own buffers hold nothing of value: it is given
//! headers with a payload of zeros, and of what it sends only the headers are used.

use std::net::Ipv4Addr;

use nicforge_units::Time;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// Largest IPv4 and TCP headers together.
pub const HEADERS_MAX: usize = 120;
/// Segments with payload that are acknowledged at once when a connection begins (Linux 2.6: quick
/// acknowledgements, at most 16), so that a small window does not wait for the timer.
const QUICK_ACKNOWLEDGEMENTS: u32 = 16;
/// How long an acknowledgement waits after that for a second segment: smoltcp's own default.
const ACKNOWLEDGEMENT_DELAY: Duration = Duration::from_millis(10 * CLOCK_RATE);
/// How much faster smoltcp's clock runs than the simulated one. It waits for an acknowledgement for
/// at least a second (RFC 6298, section 2.4) and has no setting for that; kernels wait for 200 ms
/// (Linux 2.6: TCP_RTO_MIN). All that it knows of time are such timers.
const CLOCK_RATE: u64 = 5;
/// A microsecond of smoltcp's clock.
const TICK: Time = Time::from_ps(1_000_000 / CLOCK_RATE);
/// Bits of network prefix: all hosts of a run are neighbours.
const PREFIX_BITS: u8 = 8;

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
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    exchange: Exchange,
    /// Quick acknowledgements that are left.
    quick: u32,
}

impl Engine {
    /// A closed connection of `local`, with room for `window` bytes each way. `seed` makes the
    /// first sequence number.
    pub fn new(local: Endpoint, mtu: usize, window: usize, nagle: bool, seed: u64) -> Engine {
        let mut exchange = Exchange { incoming: None, outgoing: Vec::new(), room: 0, scratch: Vec::new(), mtu };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut exchange, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // A new interface has room for one address.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(local.address), PREFIX_BITS));
        });
        let buffer = || SocketBuffer::new(vec![0; window]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(CongestionControl::Reno);
        socket.set_nagle_enabled(nagle);
        socket.set_ack_delay(None);
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Engine { interface, sockets, handle, exchange, quick: QUICK_ACKNOWLEDGEMENTS }
    }

    /// Waits for a peer on `port`.
    pub fn listen(&mut self, port: u16) {
        // A closed socket and a port other than 0 cannot be refused.
        let _ = self.socket_mut().listen(port);
    }

    /// Opens the connection.
    pub fn connect(&mut self, local: Endpoint, remote: Endpoint) {
        let socket = self.sockets.get_mut::<Socket>(self.handle);
        let remote = (IpAddress::Ipv4(remote.address), remote.port);
        // A closed socket and ports other than 0 cannot be refused.
        let _ = socket.connect(self.interface.context(), remote, local.port);
    }

    /// The socket.
    pub fn socket(&self) -> &Socket<'static> {
        self.sockets.get::<Socket>(self.handle)
    }

    fn socket_mut(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut::<Socket>(self.handle)
    }

    /// Whether bytes may go both ways.
    pub fn is_established(&self) -> bool {
        self.socket().state() == State::Established
    }

    /// Whether the connection is being opened or closed: a segment of its own is on its way, or asked for again.
    pub fn is_under_way(&self) -> bool {
        !matches!(
            self.socket().state(),
            State::Closed | State::Listen | State::Established | State::CloseWait | State::FinWait2
        )
    }

    /// A segment came in: `headers`, and `payload` bytes behind them. Returns whether it was taken
    /// for one at all.
    pub fn receive(&mut self, now: Time, headers: &[u8], payload: usize) -> bool {
        let mut packet = std::mem::take(&mut self.exchange.scratch);
        let len = headers.len() + payload;
        // What stands there of earlier packets is as good a payload as any.
        if packet.len() < len {
            packet.resize(len, 0);
        }
        packet[..headers.len()].copy_from_slice(headers);
        self.exchange.incoming = Some((packet, len));
        if payload > 0 && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.socket_mut().set_ack_delay(Some(ACKNOWLEDGEMENT_DELAY));
            }
        }
        let result = self.interface.poll_ingress_single(instant(now), &mut self.exchange, &mut self.sockets);
        !matches!(result, PollIngressSingleResult::None)
    }

    /// Lets TCP send up to `room` segments that are due; [`take_emitted`](Self::take_emitted) has them.
    pub fn send_due(&mut self, now: Time, room: usize) {
        self.exchange.room = room;
        self.interface.poll_egress(instant(now), &mut self.exchange, &mut self.sockets);
    }

    /// The segments that TCP wants sent; [`give_back`](Self::give_back) takes the list again.
    pub fn take_emitted(&mut self) -> Vec<Emitted> {
        std::mem::take(&mut self.exchange.outgoing)
    }

    /// Takes back what [`take_emitted`](Self::take_emitted) gave, for further segments.
    pub fn give_back(&mut self, mut list: Vec<Emitted>) {
        list.clear();
        self.exchange.outgoing = list;
    }

    /// When there is something to send, as far as is known now; [`Time::ZERO`] for at once.
    pub fn due(&mut self, now: Time) -> Time {
        let due = self.interface.poll_at(instant(now), &self.sockets);
        due.map_or(Time::NEVER, |at| TICK * u64::try_from(at.total_micros()).unwrap_or(0))
    }

    /// Bytes that were received in order and not yet taken.
    pub fn readable(&self) -> usize {
        self.socket().recv_queue()
    }

    /// Takes `count` readable bytes.
    pub fn take(&mut self, mut count: usize) {
        // The buffer is a ring: at its end it gives less than was asked for.
        while count > 0
            && let Ok(taken) = self.socket_mut().recv(|bytes| {
                let taken = bytes.len().min(count);
                (taken, taken)
            })
            && taken > 0
        {
            count -= taken;
        }
    }

    /// Bytes that the send buffer has room for.
    pub fn writable(&self) -> usize {
        if self.is_established() { self.socket().send_capacity() - self.socket().send_queue() } else { 0 }
    }

    /// Adds `count` bytes to the send buffer, at most as many as are writable.
    pub fn put(&mut self, mut count: usize) {
        while count > 0
            && let Ok(put) = self.socket_mut().send(|bytes| {
                let put = bytes.len().min(count);
                (put, put)
            })
            && put > 0
        {
            count -= put;
        }
    }
}

fn instant(time: Time) -> Instant {
    Instant::from_micros((time.as_ps() / TICK.as_ps()) as i64)
}

/// Where smoltcp gets packets and leaves them.
struct Exchange {
    /// A packet, in a buffer that may be longer, and its length.
    incoming: Option<(Vec<u8>, usize)>,
    outgoing: Vec<Emitted>,
    /// Segments that may be sent still.
    room: usize,
    scratch: Vec<u8>,
    mtu: usize,
}

/// A packet on its way in.
struct Incoming<'a> {
    packet: Vec<u8>,
    len: usize,
    scratch: &'a mut Vec<u8>,
}

/// Room for a packet on its way out.
struct Outgoing<'a> {
    queue: &'a mut Vec<Emitted>,
    /// Memory to write it in; a reply while a packet is read has none of its own.
    scratch: Option<&'a mut Vec<u8>>,
}

impl Device for Exchange {
    type RxToken<'a> = Incoming<'a>;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Incoming<'_>, Outgoing<'_>)> {
        let (packet, len) = self.incoming.take()?;
        let incoming = Incoming { packet, len, scratch: &mut self.scratch };
        let reply = Outgoing { queue: &mut self.outgoing, scratch: None };
        Some((incoming, reply))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Outgoing<'_>> {
        self.room = self.room.checked_sub(1)?;
        Some(Outgoing { queue: &mut self.outgoing, scratch: Some(&mut self.scratch) })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // The NIC does them.
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }
}

impl phy::RxToken for Incoming<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let result = f(&self.packet[..self.len]);
        *self.scratch = self.packet;
        result
    }
}

impl phy::TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut own = Vec::new();
        let packet = self.scratch.unwrap_or(&mut own);
        if packet.len() < len {
            packet.resize(len, 0);
        }
        let packet = &mut packet[..len];
        let result = f(packet);
        let headers_len = headers_len(packet);
        let mut headers = [0; HEADERS_MAX];
        headers[..headers_len].copy_from_slice(&packet[..headers_len]);
        self.queue.push(Emitted { headers, headers_len, payload: (len - headers_len) as u32 });
        result
    }
}

/// Bytes of the IPv4 and TCP headers that `packet` begins with.
fn headers_len(packet: &[u8]) -> usize {
    let ip = usize::from(packet[0] & 0xf) * 4;
    let tcp = packet.get(ip + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    (ip + tcp).min(packet.len()).min(HEADERS_MAX)
}
