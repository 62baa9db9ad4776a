//! Segments on their way out: headers in a buffer of the kernel, payload where the socket has it.

use nicforge_interfaces::kernel::Sending;
use nicforge_nic::{Segment, TxOffload, data_of};
use nicforge_platform::sim::DeviceReader;
use nicforge_platform::{Addr, Cpu, Part, copy};
use nicforge_units::Time;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, EthernetView, Ipv4View, MacAddress, TcpFlags, TcpView, ethertype};

use super::Kernel;
use super::engine::{Emitted, Endpoint};

/// Segments that TCP may send in one go; more follow in a step of their own.
const BURST: usize = 4;
/// A timer that is due and has nothing to say is looked at again after this time.
const TIMER_STEP: Time = Time::from_us(1);

impl Kernel {
    /// Sends what is due on connection `number`, as far as there is room, on core `core`.
    pub(super) fn flush(&mut self, core: usize, cpu: &mut DeviceReader<'_>, number: usize) {
        let nic = self.connections[number].plan.nic;
        let sender = self.sender(core, nic);
        let engine = &mut self.connections[number].engine;
        let room = if self.processors[sender].queues[nic].is_empty() { BURST } else { 0 };
        engine.send_due(cpu.now(), room);
        let before = self.counters.packets_out;
        let segments = self.connections[number].engine.take_emitted();
        for segment in &segments {
            self.send(core, cpu, number, segment);
        }
        self.connections[number].engine.give_back(segments);
        let now = cpu.now();
        let sent = self.counters.packets_out > before;
        let connection = &mut self.connections[number];
        let due = connection.engine.due();
        connection.held_back = !sent && room > 0 && due > now;
        let due = match due {
            // The queue must drain first; then it is looked at again.
            due if due <= now && room == 0 => Time::NEVER,
            due if due <= now && !sent => now + TIMER_STEP,
            due => due,
        };
        self.set_due(core, now, number, due);
    }

