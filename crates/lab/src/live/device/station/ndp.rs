//! Neighbours of IPv6 (RFC 4861): questions for the port's own addresses are answered, and where the next hop
//! says it is it is found. What is about others goes on to the NIC.

use std::net::Ipv6Addr;

use nicforge_units::Time;
use nicforge_wire::headers::{EthernetView, ethertype, ip_protocol};
use nicforge_wire::neighbour::{NeighbourKind, NeighbourMessage};

use super::Station;

impl Station {
    /// Whether `frame` is one of ICMPv6.
    #[inline]
    pub(super) fn is_icmpv6(frame: &[u8]) -> bool {
        const KIND: std::ops::Range<usize> = 12..14;
        const NEXT_HEADER: usize = 20;
        frame.get(KIND) == Some(&ethertype::IPV6.to_be_bytes()) && frame.get(NEXT_HEADER) == Some(&ip_protocol::ICMPV6)
    }

    /// Hears `frame`, of ICMPv6; whether it is not for the NIC.
    #[cold]
    pub(super) fn hear_icmpv6(&mut self, frame: &[u8], now: Time) -> bool {
        match NeighbourMessage::read(frame) {
            Some(message) => self.hear_neighbour(frame, &message, now),
            None => self.echoes && self.echo_v6(frame),
        }
    }

    fn hear_neighbour(&mut self, frame: &[u8], message: &NeighbourMessage, now: Time) -> bool {
        // Who asks says where it is; who looks whether its address is free does not have it yet.
        let (about, own) = match message.kind {
            NeighbourKind::Solicitation => (message.source, message.target),
            NeighbourKind::Advertisement => (message.target, message.destination),
        };
        if let Some(hardware) = message.hardware {
            self.hear_of(about.into(), hardware, now);
        }
        if !self.has(own) {
            return false;
        }
        self.counts.taken += 1;
        let asker = EthernetView::new(frame).map(|ethernet| ethernet.source());
        match (message.kind, asker) {
            (NeighbourKind::Solicitation, Ok(asker)) => {
                self.outgoing.push(message.answer(self.mac, asker));
            }
            _ => self.counts.ndp += 1,
        }
        true
    }

    /// Whether `address` is its own.
    pub(super) fn has(&self, address: Ipv6Addr) -> bool {
        Some(address) == self.address6 || address == self.mac.link_local()
    }
}
