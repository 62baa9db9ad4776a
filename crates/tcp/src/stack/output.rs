//! Frames out.

use std::net::IpAddr;

use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

use super::frames::{LowerHeaders, write_segment};
use super::{ANSWERS_MOST, ConnectionId, FourTuple, Medium, Stack};
use crate::conn::Emission;
use crate::ring::{Buffers, ByteRing};
use crate::segment::{Ecn, Header};

/// A segment of a connection that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The connection.
    pub connection: ConnectionId,
    /// The next hop's hardware address; zero where the medium has none.
    pub to_mac: MacAddress,
    /// The header, and where the payload lies in the transmit ring.
    pub emission: Emission,
}

/// What leaves next.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// A whole frame that no connection sends: neighbour discovery, SYN-ACK, RST, ICMP.
    Frame(Vec<u8>),
    /// A segment of a connection.
    Segment(Departure),
}

impl<B: Buffers> Stack<B> {
    /// Writes the next frame to `out`, which has room for the MTU and a link header. Returns its length in bytes, or
    /// nothing when there is nothing to send now.
    pub fn transmit(&mut self, now: Time, out: &mut [u8]) -> Option<usize> {
        loop {
            match self.transmit_header(now)? {
                Outgoing::Frame(frame) => {
                    out.get_mut(..frame.len())?.copy_from_slice(&frame);
                    return Some(frame.len());
                }
                Outgoing::Segment(departure) => {
                    if let Some(len) = self.write_departure(&departure, out) {
                        return Some(len);
                    }
                }
            }
        }
    }

    /// What leaves next, for a caller that builds frames itself and takes the payload from where it keeps it.
    pub fn transmit_header(&mut self, now: Time) -> Option<Outgoing> {
        if let Some(frame) = self.answers.pop_front() {
            self.counters.frames_out += 1;
            return Some(Outgoing::Frame(frame));
        }
        while let Some(&index) = self.ready.front() {
            let Some(to_mac) = self.hardware_of(index, now) else {
                self.ready.pop_front();
                continue;
            };
            let emission = self.entry_at(index).and_then(|entry| entry.connection.transmit(now));
            let Some(emission) = emission else {
                self.turn = 0;
                self.ready.pop_front();
                self.settle(index);
                continue;
            };
            self.turn += emission.header.payload_len;
            // Others get their turn.
            if self.turn >= self.host.turn_bytes && self.ready.len() > 1 {
                self.next_turn();
            }
            self.counters.frames_out += 1;
            return Some(Outgoing::Segment(Departure { connection: self.id_of(index), to_mac, emission }));
        }
        None
    }

    /// Whether something may be ready to leave now.
    pub fn may_transmit(&self) -> bool {
        !self.answers.is_empty() || !self.ready.is_empty()
    }

    fn next_turn(&mut self) {
        self.turn = 0;
        self.ready.rotate_left(1);
    }

    /// A connection has nothing more to send now.
    fn settle(&mut self, index: u32) {
        if let Some(entry) = self.entry_at(index) {
            entry.queued = true;
            self.after(index);
            if let Some(entry) = self.entry_at(index) {
                entry.queued = false;
            }
            self.collect(index);
        }
    }

    /// Hardware address for a connection's frames; nothing while it is asked for. The connection is then queued again
    /// when the answer comes.
    fn hardware_of(&mut self, index: u32, now: Time) -> Option<MacAddress> {
        if self.host.medium == Medium::Ip {
            return Some(MacAddress([0; 6]));
        }
        let Some(hop) = self.entry_at(index).and_then(|entry| entry.next_hop) else { return Some(MacAddress([0; 6])) };
        let found = self.resolve(hop, now);
        if found.is_none()
            && let Some(entry) = self.entry_at(index)
        {
            entry.queued = false;
        }
        found
    }

    fn write_departure(&mut self, departure: &Departure, out: &mut [u8]) -> Option<usize> {
        let identification = self.next_identification();
        let (medium, from_mac) = (self.host.medium, self.host.mac);
        let Departure { connection, to_mac, emission } = departure;
        let entry = self.entry_mut(*connection)?;
        let lower = LowerHeaders {
            medium,
            from_mac,
            to_mac: *to_mac,
            source: entry.tuple.local,
            destination: entry.tuple.remote,
            tos: entry.connection.tuning.tos,
            hops: entry.connection.tuning.ttl,
            ecn: emission.ecn,
            identification,
        };
        let ring = entry.tx.as_ref();
        write_segment(out, &lower, &emission.header, |payload| {
            if let (Some(ring), Some(span)) = (ring, emission.payload) {
                ring.read(span.at, payload);
            }
        })
    }

    /// RFC 6864: packets that are never fragmented need no distinct identification, but tools like one.
    fn next_identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    /// Queues a segment that no connection sends: SYN-ACK, RST, acknowledgments of half-open connections.
    pub(super) fn answer(&mut self, tuple: &FourTuple, header: &Header) {
        let Some(to_mac) = self.hardware_for_answer(tuple.remote) else { return };
        let lower = LowerHeaders {
            medium: self.host.medium,
            from_mac: self.host.mac,
            to_mac,
            source: tuple.local,
            destination: tuple.remote,
            tos: 0,
            hops: 0,
            ecn: Ecn::NotCapable,
            identification: self.next_identification(),
        };
        let mut frame = vec![0; lower.len() + header.emitted_len()];
        if write_segment(&mut frame, &lower, header, |_| {}).is_some() {
            self.queue_answer(frame);
        }
    }

    pub(super) fn queue_answer(&mut self, frame: Vec<u8>) {
        if self.answers.len() >= ANSWERS_MOST {
            self.counters.answers_dropped += 1;
            return;
        }
        self.answers.push_back(frame);
    }

    fn hardware_for_answer(&mut self, remote: IpAddr) -> Option<MacAddress> {
        if self.host.medium == Medium::Ip {
            return Some(MacAddress([0; 6]));
        }
        let hop = self.host.next_hop(remote)?;
        self.known_neighbour(hop)
    }
}
