//! Segments from flows' rings to the NIC.

use nicforge_nic::{Packet, Segment, TxOffload, data_of};
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Addr, Cpu, Part};
use nicforge_tcp::stack::{Departure, Outgoing};
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN, Ipv4View};

use super::frame::{write_ethernet, write_headers};
use super::records::offload::Readiness;
use super::rings::copy_pieces;
use super::run::Run;
use super::service::{Service, touch};

impl Service {
    /// Sends what is due, up to a burst. Returns how many segments that were.
    pub fn transmit(&mut self, cpu: &mut SimCpu) -> usize {
        self.stack.on_timer(cpu.now());
        self.take_events(cpu.now());
        let mut going = Run::default();
        let mut sent = self.send_commands(cpu);
        while sent < self.burst && self.stack.may_transmit() && self.has_room() {
            // A buffer first: a segment that TCP has given must leave.
            let Some(mbuf) = self.wire.pool.take(cpu) else {
                break;
            };
            let Some(outgoing) = self.stack.transmit_header(cpu.now()) else {
                self.wire.pool.give(cpu, mbuf);
                break;
            };
            cpu.enter(Part::Stack);
            match outgoing {
                Outgoing::Frame(packet) => {
                    cpu.work(self.costs.going.first);
                    let len = self.write_packet(cpu, mbuf, &packet);
                    self.push(cpu, Packet::in_buffer(mbuf, len, cpu.now()));
                }
                Outgoing::Segment(departure) => {
                    let (id, payload) = (departure.connection, departure.emission.header.payload_len);
                    cpu.work(going.add(&self.costs.going, Some(id.number()), payload));
                    self.send_segment(cpu, mbuf, &departure);
                }
            }
            sent += 1;
        }
        if sent > 0 {
            cpu.enter(Part::Driver);
            self.wire.transmit.ring_doorbell(cpu);
        }
        sent
    }

    /// A segment, behind what the NIC has to know before it.
    fn send_segment(&mut self, cpu: &mut SimCpu, mbuf: Addr, departure: &Departure) {
        let (flow, header) = (departure.connection.number(), &departure.emission.header);
        let Readiness::Marked(mark) = self.ready(cpu, flow, header.seq.0, header.payload_len) else {
            self.drops.count("record_gone");
            self.wire.pool.give(cpu, mbuf);
            return;
        };
        let packet = Packet { mark, ..self.write_segment(cpu, mbuf, departure) };
        if !self.push(cpu, packet) {
            self.not_sent(flow);
        }
    }

    /// Tells whether the NIC's ring has it.
    fn push(&mut self, cpu: &mut SimCpu, packet: Packet) -> bool {
        let offload = TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() };
        self.counters.segments_out += 1;
        let is_sent = self.wire.transmit.push(cpu, &Packet { offload, ..packet }, true).is_ok();
        if !is_sent {
            self.drops.count("tx_ring_full");
            self.wire.pool.give(cpu, packet.mbuf);
        }
        is_sent
    }

    /// A packet of headers only, behind an Ethernet header.
    fn write_packet(&mut self, cpu: &mut SimCpu, mbuf: Addr, packet: &[u8]) -> u32 {
        let len = ETHERNET_HEADER_LEN + packet.len();
        let out = cpu.bytes_mut(data_of(mbuf), len);
        out[ETHERNET_HEADER_LEN..].copy_from_slice(packet);
        if let Ok(ip) = Ipv4View::new(packet) {
            write_ethernet(out, ip.source(), ip.destination());
        }
        len as u32
    }

    /// The segment as a packet: headers in the buffer, and payload behind them or where the ring has it.
    fn write_segment(&mut self, cpu: &mut SimCpu, mbuf: Addr, departure: &Departure) -> Packet {
        let Departure { connection, emission, .. } = departure;
        if let Some(state) = self.states.get(connection.number()) {
            touch(cpu, *state);
        }
        let (Some(tuple), Some((_, ring))) = (self.stack.tuple(*connection), self.stack.rings(*connection)) else {
            return Packet::in_buffer(mbuf, 0, cpu.now());
        };
        let ring = *ring;
        self.identification = self.identification.wrapping_add(1);
        let header = &emission.header;
        let (headers, at) = (ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + header.emitted_len(), data_of(mbuf));
        let out = cpu.bytes_mut(at, headers);
        write_headers(out, &tuple, header, emission.ecn, self.identification);
        let alone = Packet::in_buffer(mbuf, headers as u32, cpu.now());
        let Some(span) = emission.payload else { return alone };
        let pieces = ring.pieces(span.at, span.len);
        if self.gathers && pieces[1].len == 0 {
            return Packet { rest: pieces[0], ..alone };
        }
        cpu.enter(Part::Copy);
        let to = Segment { at: at + headers as u64, len: span.len };
        copy_pieces(cpu, pieces, [to, Segment::default()]);
        cpu.enter(Part::Stack);
        Packet::in_buffer(mbuf, headers as u32 + span.len, cpu.now())
    }
}
