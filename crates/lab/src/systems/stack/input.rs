//! A received packet: IP, TCP, the socket it belongs to.

use nicforge_interfaces::kernel::Received;
use nicforge_nic::Segment;
use nicforge_platform::Cpu;
use nicforge_platform::sim::DeviceReader;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, Ipv4View, TcpFlags, TcpView, ip_protocol};

use super::engine::HEADERS_MAX;
use super::processor::Waiting;
use super::receive_queue::Payload;
use super::{Call, Connection, Kernel};

/// Ethernet, IPv4 and TCP without options.
const PLAIN_HEADERS: usize = ETHERNET_HEADER_LEN + 40;

/// What the stack reads of a packet's headers.
pub(super) struct Segmented {
    /// IPv4 and TCP headers.
    headers: [u8; HEADERS_MAX],
    headers_len: usize,
    pub local_port: u16,
    sequence: u32,
    flags: TcpFlags,
    payload: u32,
}

impl Kernel {
    /// Takes a packet from NIC `nic` in, on core `core`.
    pub(super) fn input(&mut self, core: usize, cpu: &mut DeviceReader<'_>, nic: usize, packet: &Received) {
        self.counters.packets_in += 1;
        let mut packet = *packet;
        let taken = match self.gateway.take() {
            Some(mut gateway) => {
                let lock = gateway.lock;
                let taken = lock.hold(cpu, |cpu| self.forward(core, nic, cpu, &mut packet, &mut gateway));
                self.gateway = Some(gateway);
                taken
            }
            None => self.accept(core, nic, cpu, &mut packet),
        };
        if let Err(cause) = taken {
            self.drops.count(cause);
            self.give_up(core, nic, cpu, &packet);
        }
    }

    /// Frees a packet that nobody wants.
    fn give_up(&mut self, core: usize, nic: usize, cpu: &mut DeviceReader<'_>, packet: &Received) {
        if let Some(deferred) = packet.deferred {
            self.drivers[nic].drop_deferred(cpu, deferred);
        }
        self.processors[core].pool.give(cpu, packet.mbuf);
    }

    /// Copies what is still in the NIC behind the rest of the packet.
    pub(super) fn fetch_all(&mut self, cpu: &mut DeviceReader<'_>, nic: usize, packet: &mut Received) {
        if let Some(mut deferred) = packet.deferred.take() {
            let (at, len) = (packet.head.at + u64::from(packet.head.len), deferred.len);
            self.drivers[nic].copy_deferred(cpu, &mut deferred, at, len);
            packet.head.len += len;
        }
    }

