//! Neighbours of IPv6 (RFC 4861): questions for the port's own addresses are answered, and where the next hop
//! says it is it is found. What is about others goes on to the NIC.

use std::net::Ipv6Addr;

use nicforge_units::Time;
use nicforge_wire::headers::{EthernetView, ethertype, ip_protocol};
use nicforge_wire::neighbour::{NeighbourKind, NeighbourMessage};

use super::{Heard, NDP, Responder};

impl Responder {
    /// Whether `frame` is one of ICMPv6.
    #[inline]
    pub(super) fn is_icmpv6(frame: &[u8]) -> bool {
        const KIND: std::ops::Range<usize> = 12..14;
        const NEXT_HEADER: usize = 20;
        frame.get(KIND) == Some(&ethertype::IPV6.to_be_bytes()) && frame.get(NEXT_HEADER) == Some(&ip_protocol::ICMPV6)
    }

    /// Hears `frame`, of ICMPv6.
    #[cold]
    pub(super) fn hear_icmpv6(&mut self, frame: &[u8], now: Time) -> Heard {
        match NeighbourMessage::read(frame) {
            Some(message) => self.hear_neighbour(frame, &message, now),
            None if self.echoes => self.echo_v6(frame),
            None => Heard::NotOurs,
        }
    }

    fn hear_neighbour(&mut self, frame: &[u8], message: &NeighbourMessage, now: Time) -> Heard {
        // Who asks says where it is; who looks whether its address is free does not have it yet.
        let (about, own) = match message.kind {
            NeighbourKind::Solicitation => (message.source, message.target),
            NeighbourKind::Advertisement => (message.target, message.destination),
        };
        if let Some(hardware) = message.hardware {
            self.hear_of(about.into(), hardware, now);
        }
        if !self.has(own) {
            return Heard::NotOurs;
        }
        let asker = EthernetView::new(frame).map(|ethernet| ethernet.source());
        match (message.kind, asker) {
            (NeighbourKind::Solicitation, Ok(asker)) => Heard::Answer(message.answer(self.mac, asker)),
            _ => Heard::Done(NDP),
        }
    }

    /// Whether `address` is its own.
    pub(super) fn has(&self, address: Ipv6Addr) -> bool {
        Some(address) == self.address6 || address == self.mac.link_local()
    }
}