    fn send(&mut self, core: usize, cpu: &mut DeviceReader<'_>, number: usize, segment: &Emitted) {
        cpu.enter(Part::Stack);
        cpu.work(match segment.payload {
            0 => self.costs.tx_ack,
            _ => self.costs.tx_data,
        });
        let connection = &mut self.connections[number];
        connection.touch(cpu);
        let plan = &connection.plan;
        let (nic, headers_len) = (plan.nic, ETHERNET_HEADER_LEN + segment.headers().len());
        let (sequence, flags) = sequence_of(segment.headers());
        if flags.contains(TcpFlags::SYN) {
            connection.send.begin(sequence.wrapping_add(1));
        }
        let place = if segment.payload > 0 { connection.send.send(sequence, segment.payload) } else { 0 };
        let pool = &mut self.processors[core].pool;
        // What the NIC has yet to read is sent again by a copy, as its headers are others.
        let whole = if segment.payload > 0 { connection.send.whole(place, segment.payload) } else { None };
        let whole = whole.filter(|part| !pool.is_cloned(part.mbuf));
        let (mbuf, at) = match whole {
            // Headers go in front of the payload, and both are one piece.
            Some(part) => (pool.clone_of(cpu, part.mbuf), Addr(part.at().0 - headers_len as u64)),
            None => match pool.take(cpu) {
                Some(mbuf) => (mbuf, data_of(mbuf)),
                // The segment is lost, and TCP will send it again.
                None => {
                    self.drops.count("no_buffer_to_send");
                    return;
                }
            },
        };
        let headers = cpu.bytes_mut(at, headers_len);
        write_ethernet(headers, plan.local, plan.remote);
        headers[ETHERNET_HEADER_LEN..].copy_from_slice(segment.headers());
        if whole.is_none() && segment.payload > 0 {
            self.collapse(cpu, number, place, segment.payload, at + headers_len as u64);
        }
        let frame = Segment { at, len: headers_len as u32 + segment.payload };
        let sending = Sending {
            mbuf,
            pieces: [frame, Segment::default(), Segment::default()],
            offload: TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() },
        };
        self.counters.packets_out += 1;
        self.transmit(core, cpu, nic, sending);
    }

    /// Copies payload that lies in several buffers, or begins within one, to one place (`tcp_retrans_try_collapse`).
    fn collapse(&self, cpu: &mut DeviceReader<'_>, number: usize, place: u64, len: u32, mut to: Addr) {
        cpu.enter(Part::Copy);
        for piece in self.connections[number].send.pieces(place, len) {
            copy(cpu, piece.at, to, piece.len as usize);
            cpu.work(self.copy_work(piece.len.into()));
            to = to + u64::from(piece.len);
        }
        cpu.enter(Part::Stack);
    }

    /// Gives a frame to the driver, or keeps it until there is room.
    pub(super) fn transmit(&mut self, core: usize, cpu: &mut DeviceReader<'_>, nic: usize, sending: Sending) {
        let by_thread = self.drivers[nic].advice().transmit_thread;
        let sender = self.sender(core, nic);
        if by_thread && self.processors[sender].queues[nic].is_empty() {
            // The thread is woken, and has its turn.
            cpu.work(self.costs.wake);
            self.processors[sender].sends_from[nic] = cpu.now();
            self.wakes.push((sender, cpu.now()));
        }
        let before = cpu.enter(Part::Driver);
        let processor = &mut self.processors[sender];
        let waits = by_thread || !processor.queues[nic].is_empty();
        if waits || self.drivers[nic].transmit(cpu, &mut processor.pool, &sending, core).is_err() {
            processor.queues[nic].push_back((cpu.now(), sending));
        }
        cpu.enter(before);
    }

    /// Gives the driver the frames that wait: those that it had no room for, or those of its thread.
    /// Then connections may go on.
    pub(super) fn drain_queue(&mut self, core: usize, cpu: &mut DeviceReader<'_>, nic: usize) {
        self.processors[core].sends_from[nic] = Time::NEVER;
        let before = cpu.enter(Part::Driver);
        self.drain(core, cpu, nic);
        cpu.enter(before);
    }

    fn drain(&mut self, core: usize, cpu: &mut DeviceReader<'_>, nic: usize) {
        let processor = &mut self.processors[core];
        if processor.queues[nic].is_empty() {
            return;
        }
        while let Some((from, sending)) = processor.queues[nic].front() {
            if *from > cpu.now() {
                processor.sends_from[nic] = *from;
                return;
            }
            if self.drivers[nic].transmit(cpu, &mut processor.pool, sending, core).is_err() {
                return;
            }
            processor.queues[nic].pop_front();
        }
        let now = cpu.now();
        for number in 0..self.connections.len() {
            let connection = &mut self.connections[number];
            if connection.plan.nic == nic {
                let due = connection.engine.due();
                self.set_due(core, now, number, due);
            }
        }
    }
}

/// The hardware address of a host: no address resolution is modelled.
fn hardware_address(end: Endpoint) -> MacAddress {
    let [a, b, c, d] = end.address.octets();
    MacAddress([2, 0, a, b, c, d])
}

fn write_ethernet(frame: &mut [u8], from: Endpoint, to: Endpoint) {
    // The frame is long enough for the header.
    if let Ok(mut view) = EthernetView::new(frame) {
        view.set_destination(hardware_address(to));
        view.set_source(hardware_address(from));
        view.set_ethertype(ethertype::IPV4);
    }
}

/// Sequence number and flags of what TCP wants sent.
fn sequence_of(headers: &[u8]) -> (u32, TcpFlags) {
    let ip_len = Ipv4View::new(headers).map_or(0, |ip| ip.header_len());
    TcpView::new(&headers[ip_len..]).map_or((0, TcpFlags::default()), |tcp| (tcp.sequence(), tcp.flags()))
}
