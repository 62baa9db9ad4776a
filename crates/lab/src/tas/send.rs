//! Segments from flows' rings to the NIC.

use nicforge_nic::{Packet, Segment, TxOffload, data_of};
use nicforge_platform::{Addr, Cpu, Part};
use nicforge_tcp::stack::{Departure, Outgoing};
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN, Ipv4View};

use super::frame::{write_ethernet, write_headers};
use super::rings::copy_pieces;
use super::service::{BURST, Service, touch};

impl<C: Cpu> Service<C> {
    /// Sends what is due, up to a burst. Returns how many segments that were.
    pub fn transmit(&mut self, cpu: &mut C) -> usize {
        self.stack.on_timer(cpu.now());
        self.take_events();
        let mut sent = 0;
        while sent < BURST && self.stack.may_transmit() {
            // A buffer first: a segment that TCP has given must leave.
            let Some(mbuf) = self.wire.pool.take(cpu) else {
                break;
            };
            let Some(outgoing) = self.stack.transmit_header(cpu.now()) else {
                self.wire.pool.give(cpu, mbuf);
                break;
            };
            cpu.enter(Part::Stack);
            cpu.work(self.costs.segment);
            let len = match outgoing {
                Outgoing::Frame(packet) => self.write_packet(cpu, mbuf, &packet),
                Outgoing::Segment(departure) => self.write_segment(cpu, mbuf, &departure),
            };
            self.push(cpu, mbuf, len);
            sent += 1;
        }
        if sent > 0 {
            cpu.enter(Part::Driver);
            self.wire.transmit.ring_doorbell(cpu);
        }
        sent
    }

    fn push(&mut self, cpu: &mut C, mbuf: Addr, len: u32) {
        let packet = Packet {
            offload: TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() },
            ..Packet::in_buffer(mbuf, len, cpu.now())
        };
        self.counters.segments_out += 1;
        if self.wire.transmit.push(cpu, &packet, true).is_err() {
            self.drops.count("tx_ring_full");
            self.wire.pool.give(cpu, mbuf);
        }
    }

    /// A packet of headers only, behind an Ethernet header.
    fn write_packet(&mut self, cpu: &mut C, mbuf: Addr, packet: &[u8]) -> u32 {
        let len = ETHERNET_HEADER_LEN + packet.len();
        let out = cpu.bytes_mut(data_of(mbuf), len);
        out[ETHERNET_HEADER_LEN..].copy_from_slice(packet);
        if let Ok(ip) = Ipv4View::new(packet) {
            write_ethernet(out, ip.source(), ip.destination());
        }
        len as u32
    }

    fn write_segment(&mut self, cpu: &mut C, mbuf: Addr, departure: &Departure) -> u32 {
        let Departure { connection, emission, .. } = departure;
        if let Some(state) = self.states.get(connection.number()) {
            touch(cpu, *state);
        }
        let (Some(tuple), Some((_, ring))) = (self.stack.tuple(*connection), self.stack.rings(*connection)) else {
            return 0;
        };
        let ring = *ring;
        self.identification = self.identification.wrapping_add(1);
        let header = &emission.header;
        let (headers, at) = (ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + header.emitted_len(), data_of(mbuf));
        let out = cpu.bytes_mut(at, headers);
        write_headers(out, &tuple, header, emission.ecn, self.identification);
        if let Some(span) = emission.payload {
            cpu.enter(Part::Copy);
            let to = Segment { at: at + headers as u64, len: span.len };
            copy_pieces(cpu, ring.pieces(span.at, span.len), [to, Segment::default()]);
            cpu.enter(Part::Stack);
        }
        headers as u32 + header.payload_len
    }
}