    /// Gives a packet to its connection, or says why it has none.
    fn accept(
        &mut self,
        core: usize,
        nic: usize,
        cpu: &mut DeviceReader<'_>,
        packet: &mut Received,
    ) -> Result<(), &'static str> {
        if packet.flags.is_checksum_bad() {
            return Err("bad_checksum");
        }
        let segment = match parse(cpu, packet) {
            // Headers with many options are longer than what was copied of the packet.
            Err(_) if packet.deferred.is_some() => {
                self.fetch_all(cpu, nic, packet);
                parse(cpu, packet)?
            }
            parsed => parsed?,
        };
        cpu.work(match segment.payload {
            0 => self.costs.rx_ack,
            _ => self.costs.rx_data,
        });
        let number = self.connection_at(segment.local_port).ok_or("no_socket")?;
        let lock = self.connections[number].lock;
        lock.hold(cpu, |cpu| {
            self.take_segment(core, nic, cpu, number, packet, &segment);
        });
        Ok(())
    }

    /// The connection whose local port is `port`.
    pub(super) fn connection_at(&self, port: u16) -> Option<usize> {
        let at = |connection: &Connection| connection.plan.local.port == port;
        self.connections.iter().position(at)
    }

    /// Gives connection `number` a segment.
    fn take_segment(
        &mut self,
        core: usize,
        nic: usize,
        cpu: &mut DeviceReader<'_>,
        number: usize,
        packet: &Received,
        segment: &Segmented,
    ) {
        let connection = &mut self.connections[number];
        connection.touch(cpu);
        if segment.flags.contains(TcpFlags::SYN) {
            connection.receive.begin(segment.sequence.wrapping_add(1));
        }
        let now = cpu.now();
        let headers = &segment.headers[..segment.headers_len];
        let wanted = connection.engine.receive(now, headers, segment.payload);
        let unacknowledged = connection.engine.unacknowledged() as u64;
        connection.send.release(cpu, &mut self.processors[core].pool, unacknowledged);
        let not_needed = match segment.payload {
            len if wanted => {
                let skip = (ETHERNET_HEADER_LEN + segment.headers_len) as u32;
                let here = Segment { at: packet.head.at + u64::from(skip), len: (packet.head.len - skip).min(len) };
                let payload = Payload::new(packet.mbuf, here, packet.deferred);
                connection.receive.add(segment.sequence, payload)
            }
            _ => Some(Payload::new(packet.mbuf, packet.head, packet.deferred)),
        };
        if let Some(payload) = not_needed {
            if let Some(deferred) = payload.deferred {
                self.drivers[nic].drop_deferred(cpu, deferred);
            }
            self.processors[core].pool.give(cpu, payload.mbuf);
        }
        self.land(core, cpu, number);
        self.flush(core, cpu, number);
        self.wake(core, cpu, number);
    }

    /// Whether `owner`'s process reads rather than waits for room.
    fn gives_way(&self, owner: usize) -> bool {
        let call = self.processors[owner].call;
        matches!(call, Some(Call::Send { gives_way: true, .. }))
    }

    /// Wakes the process if it waits for what connection `number` now has.
    fn wake(&mut self, core: usize, cpu: &mut DeviceReader<'_>, number: usize) {
        let connection = &self.connections[number];
        let (engine, owner) = (&connection.engine, connection.plan.core);
        let ready = match self.processors[owner].waiting {
            Waiting::Readable(waited) => waited == number && (engine.readable() > 0 || self.landed_enough(owner)),
            Waiting::AnyReadable => engine.readable() > 0,
            // A third of the buffer, as Linux has it (sk_stream_min_wspace).
            Waiting::Writable(waited) => {
                let room = engine.writable() as u64 * 3 >= connection.plan.buffer_bytes;
                waited == number && (room || engine.readable() > 0 && self.gives_way(owner))
            }
            Waiting::No | Waiting::Ever => false,
        };
        if ready {
            self.wake_process(core, cpu, owner);
        }
    }
}

/// Reads the headers, a line or two of the packet.
pub(super) fn parse<C: Cpu>(cpu: &mut C, packet: &Received) -> Result<Segmented, &'static str> {
    const MALFORMED: &str = "malformed";
    let have = packet.head.len as usize;
    let first = cpu.bytes(packet.head.at, have.min(PLAIN_HEADERS));
    let ip = Ipv4View::new(first.get(ETHERNET_HEADER_LEN..).ok_or(MALFORMED)?).map_err(|_| "not_ipv4")?;
    if ip.protocol() != ip_protocol::TCP || ip.is_fragment() {
        return Err("not_tcp");
    }
    let (ip_len, total) = (ip.header_len(), usize::from(ip.total_len()));
    let tcp_at = ETHERNET_HEADER_LEN + ip_len;
    let data_offset = first.get(tcp_at + 12).ok_or(MALFORMED)?;
    let headers_len = ip_len + usize::from(data_offset >> 4) * 4;
    let in_nic = packet.deferred.map_or(0, |deferred| deferred.len) as usize;
    let frame = ETHERNET_HEADER_LEN + headers_len;
    if headers_len > HEADERS_MAX || frame > have || ETHERNET_HEADER_LEN + total > have + in_nic {
        return Err(MALFORMED);
    }
    let all = &cpu.bytes(packet.head.at, frame)[ETHERNET_HEADER_LEN..];
    let mut headers = [0; HEADERS_MAX];
    headers[..headers_len].copy_from_slice(all);
    let tcp = TcpView::new(&all[ip_len..]).map_err(|_| MALFORMED)?;
    Ok(Segmented {
        headers,
        headers_len,
        local_port: tcp.destination_port(),
        sequence: tcp.sequence(),
        flags: tcp.flags(),
        payload: total.checked_sub(headers_len).ok_or(MALFORMED)? as u32,
    })
}
